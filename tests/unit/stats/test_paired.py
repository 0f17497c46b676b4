"""t, TOST, sign and McNemar against SciPy and statsmodels; their limits by hand."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.weightstats import ttost_paired

from cranfield.base.errors import UsageError
from cranfield.stats.bootstrap import bootstrap
from cranfield.stats.paired import mcnemar, paired_t, sign_test, tost
from cranfield.stats.wilcoxon import wilcoxon

ALPHAS = st.sampled_from([0.01, 0.05, 0.1, 0.3])
ONE_SAMPLE = {"t": paired_t, "sign": sign_test, "wilcoxon": wilcoxon, "bootstrap": bootstrap}


def excludes_zero(result):
    return (result.ci_low is not None and result.ci_low > 0) or (result.ci_high is not None and result.ci_high < 0)


# Student


@pytest.mark.parametrize("n", [2, 3, 10, 50, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_t_equals_scipy(tied_differences, n, seed):
    d = np.random.default_rng(seed).normal(0.2, 1, n) if seed % 2 or n < 10 else tied_differences(seed, n)
    two_sided = scipy.stats.ttest_1samp(d, 0)
    greater = scipy.stats.ttest_1samp(d, 0, alternative="greater")
    interval = two_sided.confidence_interval(0.9)
    result = paired_t(d, alpha=0.1)
    assert result.statistic == pytest.approx(two_sided.statistic, rel=1e-12)
    assert result.p_two_sided == pytest.approx(two_sided.pvalue, rel=1e-10)
    assert result.p_one_sided == pytest.approx(greater.pvalue, rel=1e-10)
    assert (result.ci_low, result.ci_high) == pytest.approx((interval.low, interval.high), rel=1e-10)
    assert result.extra == {"df": n - 1}


def test_t_by_hand():
    # mean 2, std 1, n 3: t = 2 / (1 / sqrt(3)) = 3.4641; with 2 degrees the tail is (1 - t / sqrt(2 + t^2)) / 2
    result = paired_t([1.0, 2.0, 3.0])
    assert result.statistic == pytest.approx(2 * math.sqrt(3))
    assert result.p_one_sided == pytest.approx((1 - math.sqrt(12 / 14)) / 2)


@pytest.mark.parametrize(("size", "one_sided"), [(0.1, 0.0), (-0.1, 1.0)])
def test_t_of_a_constant_difference_is_the_limit_and_says_so(size, one_sided):
    result = paired_t([size] * 5)
    assert (result.statistic, result.p_two_sided, result.p_one_sided) == (None, 0.0, one_sided)
    assert (result.ci_low, result.ci_high) == (size, size)
    assert "t is infinite" in result.note


def test_a_difference_that_is_constant_but_for_rounding_is_constant():
    d = [0.4 - 0.3, 0.3 - 0.2, 0.2 - 0.1]
    assert len(set(d)) > 1
    assert paired_t(d).statistic is None
    assert paired_t(d).p_two_sided == 0.0


def test_t_of_no_difference_at_all():
    result = paired_t([0.0] * 5)
    assert (result.statistic, result.p_two_sided, result.ci_low, result.ci_high) == (None, 1.0, 0.0, 0.0)
    assert result.note == "no query differs"


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20), ALPHAS)
def test_t_at_most_alpha_is_an_interval_without_zero(d, alpha):
    result = paired_t(d, alpha=alpha)
    assert (result.p_two_sided <= alpha) == excludes_zero(result)


# Two one-sided tests


@pytest.mark.parametrize("margin", [0.01, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_tost_equals_statsmodels(seed, margin):
    rng = np.random.default_rng(seed)
    a = rng.random(40)
    b = a + rng.normal(0.05, 0.3, 40)
    p, (t_low, p_low, _), (t_high, p_high, _) = ttost_paired(b, a, -margin, margin)
    result = tost(b - a, margin)
    assert result.extra["p_equivalence"] == pytest.approx(p, rel=1e-9)
    assert result.extra["p_above_low"] == pytest.approx(p_low, rel=1e-9)
    assert result.extra["p_below_high"] == pytest.approx(p_high, rel=1e-9)
    assert result.statistic == pytest.approx(t_low if p_low >= p_high else t_high, rel=1e-9)
    assert (result.p_two_sided, result.p_one_sided) == (None, None)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20), st.floats(0.01, 2), st.sampled_from([0.01, 0.05, 0.2]))
def test_equivalence_is_the_interval_within_the_margin(d, margin, alpha):
    result = tost(d, margin, alpha=alpha)
    p = result.extra["p_equivalence"]
    if abs(p - alpha) > 1e-9:
        assert (p < alpha) == (-margin < result.ci_low and result.ci_high < margin)


@pytest.mark.parametrize(("size", "p"), [(0.05, 0.0), (0.1, 1.0), (0.2, 1.0), (-0.2, 1.0), (0.0, 0.0)])
def test_equivalence_of_a_constant_difference_is_within_the_margin_or_not(size, p):
    result = tost([size] * 4, 0.1)
    assert result.extra["p_equivalence"] == p
    assert result.note


def test_a_large_alpha_leaves_no_interval():
    assert tost([0.1, 0.2, 0.4], 0.5, alpha=0.6).ci_low is None


@pytest.mark.parametrize("margin", [0.0, -0.1, math.inf, math.nan])
def test_a_margin_that_is_no_size_is_refused(margin):
    with pytest.raises(UsageError, match="margin"):
        tost([0.1, 0.2], margin)


# Sign


@pytest.mark.parametrize(("n", "positive"), [(1, 1), (5, 0), (6, 6), (14, 13), (50, 20), (50, 25), (7000, 3600)])
def test_sign_equals_scipy(n, positive):
    d = np.concatenate([np.full(positive, 0.5), np.full(n - positive, -0.25), np.zeros(7)])
    result = sign_test(d)
    assert result.statistic == positive
    assert result.p_two_sided == pytest.approx(scipy.stats.binomtest(positive, n).pvalue, rel=1e-10)
    assert result.p_one_sided == pytest.approx(
        scipy.stats.binomtest(positive, n, alternative="greater").pvalue, rel=1e-10
    )
    assert result.extra == {"n_positive": positive, "n_negative": n - positive}


def test_the_sign_interval_by_hand():
    # n = 8: 2 * P(at most 0 heads) = 2 / 256 = .0078, at most 1: 18 / 256 = .0703. So at .05 only a count of 0 is rejected, and
    # the interval goes from the smallest to the largest; at .0704 from the second to the last but one.
    d = [0.5, -0.1, 0.2, 0.7, 0.3, 0.9, 0.4, 0.6]
    assert (sign_test(d).ci_low, sign_test(d).ci_high) == (-0.1, 0.9)
    assert (sign_test(d, alpha=0.0704).ci_low, sign_test(d, alpha=0.0704).ci_high) == (0.2, 0.7)
    assert (sign_test(d, alpha=0.005).ci_low, sign_test(d, alpha=0.005).ci_high) == (None, None)


def test_few_signs_give_no_bound_and_a_note():
    assert sign_test([0.1] * 5 + [0.0]).note == (
        "6 queries, of which 5 differ, are too few for a bounded interval at this alpha"
    )
    assert sign_test([0.1] * 6).ci_low == 0.1


def test_sign_of_no_difference_at_all():
    result = sign_test([0.0] * 9)
    assert (result.p_two_sided, result.p_one_sided, result.ci_low, result.note) == (1.0, 1.0, None, "no query differs")


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), ALPHAS)
def test_sign_at_most_alpha_is_an_interval_without_zero(d, alpha):
    result = sign_test(np.array(d) / 7, alpha=alpha)
    assert (result.p_two_sided <= alpha) == excludes_zero(result)


# McNemar


@pytest.mark.parametrize(("b", "c"), [(0, 12), (12, 0), (1, 1), (3, 8), (20, 31), (0, 1)])
def test_mcnemar_equals_statsmodels(b, c):
    baseline = np.array([1] * b + [0] * c + [1] * 5 + [0] * 4)
    candidate = np.array([0] * b + [1] * c + [1] * 5 + [0] * 4)
    expected = statsmodels_mcnemar([[5, b], [c, 4]], exact=True)
    result = mcnemar(baseline, candidate)
    assert result.statistic == expected.statistic == min(b, c)
    assert result.p_two_sided == pytest.approx(expected.pvalue, rel=1e-12)
    assert result.p_one_sided == pytest.approx(scipy.stats.binomtest(c, b + c, alternative="greater").pvalue, rel=1e-12)
    assert result.extra == {"baseline_only": b, "candidate_only": c}
    assert (result.ci_low, result.ci_high) == (None, None)


def test_mcnemar_takes_truth_values():
    result = mcnemar(np.array([True, False]), np.array([False, False]))
    assert result.extra == {"baseline_only": 1, "candidate_only": 0}


def test_mcnemar_without_a_discordant_query():
    result = mcnemar([1.0, 0.0], [1.0, 0.0])
    assert (result.p_two_sided, result.p_one_sided, result.note) == (1.0, 1.0, "no query differs")


@pytest.mark.parametrize(("a", "b"), [([0.5], [1.0]), ([1.0], [2.0]), ([0.0, 1.0], [1.0])])
def test_mcnemar_of_anything_else_is_refused(a, b):
    with pytest.raises(UsageError, match=r"needs binary values|different lengths"):
        mcnemar(a, b)


def test_the_published_pair_has_twelve_discordant_queries_and_not_thirteen(cupertino):
    result = mcnemar(*cupertino("p1"))
    assert result.extra == {"baseline_only": 0, "candidate_only": 12}
    assert result.p_two_sided == pytest.approx(2 / 2**12, rel=1e-12)


# All of them


@pytest.mark.parametrize("name", ONE_SAMPLE)
def test_nothing_to_test_is_a_note(name):
    result = ONE_SAMPLE[name]([])
    assert (result.p_two_sided, result.p_one_sided, result.note) == (None, None, "no query to test")


def test_nothing_to_compare_is_a_note():
    assert mcnemar([], []).note == tost([], 0.1).note == "no query to test"


@pytest.mark.parametrize("call", [lambda: paired_t([0.3]), lambda: tost([0.3], 0.1)])
def test_one_query_has_no_t(call):
    result = call()
    assert (result.statistic, result.p_two_sided, result.ci_low) == (None, None, None)
    assert result.note == "one query has no spread (n < 2)"


@pytest.mark.parametrize("name", ONE_SAMPLE)
@pytest.mark.parametrize("alpha", [0.0, 1.0, 5.0, math.nan])
def test_an_alpha_that_is_no_share_is_refused(name, alpha):
    with pytest.raises(UsageError, match="alpha"):
        ONE_SAMPLE[name]([0.1, 0.2], alpha=alpha)


@pytest.mark.parametrize("name", ONE_SAMPLE)
def test_what_is_not_finite_is_refused(name):
    with pytest.raises(UsageError, match="1 of 2 differences are not finite"):
        ONE_SAMPLE[name]([0.1, math.nan])
