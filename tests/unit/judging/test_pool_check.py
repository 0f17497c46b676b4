"""Leave one system out: what only a run brought in is taken from the judgments."""

from __future__ import annotations

import pytest

from cranfield.base.errors import UsageError
from cranfield.judging.pools.check import PoolCheck, check_pool, deepest_rank
from cranfield.judging.pools.results import SystemResults
from cranfield.measures import parse
from cranfield.model import Answer, Hit, Outcome, Pattern, Query, Run, TestSet, convention_named

TREC = convention_named("trec")


def system(name: str, **lists: str) -> SystemResults:
    return SystemResults(
        name, Run(name, {query: Answer(Outcome.ANSWERED, tuple(map(Hit, docs))) for query, docs in lists.items()})
    )


A = system("A", q1="ab", q2="xz")
B = system("B", q1="bc", q2="yx")
SET = TestSet(
    "t",
    (Query("q1"), Query("q2")),
    {"q1": {"a": 1, "b": 1, "c": 0}, "q2": {"x": 1, "y": 0}},
)


def check(measure: str, *systems: SystemResults, judged: TestSet = SET, depth: int = 2) -> PoolCheck:
    (found,) = check_pool(systems or (A, B), judged, [parse(measure)], TREC, depth=depth).checks
    return found


@pytest.mark.parametrize(
    ("measures", "convention", "expected"),
    [
        (["P@5", "nDCG@20"], "trec", 20),
        (["P@5"], "trec", 10),
        (["P@5", "AP"], "trec", None),
        (["nDCG(judged_only=True)@5"], "trec", None),
        (["P@5"], "ir_measures", None),  # its measures have their own order of ties
    ],
)
def test_only_the_ranks_that_the_check_looks_at_are_read(
    measures: list[str], convention: str, expected: int | None
) -> None:
    assert deepest_rank([parse(each) for each in measures], convention_named(convention), 10) == expected


def test_a_system_loses_what_only_it_found() -> None:
    found = check("P@2")
    a, b = found.systems
    # A: q1 a, b (2 of 2), q2 x, z (1 of 2): 0.75. a is A's alone (z is not judged): q1 1 of 2.
    assert (a.name, a.n_only, a.n_relevant, a.value, a.without) == ("A", 1, 1, 0.75, 0.5)
    # B: q1 b, c (1 of 2), q2 y, x (1 of 2): 0.5. c and y are B's alone, and not relevant.
    assert (b.name, b.n_only, b.n_relevant, b.value, b.without) == ("B", 2, 0, 0.5, 0.5)
    assert (a.change, found.mean_change) == (-0.25, 0.125)
    assert [(each.rank, each.rank_without) for each in found.systems] == [(1, 1), (2, 2)]
    assert (a.tau, b.tau) == (None, 1.0)  # without a, both have 0.5: nothing to order
    assert (found.n_moved, found.n_queries) == (0, 2)


def test_others_are_scored_without_those_judgments_too() -> None:
    third = system("C", q1="ca", q2="y")
    a, _, c = check("R@2", A, B, third, depth=1).systems
    # Down to rank 1, a and x are A's alone. R of C: q1 1 of a, b, q2 0 of x: 0.25; without a and x: 0 of b, 0 of none.
    assert (a.n_only, c.value) == (2, 0.25)
    # With: A 1.0, B 0.75, C 0.25. Without a and x: A finds b (1), nothing is relevant in q2 (0): 0.5; B the same; C 0.
    assert (a.value, a.without, a.rank, a.rank_without) == (1.0, 0.5, 1, 1)


def test_queries_stay_the_same_where_nothing_relevant_is_left() -> None:
    judged = TestSet("t", (Query("q1"), Query("q2")), {"q1": {"a": 1}, "q2": {"x": 1}})
    found = check("RR@10", judged=judged)
    assert [(each.value, each.without) for each in found.systems] == [(1.0, 0.5), (0.25, 0.25)]


def test_a_rank_may_change() -> None:
    found = check("P@1", judged=TestSet("t", (Query("q1"), Query("q2")), {"q1": {"a": 1, "b": 1}, "q2": {"x": 1}}))
    a, b = found.systems
    # P@1: A a, x: 1.0; B b, y: 0.5. Without a: A only x, 0.5. Ranks tie at 1.
    assert (a.value, a.without, a.rank, a.rank_without) == (1.0, 0.5, 1, 1)
    assert (b.value, b.without, b.rank, b.rank_without) == (0.5, 0.5, 2, 2)


def test_everything_that_does_not_fit_is_named_at_once() -> None:
    ruled = TestSet("t", (Query("q"),), targets={"q": (Pattern("x"),)})
    with pytest.raises(UsageError) as caught:
        check_pool([A], ruled, [parse("NumRel"), parse("Judged@10")], TREC, depth=0)
    assert [problem.message for problem in caught.value.problems] == [
        "leave-one-out needs another run",
        "the depth of the pool is 0",
        "the truth of 1 queries is a rule (q), which does not depend on any system",
        "the test set has no judgment by document id",
        "NumRel is not a mean over queries",
        "Judged@10 is not a mean over queries",
    ]


def test_a_measure_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="Silence has no value for A"):
        check("Silence")
