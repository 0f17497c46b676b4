"""Truth by targets as rows of a rater, and what stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import cranfield
from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, evaluate
from cranfield.judging.pools.rule_view import GradeDifference, rule_view
from cranfield.model import Entity, File, Negative, Pattern, Predicate, Span


def run_of(**answers):
    return Run("run", {q: Answer(Outcome.ANSWERED, tuple(hits)) for q, hits in answers.items()})


def test_what_matches_is_prefilled_and_what_does_not_is_unjudged():
    testset = TestSet("set", (Query("q"),), targets={"q": (Pattern("^swift/hash", grade=2), Pattern("never"))})
    run = run_of(q=[Hit("swift/hashable"), Hit("swift/url"), Hit("swift/hash-table")])
    view = rule_view(testset, [run])
    assert view.is_rule
    assert view.prefilled == {("q", "swift/hashable"): 2, ("q", "swift/hash-table"): 2}
    assert {row.target for row in view.rows} == {"^swift/hash"}
    # the target that nothing matches is still expected
    assert view.testset.grades == {"q": {"never": 1, "swift/hashable": 2, "swift/hash-table": 2}}
    judged = evaluate(view.testset, view.runs[0], measures=["Judged@3"])
    assert judged.mean("Judged@3") == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("target", "doc"),
    [
        (Span("src/a.py", 10, 20), "src/a.py:12-14"),
        (Entity("src/a.py::f", lines=((10, 20),)), "src/a.py:12-14"),
        (File("src/a.py"), "src/a.py:12-14"),
        (Predicate("SELECT 1", ids=("src/a.py",)), "src/a.py"),
        (Pattern("a[.]py$"), "src/a.py"),
    ],
)
def test_every_kind_of_target_takes_part(target, doc):
    testset = TestSet("set", (Query("q"),), targets={"q": (target,)})
    view = rule_view(testset, [run_of(q=[Hit("src/a.py", span="12-14"), Hit("src/b.py", span="1-5")])])
    assert view.prefilled == {("q", doc): 1}
    assert view.runs[0].answers["q"].hits[0].id == doc
    assert view.testset.grades["q"] == {doc: 1}


def test_two_places_of_a_file_are_two_documents():
    testset = TestSet("set", (Query("q"),), targets={"q": (Span("a.py", 10, 20),)})
    view = rule_view(testset, [run_of(q=[Hit("a.py", span="1-5"), Hit("a.py", span="10-12")])])
    assert [hit.id for hit in view.runs[0].answers["q"].hits] == ["a.py:1-5", "a.py:10-12"]
    assert view.testset.grades["q"] == {"a.py:10-12": 1}


def test_the_person_wins_over_the_rule_and_the_difference_is_listed():
    testset = TestSet("set", (Query("q"),), targets={"q": (Pattern("^a", grade=2),)})
    people = {"q": {"a1": 0.0, "b": 1.0, "a2": 2.0}, "unknown": {"x": 1.0}}
    view = rule_view(testset, [run_of(q=[Hit("a1"), Hit("b"), Hit("a2"), Hit("c")])], people=people)
    assert view.testset.grades["q"] == {"a1": 0, "a2": 2, "b": 1}
    assert view.differences == (GradeDifference("q", "a1", 2, 0),)
    assert view.prefilled[("q", "a1")] == 2


def test_a_query_where_nothing_should_be_found_stays_so():
    testset = TestSet("set", (Query("q"), Query("n", negative=Negative())), targets={"q": (Pattern("a"),)})
    view = rule_view(testset, [run_of(q=[Hit("a")], n=[Hit("b")])], people={"n": {"b": 2.0, "c": 0.0}})
    assert "n" not in view.testset.grades
    assert view.testset.by_id["n"].negative is not None
    assert view.differences == (GradeDifference("n", "b", 0, 2),)


def test_a_set_of_graded_ids_is_its_own_view():
    testset = TestSet("set", (Query("q"),), {"q": {"a": 1, "b": -1}})
    run = run_of(q=[Hit("a"), Hit("b")])
    view = rule_view(testset, [run])
    assert (view.testset, view.runs, view.rows, view.is_rule) == (testset, (run,), (), False)
    judged = rule_view(testset, [run], people={"q": {"a": 0.0, "b": 1.0}})
    assert judged.testset.grades == {"q": {"a": 0, "b": 1}}
    assert judged.differences == (GradeDifference("q", "a", 1, 0),)  # b was pooled, and not judged


def test_evaluation_gates_and_digests_do_not_know_the_view():
    testset = TestSet("set", (Query("q"),), targets={"q": (Pattern("^a"),)})
    run, digest = run_of(q=[Hit("b"), Hit("a")]), testset.digest
    before = evaluate(testset, run, measures=["nDCG@5", "RR"])
    view = rule_view(testset, [run], people={"q": {"b": 3.0}})
    after = evaluate(testset, run, measures=["nDCG@5", "RR"])
    assert testset.digest == digest != view.testset.digest
    assert after.summaries["nDCG@5"] == before.summaries["nDCG@5"]
    assert bool(after.ranking.closed_world.all())
    assert not evaluate(view.testset, view.runs[0], measures=["nDCG@5"]).ranking.closed_world.any()


def test_pools_holes_and_books_alone_import_the_view():
    source = Path(cranfield.__file__).parent
    found = {
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if "rule_view import" in path.read_text()
    }
    pools = {"judging/commands/pool.py", "judging/pools/holes.py", "judging/use_cases.py"}
    assert found == {*pools, "judging/book/onto.py", "workbench/service/snapshot.py"}
