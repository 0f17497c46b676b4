"""From runs to a judged test set: three systems of the demo pooled, judged by a scripted rater, frozen, and scored."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from contextlib import closing
from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest

from cranfield import load
from cranfield.formats.runs.files import write_trec_run
from cranfield.formats.runs.jsonl import read_run
from cranfield.formats.testsets.native import write_testset_yaml
from cranfield.judging.book.contents import contents_of
from cranfield.judging.book.freeze import freeze
from cranfield.judging.store.database import open_store
from cranfield.judging.store.schema import Action
from cranfield.judging.store.values import SaveRequest
from cranfield.model import Answer, Hit, Outcome, Run

DEPTH = 5
N_QUERIES = 12


def grade_of(query: str, doc: str) -> int:
    """The script of the rater."""
    return sha256(f"{query} {doc}".encode()).digest()[0] % 4


def fused(first: Run, second: Run) -> Run:
    """The third system: reciprocal rank fusion of the other two."""
    answers = {}
    for query in first.answers:
        scores: dict[str, float] = defaultdict(float)
        for run in (first, second):
            for rank, hit in enumerate(run.answers[query].hits, start=1):
                scores[hit.id] += 1 / (60 + rank)
        order = sorted(scores, key=lambda doc: (-scores[doc], doc))
        answers[query] = Answer(Outcome.ANSWERED, tuple(Hit(doc, scores[doc]) for doc in order))
    return Run("fused", answers)


def cranfield(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["cranfield", *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def judge_all(database: Path, book: str) -> dict[str, dict[str, int]]:
    """Grade everything that the book asks for; query to document to grade."""
    given: dict[str, dict[str, int]] = defaultdict(dict)
    with closing(open_store(database)) as store:
        info = store.books.get(book)
        rater = store.people.add("script").id
        store.people.join(info.id, rater)
        while items := store.queue.next_items(info.id, rater, 20):
            for item in items:
                grade = grade_of(item.query, item.doc)
                key = f"key-{item.item_id}"
                store.log.save(SaveRequest(info.id, item.item_id, rater, Action.GRADE, key, grade=grade))
                given[item.query][item.doc] = grade
    return given


def test_three_systems_are_pooled_judged_frozen_and_scored(demo: Path, tmp_path: Path) -> None:
    runs = {name: read_run(demo / "runs" / f"{name}.jsonl") for name in ("fields", "plain")}
    runs["fused"] = fused(runs["fields"], runs["plain"])
    write_trec_run(runs["fused"], tmp_path / "fused.run")
    texts = {query.id: query.text for query in load(demo / "testset.yaml").queries}
    queries = [query for query in texts if all(run.answers[query].hits for run in runs.values())][:N_QUERIES]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps({"_id": q, "text": texts[q]}) + "\n" for q in queries))
    files = [str(demo / "runs" / "fields.jsonl"), str(demo / "runs" / "plain.jsonl"), "fused.run"]
    given = [*files, "--queries", "queries.jsonl", "--depth", str(DEPTH), "--book", "demo", "--db", "books.db"]
    preview = json.loads(cranfield(tmp_path, "pool", *given, "--format", "json"))
    top = {name: {q: [hit.id for hit in run.answers[q].hits[:DEPTH]] for q in queries} for name, run in runs.items()}
    pooled = {query: {doc for lists in top.values() for doc in lists[query]} for query in queries}
    assert preview["n_to_judge"] == sum(map(len, pooled.values()))

    grades = judge_all(tmp_path / "books.db", "demo")
    assert {query: set(of_query) for query, of_query in grades.items()} == pooled

    with closing(open_store(tmp_path / "books.db")) as store:
        frozen = freeze(contents_of(store, "demo"), today=date(2026, 11, 23))
    assert frozen.unfinished == 0
    write_testset_yaml(frozen.testset, tmp_path / "frozen.yaml")
    assert load(tmp_path / "frozen.yaml").grades == grades

    measures = ("-m", f"P@{DEPTH}", "-m", f"Judged@{DEPTH}", "-m", f"CG@{DEPTH}")
    report = json.loads(cranfield(tmp_path, "evaluate", "frozen.yaml", *files, *measures, "--format", "json"))
    for name, system in zip(("fields", "plain", "fused"), report["systems"], strict=True):
        assert system["judged"]["pooled"] == system["judged"]["never_pooled"] == 0
        for query in queries:
            found = [grades[query][doc] for doc in top[name][query]]
            assert system["queries"][query] == pytest.approx(
                {
                    f"P@{DEPTH}": sum(grade > 0 for grade in found) / DEPTH,
                    f"Judged@{DEPTH}": 1.0,
                    f"CG@{DEPTH}": sum(found),
                }
            )
