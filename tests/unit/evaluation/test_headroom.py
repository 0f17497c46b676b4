"""How much better a system could be, and what became of relevant documents that are missing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import evaluate, parse
from cranfield.evaluation.headroom import Absent, Failure, headroom_of
from cranfield.evaluation.result import result_of
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet
from cranfield.model.results import to_jsonable

MEASURES = (
    "nDCG@3",
    "nDCG",
    "AP",
    "AP@3",
    "RR",
    "P@3",
    "R@3",
    "Success@3",
    "ERR",
    "RBP",
    "DCG@3",
    "Bpref",
    "Rprec",
    "RelP@3",
)
DOCS = [f"d{at}" for at in range(8)]


def run_of(lists):
    return Run("run", {query: Answer(Outcome.ANSWERED, tuple(map(Hit, docs))) for query, docs in lists.items()})


def test_order_and_recall_are_told_apart_with_their_arithmetic():
    """RR: a at rank 2 could be first; b at rank 1 is; c is not found."""
    grades = {"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 1}}
    found = headroom_of(
        evaluate(grades, run_of({"1": ["x", "a"], "2": ["b"], "3": ["x"]}), measures=["RR"]), parse("RR")
    )
    assert (found.mean, found.reordered, found.ideal) == (pytest.approx(1.5 / 3), pytest.approx(2 / 3), 1)
    assert found.failures == {Failure.ORDER: 1, Failure.RECALL: 1}
    assert [(each.query, each.value, each.reordered, each.failure) for each in found.queries] == [
        ("3", 0, 0, Failure.RECALL),
        ("1", 0.5, 1, Failure.ORDER),
    ]


def test_missing_documents_are_explained():
    grades = {"1": {"a": 2, "b": 1, "Guide/One": 1, "gone": 1}, "2": {"b": 1}}
    lists = {"1": ["x", "guide/one", "y", "a"], "2": ["b"]}
    found = headroom_of(evaluate(grades, run_of(lists), measures=["nDCG@3"]), parse("nDCG@3"))
    assert found.absent == {Absent.BELOW: 1, Absent.OTHER_QUERIES: 1, Absent.OTHER_FORM: 1, Absent.NEVER: 1}
    by_doc = {each.doc: each for each in found.documents}
    assert (by_doc["a"].kind, by_doc["a"].rank) == (Absent.BELOW, 4)
    assert by_doc["b"].kind is Absent.OTHER_QUERIES
    assert (by_doc["Guide/One"].kind, by_doc["Guide/One"].form) == (Absent.OTHER_FORM, "guide/one")
    assert by_doc["gone"].kind is Absent.NEVER


def test_a_measure_of_the_whole_list_has_none():
    assert (
        headroom_of(evaluate({"1": {"a": 1}}, run_of({"1": ["a"]}), measures=["RankOfFirst"]), parse("RankOfFirst"))
        is None
    )


def test_the_record_has_it_with_the_answers_alone():
    found = evaluate({"1": {"a": 1}}, run_of({"1": ["x", "a"]}), measures=["RR"])
    assert result_of(found).systems[0].headroom is None
    saved = json.loads(json.dumps(to_jsonable(result_of(found, with_answers=True))))
    assert saved["systems"][0]["headroom"]["reordered"] == 1


@given(
    judged=st.dictionaries(st.sampled_from(DOCS), st.integers(0, 3), min_size=1),
    docs=st.lists(st.sampled_from(DOCS), unique=True, min_size=1),
)
def test_a_value_is_at_most_the_reordered_one_and_that_at_most_the_ideal_one(judged, docs):
    testset = TestSet("set", (Query("q"),), {"q": judged})
    evaluation = evaluate(testset, run_of({"q": docs}), measures=MEASURES)
    for spelling in MEASURES:
        found = headroom_of(evaluation, parse(spelling))
        assert found is not None
        if found.n:
            assert found.mean <= found.reordered + 1e-12, spelling
            assert found.reordered <= found.ideal + 1e-12, spelling
