"""Clusters: the mean and its error against statsmodels, sign flips and resamples of whole clusters against all of them."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats.bootstrap import bootstrap, describe_clusters
from cranfield.stats.describe import describe, t_interval
from cranfield.stats.paired import paired_t, t_test
from cranfield.stats.permutation import permutations

EIGHTHS = st.integers(-16, 16).map(lambda n: n / 8)
CLUSTERS = st.lists(st.tuples(EIGHTHS, st.integers(1, 5)), min_size=2, max_size=8)
TRIALS = 1000


def clustered(rng, n_clusters, *, gain=0.0, spread=0.5):
    """Values and the cluster of each: clusters of 1 to 8, alike within."""
    sizes = rng.integers(1, 9, n_clusters)
    cluster = np.repeat(np.arange(n_clusters), sizes)
    values = gain + np.repeat(rng.normal(0, spread, n_clusters), sizes) + rng.normal(0, 0.3, len(cluster))
    return values, cluster, np.bincount(cluster, values), sizes.astype(float)


@pytest.mark.parametrize("n_clusters", [2, 12, 300])
def test_the_error_is_that_of_statsmodels_with_clusters(n_clusters):
    values, cluster, sums, sizes = clustered(np.random.default_rng(n_clusters), n_clusters)
    fitted = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": cluster}, use_t=True)
    about = describe_clusters(sums, sizes)
    assert about.mean == pytest.approx(fitted.params[0], rel=1e-12)
    assert about.std / math.sqrt(about.n) == pytest.approx(fitted.bse[0], rel=1e-10)
    low, high = fitted.conf_int()[0]
    assert t_interval((), 0.95, about) == pytest.approx((low, high), rel=1e-8)
    result = t_test(about, scale=9)
    assert (result.statistic, result.p_two_sided) == pytest.approx((fitted.tvalues[0], fitted.pvalues[0]), rel=1e-8)


@given(st.lists(EIGHTHS, min_size=2, max_size=12))
def test_clusters_of_one_query_are_queries(values):
    found, expected = describe_clusters(values, np.ones(len(values))), describe(values)
    assert (found.n, found.mean) == (expected.n, pytest.approx(expected.mean, abs=1e-12))
    assert found.std == pytest.approx(expected.std, rel=1e-9, abs=1e-12)


@given(CLUSTERS)
def test_few_clusters_have_all_their_sign_patterns_counted(rows):
    sums, sizes = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    total = np.array(
        [sum(s * d for s, d in zip(signs, sums, strict=True)) for signs in itertools.product((1, -1), repeat=len(sums))]
    )
    as_far = np.count_nonzero(np.abs(total) >= abs(sums.sum()) - 1e-9) / len(total)
    result = permutations(sums[:, np.newaxis], sizes=sizes)[0]
    assert result.p_two_sided == pytest.approx(as_far if sums.any() else 1.0)
    assert result.estimate == pytest.approx(sums.sum() / sizes.sum())


def test_the_interval_holds_the_differences_that_the_test_does_not_reject():
    _, _, sums, sizes = clustered(np.random.default_rng(1), 14, gain=0.1)
    result = permutations(sums[:, np.newaxis], sizes=sizes)[0]

    def p(shift):
        return permutations((sums - shift * sizes)[:, np.newaxis], sizes=sizes)[0].p_two_sided

    step = 1e-9
    assert p(result.ci_low + step) > 0.05
    assert p(result.ci_high - step) > 0.05
    assert p(result.ci_low - step) <= 0.05
    assert p(result.ci_high + step) <= 0.05


def test_drawn_sign_patterns_agree_with_scipy():
    _, _, sums, sizes = clustered(np.random.default_rng(2), 60, gain=0.08)
    mine = permutations(sums[:, np.newaxis], sizes=sizes)[0]
    theirs = scipy.stats.permutation_test(
        (sums,), np.sum, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(0)
    )
    assert mine.p_two_sided == pytest.approx(theirs.pvalue, abs=0.01)


def test_sizes_of_one_change_nothing():
    differences = np.random.default_rng(3).normal(0.1, 1, size=(40, 2))
    ones = np.ones(40)
    assert permutations(differences, sizes=ones) == permutations(differences)
    found, expected = bootstrap(differences[:, 0], sizes=ones), bootstrap(differences[:, 0])
    assert (found.ci_low, found.ci_high) == pytest.approx((expected.ci_low, expected.ci_high), rel=1e-12)
    assert (found.p_two_sided, found.estimate) == pytest.approx((expected.p_two_sided, expected.estimate), rel=1e-12)


def test_a_bootstrap_of_clusters_is_that_of_scipy():
    _, _, sums, sizes = clustered(np.random.default_rng(4), 80, gain=0.05)
    mine = bootstrap(sums, sizes=sizes)
    theirs = scipy.stats.bootstrap(
        (sums, sizes),
        lambda a, b, axis=-1: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        method="BCa",
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert (mine.ci_low, mine.ci_high) == pytest.approx((theirs.low, theirs.high), abs=0.03 * width)


def test_no_cluster_and_one_cluster_have_no_spread():
    assert describe_clusters([], []).n == 0
    assert describe_clusters([2.0], [4.0]).mean == 0.5
    assert describe_clusters([2.0], [4.0]).std is None
    assert describe_clusters([1.0, 2.0], [2.0, 4.0]).std == 0.0


@pytest.mark.parametrize("sizes", [[1.0], [1.0, 0.0], [1.0, -1.0]])
def test_sizes_that_cannot_be_are_refused(sizes):
    for call in (describe_clusters, lambda s, n: bootstrap(s * 4, sizes=n)):
        with pytest.raises(UsageError, match="size"):
            call([1.0, 2.0], sizes)
    with pytest.raises(UsageError, match="size"):
        permutations(np.ones((2, 1)), sizes=np.array(sizes))


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [30, 200])
def test_false_alarms_and_coverage_of_clusters(n_clusters):
    """5 % and 95 %, by 1,000 draws; a test of queries alone alarms at least three times as often."""
    rng = np.random.default_rng(n_clusters)
    alarms = dict.fromkeys(("permutation", "t", "bootstrap", "queries"), 0)
    covers = dict.fromkeys(("permutation", "t", "bootstrap"), 0)
    for trial in range(TRIALS):
        values, _, sums, sizes = clustered(rng, n_clusters)
        found = {
            "permutation": permutations(sums[:, np.newaxis], sizes=sizes, seed=trial, n_draws=1000)[0],
            "t": t_test(describe_clusters(sums, sizes), scale=9),
            "bootstrap": bootstrap(sums, sizes=sizes, seed=trial, n_draws=1000),
        }
        alarms["queries"] += paired_t(values).p_two_sided <= 0.05
        for name, result in found.items():
            alarms[name] += result.p_two_sided <= 0.05
            covers[name] += result.ci_low <= 0 <= result.ci_high
    most = 0.085 if n_clusters < 100 else 0.065  # of 30 unequal clusters a bootstrap and t are somewhat narrow
    assert all(0.03 <= alarms[name] / TRIALS <= most for name in covers), alarms
    assert all(1 - most <= covered / TRIALS <= 0.97 for covered in covers.values()), covers
    assert alarms["queries"] / TRIALS > 0.15


@pytest.mark.slow
def test_false_alarms_of_random_groups_of_queries():
    """Groups of symmetric differences of any size: the test of groups is exact, and finds what the t test finds."""
    rng = np.random.default_rng(0)
    alarms, found, by_t = 0, 0, 0
    for trial in range(TRIALS):
        values = rng.normal(0, 1, 2000) * (rng.random(2000) < 0.6)
        group = rng.integers(0, 128, 2000)
        sizes = np.bincount(group, minlength=128).astype(float)
        sums = np.column_stack([np.bincount(group, values + gain, minlength=128) for gain in (0.0, 0.05)])
        null, real = permutations(sums, sizes=sizes, seed=trial, n_draws=1000)
        alarms += null.p_two_sided <= 0.05
        found += real.p_two_sided <= 0.05
        by_t += paired_t(values + 0.05).p_two_sided <= 0.05
    assert 0.035 <= alarms / TRIALS <= 0.065
    assert found / TRIALS >= by_t / TRIALS - 0.03
