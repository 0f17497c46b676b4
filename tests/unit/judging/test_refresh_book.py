"""The sheet of a refresh as a book with two raters."""

from __future__ import annotations

import re
import subprocess

import pytest

from cranfield.app.loading import load
from cranfield.books.store.schema import Action, Role
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest

pytestmark = pytest.mark.slow
SET = """cranfield_testset: 1
name: clinic
version: v1
meta: {scale: [0, 1, 2, 3]}
queries:
  - {id: q1, text: dose of aspirin, judgments: {a1: 3}}
  - {id: q2, text: side effects of statins, judgments: {s1: 2}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRANFIELD_DB", raising=False)
    (tmp_path / "clinic.yaml").write_text(SET)
    (tmp_path / "log.tsv").write_text("storage of insulin\t30\nvaccines for travel\t9\n")
    command("--plan", "sheet.csv", "--queries-out", "new.tsv")
    ids = [line.split("\t")[0] for line in (tmp_path / "new.tsv").read_text().splitlines()]
    lines = [f"{query} Q0 {query}-{n} {n} {9 - n} bm25\n" for query in ids for n in range(1, 6)]
    (tmp_path / "new.run").write_text("".join(lines))
    return tmp_path


def command(*arguments):
    fixed = ("clinic.yaml", "--log", "log.tsv", "--n", "2", "--sample", "top")
    return subprocess.run(
        ["cranfield", "testset", "refresh", *fixed, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def grade(folder, differing):
    """Ann and bob grade every document; they differ on the first ones."""
    store = open_store(folder / "cranfield-books.db")
    info = store.books.get("round 2")
    ann, bob = (store.people.find(name) or store.people.add(name, Role.RATER) for name in ("ann", "bob"))
    for place, item in enumerate(store.reading.items(info.id)):
        for rater in (ann, bob):
            given = (place + (rater is bob and place < differing)) % 2 * 3
            key = f"{item.id}:{rater.id}:{differing}"
            store.log.save(SaveRequest(info.id, item.id, rater.id, Action.GRADE, key, given, method="key"))
    store.close()


def test_a_refresh_is_graded_in_a_book(folder):
    made = command("--book", "round 2", "--run", "new.run")
    assert made.returncode == 0, made.stderr
    assert "created book round 2: 10 documents for two raters, kappa must be above 0.6" in made.stderr
    early = command("--book", "round 2", "--out", "next.yaml")
    assert (early.returncode, "has the grades of 0 raters" in early.stderr) == (2, True)
    grade(folder, differing=4)
    for refused in (command("--book", "round 2", "--out", "next.yaml"), freeze(folder)):
        assert refused.returncode == 1
        found = re.search(r"Cohen's kappa of ann and bob is 0\.\d+, 95 % CI \S+ to \S+, n=10", refused.stderr)
        assert found, refused.stderr
    assert not (folder / "next.yaml").exists()
    grade(folder, differing=1)
    written = command("--book", "round 2", "--out", "next.yaml", "--today", "2026-11-23")
    assert written.returncode == 0, written.stderr
    again = load(folder / "next.yaml")
    assert (again.version, len(again.queries), again.consensus) == ("v2", 2, "mean")
    assert {rating.rater for given in again.ratings.values() for rating in given} == {"ann", "bob"}
    assert freeze(folder).returncode == 0


def freeze(folder):
    return subprocess.run(
        ["cranfield", "book", "freeze", "round 2", "--out", "frozen.yaml", "--allow-partial"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=folder,
    )


def test_a_book_and_a_sheet_are_two_ways(folder):
    both = command("--book", "b", "--plan", "other.csv")
    assert (both.returncode, "replaces the sheet" in both.stderr) == (2, True)
    bare = command("--book", "b")
    assert (bare.returncode, "without a run" in bare.stderr) == (2, True)
