"""Effect size and what could have been seen, against statsmodels."""

import math

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.power import TTestPower

from cranfield.base.errors import UsageError
from cranfield.stats.power import cohens_dz, minimal_detectable_effect


def test_effect_size_is_mean_over_spread():
    assert cohens_dz([1.0, 2.0, 3.0]) == 2.0
    assert cohens_dz([-1.0, -2.0, -3.0]) == -2.0
    assert cohens_dz([0.0, 0.0, 1.0]) == pytest.approx((1 / 3) / math.sqrt((1 / 9 + 1 / 9 + 4 / 9) / 2))


def power_of(shift, n, alpha):
    critical = scipy.stats.t.isf(alpha / 2, n - 1)
    return scipy.stats.nct.sf(critical, n - 1, shift) + scipy.stats.nct.sf(critical, n - 1, -shift)


@pytest.mark.parametrize("d", [[], [0.3], [0.3, 0.3], [0.0, 0.0], [0.1 + 0.2, 0.3]])
def test_without_spread_there_is_no_effect_size(d):
    assert cohens_dz(d) is None


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("n", [5, 10, 50, 300, 7000])
def test_detectable_effect_equals_statsmodels(n, alpha, power):
    found = minimal_detectable_effect(1.0, n, alpha, power)
    assert power_of(found * math.sqrt(n), n, alpha) == pytest.approx(power, rel=1e-9)
    if math.isnan(TTestPower().power(found, n, alpha)):  # n = 5, power .95: it goes astray where SciPy's tail is a NaN
        return
    # Its search for the effect stops early: at n = 7000 the power it finds is off by some 1e-5.
    assert found == pytest.approx(TTestPower().solve_power(nobs=n, alpha=alpha, power=power), rel=1e-4)


@pytest.mark.parametrize(
    ("n", "alpha"), [(2, 0.2), (2, 0.05), (2, 0.001), (3, 0.001), (4, 1e-5), (20, 1e-6), (50, 0.05), (7000, 0.001)]
)
def test_a_t_test_finds_the_detectable_effect_eight_times_in_ten(n, alpha):
    shift = minimal_detectable_effect(0.3, n, alpha) / 0.3 * math.sqrt(n)
    assert power_of(shift, n, alpha) == pytest.approx(0.8, abs=1e-9)


def test_detectable_effect_by_simulation():
    rng = np.random.default_rng(0)
    effect = minimal_detectable_effect(0.3, 20, 0.05)
    d = rng.normal(effect, 0.3, (20_000, 20))
    t = d.mean(axis=1) / (d.std(axis=1, ddof=1) / math.sqrt(20))
    found = (np.abs(t) > scipy.stats.t.isf(0.025, 19)).mean()
    assert abs(found - 0.8) < 5 * math.sqrt(0.16 / 20_000)


def test_it_scales_with_the_spread():
    assert minimal_detectable_effect(0.6, 50) == pytest.approx(2 * minimal_detectable_effect(0.3, 50))
    assert minimal_detectable_effect(0.0, 50) == 0.0


@pytest.mark.parametrize("n", [0, 1])
def test_under_two_queries_nothing_could_be_seen(n):
    assert minimal_detectable_effect(0.3, n) is None


@pytest.mark.parametrize(
    "arguments", [(0.3, 50, 0.0), (0.3, 50, 0.05, 1.0), (0.3, 50, 0.05, 0.04), (-0.1, 50), (math.nan, 50)]
)
def test_what_cannot_be_is_refused(arguments):
    with pytest.raises(UsageError):
        minimal_detectable_effect(*arguments)
