"""All pairs at once: max-T against counting every pattern, Tukey against the t test and ANOVA, both against each other."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats import simultaneous as module
from cranfield.stats.paired import paired_t
from cranfield.stats.permutation import permutation
from cranfield.stats.result import holm
from cranfield.stats.simultaneous import max_t, max_t_patterns, moving_queries, tukey_hsd


def pairs_of(systems):
    return list(itertools.combinations(range(systems), 2))


def table(seed, queries, systems, decimals=4):
    return np.round(np.random.default_rng(seed).random((queries, systems)), decimals)


def by_counting(values, pairs):
    """Adjusted and unadjusted p of each pair over all sign patterns, and the largest |t| of each pattern."""
    deltas = np.column_stack([values[:, j] - values[:, i] for i, j in pairs])
    n = len(values)

    def statistics(signs):
        flipped = deltas * np.array(signs)[:, np.newaxis]
        return np.abs([paired_t(column).statistic or 0.0 for column in flipped.T])

    observed = statistics([1] * n)
    found = np.array([statistics(signs) for signs in itertools.product((1, -1), repeat=n)])
    largest = found.max(axis=1)
    adjusted = [(largest >= t * (1 - 1e-9)).mean() for t in observed]
    return adjusted, (found >= observed * (1 - 1e-9)).mean(axis=0), largest


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("decimals", [1, 4])
def test_max_t_equals_counting_every_pattern(seed, decimals):
    values, pairs = table(seed, 7, 4, decimals), pairs_of(4)
    adjusted, alone, largest = by_counting(values, pairs)
    results = max_t(values, pairs, alpha=0.2)
    assert [result.p_adjusted for result in results] == pytest.approx(adjusted, abs=1e-12)
    assert [result.p_two_sided for result in results] == pytest.approx(alone.tolist(), abs=1e-12)
    assert results[0].extra == {"sign_patterns": 2**7, "exact": "yes"}
    # The critical |t|: with floor(.2 * 128) = 25 patterns above it at most; both mirror images of a pattern are above or not.
    critical = np.sort(largest)[128 - 24 - 1]
    for (i, j), result in zip(pairs, results, strict=True):
        d = values[:, j] - values[:, i]
        half = critical * d.std(ddof=1) / math.sqrt(7)
        if abs(result.statistic) != pytest.approx(critical):
            assert (result.ci_low, result.ci_high) == pytest.approx((d.mean() - half, d.mean() + half), abs=1e-9)


def test_one_pair_is_the_permutation_test():
    for n in (12, 60):
        values = table(n, n, 2)
        (result,), alone = max_t(values, [(0, 1)]), permutation(values[:, 1] - values[:, 0])
        assert result.p_two_sided == result.p_adjusted == alone.p_two_sided
        assert result.estimate == pytest.approx(alone.statistic)


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=2, max_size=9),
    st.sampled_from([0.05, 0.1, 0.3]),
)
def test_an_adjusted_p_at_most_alpha_is_an_interval_without_zero(rows, alpha):
    for result in max_t(np.array(rows) / 4, pairs_of(3), alpha=alpha):
        excludes = (result.ci_low is not None and result.ci_low > 0) or (
            result.ci_high is not None and result.ci_high < 0
        )
        assert excludes == (result.p_adjusted <= alpha)
        assert result.p_two_sided <= result.p_adjusted


def test_the_adjusted_p_lies_between_the_unadjusted_and_bonferroni_and_does_not_depend_on_the_order_of_systems():
    values, pairs = table(4, 40, 5), pairs_of(5)
    results = max_t(values, pairs, n_draws=4000)
    for result in results:
        assert result.p_two_sided <= result.p_adjusted <= min(1.0, len(pairs) * result.p_two_sided)
    turned = max_t(values[:, ::-1], [(4 - j, 4 - i) for i, j in pairs], n_draws=4000)
    assert [result.p_adjusted for result in turned] == [result.p_adjusted for result in results]
    assert [-result.estimate for result in turned] == pytest.approx([result.estimate for result in results])


def test_the_smallest_p_is_that_of_the_patterns_whatever_the_number_of_pairs():
    values = np.tile(np.arange(30.0), (24, 1)) + table(1, 24, 30) / 10  # every pair is as far apart as can be
    results = max_t(values, pairs_of(30), n_draws=1000)
    assert {result.p_adjusted for result in results} == {2 / 1000}
    assert max(holm([result.p_two_sided for result in results])) > 0.05  # 435 pairs: 2 / 1000 is too large for Holm


def test_patterns_are_counted_where_they_are_few():
    assert max_t_patterns(16, 10, 1000) == (2**16, True)
    assert max_t_patterns(20, 10_153, 1000) == (1000, False)
    assert max_t_patterns(21, 1, 999) == (1000, False)
    values = np.zeros((50, 3))
    values[:6, 2] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert moving_queries(values) == 6
    first, second, third = max_t(values, pairs_of(3))
    assert (first.p_adjusted, first.ci_low, first.ci_high) == (1.0, 0.0, 0.0)
    assert second.p_adjusted == third.p_adjusted == 2 / 2**6


def test_seed_blocks_and_identical_systems(monkeypatch):
    values, pairs = table(2, 40, 6), pairs_of(6)
    values[:, 5] = values[:, 0]
    before = max_t(values, pairs, seed=3, n_draws=500)
    assert max_t(values, pairs, seed=4, n_draws=500) != before
    monkeypatch.setattr(module, "CELLS", 50)
    assert max_t(values, pairs, seed=3, n_draws=500) == before
    same = before[pairs.index((0, 5))]
    assert (same.p_adjusted, same.ci_low, same.ci_high, same.statistic) == (1.0, 0.0, 0.0, None)


def test_tukey_of_two_systems_is_the_paired_t_test():
    values = table(1, 20, 2)
    assert tukey_hsd(values, [(0, 1)])[0] == pytest.approx(
        scipy.stats.ttest_rel(values[:, 0], values[:, 1]).pvalue, rel=1e-6
    )


def test_tukey_by_hand():
    # Means .2 .4 .9 of 4 queries. Residual mean square by the two-way table of sums of squares.
    values = np.array([[0.1, 0.3, 0.9], [0.2, 0.5, 0.8], [0.3, 0.3, 1.0], [0.2, 0.5, 0.9]])
    total = ((values - values.mean()) ** 2).sum()
    between = 4 * ((values.mean(axis=0) - values.mean()) ** 2).sum()
    queries = 3 * ((values.mean(axis=1) - values.mean()) ** 2).sum()
    error = math.sqrt((total - between - queries) / 6 / 4)
    expected = [scipy.stats.studentized_range.sf(gap / error, 3, 6) for gap in (0.2, 0.7, 0.5)]
    assert tukey_hsd(values, pairs_of(3)).tolist() == pytest.approx(expected, rel=1e-9)


def test_tukey_of_many_pairs_is_interpolated_to_four_decimals(monkeypatch):
    values, pairs = table(3, 30, 11), pairs_of(11)
    values += np.linspace(0, 0.5, 11)
    interpolated = tukey_hsd(values, pairs)
    monkeypatch.setattr(module, "TABULATED_FROM", 10_000)
    assert np.abs(interpolated - tukey_hsd(values, pairs)).max() < 1e-4


def test_tukey_without_residuals():
    values = np.array([[0.1, 0.3, 0.3], [0.2, 0.4, 0.4]])
    assert tukey_hsd(values, pairs_of(3)).tolist() == [0.0, 0.0, 1.0]


def test_tukey_and_max_t_agree_on_normal_values_of_one_variance():
    rng = np.random.default_rng(8)
    values = rng.normal(size=(400, 6)) + rng.normal(size=(400, 1)) + np.array([0, 0.1, 0.15, 0.2, 0.2, 0.25])
    pairs = pairs_of(6)
    ours = [result.p_adjusted for result in max_t(values, pairs, n_draws=10_000)]
    assert ours == pytest.approx(tukey_hsd(values, pairs).tolist(), abs=0.06)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: max_t(np.zeros((0, 3)), [(0, 1)]), "no query"),
        (lambda: max_t(np.zeros((3, 3)), [(0, 1)], n_draws=1), "draws"),
        (lambda: max_t(np.zeros((3, 3)), [(0, 1)], alpha=0), "alpha"),
        (lambda: tukey_hsd(np.zeros((1, 3)), [(0, 1)]), "1 queries and 3 systems"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(UsageError, match=words):
        call()


def test_no_pair_is_no_result():
    assert max_t(np.zeros((3, 3)), []) == []
