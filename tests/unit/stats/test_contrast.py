"""Two independent groups of queries, and groups at the ceiling."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cranfield.base.errors import UsageError
from cranfield.stats.contrast import at_ceiling, two_groups

VALUES = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=2, max_size=30)


def test_a_contrast_worked_by_hand():
    contrast = two_groups([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    # variances 1 and 1: t = 1 / sqrt(1/3 + 1/3), 4 degrees of freedom, t quantile 2.7764
    assert contrast.difference == 1.0
    assert contrast.statistic == pytest.approx(1 / math.sqrt(2 / 3))
    assert contrast.df == pytest.approx(4)
    assert contrast.ci_low == pytest.approx(1 - 2.776445 * math.sqrt(2 / 3), abs=1e-6)
    assert contrast.ci_high == pytest.approx(1 + 2.776445 * math.sqrt(2 / 3), abs=1e-6)
    # pooled standard deviation 1; J = gamma(2) / (sqrt(2) gamma(1.5)) = 1 / (1.41421 * 0.886227)
    assert contrast.hedges_g == pytest.approx(1 / (math.sqrt(2) * 0.886226925), abs=1e-8)
    assert (contrast.a.n, contrast.b.n, contrast.note) == (3, 3, None)


@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")  # SciPy, of a group without spread
@settings(max_examples=min(60, settings().max_examples))
@given(VALUES, VALUES, st.sampled_from([0.01, 0.05, 0.2]))
def test_equal_to_scipy(a, b, alpha):
    contrast = two_groups(a, b, alpha=alpha, n_draws=9)
    if len(set(a)) == len(set(b)) == 1:
        assert contrast.p_welch is None
        return
    theirs = stats.ttest_ind(a, b, equal_var=False)
    interval = theirs.confidence_interval(1 - alpha)
    assert contrast.statistic == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-9)
    assert contrast.df == pytest.approx(theirs.df, rel=1e-9)
    assert contrast.p_welch == pytest.approx(theirs.pvalue, rel=1e-9, abs=1e-12)
    assert contrast.ci_low == pytest.approx(interval.low, rel=1e-9, abs=1e-9)
    assert contrast.ci_high == pytest.approx(interval.high, rel=1e-9, abs=1e-9)


def test_the_permutation_p_is_near_that_of_all_labellings():
    a, b = [0.9, 0.8, 1.0, 0.4], [0.1, 0.5, 0.3, 0.7, 0.2]
    pooled = [*a, *b]
    observed = abs(np.mean(a) - np.mean(b))
    apart = []
    for first in combinations(range(9), 4):
        group = [pooled[i] for i in first]
        apart.append(abs(np.mean(group) - (sum(pooled) - sum(group)) / 5) >= observed - 1e-12)
    exact = np.mean(apart)  # 126 labellings
    assert two_groups(a, b, n_draws=20_000).p_permutation == pytest.approx(exact, abs=0.005)


def test_the_permutation_p_counts_what_was_observed_and_is_never_0():
    # no labelling of ten against ten is as far apart, but the observed one and its mirror image
    assert two_groups([1.0] * 10, [0.0] * 10, n_draws=99).p_permutation == 1 / 100


def test_the_same_seed_gives_the_same_answer_and_another_one_another():
    rng = np.random.default_rng(0)
    a, b = rng.random(40), rng.random(30)
    assert two_groups(a, b, seed=7) == two_groups(a, b, seed=7)
    assert two_groups(a, b, seed=7).p_permutation != two_groups(a, b, seed=8).p_permutation


def test_the_groups_swapped_mirror_every_number():
    a, b = [0.9, 0.8, 1.0, 0.4], [0.1, 0.5, 0.3]
    one, other = two_groups(a, b), two_groups(b, a)
    assert one.difference == -other.difference
    assert (one.ci_low, one.ci_high) == (-other.ci_high, -other.ci_low)
    assert one.hedges_g == -other.hedges_g
    assert one.p_welch == other.p_welch


@pytest.mark.parametrize(
    ("a", "b", "difference", "says"),
    [
        ([], [1.0], None, "one of the groups is empty"),
        ([1.0], [0.5, 0.0], 0.75, "a group of one query has no spread"),
        ([1.0, 1.0], [0.5, 0.5], 0.5, "no spread in either group"),
        ([1.0, 1.0], [1.0, 1.0], 0.0, "no spread in either group"),
    ],
)
def test_what_cannot_be_said_has_a_reason(a, b, difference, says):
    contrast = two_groups(a, b)
    assert contrast.difference == difference
    assert (contrast.ci_low, contrast.ci_high, contrast.p_welch, contrast.hedges_g) == (None,) * 4
    assert says in contrast.note


def test_one_group_without_spread_is_tested_by_the_spread_of_the_other():
    contrast = two_groups([1.0, 1.0, 1.0], [0.0, 0.5, 1.0])
    assert contrast.df == pytest.approx(2)  # of the second group alone
    assert contrast.statistic == pytest.approx(math.sqrt(3))  # .5 / (.5 / sqrt(3))
    assert contrast.p_welch == pytest.approx(2 * stats.t.sf(math.sqrt(3), 2))


def test_values_that_are_no_numbers_are_refused():
    with pytest.raises(UsageError, match="first group"):
        two_groups([math.nan], [1.0])
    with pytest.raises(UsageError, match="alpha"):
        two_groups([1.0], [1.0], alpha=0)


@pytest.mark.parametrize(
    ("values", "maximum", "warned"),
    [
        ([0.95] * 10, 1.0, True),  # the mean is 95 % of the maximum
        ([0.94] * 10, 1.0, False),
        ([1.0] * 8 + [0.0] * 2, 1.0, True),  # 80 % have the maximum
        ([1.0] * 7 + [0.0] * 3, 1.0, False),
        ([9.5] * 4, 10.0, True),
        ([1.0] * 10, None, False),
        ([1.0] * 10, math.inf, False),
        ([0.0] * 10, 0.0, False),
        ([], 1.0, False),
        ([0.1 + 0.2] * 3, 0.3, True),
    ],
)
def test_a_group_at_the_ceiling_is_said(values, maximum, warned):
    assert (at_ceiling(values, maximum) is not None) == warned


def test_the_warning_has_its_numbers():
    assert at_ceiling([1.0, 1.0, 1.0, 1.0, 0.0], 1.0) == (
        "at the ceiling: mean 0.800 of 1, and 4 of 5 queries have the maximum; it cannot show improvements"
    )
