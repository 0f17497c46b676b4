"""Alternatives: results of missed queries, graded by a person, become targets of grade 1 that name who found them."""

from __future__ import annotations

from contextlib import closing
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cranfield.app.loading import read_stored
from cranfield.base.errors import UsageError
from cranfield.books.pool_file import Pool
from cranfield.books.store.schema import Action, Role
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest
from cranfield.cli.main import command_line
from cranfield.judging.pools.pool_io import read_pool
from cranfield.judging.pools.results import alternatives_of, with_alternatives, without_alternatives
from cranfield.model import Entity, Span, TestSet

TESTSET = """cranfield_testset: 1
name: code
queries:
- {id: q1, text: open the index, entities: ["src/a.py::open"]}
- {id: q2, text: write a row, spans: [{path: src/b.py, lines: 1-9}]}
- {id: q3, text: read a row, entities: ["src/b.py::read"]}
"""
RUNS = {
    "one.run": "q1 Q0 src/a.py::open 1 9 one\nq2 Q0 src/c.py:5-9 1 9 one\nq2 Q0 src/d.py:1-2 2 8 one\nq3 Q0 src/x.py::y 1 9 one\n",
    "two.run": "q1 Q0 src/z.py::z 1 9 two\nq2 Q0 src/b.py:2-3 1 9 two\nq3 Q0 src/b.py::read 2 9 two\n",
}
TODAY = date(2026, 11, 23)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, text in {"code.yaml": TESTSET, **RUNS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def pool(*arguments: str) -> str:
    done = CliRunner().invoke(command_line("pool"), ["pool", *arguments], prog_name="cranfield")
    assert done.exit_code == 0, done.output
    return done.stdout


def built(*more: str) -> Pool:
    given = ("one.run", "two.run", "--testset", "code.yaml", "--preset", "alternatives", "--depth", "2")
    pool("build", *given, "--out", "pool.json", *more)
    return read_pool("pool.json")


GRADES = {"q1": {"src/z.py::z": 0.0}, "q2": {"src/c.py:5-9": 1.0}, "q3": {"src/x.py::y": 2.0}}


@pytest.fixture
def accepted(folder: Path) -> TestSet:
    return with_alternatives(read_stored(folder / "code.yaml"), built(), GRADES, TODAY)


@pytest.mark.usefixtures("folder")
def test_the_preset_holds_the_results_of_runs_that_miss_a_query() -> None:
    found = built()
    assert [(item.query, item.doc, item.runs) for item in found.items if item.is_open] == [
        ("q1", "src/z.py::z", {"two": 1}),
        ("q2", "src/c.py:5-9", {"one": 1}),
        ("q2", "src/d.py:1-2", {"one": 2}),
        ("q3", "src/x.py::y", {"one": 1}),
    ]
    assert found.complete_to == 0


def test_what_a_person_accepts_becomes_a_target_of_grade_1_with_its_finder(folder: Path, accepted: TestSet) -> None:
    assert accepted.targets["q2"][-1] == Span("src/c.py", 5, 9, 1)
    assert accepted.targets["q3"][-1] == Entity("src/x.py::y", 1)
    assert [(each.query_id, each.label, each.found_by) for each in alternatives_of(accepted)] == [
        ("q2", "src/c.py:5-9", ("one",)),
        ("q3", "src/x.py::y", ("one",)),
    ]
    before = read_stored(folder / "code.yaml")
    assert accepted.targets["q1"] == before.targets["q1"]
    assert without_alternatives(accepted).targets == before.targets
    assert accepted.meta.history[-1] == "2026-11-23: 2 alternatives of grade 1, found by one"


def test_a_pool_of_another_version_or_without_a_grade_is_refused(folder: Path, accepted: TestSet) -> None:
    with pytest.raises(UsageError, match="another version of the test set"):
        with_alternatives(accepted, built(), GRADES, TODAY)
    with pytest.raises(UsageError, match="no result of the pool was graded above 0"):
        with_alternatives(read_stored(folder / "code.yaml"), built(), {}, TODAY)


def test_a_book_asks_a_person_and_both_scores_are_shown(folder: Path) -> None:
    built("--book", "misses", "--db", "books.db")
    with closing(open_store("books.db")) as store:
        person, book = store.people.add("ann", Role.RATER), store.books.get("misses")
        for item in store.reading.items(book.id):
            grade = GRADES.get(item.query, {}).get(item.doc)
            if grade is not None:
                save = SaveRequest(book.id, item.id, person.id, Action.GRADE, f"k{item.id}", min(grade, 1.0))
                store.log.save(save)
    pool("accept", "code.yaml", "pool.json", "--book", "misses", "--db", "books.db", "--out", "next.yaml")
    assert len(alternatives_of(read_stored(folder / "next.yaml"))) == 2
    text = pool("alternatives", "next.yaml", "one.run", "two.run", "-m", "RR@10")
    rows = [line.split() for line in text.splitlines() if "RR@10" in line]
    assert rows == [["one", "RR@10", "0.3333", "1.0000", "+0.6667"], ["two", "RR@10", "0.6667", "0.6667", "0.0000"]]
    assert "Scores with alternatives favour these systems" in " ".join(text.split())
