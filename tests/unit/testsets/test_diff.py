"""What changed between two versions is told, each change once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cranfield.app.named_runs import named_runs
from cranfield.evaluation.testset.split import split
from cranfield.formats.sniff import read_testset
from cranfield.model import (
    Entity,
    Fact,
    Label,
    Legacy,
    Meta,
    Negative,
    Pattern,
    Query,
    Source,
    Span,
    TestSet,
    content_id,
)
from cranfield.reporting import render
from cranfield.testsets.diff import FieldChange, Judged, QueryText, Rewording, diff, overfitting, score_moves
from cranfield.testsets.reports.versions import difference_document

OLD = TestSet(
    "set",
    (Query("q1", "one", {"kind": "a"}), Query("q2", "two"), Query("q3", "three")),
    {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}},
    {"q3": (Span("x.py", 1, 9), Entity("x.py::F", 2))},
    version="1",
)
NEW = replace(
    OLD,
    version="2",
    queries=(Query("q1", "ONE", {"kind": "b"}), Query("q3", "three", query_class="prose"), Query("q4", "four")),
    grades={"q1": {"a": 2, "c": 0}, "q4": {"d": 1}},
    targets={"q3": (Span("x.py", 1, 9), Entity("x.py::G", 2))},
)


def test_queries_judgments_and_strata_are_told():
    found = diff(OLD, NEW)
    assert (found.added, found.removed, found.n_common) == ((QueryText("q4", "four"),), (QueryText("q2", "two"),), 2)
    assert found.reworded == (Rewording("q1", "one", "ONE"),)
    assert found.judged == (
        Judged("q1", "document", "a", 1, 2),
        Judged("q1", "document", "b", 2, None),
        Judged("q1", "document", "c", None, 0),
        Judged("q3", "entity", "x.py::F", 2, None),
        Judged("q3", "entity", "x.py::G", None, 2),
    )
    assert found.changes == (
        FieldChange("", "version", "1", "2"),
        FieldChange("q1", "stratum kind", "a", "b"),
        FieldChange("q3", "class", "", "prose"),
    )


def test_nothing_is_told_of_the_same_content():
    found = diff(OLD, replace(OLD, meta=Meta(made="2026-11-21")))
    assert found.is_same
    assert (*found.added, *found.removed, *found.reworded, *found.judged, *found.changes) == ()


@pytest.mark.parametrize(
    "new",
    [
        replace(OLD, queries=(*OLD.queries[:2], Query("q3", "three", negative=Negative(0.5)))),
        replace(OLD, queries=(*OLD.queries[:2], Query("q3", "three", weight=2))),
        replace(OLD, queries=(*OLD.queries[:2], Query("q3", "three", params={"v": 1}))),
        replace(OLD, files={"q1": ("a.py",)}),
        replace(OLD, legacy={"q1": Legacy(("a",))}),
        replace(OLD, sources=(Source("docs", "^d"),)),
        replace(OLD, matching=replace(OLD.matching, line_base=0)),
        replace(OLD, targets={"q3": (*OLD.targets["q3"], Pattern("^z", credit="every"))}),
    ],
    ids=["negative", "weight", "parameter", "files", "legacy", "sources", "matching", "credit"],
)
def test_whatever_changes_the_digest_is_told(new):
    found = diff(OLD, new)
    assert not found.is_same
    assert found.judged or found.changes


def test_a_label_that_changed_is_a_change_though_the_digest_is_the_same():
    query_id = OLD.query_ids[0]
    old, new = (replace(OLD, labels={query_id: Label(must_mention=(Fact(text),))}) for text in ("one", "two"))
    difference = diff(old, new)
    assert (old.digest == new.digest, difference.is_same) == (True, False)
    assert difference.changes == (FieldChange(query_id, "label must_mention_facts", '["one"]', '["two"]'),)
    assert diff(old, replace(old)).is_same


def test_a_move_of_the_mean_is_taken_apart(tmp_path):
    """P@1: q1 finds a, q2 misses, q4 finds d.

    OLD: a has grade 1: (1 + 0) / 2. NEW: a is judged not relevant: (0 + 1) / 2. On q1 alone: 1, then 0.
    """
    old = TestSet("set", (Query("q1"), Query("q2")), {"q1": {"a": 1}, "q2": {"c": 1}})
    new = TestSet("set", (Query("q1"), Query("q4")), {"q1": {"a": 0, "b": 1}, "q4": {"d": 1}})
    run = tmp_path / "sys.run"
    run.write_text("q1 Q0 a 1 9 s\nq2 Q0 x 1 9 s\nq4 Q0 d 1 9 s\n")
    (move,) = score_moves(old, new, {"sys": run}, measures=["P@1"])
    assert (move.old, move.n_old, move.new, move.n_new) == (0.5, 2, 0.5, 2)
    assert (move.common_old, move.common_new, move.n_common) == (1.0, 0.0, 1)


def test_versions_without_a_query_in_common_have_no_common_mean(tmp_path):
    old, new = (TestSet("set", (Query(q),), {q: {"a": 1}}) for q in ("q1", "q2"))
    run = tmp_path / "sys.run"
    run.write_text("q1 Q0 a 1 9 s\nq2 Q0 x 1 9 s\n")
    (move,) = score_moves(old, new, {"sys": run}, measures=["P@1"])
    assert (move.old, move.new, move.common_old, move.n_common) == (1.0, 0.0, None, 0)


def test_runs_are_named_by_their_files_or_as_asked(tmp_path):
    odd = tmp_path / "a=b.run"
    odd.write_text("")
    assert {name: path.name for name, path in named_runs(["x/bm25.run", "new=y/bm25.run", str(odd)]).items()} == {
        "bm25": "bm25.run",
        "new": "bm25.run",
        "a=b": "a=b.run",
    }


def test_overfitting_is_told_from_chance(tmp_path):
    """40 queries evaluated, 10 held out. `tuned` answers the first part alone: 1 against 0, but for one of each."""
    queries = tuple(Query(f"q{place:02}") for place in range(50))
    testset = TestSet("set", queries, {query.id: {"a": 1} for query in queries})
    testset = replace(testset, meta=Meta(split=split(testset)))
    held_out = testset.meta.split.held_out
    exceptions = {held_out[0], next(q for q in testset.query_ids if q not in held_out)}
    for name, wins in (
        ("tuned", lambda q: (q not in held_out) is (q not in exceptions)),
        ("fair", lambda q: int(q[1:]) % 2 == 0),
    ):
        lines = (f"{query_id} Q0 {'a' if wins(query_id) else 'x'} 1 9 {name}\n" for query_id in testset.query_ids)
        (tmp_path / name).write_text("".join(lines))
    (tuned,) = overfitting(testset, tmp_path / "tuned", measures=["P@1"]).measures
    assert (tuned.contrast.a.n, tuned.contrast.b.n) == (40, 10)
    assert tuned.contrast.difference == pytest.approx(39 / 40 - 1 / 10)
    assert tuned.is_overfit
    assert "does better on the queries it was evaluated on" in tuned.sentence
    (fair,) = overfitting(testset, tmp_path / "fair", measures=["P@1"]).measures
    assert fair.is_overfit is False
    assert "no significant overfitting on these queries" in fair.sentence


SPANS = "query,result1\nwhere is it,a.rs:1-2:2\nwhat is it,b.rs:3-4:1\n"


def read(tmp_path, text):
    (tmp_path / "truth.csv").write_text(text)
    return read_testset(tmp_path / "truth.csv")


def test_a_row_inserted_at_the_top_is_one_addition(tmp_path):
    before = read(tmp_path, SPANS)
    after = read(tmp_path, SPANS.replace("where", "new,c.rs:1-9:1\nwhere", 1))
    found = diff(before, after)
    assert [query.text for query in found.added] == ["new"]
    assert (*found.removed, *found.reworded, *found.judged, *found.changes) == ()
    assert found.n_common == 2


def test_a_question_that_was_edited_is_reworded_and_named_by_both_ids(tmp_path):
    found = diff(read(tmp_path, SPANS), read(tmp_path, SPANS.replace("where is it", "where is the index")))
    old, new = content_id("where is it"), content_id("where is the index")
    assert found.reworded == (Rewording(new, "where is it", "where is the index", old),)
    assert (found.added, found.removed) == ((), ())
    text = render(difference_document(found), "text")
    assert "0 added, 0 removed, 1 reworded" in text
    assert old in text
    assert new in text


def test_questions_with_judgments_that_several_have_are_removed_and_added(tmp_path):
    same = "query,result1\none,a.rs:1-2:2\ntwo,a.rs:1-2:2\n"
    found = diff(read(tmp_path, same), read(tmp_path, same.replace("one", "uno").replace("two", "due")))
    assert (len(found.added), len(found.removed), found.reworded) == (2, 2, ())
