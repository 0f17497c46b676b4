"""Queries needed, from two systems' own differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cranfield.app.evaluate import evaluate
from cranfield.base.errors import UsageError
from cranfield.evaluation.power import plan, round_numbers
from cranfield.model import Query, TestSet
from cranfield.stats.power import minimal_detectable_effect, power_of, queries_needed

N = 40
SHOP = TestSet("shop", tuple(Query(f"q{n}") for n in range(N)), {f"q{n}": {"a": 1} for n in range(N)})


def system(name, ranks):
    run = {f"q{n}": [*(f"x{i}" for i in range(rank - 1)), "a"] for n, rank in enumerate(ranks)}
    return evaluate(SHOP, run, measures=["RR", "P@1"], name=name)


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(1)
    return system("old", rng.integers(1, 6, N)), system("new", rng.integers(1, 5, N))


def test_it_reckons_from_the_spread_of_the_differences(pair):
    found = plan(*pair)
    (measure, _) = pair[0].measures
    d = pair[1].values[measure] - pair[0].values[measure]
    assert (found.n, found.measure) == (N, measure)
    assert found.std == pytest.approx(d.std(ddof=1))
    assert found.delta == pytest.approx(d.mean())
    assert found.observed_power == pytest.approx(power_of(found.std, found.delta, N))
    for row in found.planned:
        if row.given == "difference":
            assert row.n == queries_needed(found.std, row.difference)
        else:
            assert row.difference == minimal_detectable_effect(found.std, row.n)
    assert {row.n for row in found.planned if row.note} == {N}


def test_one_question_gets_one_answer(pair):
    (by_difference,) = plan(*pair, difference=0.05).planned
    assert by_difference.n == queries_needed(plan(*pair).std, 0.05)
    (by_queries,) = plan(*pair, queries=100, power=0.9).planned
    assert by_queries.difference == minimal_detectable_effect(plan(*pair).std, 100, 0.05, 0.9)
    (both,) = plan(*pair, difference=-0.05, queries=100).planned
    assert both.power == power_of(plan(*pair).std, 0.05, 100)


def test_the_second_opinion_is_near_the_first_for_many_queries(pair):
    found = plan(*pair, difference=0.1, queries=150)
    (row,) = found.planned
    assert found.resampled.n == 150
    assert abs(found.resampled.power - row.power) < 5 * math.sqrt(0.25 / found.trials) + 0.02


def test_more_queries_than_anybody_judges_are_not_drawn(pair):
    assert plan(*pair, difference=0.0001).resampled is None
    assert plan(*pair, difference=1e-9).planned[0].n is None


def test_without_a_spread_nothing_is_reckoned(pair):
    with pytest.raises(UsageError, match="no spread to compute power from"):
        plan(pair[0], pair[0])


def test_one_query_has_no_spread():
    tiny = TestSet("tiny", (Query("q1"),), {"q1": {"a": 1}})
    sides = [evaluate(tiny, {"q1": [first, "a"]}, measures=["RR"], name=first) for first in ("x", "y")]
    with pytest.raises(UsageError, match="for 1 of the queries"):
        plan(*sides)


@pytest.mark.parametrize(("low", "high", "numbers"), [(0.03, 0.3, [0.05, 0.1, 0.2]), (1, 1, [1.0]), (3, 4, [])])
def test_round_numbers(low, high, numbers):
    assert round_numbers(low, high) == numbers
