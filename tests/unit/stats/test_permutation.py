"""The permutation test and its interval are one procedure: against counting by hand, SciPy, and each other."""

import itertools
import math
import os
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats import bootstrap as resampling
from cranfield.stats import permutation as module
from cranfield.stats.bootstrap import subset_blocks
from cranfield.stats.permutation import permutation, permutations, tail_rank

ALPHAS = st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.25, 0.5, 0.9])
# Sixths and tenths have no exact floating-point form: sums that are zero on paper are not in the machine.
STEPS = st.sampled_from([0.25, 1 / 6, 0.1])


@st.composite
def tied(draw, min_size=1, max_size=10):
    """Differences on a coarse grid: ties, zeros, and sums that cancel."""
    step = draw(STEPS)
    return [step * k for k in draw(st.lists(st.integers(-4, 4), min_size=min_size, max_size=max_size))]


def excludes_zero(result):
    return (result.ci_low is not None and result.ci_low > 0) or (result.ci_high is not None and result.ci_high < 0)


def by_hand(d, alpha, at=Fraction(0)):
    """Every sign pattern, in fractions: two-sided p of "the mean is `at`", p for greater, and the interval."""
    n = len(d)
    observed = sum(d) - n * at
    flipped = [
        sum((value - at) * sign for value, sign in zip(d, signs, strict=True))
        for signs in itertools.product((1, -1), repeat=n)
    ]
    greater = Fraction(sum(total >= observed for total in flipped), 2**n)
    less = Fraction(sum(total <= observed for total in flipped), 2**n)
    means = sorted(
        sum(subset, Fraction(0)) / size for size in range(1, n + 1) for subset in itertools.combinations(d, size)
    )
    m = math.floor(alpha / 2 * 2**n)
    ends = (means[m - 1], means[len(means) - m]) if m else (None, None)
    return min(Fraction(1), 2 * min(greater, less)), greater, ends


@pytest.mark.parametrize(
    ("d", "alpha", "two_sided", "one_sided", "low", "high"),
    [
        # means of {1}, {2}, {1, 2} are 1, 2, 1.5; only the observed signs reach the observed mean: 1 of 4. m = .5 / 2 * 4 = 1
        ([1.0, 2.0], 0.5, 0.5, 0.25, 1.0, 2.0),
        # mean of {-1} is under 0, of {3} and {-1, 3} is not: 1 + 1 of 4 patterns
        ([-1.0, 3.0], 0.5, 1.0, 0.5, -1.0, 3.0),
        # a difference and its opposite: {-1} and {-1, 1} are at most 0, so 3 of 4; and 3 of 4 at least 0
        ([-1.0, 1.0], 0.5, 1.0, 0.75, -1.0, 1.0),
        # one query: flipping it is 1 of 2 patterns
        ([0.5], 0.05, 1.0, 0.5, None, None),
        ([-0.5], 0.05, 1.0, 1.0, None, None),
    ],
)
def test_small_cases(d, alpha, two_sided, one_sided, low, high):
    result = permutation(d, alpha=alpha)
    assert (result.p_two_sided, result.p_one_sided) == (two_sided, one_sided)
    assert (result.ci_low, result.ci_high) == (low, high)
    assert result.extra == {"sign_patterns": 2 ** len(d), "exact": "yes"}


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=7), ALPHAS, st.sampled_from([1, 3, 7, 10]))
def test_equal_to_counting_every_pattern_in_fractions(numerators, alpha, denominator):
    fractions = [Fraction(k, denominator) for k in numerators]
    two_sided, greater, (low, high) = by_hand(fractions, Fraction(alpha).limit_denominator(100))
    result = permutation([float(f) for f in fractions], alpha=alpha)
    assert result.p_two_sided == float(two_sided)
    assert result.p_one_sided == float(greater)
    assert result.ci_low == (None if low is None else pytest.approx(float(low), rel=1e-13, abs=1e-13))
    assert result.ci_high == (None if high is None else pytest.approx(float(high), rel=1e-13, abs=1e-13))
    assert result.statistic == pytest.approx(float(sum(fractions) / len(fractions)), rel=1e-14, abs=1e-14)


@given(tied(max_size=12), ALPHAS)
def test_p_at_most_alpha_is_an_interval_without_zero_when_counted(d, alpha):
    result = permutation(d, alpha=alpha)
    assert (result.p_two_sided <= alpha) == excludes_zero(result)


@given(tied(min_size=21, max_size=34), ALPHAS, st.integers(0, 5), st.sampled_from([20, 99, 100, 1000]))
def test_p_at_most_alpha_is_an_interval_without_zero_when_drawn(d, alpha, seed, n_draws):
    shifted = [value + 0.25 for value in d]  # so that both answers are common
    for values in (d, shifted):
        result = permutation(values, alpha=alpha, seed=seed, n_draws=n_draws)
        assert (result.p_two_sided <= alpha) == excludes_zero(result)


@given(
    st.lists(st.integers(-8, 8), min_size=1, max_size=20),
    ALPHAS,
    st.integers(-40, 40).map(lambda k: k / 16),
    st.integers(0, 3),
)
def test_the_interval_holds_just_the_values_that_are_not_rejected(eighths, alpha, at, seed):
    d = np.array(eighths) / 8  # with d - at exact, the test of d - at is the test of "the true mean is `at`"
    result = permutation(d, alpha=alpha, seed=seed, n_draws=200)
    inside = (result.ci_low is None or result.ci_low <= at) and (result.ci_high is None or at <= result.ci_high)
    assert (permutation(d - at, alpha=alpha, seed=seed, n_draws=200).p_two_sided > alpha) == inside


def test_that_agreement_is_no_accident():
    # With a strict inequality p of [-1, 1, 1, 1, 1, 1, 1] would be 2/128 and not 4/128 (flipping {-1, 1} changes nothing).
    result = permutation([-1.0] + [1.0] * 6, alpha=0.1)
    assert result.p_two_sided == 2 * (1 + 1 + 6) / 128  # the empty set, {-1}, and six pairs {-1, 1}
    # The interval at .1 (m = 6) ends on a mean of 0, which belongs to it.
    assert result.ci_low == 0.0
    assert result.p_two_sided > 0.1


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("n", [2, 3, 6, 9])
def test_counted_p_values_equal_scipy(tied_differences, n, alternative):
    for seed in range(5):
        d = tied_differences(seed, n) if seed % 2 else np.random.default_rng(seed).normal(0.3, 1, n)
        expected = scipy.stats.permutation_test(
            (d, np.zeros(n)),
            lambda x, y, axis: np.mean(x - y, axis=axis),
            permutation_type="samples",
            n_resamples=np.inf,
            alternative=alternative,
        ).pvalue
        result = permutation(d)
        found = result.p_two_sided if alternative == "two-sided" else result.p_one_sided
        assert found == pytest.approx(expected, rel=1e-12)


def test_drawn_p_values_equal_flipping_signs_one_by_one():
    d = np.random.default_rng(3).normal(0.3, 1, 25).round(1)
    subsets = np.concatenate([members for _, members in subset_blocks(11, 499, 25)])
    signs = 1 - 2.0 * np.concatenate([np.zeros((1, 25)), subsets, np.ones((1, 25)), 1 - subsets])
    means = signs @ d / 25
    slack = 1e-9
    result = permutation(d, seed=11, n_draws=1000)
    assert result.p_one_sided == (means >= d.mean() - slack).mean()
    assert result.p_two_sided == (np.abs(means) >= abs(d.mean()) - slack).mean()


@pytest.mark.parametrize("seed", range(5))
def test_drawn_p_values_are_close_to_counted_ones(seed):
    d = np.random.default_rng(seed).normal(0.4, 1, 17)
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate([sums + value, sums - value])
    exact = (np.abs(sums) >= abs(d.sum()) - 1e-9).mean()
    found = permutation(d, seed=seed, n_draws=20_000).p_two_sided
    assert abs(found - exact) < 5 * math.sqrt(exact * (1 - exact) / 20_000) + 1 / 20_000


@pytest.mark.parametrize("n", [1, 2, 5, 6, 12, 16])
@pytest.mark.parametrize("size", [0.1, -1 / 3])
def test_a_constant_difference_is_as_rare_as_the_number_of_patterns_allows(n, size):
    result = permutation([size] * n)
    assert result.p_two_sided == min(1.0, 2 / 2**n)
    assert (result.ci_low is None) == (n < 6)
    if n >= 6:
        assert (result.ci_low, result.ci_high) == pytest.approx((size, size), rel=1e-14)


def test_a_constant_difference_of_many_queries():
    result = permutation([0.1] * 50, n_draws=1000)
    assert result.p_two_sided == 2 / 1000
    assert result.ci_low == pytest.approx(0.1)


@pytest.mark.parametrize("n", [6, 16, 17, 50])
def test_no_difference_at_all(n):
    result = permutation([0.0] * n, n_draws=1000)
    assert (result.p_two_sided, result.p_one_sided, result.ci_low, result.ci_high) == (1.0, 1.0, 0.0, 0.0)


def test_five_queries_cannot_bound_a_95_percent_interval_and_six_can():
    five, six = permutation([0.1, 0.2, 0.3, 0.4, 0.5]), permutation([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert (five.ci_low, five.ci_high) == (None, None)
    assert five.note == "5 queries, of which 5 differ, are too few for a bounded interval at this alpha"
    assert (six.ci_low, six.ci_high) == (0.1, 0.6)  # m = .025 * 64 = 1
    assert six.note is None
    assert permutation([0.1] * 5, alpha=0.0625).ci_low == 0.1  # 2 / 2^5


@given(tied(max_size=8), st.integers(0, 4))
def test_queries_that_do_not_differ_leave_a_counted_p_as_it_is(d, zeros):
    assert permutation(d + [0.0] * zeros).p_two_sided == permutation(d).p_two_sided


@given(tied(min_size=1, max_size=25), ALPHAS)
def test_swapping_the_systems_mirrors_everything(d, alpha):
    there, back = (permutation(np.array(d) * sign, alpha=alpha, n_draws=100) for sign in (1, -1))
    assert there.p_two_sided == back.p_two_sided
    assert there.statistic == -back.statistic
    assert there.ci_low == (None if back.ci_high is None else -back.ci_high)
    assert there.ci_high == (None if back.ci_low is None else -back.ci_low)


@given(st.permutations([0.1, 0.2, -0.3, 0.5, 0.0, 1 / 3, -1 / 6, 0.7]))
def test_the_order_of_queries_does_not_matter_when_counted(d):
    assert permutation(d) == permutation(sorted(d))


def test_sums_that_cancel_on_paper_cancel_here():
    # .1 + .2 - .3 is 5.6e-17 in floating point; 1, 2, -3 cancel without any noise.
    noisy, clean = [0.1, 0.2, -0.3, 0.4, 0.5, -0.1], [1.0, 2.0, -3.0, 4.0, 5.0, -1.0]
    assert permutation(noisy).p_two_sided == permutation(clean).p_two_sided
    large = [value * 1e200 for value in clean]
    assert permutation(large).p_two_sided == permutation(clean).p_two_sided
    small = [value * 1e-200 for value in clean]
    assert permutation(small).p_two_sided == permutation(clean).p_two_sided


def test_many_measures_at_once_are_each_as_if_alone():
    matrix = np.random.default_rng(5).normal(0.1, 1, (40, 5)).round(2)
    together = permutations(matrix, seed=9, n_draws=3000)
    assert together == [permutation(column, seed=9, n_draws=3000) for column in matrix.T]


def test_the_seed_decides():
    d = np.random.default_rng(1).normal(0.2, 1, 40)
    first = permutation(d, seed=1, n_draws=500)
    assert permutation(d, seed=1, n_draws=500) == first
    assert len({permutation(d, seed=seed, n_draws=500).p_two_sided for seed in range(6)}) > 1


def test_neither_block_nor_product_size_is_part_of_the_answer(monkeypatch):
    d = np.random.default_rng(1).normal(0.2, 1, 333)
    before = permutation(d, n_draws=5000)
    monkeypatch.setattr(resampling, "BLOCK_CELLS", 1000)
    monkeypatch.setattr(module, "PRODUCT_WORK", 77)
    assert permutation(d, n_draws=5000) == before


@pytest.mark.parametrize("threads", ["1", pytest.param("2", marks=pytest.mark.slow), "4"])
def test_the_number_of_threads_is_no_part_of_the_answer(threads):
    code = (
        "import numpy as np; from cranfield.stats.permutation import *; from cranfield.stats.bootstrap import bootstrap\n"
        "d = np.sin(np.arange(600.0)); print(permutation(d, n_draws=4000), bootstrap(d, n_draws=1000))"
    )
    limits = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    printed = subprocess.check_output([sys.executable, "-c", code], text=True, env=os.environ | limits)
    here: dict[str, object] = {}
    exec(code.replace("print(", "text = '{} {}'.format("), here)
    assert printed.strip() == here["text"]


def test_an_odd_number_of_draws_is_rounded_up():
    assert permutation(np.arange(1.0, 22.0), n_draws=99).extra == {"sign_patterns": 100, "exact": "no"}


def test_an_empty_set_that_is_drawn_counts_on_both_sides(monkeypatch):
    # One drawn pair, and it is the empty set and its complement again: as observed, and its mirror image.
    nothing = np.zeros((1, 21), dtype=np.uint8)
    monkeypatch.setattr(module, "subset_blocks", lambda seed, rows, n: iter([(0, nothing)]))
    result = permutation(np.arange(1.0, 22.0), n_draws=4, alpha=0.6)
    assert result.p_one_sided == 2 / 4
    assert result.ci_low is None  # m = floor(.3 * 4) = 1, and the smallest of four is the drawn empty set


@given(st.floats(0.0001, 0.9999), st.integers(1, 20).map(lambda k: 2**k) | st.integers(2, 200_000))
def test_the_rank_is_the_last_whose_share_is_within_alpha(alpha, n_patterns):
    m = tail_rank(alpha, n_patterns)
    assert m == 0 or 2 * m / n_patterns <= alpha
    assert 2 * (m + 1) / n_patterns > alpha


@given(st.data(), st.integers(2, 200_000))
def test_the_rank_of_a_reachable_alpha_is_the_one_that_reaches_it(data, n_patterns):
    m = data.draw(st.integers(1, (n_patterns - 1) // 2 or 1))
    if 2 * m < n_patterns:
        assert tail_rank(2 * m / n_patterns, n_patterns) == m


@pytest.mark.slow
def test_memory_is_bounded_with_many_queries():
    d = np.random.default_rng(0).normal(size=(7000, 7))
    tracemalloc.start()
    permutations(d)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6  # all bits at once would be 350 MB, as float64 2.8 GB


def test_no_query_is_a_note():
    assert permutation([]).note == "no query to test"
    assert permutation([]).p_two_sided is None
    assert [result.note for result in permutations(np.zeros((0, 3)))] == ["no query to test"] * 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: permutation([0.1, math.nan]), "not finite"),
        (lambda: permutation([[0.1]]), "axes"),
        (lambda: permutations(np.zeros(3)), "axes"),
        (lambda: permutation([0.1], alpha=0.0), "alpha"),
        (lambda: permutation([0.1], alpha=1.0), "alpha"),
        (lambda: permutation([0.1], seed=-1), "seed"),
        (lambda: permutation([0.1], n_draws=1), "draws"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(UsageError, match=words):
        call()


def test_the_published_pair(cupertino):
    baseline, candidate = cupertino("mrr")
    d = candidate - baseline
    # 36 zeros leave p as it is, and all patterns of the 14 others are counted.
    for result in (permutation(d), permutation(d[d != 0])):
        assert result.p_two_sided == 6 / 2**14
        assert result.extra == {"sign_patterns": 2**14, "exact": "yes"}
        assert result.ci_low > 0


@given(st.lists(st.integers(-6, 6).filter(bool), min_size=1, max_size=5), st.integers(0, 5), ALPHAS)
def test_queries_that_do_not_differ_are_counted_by_their_number_alone(numerators, n_zero, alpha):
    fractions = [*map(Fraction, numerators), *[Fraction(0)] * n_zero]
    two_sided, greater, (low, high) = by_hand(fractions, Fraction(alpha).limit_denominator(100))
    result = permutation([float(f) for f in fractions], alpha=alpha)
    assert (result.p_two_sided, result.p_one_sided) == (float(two_sided), float(greater))
    assert result.ci_low == (None if low is None else pytest.approx(float(low), rel=1e-13, abs=1e-13))
    assert result.ci_high == (None if high is None else pytest.approx(float(high), rel=1e-13, abs=1e-13))
    assert result.extra == {"sign_patterns": 2 ** len(numerators), "exact": "yes"}


def test_fifteen_that_differ_of_twenty_are_enumerated_and_equal_scipy():
    d = np.array([0.1, 0.1, 0.2, 0.2, 0.2, 0.3, 0.5, 0.5, 0.7, 0.9, 1.0, 0.4, -0.1, -0.2, -0.3, 0, 0, 0, 0, 0])
    result = permutation(d)
    every = scipy.stats.permutation_test(
        (d[:15],), lambda x, axis: x.mean(axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert result.extra == {"sign_patterns": 2**15, "exact": "yes"}
    assert result.p_two_sided == pytest.approx(every.pvalue, rel=1e-12)


@pytest.mark.parametrize("n", [60, 200])
def test_the_enumerated_interval_of_many_that_do_not_differ_is_that_of_many_draws(n):
    d = np.zeros(n)
    d[:10] = [0.5, 0.4, 0.9, 0.2, 0.3, -0.1, 0.7, 0.6, 0.25, 0.35]
    counted = permutation(d)
    assert counted.extra["exact"] == "yes"
    rng = np.random.default_rng(1)
    rows, others = rng.random((200_000, 10)) < 0.5, rng.binomial(n - 10, 0.5, 200_000)
    means = np.sort((rows @ d[:10]) / (rows.sum(axis=1) + others))
    assert counted.ci_low == pytest.approx(means[4_999], abs=0.01 * d.mean())
    assert counted.ci_high == pytest.approx(means[-5_000], abs=0.01 * d.mean())


@settings(max_examples=settings().max_examples // 3, deadline=None)
@given(st.lists(st.lists(st.integers(-6, 6), min_size=9, max_size=9), min_size=1, max_size=24))
def test_p_values_alone_are_those_of_the_results(rows):
    differences = np.array(rows, dtype=np.float64) / 10
    alone = module.permutation_p_values(differences, seed=3, n_draws=100)
    assert alone.tolist() == [result.p_two_sided for result in permutations(differences, seed=3, n_draws=100)]
