"""Student's t by hand, against closed forms and SciPy."""

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats.describe import align_with_test, t_interval, t_quantile, t_tail

DEGREES = (1, 2, 3, 4, 5, 7, 10, 20, 30, 49, 50, 99, 100, 101, 200, 500, 999, 6979, 10_000, 49_999, 100_000)
TAILS = (*np.logspace(-6, math.log10(0.45), 40).tolist(), 0.25, 0.2500001, 0.2499999)


@pytest.mark.parametrize("df", DEGREES)
def test_quantiles_equal_scipy(df):
    for tail in TAILS:
        for p in (tail, 1 - tail):
            assert t_quantile(p, df) == pytest.approx(scipy.stats.t.ppf(p, df), rel=1e-10), p


@pytest.mark.parametrize("tail", [1e-12, 1e-6, 0.01, 0.2, 0.25, 0.3, 0.49, 0.4999, 0.4999999])
def test_quantiles_equal_the_closed_forms_at_1_and_2_degrees(tail):
    # SciPy itself is good to some 1e-9 only, so close to the median.
    assert t_quantile(tail, 1) == pytest.approx(-1 / math.tan(math.pi * tail), rel=1e-13 / (0.5 - tail))
    expected = -(1 - 2 * tail) / math.sqrt(2 * tail * (1 - tail))
    assert t_quantile(tail, 2) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("df", DEGREES)
def test_tails_equal_scipy(df):
    for t in np.logspace(-2, 2, 60):
        expected = scipy.stats.t.sf(t, df)
        if expected > 1e-280:
            assert t_tail(float(t), df) == pytest.approx(expected, rel=1e-11), t
            assert t_tail(-float(t), df) == pytest.approx(1 - expected, rel=1e-11), t


def test_tails_of_any_size():
    assert t_tail(1e-300, 5) == 0.5
    assert t_tail(1e200, 1) == pytest.approx(1e-200 / math.pi)  # 1 / (pi t)
    assert t_tail(1e300, 50) == t_tail(math.inf, 50) == 0.0
    assert t_tail(-math.inf, 50) == 1.0
    assert t_quantile(1e-100, 1) == pytest.approx(-1e100 / math.pi)


@given(st.floats(1e-9, 1 - 1e-9), st.integers(1, 100_000))
def test_the_tail_of_a_quantile_is_where_it_came_from(p, df):
    assert 1 - t_tail(t_quantile(p, df), df) == pytest.approx(p, rel=1e-9, abs=1e-12)


@given(st.floats(-100, -0.302).map(lambda power: 10.0**power), st.floats(0, 8).map(lambda power: 10.0**power))
def test_every_quantile_settles(tail, df):
    assert t_tail(-t_quantile(tail, df), df) == pytest.approx(tail, rel=1e-10)


@given(st.floats(1e-9, 0.5), st.integers(1, 100_000))
def test_the_quantile_is_symmetric(p, df):
    assert t_quantile(1 - p, df) == pytest.approx(-t_quantile(p, df), rel=1e-6, abs=1e-12)


def test_the_median_is_zero():
    assert t_quantile(0.5, 7) == 0.0


@pytest.mark.parametrize("n", [2, 3, 10, 50, 1000])
def test_the_interval_equals_scipy(n):
    values = np.random.default_rng(n).random(n)
    expected = scipy.stats.t.interval(0.95, n - 1, values.mean(), scipy.stats.sem(values))
    assert t_interval(values) == pytest.approx(expected, rel=1e-12)


def test_equal_values_give_an_interval_of_no_width():
    assert t_interval([0.1] * 5) == (0.1, 0.1)
    assert t_interval([0.0, 0.0]) == (0.0, 0.0)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_under_two_values_there_is_no_interval(values):
    assert t_interval(values) is None


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95.0, math.nan])
def test_a_level_that_is_no_share_is_refused(level):
    with pytest.raises(UsageError, match="level"):
        t_interval([1.0, 2.0], level)


@pytest.mark.parametrize(
    ("p", "df"),
    [(0.0, 5), (1.0, 5), (math.nan, 5), (1e-101, 5), (0.5, 0.5), (0.5, -1), (0.5, math.nan), (0.5, math.inf)],
)
def test_quantiles_that_are_not_numbers_are_refused(p, df):
    with pytest.raises(UsageError):
        t_quantile(p, df)


def test_intervals_do_not_load_scipy():
    code = (
        "import sys; from cranfield.stats.describe import t_interval; t_interval([0.1, 0.4, 0.2]);"
        "import cranfield.stats.table; print('scipy' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


@pytest.mark.parametrize(
    ("low", "high", "rejected", "upward", "expected"),
    [
        (0.0, 0.5, True, True, (2e-12, 0.5)),  # open at zero: the smallest step beside it
        (-0.5, 0.0, True, False, (-0.5, -2e-12)),
        (1e-18, 0.5, False, True, (0.0, 0.5)),
        (-0.5, -1e-18, False, False, (-0.5, 0.0)),
        (0.1, 0.5, True, True, (0.1, 0.5)),
        (-0.1, 0.5, False, True, (-0.1, 0.5)),
        (None, None, False, True, (None, None)),
    ],
)
def test_an_end_at_zero_goes_where_its_test_puts_it(low, high, rejected, upward, expected):
    assert align_with_test(low, high, rejected=rejected, upward=upward, scale=2.0) == expected
