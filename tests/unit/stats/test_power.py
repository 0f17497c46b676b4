"""Queries needed and power, against statsmodels, by simulation, and by resampling."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

from cranfield.base.errors import UsageError
from cranfield.stats.power import (
    MAX_QUERIES,
    minimal_detectable_effect,
    power_of,
    queries_needed,
    resampled_power,
    tilted,
)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("n", [2, 5, 50, 300, 7000])
@pytest.mark.parametrize("effect", [0.01, 0.1, 0.5, 1.0])
def test_power_equals_statsmodels(effect, n, alpha):
    expected = float(TTestPower().power(effect, n, alpha))
    if math.isnan(expected):  # it goes astray where SciPy's tail is a NaN
        expected = 1.0
    assert power_of(0.3, 0.3 * effect, n, alpha=alpha) == pytest.approx(expected, abs=1e-8)
    assert power_of(0.3, -0.3 * effect, n, alpha=alpha) == power_of(0.3, 0.3 * effect, n, alpha=alpha)


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("effect", [0.01, 0.05, 0.2, 0.5, 1.0])
def test_queries_needed_equal_statsmodels(effect, power):
    solved = TTestPower().solve_power(effect, alpha=0.05, power=power)
    assert queries_needed(0.3, 0.3 * effect, power=power) == math.ceil(solved)


@given(st.floats(0.001, 30), st.sampled_from([0.001, 0.05, 0.3]), st.sampled_from([0.5, 0.8, 0.99]))
def test_one_query_fewer_is_not_enough(effect, alpha, power):
    n = queries_needed(1.0, effect, alpha=alpha, power=power)
    if n is None:
        assert power_of(1.0, effect, MAX_QUERIES, alpha=alpha) < power
        return
    assert power_of(1.0, effect, n, alpha=alpha) >= power
    assert n == 2 or power_of(1.0, effect, n - 1, alpha=alpha) < power


@pytest.mark.parametrize("n", [5, 50, 700])
def test_queries_needed_and_the_detectable_effect_are_each_other_s_way_back(n):
    shown = minimal_detectable_effect(0.3, n)
    assert queries_needed(0.3, shown * 1.000001) == n
    assert power_of(0.3, shown, n) == pytest.approx(0.8, abs=1e-9)


@pytest.mark.parametrize(
    ("std", "difference", "n", "power"),
    [
        (0.3, 0.0, 50, 0.05),  # no difference: a false alarm
        (0.0, 0.1, 2, 1.0),  # no spread: always
        (0.0, 0.0, 2, 0.05),
        (1e-9, 5.0, 7000, 1.0),
        (1e-300, 1e300, 2, 1.0),
    ],
)
def test_the_ends_of_power(std, difference, n, power):
    assert power_of(std, difference, n) == pytest.approx(power, abs=1e-12)


def test_beyond_ten_million_queries_nobody_judges():
    assert queries_needed(1.0, 1e-5) is None
    assert queries_needed(0.0, 1e-5) == 2


def test_resampling_agrees_with_the_t_test_where_differences_are_bell_shaped():
    d = np.random.default_rng(1).normal(0.02, 0.3, 400)
    found = resampled_power(d, 0.1, 60)
    expected = power_of(float(d.std(ddof=1)), 0.1, 60)
    assert abs(found - expected) < 5 * math.sqrt(expected * (1 - expected) / 1000) + 0.02


def test_resampling_sees_skew_that_the_t_test_s_reckoning_does_not():
    # 1 query in 20 gains 1, 4 in 20 lose a little: a mean of -.05 hides behind a rare gain, one of +.05 is made of it.
    d = np.array([1.0] * 5 + [-0.1] * 20 + [0.0] * 75)
    std = float(d.std(ddof=1))
    down, up = resampled_power(d, -0.05, 30), resampled_power(d, 0.05, 30)
    assert power_of(std, -0.05, 30) == power_of(std, 0.05, 30)
    assert down - up > 0.3


def test_queries_that_did_not_differ_still_do_not():
    # 3 of 12 differ: in 5 of them drawn, the test has at most 5 signs, and 1/16 is no rarer than .05.
    d = [0.0] * 9 + [0.1, 0.2, 0.3]
    assert resampled_power(d, 0.05, 5) == 0.0


@pytest.mark.parametrize("difference", [-0.1, 0.0, 0.3, 0.4])
def test_a_mean_that_no_weights_have_is_not_imagined(difference):
    assert resampled_power([0.0, 0.1, 0.3], difference, 50) is None


@pytest.mark.parametrize("mean", [-0.499, -0.1, 0.0, 0.05, 0.7, 0.999])
def test_weights_have_the_mean_that_is_asked_for(mean):
    d = np.array([-0.5, -0.1, 0.0, 0.0, 0.2, 1.0])
    weights = tilted(d, mean)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() >= 0
    assert float(weights @ d) == pytest.approx(mean, abs=1e-9)
    assert tilted(d, float(d.mean())) == pytest.approx(np.full(6, 1 / 6))


def test_resampling_depends_on_the_seed_alone():
    d = np.random.default_rng(2).normal(0, 0.3, 50)
    first = resampled_power(d, 0.1, 40, seed=4, n_trials=100)
    assert first == resampled_power(d, 0.1, 40, seed=4, n_trials=100)
    assert 0 <= first <= 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: power_of(-1.0, 0.1, 50),
        lambda: power_of(0.3, math.inf, 50),
        lambda: power_of(0.3, 0.1, 1),
        lambda: power_of(0.3, 0.1, 50, alpha=0.0),
        lambda: queries_needed(0.3, 0.0),
        lambda: queries_needed(0.3, 0.1, power=0.05),
        lambda: queries_needed(0.3, 0.1, power=1.0),
        lambda: queries_needed(math.inf, 0.1),
        lambda: resampled_power([0.1], 0.1, 50),
        lambda: resampled_power([0.1, 0.2], 0.1, 1),
    ],
)
def test_what_cannot_be_is_refused(call):
    with pytest.raises(UsageError):
        call()
