"""A test set whose truth is a rule, from a pool of two runs to figures on the set that its book was frozen onto.

Truth by patterns on URIs (documentation search), and by spans of lines that overlap (code search).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import date
from math import log2
from pathlib import Path

import pytest

from cranfield import Answer, Hit, Outcome, Run, write_run
from cranfield.app.evaluate import evaluate
from cranfield.app.loading import load
from cranfield.books.settings import SCALES, BookSettings
from cranfield.books.store.schema import Action, Role
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest
from cranfield.formats.runs.jsonl import write_run as write_jsonl
from cranfield.judging.commands.book_results import freeze_command
from cranfield.judging.pools.build import PoolRequest
from cranfield.judging.use_cases import pool_of

pytestmark = pytest.mark.slow

PATTERNS = """
cranfield_testset: 1
name: uris
databases: {corpus: sqlite:corpus.db}
queries:
  - {id: q1, text: Hashable, patterns: [{regex: '^apple-docs://swift/hashable($|/)'}]}
  - {id: q2, text: URLSession, patterns: [{regex: '^apple-docs://foundation/urlsession$'}]}
  - {id: q3, text: not in the runs of the book, patterns: [{regex: '^apple-docs://swift/sequence$'}]}
  - {id: q4, text: nor this, predicates: [{sql: SELECT id FROM doc}]}
"""
URIS = {
    "old": {
        "q1": ["apple-docs://swift/hasher", "apple-docs://swift/hashable", "swift-book://protocols"],
        "q2": ["apple-docs://foundation/nsurlsession", "hig://networking"],
    },
    "new": {
        "q1": ["apple-docs://swift/hashable", "apple-docs://swift/hashable/hash"],
        "q2": ["swift-org://urlsession", "apple-docs://foundation/nsurlsession"],
    },
}
SPANS = """
cranfield_testset: 1
name: places
queries:
  - {id: q1, text: where are paths cut, spans: ['src/index.rs:41-61', 'src/path.rs:5-9']}
"""
LINES = {
    "old": {"q1": [("src/index.rs", "1-20"), ("src/index.rs", "40-60"), ("src/lib.rs", "3-9")]},
    "new": {"q1": [("src/index.rs", "40-60"), ("src/index.rs", "60-80"), ("src/index.rs", "1-20")]},
}


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """A function: pool, judge by script, freeze onto the set; the path of the frozen set."""
    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)

    def make(set_text, run_files, grades):
        Path("set.yaml").write_text(set_text)
        built = pool_of(run_files, load("set.yaml"), PoolRequest(depth=3))
        store = open_store("books.db")
        info = store.books.create("b", built.pool, BookSettings(scale=SCALES["binary"]))
        ann = store.people.add("ann", Role.RATER)
        store.people.join(info.id, ann.id)
        asked = {}
        while items := store.queue.next_items(info.id, ann.id, 1):
            (item,) = items
            asked[item.query, item.doc] = grade = grades.get((item.query, item.doc), 0.0)
            key = f"k{item.item_id}"
            store.log.save(SaveRequest(info.id, item.item_id, ann.id, Action.GRADE, grade=grade, client_key=key))
        store.close()
        freeze_command(
            "b", out=Path("frozen.yaml"), onto=Path("set.yaml"), today=date(2026, 11, 23).isoformat(), db="books.db"
        )
        return asked

    return make


def test_patterns_over_uris(judged, capsys):
    with closing(sqlite3.connect("corpus.db")) as corpus, corpus:
        corpus.execute("CREATE TABLE doc AS SELECT 'swift-book://loops' AS id")
    for name, answers in URIS.items():
        found = {q: Answer(Outcome.ANSWERED, tuple(map(Hit, uris))) for q, uris in answers.items()}
        write_run(Run(name, found), f"{name}.run")
    asked = judged(
        PATTERNS, ["old.run", "new.run"], {("q1", "swift-book://protocols"): 1, ("q2", "swift-org://urlsession"): 1}
    )
    assert len(asked) == 5  # what the pattern matches was not asked for
    err = capsys.readouterr().err
    assert "judged by document ids instead of targets: 2 queries (q1, q2)" in err
    assert "because no pooled document matches them: 1 target (^apple-docs://foundation/urlsession$)" in err
    frozen = load("frozen.yaml")
    assert set(frozen.targets) == {"q3", "q4"}
    assert frozen.targets["q4"][0].ids == ("swift-book://loops",)
    assert "SELECT id FROM doc" in Path("frozen.yaml").read_text()
    assert frozen.meta.judging.by_id == ("q1", "q2")
    assert frozen.grades["q2"] == {
        "apple-docs://foundation/nsurlsession": 0,
        "hig://networking": 0,
        "swift-org://urlsession": 1,
        "^apple-docs://foundation/urlsession$": 1,
    }
    # q1: three are relevant, hashable and hashable/hash by the rule, protocols by the person; q2: two; q3: nothing is returned
    ideal_1, ideal_2 = 1 + 1 / log2(3) + 1 / log2(4), 1 + 1 / log2(3)
    old, new = (evaluate(frozen, f"{name}.run", measures=["nDCG@3", "RR", "Judged@3"]) for name in ("old", "new"))
    assert old.value("nDCG@3", "q1") == pytest.approx((1 / log2(3) + 1 / log2(4)) / ideal_1)
    assert new.value("nDCG@3", "q1") == pytest.approx((1 + 1 / log2(3)) / ideal_1)
    assert (old.value("nDCG@3", "q2"), old.value("RR", "q2")) == (0, 0)
    assert new.value("nDCG@3", "q2") == pytest.approx(1 / ideal_2)
    assert new.value("RR", "q2") == 1
    assert all(each.value("RR", q) == 0 for each in (old, new) for q in ("q3", "q4"))
    other = evaluate(frozen, {"q1": ["apple-docs://swift/hashable/more"]}, measures=["Judged@1"])
    assert other.value("Judged@1", "q1") == 0  # the pattern no longer decides


def test_places_in_files(judged, capsys):
    for name, answers in LINES.items():
        hits = {q: tuple(Hit(path, span=lines) for path, lines in places) for q, places in answers.items()}
        write_jsonl(Run(name, {q: Answer(Outcome.ANSWERED, found) for q, found in hits.items()}), Path(f"{name}.jsonl"))
    asked = judged(SPANS, ["old.jsonl", "new.jsonl"], {("q1", "src/lib.rs:3-9"): 1})
    assert asked == {("q1", "src/index.rs:1-20"): 0, ("q1", "src/lib.rs:3-9"): 1}
    frozen = load("frozen.yaml")
    assert frozen.matching.places
    grades = {
        "src/index.rs:40-60": 1,
        "src/index.rs:60-80": 1,
        "src/index.rs:1-20": 0,
        "src/lib.rs:3-9": 1,
        "src/path.rs:5-9": 1,
    }
    assert frozen.grades == {"q1": grades}
    ideal = 1 + 1 / log2(3) + 1 / log2(4)  # of four relevant places the first three
    old, new = (evaluate(frozen, f"{name}.jsonl", measures=["nDCG@3", "R@3", "Judged@3"]) for name in ("old", "new"))
    assert old.value("nDCG@3", "q1") == pytest.approx((1 / log2(3) + 1 / log2(4)) / ideal)  # 1-20, 40-60, lib
    assert new.value("nDCG@3", "q1") == pytest.approx((1 + 1 / log2(3)) / ideal)  # 40-60, 60-80, 1-20
    assert (old.value("R@3", "q1"), new.value("R@3", "q1")) == (2 / 4, 2 / 4)
    assert old.value("Judged@3", "q1") == new.value("Judged@3", "q1") == 1
    # the next pool over the frozen set knows what is judged
    write_jsonl(
        Run(
            "third", {"q1": Answer(Outcome.ANSWERED, (Hit("src/index.rs", span="40-60"), Hit("src/x.rs", span="1-2")))}
        ),
        Path("third.jsonl"),
    )
    pool = pool_of(["third.jsonl", "new.jsonl"], frozen, PoolRequest(depth=3)).pool
    assert [item.doc for item in pool.items] == ["src/x.rs:1-2"]
    assert pool.n_left_out == 3
