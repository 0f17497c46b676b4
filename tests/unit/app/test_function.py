"""`evaluate` with a function: it is called for each query, and what it fails on counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import cranfield
from cranfield import CranfieldError, Query, TestSet
from cranfield.measures import parse

SET = TestSet(
    "t",
    (Query("q1", "one"), Query("q2", "two"), Query("q3", "three"), Query("q4", "never judged")),
    {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}},
)


def search(query: str, k: int) -> Sequence[str]:
    if query == "three":
        raise RuntimeError("no index")
    return {"one": ["a"], "two": ["x", "b"]}.get(query, ["z"])[:k]


@pytest.mark.parametrize("convention", ["trec", "octocode", "searchtweak"])
def test_a_function_is_called_for_each_query_and_failures_count_as_0(convention: str) -> None:
    found = cranfield.evaluate(SET, search, measures="RR", convention=convention)
    # 1, 1/2 and 0 for the failure; q4 is not judged
    assert (found.mean("RR"), found.summaries["RR"].n, found.name) == (0.5, 3, "search")
    assert [(query_id, outcome) for query_id, outcome, _ in found.failures] == [("q3", "error")]
    left_out = f"the convention {convention} leaves out failed queries or empty lists; 1 of 4 queries counted as 0 here"
    assert (left_out in found.warnings) is (convention != "trec")


def test_failures_are_left_out_on_request() -> None:
    found = cranfield.evaluate(SET, search, measures="RR", failed="skip")
    assert found.unscored[parse("RR")] == {"q3": "the system failed on it", "q4": "never judged"}


def test_a_function_may_take_the_query_alone_or_be_async_or_an_object() -> None:
    async def later(query: str) -> list[str]:
        return ["x", "b"] if query == "two" else ["a"]

    class Engine:
        def __call__(self, query: str, k: int) -> list[str]:
            return ["a"][:k]

    functions: list[tuple[Any, list[float]]] = [
        (lambda _: ["a"], [1.0, 0.0, 0.0]),
        (lambda _: [("b", 1.0), ("a", 0.5)], [0.5, 1.0, 0.0]),
        (later, [1.0, 0.5, 0.0]),
        (Engine(), [1.0, 0.0, 0.0]),
    ]
    for function, expected in functions:
        found = cranfield.evaluate(SET, function, measures="RR")
        assert [found.value("RR", query_id) for query_id in ("q1", "q2", "q3")] == expected


def test_k_results_are_asked_for_and_kept() -> None:
    found = cranfield.evaluate(SET, lambda _: ["x", "a"], measures="RR", k=1)
    assert found.value("RR", "q1") == 0.0
    assert found.ranking.n_returned.tolist() == [1, 1, 1, 1]


def test_a_function_that_takes_no_query_is_refused() -> None:
    with pytest.raises(CranfieldError, match="to take"):
        cranfield.evaluate(SET, lambda: ["a"], measures="RR")


def test_queries_without_a_text_cannot_be_asked(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("q1 0 a 1\n")
    with pytest.raises(CranfieldError, match="1 of 1 query has no text to send"):
        cranfield.evaluate(tmp_path / "q.txt", search)


def test_two_functions_can_be_compared() -> None:
    pair = [
        cranfield.evaluate(SET, function, measures="RR", name=name)
        for name, function in (("a", search), ("b", lambda _: ["c"]))
    ]
    assert cranfield.compare(*pair).measures[parse("RR")].n == 3


def test_a_function_may_stand_before_the_test_set() -> None:
    testset = TestSet("tiny", (Query("q1", "a"), Query("q2", "b")), {"q1": {"a": 1}, "q2": {"c": 1}})

    def words(query: str) -> list[str]:
        return query.split()

    for one, other in ((words, testset), (testset, words), ({"q1": ["a"], "q2": ["b"]}, testset)):
        assert cranfield.evaluate(one, other, measures="P@1").mean("P@1") == 0.5, (
            "q1 finds a; q2 finds b, c is relevant"
        )
    with pytest.raises(CranfieldError, match="evaluate got two functions"):
        cranfield.evaluate(words, words)
    with pytest.raises(CranfieldError, match="evaluate got two test sets"):
        cranfield.evaluate(testset, testset)


def test_results_name_why_all_queries_failed() -> None:
    queries = tuple(Query(f"q{n}", f"word {n}") for n in range(20))
    testset = TestSet("t", queries, {query.id: {"d1": 1} for query in queries})

    def broken(query: str) -> list[str]:
        raise RuntimeError(f"no table in thread {query}")

    def right(query: str) -> list[str]:
        return ["d1"]

    def wrong(query: str) -> list[str]:
        return ["d2"]

    evaluations = [cranfield.evaluate(testset, function) for function in (broken, right, wrong)]
    why = "20 failed: RuntimeError: no table in thread word 0"  # 20 reasons that differ in a number are one
    assert why in repr(evaluations[0])
    assert why in repr(cranfield.compare(evaluations[1], evaluations[0]))
    many = cranfield.compare_many(evaluations)
    assert f"invalid: broken: {why}" in repr(many)
    assert "20 of 20 queries failed or have no answer (100.0 %): RuntimeError: no table" in str(many.evidence)
    assert "RuntimeError: no table in thread word 0" in evaluations[0]._repr_html_()
    assert "failed" not in repr(evaluations[1])
