"""Estimates from a judged sample."""

from __future__ import annotations

from statistics import mean, stdev

import pytest

from cranfield.base.errors import UsageError
from cranfield.books.pool_file import Pool
from cranfield.judging.pools.build import PoolRequest, SampledRanks, build_pool
from cranfield.judging.pools.check import estimate_pool
from cranfield.judging.pools.results import SystemResults
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet


def system(name: str, **lists: list[str]) -> SystemResults:
    answers = {query: Answer(Outcome.ANSWERED, tuple(map(Hit, docs))) for query, docs in lists.items()}
    return SystemResults(name, Run(name, answers))


DOCS = [f"d{n:02}" for n in range(20)]
A = system("A", q1=DOCS, q2=DOCS[::-1])
B = system("B", q1=DOCS[5:] + DOCS[:5], q2=DOCS[7:])
RELEVANT = {"q1": {"d00", "d03", "d07", "d11", "d12", "d19"}, "q2": {"d19", "d02", "d05", "d09", "d13"}}
RANGES = (SampledRanks(5, 10, 0.4), SampledRanks(11, 20, 0.3))


def judged(pool: Pool) -> TestSet:
    grades: dict[str, dict[str, float]] = {}
    for item in pool.items:
        grades.setdefault(item.query, {})[item.doc] = float(item.doc in RELEVANT[item.query])
    return TestSet("t", tuple(map(Query, grades)), grades)


def test_a_pool_of_a_fixed_depth_gives_precision_itself() -> None:
    pool = build_pool([A, B], None, PoolRequest(20)).pool
    found = estimate_pool(pool, judged(pool), [A], [10, 20])
    # The first 10 of A: d00, d03, d07 in q1; d19 to d10 in q2: d19, d13.
    assert [(each.k, each.estimate.mean, each.judged_only) for each in found.precision] == [
        (10, 0.25, 0.25),
        (20, 0.275, 0.275),
    ]
    assert (found.n_relevant.mean, found.n_missing, found.n_outside, found.not_pooled) == (5.5, 0, 0, ())


@pytest.mark.parametrize("n_seeds", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_estimates_of_a_sample_are_unbiased(n_seeds: int) -> None:
    precision: list[float] = []
    lower: list[float] = []
    relevant: list[float] = []
    for seed in range(n_seeds):
        pool = build_pool([A, B], None, PoolRequest(4, RANGES, seed=seed)).pool
        found = estimate_pool(pool, judged(pool), [A], [15])
        assert found.precision[0].estimate.mean is not None
        assert found.n_relevant.mean is not None
        precision.append(found.precision[0].estimate.mean)
        lower.append(found.precision[0].judged_only)
        relevant.append(found.n_relevant.mean)
    # All of the first 15 of A: 5 of q1 (d00, d03, d07, d11, d12), 4 of q2 (d19, d13, d09, d05): 9 of 30.
    for values, truth in ((precision, 9 / 30), (relevant, 5.5)):
        assert abs(mean(values) - truth) < 4.5 * stdev(values) / len(values) ** 0.5
    assert mean(lower) < 0.95 * 9 / 30


def test_what_estimates_do_not_know_is_counted() -> None:
    pool = build_pool([A], None, PoolRequest(4, RANGES)).pool
    known = judged(pool)
    grades = {"q1": {**known.grades["q1"], "d00": -1.0}, "q2": known.grades["q2"]}
    found = estimate_pool(pool, TestSet("t", known.queries, grades), [A, B], [4])
    assert (found.n_missing, found.n_outside, found.not_pooled) == (1, 0, ("B",))


def test_judgments_of_what_was_not_drawn_are_counted_unless_they_were_left_out_of_the_pool() -> None:
    everything = TestSet("t", (Query("q1"),), {"q1": dict.fromkeys(DOCS, 1.0)})
    pool = build_pool([A], TestSet("t", (Query("q1"),)), PoolRequest(4, RANGES)).pool
    n_drawn = len(pool.items)
    assert estimate_pool(pool, everything, [A], [4]).n_outside == 20 - n_drawn
    before = TestSet("t", (Query("q1"),), {"q1": {"d08": 1.0, "d01": 0.0}})
    pool = build_pool([A], before, PoolRequest(4, RANGES)).pool
    drawn = TestSet("t", (Query("q1"),), {"q1": before.grades["q1"] | {item.doc: 1.0 for item in pool.items}})
    assert estimate_pool(pool, drawn, [A], [4]).n_outside == 0


def test_everything_that_cannot_be_estimated_is_named() -> None:
    pool = build_pool([A], None, PoolRequest(4, budget=3)).pool
    with pytest.raises(UsageError) as caught:
        estimate_pool(pool, TestSet("t", (Query("q1"),)), [A], [0, 4, 5])
    assert [problem.message for problem in caught.value.problems] == [
        "a cutoff of 0",
        "a cutoff of 5",
        "a pool of the method budget has no inclusion probabilities",
        "the test set has no judgment by document id",
    ]
