"""Judged share: what is judged, what is pooled and not judged, what was never pooled."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import TestSet, evaluate
from cranfield.evaluation.absence import judged_share, unjudged_counts
from cranfield.model import Pattern, Query
from cranfield.reporting import evaluation_document, render

SET = TestSet("t", (Query("q1"), Query("q2")), {"q1": {"a": 2, "b": 0, "c": -1}, "q2": {"x": -1, "y": 1}})
RUN = {"q1": ["c", "a", "n", "b"], "q2": ["x", "m"]}


@pytest.mark.parametrize(
    ("depth", "pooled", "never"),
    # q1: c pooled, a judged, n never, b judged; q2: x pooled, m never
    [(1, 2, 0), (2, 2, 1), (3, 2, 2), (10, 2, 2)],
)
def test_results_without_a_grade_are_of_two_kinds(depth: int, pooled: int, never: int) -> None:
    assert unjudged_counts(evaluate(SET, RUN).ranking, depth) == (pooled, never)


def test_where_the_truth_is_a_rule_nothing_is_unjudged() -> None:
    ruled = TestSet("t", (Query("q"),), targets={"q": (Pattern("a"),)})
    ranking = evaluate(ruled, {"q": ["a", "b"]}, measures=["P@1"]).ranking
    assert unjudged_counts(ranking, 10) == (0, 0)
    assert judged_share(ranking, 10).mean is None


DOCS = st.sampled_from("abcdef")


@given(
    st.dictionaries(DOCS, st.sampled_from([-1, 0, 2]), min_size=1),
    st.lists(DOCS, unique=True, min_size=1),
    st.integers(1, 7),
)
def test_judged_pooled_and_never_pooled_are_all_results(grades: dict[str, float], docs: list[str], depth: int) -> None:
    ranking = evaluate(TestSet("t", (Query("q"),), {"q": grades}), {"q": docs}, measures=["P@1"]).ranking
    shown = docs[:depth]
    assert unjudged_counts(ranking, depth) == (
        sum(grades.get(doc) == -1 for doc in shown),
        sum(doc not in grades for doc in shown),
    )


def test_reports_show_both_counts_where_anything_is_pooled_only() -> None:
    document = evaluation_document([evaluate(SET, RUN, measures=["P@3"])])
    text = render(document, "text")
    assert "Judged@3  pooled, not judged  never pooled" in text
    assert "results that are not judged, to rank 3" in text
    page = render(document, "html")
    assert "pooled, not judged" in page
    assert "never pooled" in page
    (system,) = json.loads(render(document, "json"))["systems"]
    assert (system["judged"]["pooled"], system["judged"]["never_pooled"]) == (2, 2)
    judged = TestSet("t", SET.queries, {"q1": {"a": 2}, "q2": {"y": 1}})
    text = render(evaluation_document([evaluate(judged, RUN, measures=["P@3"])]), "text")
    assert "never pooled" not in text


def test_a_saved_report_names_results_of_the_pool() -> None:
    from cranfield.reporting.renderers.data import render_record

    record = render_record(evaluation_document([evaluate(SET, RUN, measures=["P@3"])]))
    hits = [hit for hit in _dicts(json.loads(record)) if {"rank", "id", "grade"} <= hit.keys()]
    assert {(hit["id"], hit["grade"], hit["state"]) for hit in hits} == {
        ("a", 2, "judged"),
        ("b", 0, "judged"),
        ("c", None, "pooled"),
        ("n", None, "unjudged"),
        ("x", None, "pooled"),
        ("m", None, "unjudged"),
    }


def _dicts(value: object) -> list[dict[str, object]]:
    if isinstance(value, dict):
        return [value, *(found for each in value.values() for found in _dicts(each))]
    return [found for each in value for found in _dicts(each)] if isinstance(value, list) else []
