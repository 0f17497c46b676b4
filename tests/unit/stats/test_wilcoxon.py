"""The signed-rank test against SciPy and counting; its interval against the test itself."""

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from cranfield.stats.wilcoxon import WalshAverages, rank_sum_shares, tails, wilcoxon

ALPHAS = st.sampled_from([0.01, 0.05, 0.1, 0.3])


def walsh(values):
    return sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2))


def excludes_zero(result):
    return (result.ci_low is not None and result.ci_low > 0) or (result.ci_high is not None and result.ci_high < 0)


@pytest.mark.parametrize("n", [6, 7, 12, 25, 60, 400])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [False, True])
def test_equal_to_scipy(tied_differences, n, seed, ties):
    d = tied_differences(seed, 5 * n) if ties else np.random.default_rng(seed).normal(0.2, 1, n)
    options = {"zero_method": "wilcox", "correction": False, "method": "asymptotic"}
    two_sided = scipy.stats.wilcoxon(d, **options)
    greater = scipy.stats.wilcoxon(d, alternative="greater", **options)
    result = wilcoxon(d)
    assert result.statistic == two_sided.statistic
    assert result.extra["w_plus"] == greater.statistic
    assert result.extra["p_normal_two_sided"] == pytest.approx(two_sided.pvalue, rel=1e-12)
    assert result.extra["p_normal_one_sided"] == pytest.approx(greater.pvalue, rel=1e-12)


@pytest.mark.parametrize("n", [6, 10, 30, 50])
def test_the_exact_p_equals_scipy_without_ties(n):
    d = np.random.default_rng(n).normal(0.3, 1, n)
    result = wilcoxon(d)
    expected = {
        name: scipy.stats.wilcoxon(d, alternative=name, method="exact").pvalue for name in ("two-sided", "greater")
    }
    assert result.p_two_sided == result.extra["p_exact_two_sided"] == pytest.approx(expected["two-sided"], rel=1e-12)
    assert result.p_one_sided == result.extra["p_exact_one_sided"] == pytest.approx(expected["greater"], rel=1e-12)


def test_twelve_that_differ_of_seventeen_equal_scipy_with_every_sign_pattern():
    d = np.array([0.1, 0.1, 0.2, 0.2, 0.5, 0.5, 0.7, 0.9, 0.4, -0.1, -0.2, -0.3, 0, 0, 0, 0, 0])
    every = scipy.stats.PermutationMethod(n_resamples=np.inf)
    result = wilcoxon(d)
    assert result.p_two_sided == pytest.approx(scipy.stats.wilcoxon(d[:12], method=every).pvalue, rel=1e-12)


@given(st.lists(st.integers(-4, 4).filter(bool), min_size=6, max_size=9))
def test_the_exact_p_equals_counting_every_sign_pattern_ties_included(d):
    ranks = scipy.stats.rankdata(np.abs(d))
    w_plus = ranks[np.array(d) > 0].sum()
    sums = np.array([ranks[np.array(signs)].sum() for signs in itertools.product((False, True), repeat=len(d))])
    greater, less = (sums >= w_plus).mean(), (sums <= w_plus).mean()
    result = wilcoxon(np.array(d, dtype=float))
    assert result.extra["p_exact_one_sided"] == pytest.approx(greater, rel=1e-13)
    assert result.extra["p_exact_two_sided"] == pytest.approx(min(1.0, 2 * min(greater, less)), rel=1e-13)
    assert result.p_two_sided == result.extra["p_exact_two_sided"]
    assert result.note.startswith("exact p; ")


def test_the_exact_p_of_many_pairs_is_close_to_the_approximation_and_absent_beyond_its_limit():
    d = np.random.default_rng(0).normal(0.1, 1, 201)
    within, beyond = wilcoxon(d[:200]), wilcoxon(d)
    assert within.extra["p_normal_two_sided"] == pytest.approx(within.p_two_sided, rel=0.02)
    assert beyond.extra["p_exact_two_sided"] is None
    assert beyond.p_two_sided == beyond.extra["p_normal_two_sided"]
    assert beyond.note is None


def test_exact_p_values_of_three_ranks():
    # Ranks 1, 2, 3: sums 0, 1, 2, 3, 3, 4, 5, 6. At least 5: 2 of 8.
    shares = rank_sum_shares(np.array([2, 4, 6]))
    assert tails(shares, 10) == (0.5, 0.25)
    assert tails(shares, 2) == (0.5, 7 / 8)
    assert tails(shares, 6) == (1.0, 5 / 8)


def test_the_published_pair(cupertino):
    baseline, candidate = cupertino("mrr")
    result = wilcoxon(candidate - baseline)
    assert result.statistic == 1.5
    assert result.extra["n_nonzero"] == 14
    assert round(result.extra["p_normal_two_sided"], 6) == 0.001147
    assert round(result.extra["p_normal_one_sided"], 6) == 0.000574
    # 3 of the 2^14 patterns have a rank sum of 1.5 or less: none, and either of the two smallest, which tie.
    assert result.p_two_sided == result.extra["p_exact_two_sided"] == 2 * 3 / 2**14
    assert result.note == "exact p; SciPy's normal approximation p .001147, one-sided .000574"
    assert result.is_other_elsewhere
    assert result.ci_low > 0


@pytest.mark.parametrize(
    "d",
    [[0.1, 0.2, 0.3, 0.4, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5, 0.0, 0.0, 0.0], [0.0] * 20, [0.5], [1e-17] * 3 + [1.0] * 5],
)
def test_under_six_non_zero_pairs_there_is_nothing_but_a_note(d):
    result = wilcoxon(d)
    assert result.note == "too few non-zero pairs (n < 6)"
    assert (result.statistic, result.p_two_sided, result.p_one_sided, result.ci_low, result.ci_high) == (None,) * 5


def test_no_query_is_a_note():
    assert wilcoxon([]).note == "no query to test"


def test_sizes_that_differ_by_rounding_are_tied():
    # 1/2 - 1/3 and 2/3 - 1/2 are both a sixth, 2.8e-17 apart in floating point.
    noisy = [0.5 - 1 / 3, -(2 / 3 - 0.5), 1 / 6, 0.5, 0.75, 1.0, -0.25]
    assert len({abs(value) for value in noisy[:3]}) > 1
    result = wilcoxon(noisy)
    # The sixths share rank (1 + 2 + 3) / 3 = 2, -.25 has 4: W- = 2 + 4. By their last bits the negative sixth would be first.
    assert result.extra["w_minus"] == 6.0


@given(st.lists(st.integers(-5, 5), min_size=6, max_size=25), st.sampled_from([1.0, 0.1, 1 / 6]), ALPHAS)
def test_p_at_most_alpha_is_an_interval_without_zero(d, step, alpha):
    result = wilcoxon(np.array(d) * step, alpha=alpha)
    if result.p_two_sided is None:
        assert result.ci_low is None
        assert result.ci_high is None
    else:
        assert (result.p_two_sided <= alpha) == excludes_zero(result)


@given(st.lists(st.integers(-6, 6).filter(bool), min_size=6, max_size=20), ALPHAS, st.integers(-28, 28))
def test_the_interval_is_where_the_rank_sum_is_not_in_its_critical_tails(d, alpha, quarters):
    at = quarters / 4 + 1 / 8  # between averages, which are halves
    result = wilcoxon(np.array(d, dtype=float), alpha=alpha)
    doubled = np.rint(2 * scipy.stats.rankdata(np.abs(d))).astype(int)
    above = sum(average > at for average in walsh(d))
    kept = tails(rank_sum_shares(doubled), 2 * above)[0] > alpha
    inside = (result.ci_low is None or result.ci_low < at) and (result.ci_high is None or at < result.ci_high)
    assert kept == inside


def test_an_interval_that_is_open_at_zero_does_not_end_on_it():
    # Averages of opposite sizes are 0, and count half at zero, not at all beyond it: zero can be rejected, and nothing above.
    found = 0
    for numerators in itertools.combinations_with_replacement((-2, -1, 1, 2, 3), 7):
        d = np.array(numerators, dtype=float)
        for alpha in (0.1, 0.2):
            result = wilcoxon(d, alpha=alpha)
            if result.p_two_sided <= alpha and result.ci_low is not None and 0 < result.ci_low < 1e-9:
                found += 1
                assert result.ci_low == 1e-12 * np.abs(d).max()
    assert found


def test_without_ties_the_interval_is_the_textbook_one():
    # n = 10: the critical value of tables at .05, two-sided, is 8, so the 9th average from either end.
    d = np.array([1.1, 2.3, -0.7, 4.2, 0.4, 3.3, -1.9, 5.8, 2.9, 0.2])
    averages = walsh(d.tolist())
    result = wilcoxon(d)
    assert (result.ci_low, result.ci_high) == pytest.approx((averages[8], averages[-9]), rel=1e-14)
    assert result.estimate == result.extra["pseudo_median"] == pytest.approx(np.median(averages), rel=1e-14)


def test_few_pairs_and_a_small_alpha_give_no_bound():
    result = wilcoxon([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], alpha=0.001)
    assert (result.ci_low, result.ci_high) == (None, None)
    assert result.p_two_sided > 0.001


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_every_order_statistic_of_the_averages(values):
    found = WalshAverages(np.array(values))
    expected = walsh(values)
    assert found.size == len(expected)
    for rank in {1, (found.size + 1) // 2, found.size}:
        assert found.smallest(rank) == pytest.approx(expected[rank - 1], rel=1e-13, abs=4e-15 * max(map(abs, values)))
    assert found.median() == pytest.approx(np.median(expected), rel=1e-13, abs=4e-15 * max(map(abs, values)))


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12), st.data())
def test_order_statistics_among_ties_are_exact(values, data):
    rank = data.draw(st.integers(1, len(values) * (len(values) + 1) // 2))
    assert WalshAverages(np.array(values, dtype=float)).smallest(rank) == walsh(values)[rank - 1]


def test_many_pairs_need_no_list_of_their_averages():
    d = np.random.default_rng(2).normal(0.02, 1, 1200)
    averages = np.sort(((d[:, None] + d) / 2)[np.triu_indices(1200)])  # 720,600
    expected = (averages[360_299] + averages[360_300]) / 2
    assert wilcoxon(d).extra["pseudo_median"] == pytest.approx(expected, rel=1e-12)
    many = np.random.default_rng(2).normal(0.02, 1, 7000)  # 24.5 million averages, 196 MB
    tracemalloc.start()
    result = wilcoxon(many)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.ci_low < result.extra["pseudo_median"] < result.ci_high
    assert peak < 2e6


@given(st.lists(st.integers(-5, 5), min_size=6, max_size=20), ALPHAS)
def test_swapping_the_systems_mirrors_everything(d, alpha):
    there, back = (wilcoxon(np.array(d) * sign, alpha=alpha) for sign in (1.0, -1.0))
    assume(there.p_two_sided is not None)
    assert there.p_two_sided == back.p_two_sided
    assert there.ci_low == (None if back.ci_high is None else -back.ci_high)
    assert there.extra["pseudo_median"] == -back.extra["pseudo_median"]


@pytest.mark.parametrize("alpha", [1e-300, 1e-17, 0.999999, 1 - 1e-16])
@pytest.mark.parametrize("n", [7, 8, 11])  # 28, 36 and 66 averages
def test_an_alpha_of_any_size_gives_an_interval_the_right_way_round(alpha, n):
    result = wilcoxon([(-1) ** i * (i + 1.0) for i in range(n)], alpha=alpha)
    assert (result.ci_low is None) == (alpha < 0.5)
    assert result.ci_low is None or result.ci_low <= result.ci_high
