"""No regression beyond a margin: against statsmodels, by its interval, and at its limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.weightstats import ttost_paired

from cranfield.base.errors import UsageError
from cranfield.stats.paired import ALL_EQUAL, ONE_QUERY, noninferiority, paired_t, tost
from cranfield.stats.result import NO_QUERY

sixths = st.integers(-6, 6).map(lambda k: k / 6)


@pytest.mark.parametrize("margin", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_equals_the_lower_test_of_statsmodels(seed, margin):
    d = np.random.default_rng(seed).normal(0.01, 0.2, 40)
    (_, (t, p, _), _) = ttost_paired(d, np.zeros(40), -margin, margin)
    found = noninferiority(d, margin)
    assert found.statistic == pytest.approx(t)
    assert found.extra["p_noninferior"] == pytest.approx(p)
    assert found.extra["p_noninferior"] == pytest.approx(tost(d, margin).extra["p_above_low"])


def test_by_hand():
    # mean 2, standard error 1 / sqrt(3), margin 1: t = 3 * sqrt(3)
    assert noninferiority([1.0, 2.0, 3.0], 1.0).statistic == pytest.approx(3 * 3**0.5)


def test_a_margin_of_zero_asks_for_more():
    d = np.random.default_rng(0).normal(0.05, 0.2, 40)
    assert noninferiority(d, 0.0).extra["p_noninferior"] == pytest.approx(paired_t(d).p_one_sided)


@given(st.lists(sixths, min_size=2, max_size=20), st.sampled_from([0.01, 0.05, 0.3]), st.sampled_from([0.1, 0.26, 0.7]))
def test_verdict_by_p_and_verdict_by_interval_never_differ(d, alpha, margin):
    found = noninferiority(d, margin, alpha=alpha)
    assert (found.extra["p_noninferior"] <= alpha) == (found.ci_low > -margin)
    assert (found.extra["p_inferior"] <= alpha) == (found.ci_high < -margin)


@given(st.lists(sixths, min_size=2, max_size=20), st.floats(0, 1))
def test_it_cannot_be_both(d, margin):
    found = noninferiority(d, margin)
    assert not (found.extra["p_noninferior"] <= 0.05 and found.extra["p_inferior"] <= 0.05)


@pytest.mark.parametrize(
    ("d", "p_noninferior", "p_inferior"), [([0.0] * 5, 0.0, 1.0), ([-0.1] * 5, 1.0, 1.0), ([-0.2] * 5, 1.0, 0.0)]
)
def test_without_spread_the_margin_is_passed_or_not(d, p_noninferior, p_inferior):
    found = noninferiority(d, 0.1)
    assert (found.extra["p_noninferior"], found.extra["p_inferior"]) == (p_noninferior, p_inferior)
    assert found.note is not None


def test_what_cannot_be_tested_is_said():
    assert noninferiority([], 0.1).note == NO_QUERY
    assert noninferiority([0.1], 0.1).note == ONE_QUERY
    assert noninferiority([0.1, 0.1], 0.1).note == ALL_EQUAL
    assert noninferiority([0.1, 0.2], 0.1, alpha=0.5).ci_low is None


@pytest.mark.parametrize("margin", [-0.1, float("inf"), float("nan")])
def test_a_margin_below_zero_is_refused(margin):
    with pytest.raises(UsageError, match="margin"):
        noninferiority([0.1, 0.2], margin)
