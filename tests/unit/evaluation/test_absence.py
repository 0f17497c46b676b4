"""Never judged, judged with nothing relevant, not returned: three sentences, and what each counts as."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cranfield import Answer, Outcome, Query, Run, TestSet, compare, evaluate
from cranfield.evaluation.absence import effect_text
from cranfield.measures import parse
from cranfield.model.testset import Rating

QUERIES = tuple(Query(f"q{n}") for n in range(1, 6))
HALF = TestSet("half", QUERIES, {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 0}})
"""q1 and q2 are judged, q3 has nothing relevant, q4 and q5 are never judged."""
FOUND = {"q1": ["a"], "q3": ["a"], "q4": ["a"], "q5": ["x"]}
"""q2 is not returned."""


@pytest.mark.parametrize("convention", ["trec", "trec10", "ir_measures", "ranx", "quepid", "knowcode", "octocode"])
def test_a_query_without_a_judgment_is_out_of_every_mean(convention: str) -> None:
    evaluation = evaluate(HALF, FOUND, measures=["RR", "P@1", "Judged@1"], convention=convention)
    # 1, 0 (not returned), 0 (nothing relevant); q4 and q5 do not count
    assert evaluation.mean("RR") == pytest.approx(1 / 3)
    assert evaluation.summaries["RR"].n == evaluation.summaries["P@1"].n == 3
    assert evaluation.unscored[parse("RR")] == {"q4": "never judged", "q5": "never judged"}
    assert evaluation.mean("Judged@1") == pytest.approx(1.0 if convention == "trec" else evaluation.mean("Judged@1"))


def test_three_absences_are_three_sentences_with_what_each_counts_as() -> None:
    assert evaluate(HALF, FOUND, measures=["RR", "AP"]).warnings == (
        "never judged: 2 of 5 queries (excluded from the means): q4, q5",
        "judged, none relevant: 1 of 5 queries (counted as 0): q3",
        "not returned: no answer in the run for 1 of 5 queries (counted as 0): q2",
    )


def test_a_query_that_is_left_out_is_named_and_never_judged_ones_are_not_counted_with_it() -> None:
    answered = {"q1": ["a"], "q4": ["a"]}
    assert evaluate(HALF, answered, measures=["RR"], missing="skip").warnings == (
        "never judged: 2 of 5 queries (excluded from the means): q4, q5",
        "not returned: no answer in the run for 2 of 5 queries (excluded from the means): q2, q3",
    )


def test_what_counts_as_0_is_counted_from_the_values() -> None:
    testset = TestSet("t", QUERIES, {query.id: {"a": 0} for query in QUERIES} | {"q1": {"a": 1}})
    answers = {query.id: Answer(Outcome.EMPTY) for query in QUERIES}
    answers |= {"q2": Answer(Outcome.TIMEOUT), "q3": Answer(Outcome.TIMEOUT)}
    evaluation = evaluate(testset, Run("r", answers), measures=["RR"], convention="octocode")  # leaves failures out
    assert evaluation.summaries["RR"].n == 3
    assert (
        "judged, none relevant: 4 of 5 queries (2 counted as 0, 2 without a value): q2, q3, q4, q5"
        in evaluation.warnings
    )


def test_ratings_without_a_consensus_are_not_called_never_judged() -> None:
    ratings = {"q2": (Rating("a", "ann", 1), Rating("a", "bob", 0)), "q3": (Rating("a", "ann", None),)}
    testset = TestSet("t", QUERIES[:3], {"q1": {"a": 1}}, ratings=ratings)
    evaluation = evaluate(testset, {"q1": ["a"], "q2": ["a"], "q3": ["a"]}, measures=["RR"])
    assert evaluation.unscored[parse("RR")] == {"q2": "rated, no consensus", "q3": "never judged"}
    assert evaluation.warnings == (
        "rated, no consensus: 1 of 3 queries (excluded from the means): q2",
        "never judged: 1 of 3 queries (excluded from the means): q3",
    )


def test_a_query_that_is_never_judged_is_paired_with_no_other() -> None:
    pair = [evaluate(HALF, {q.id: ids for q in QUERIES}, measures=["RR"], name=str(ids)) for ids in (["a"], ["x", "a"])]
    compared = compare(*pair)
    assert compared.measures[parse("RR")].n == 3
    assert dict(compared.dropped) == {"q4": "no value: never judged", "q5": "no value: never judged"}


def test_a_set_without_any_judgment_cannot_be_compared() -> None:
    testset = replace(HALF, grades={})
    pair = [evaluate(testset, FOUND, name=name) for name in "ab"]
    with pytest.raises(Exception, match="no query of the test set half is judged"):
        compare(*pair)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"RR": [0.0, 0.0], "AP": [0.0, 0.0]}, "counted as 0"),
        ({"RR": [None, 0.0]}, "1 counted as 0, 1 without a value"),
        ({"RR": [None], "AP": [0.0], "P@1": [0.0]}, "without a value in RR; counted as 0 in AP and P@1"),
        ({"RR": [0.5]}, "with a value"),
        ({}, ""),
    ],
)
def test_the_effect_is_said_once_where_measures_agree(values: dict[str, list[float | None]], expected: str) -> None:
    assert effect_text((parse(name), found) for name, found in values.items()) == expected
