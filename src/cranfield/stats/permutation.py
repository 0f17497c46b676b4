"""The paired permutation test of a mean difference, and its interval from the same sign patterns.

If the true difference were t, each d - t could as well have had the other sign. Flipping a set F of queries leaves the
mean of d - t at least as large as observed exactly when the sum of d - t over F is at most 0, that is, when the *mean of
d over F* is at most t. With r_F for that mean, one set of patterns answers for every t at once:

    p(t, greater)  = #{F : r_F <= t} / N     N patterns; the empty F, which is what was observed, counts on both sides
    p(t, less)     = #{F : r_F >= t} / N
    p(t)           = min(1, 2 * the smaller of the two)
    interval       = r_(m) to r_(N - m), the m-th from either end of the N - 1 means, m = floor(alpha / 2 * N)

Both inequalities let equality in, and the interval is closed. So `p(t) <= alpha` and "t is outside the interval" are one
statement: #{r_F <= t} + 1 <= m exactly when the m-th smallest r_F is above t. Where m is 0 nothing can be rejected at this
alpha, and the interval is unbounded: that is so under 6 queries at .05.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.describe import describe
from cranfield.stats.resampling import FixedPoint, counted_subset_blocks, fixed_point, subset_blocks
from cranfield.stats.result import DEFAULT_DRAWS, NO_QUERY, TestResult, untested
from cranfield.stats.vectors import FloatN, Values, as_matrix, as_vector, check_alpha, check_draws

EXACT_UP_TO = 16
"""Up to this many queries all 2^n sign patterns are enumerated."""

PRODUCT_WORK = 1 << 17
"""Multiplications in one matrix product: half of what OpenBLAS gives to a single thread; does not change the result."""


def permutation(difference: Values, *, alpha: float = 0.05, seed: int = 0, n_draws: int = DEFAULT_DRAWS) -> TestResult:
    """Test whether the mean difference is zero by flipping signs; see `permutations`.

    Example:
        >>> result = permutation([0.5] * 6)  # 2 of the 2^6 sign patterns are as far from zero
        >>> result.p_two_sided, result.ci_low, result.ci_high
        (0.03125, 0.5, 0.5)
    """
    column = as_vector(difference, "differences")[:, np.newaxis]
    return permutations(column, alpha=alpha, seed=seed, n_draws=n_draws)[0]


def permutations(
    differences: NDArray[np.float64], *, alpha: float = 0.05, seed: int = 0, n_draws: int = DEFAULT_DRAWS
) -> list[TestResult]:
    """Test whether each mean difference is zero, all with the same sign patterns.

    Args:
        differences: float64[n, M], queries by measures, candidate minus baseline.
        alpha: the interval covers 1 - alpha.
        seed: of the random sign patterns.
        n_draws: sign patterns to use beyond `EXACT_UP_TO` queries; an odd number is rounded up. They come in pairs, a
            set and its complement, and the observed pattern with its mirror image is the first pair. So swapping the two
            systems mirrors every number, and the two-sided p is also the share of |means| as large as the observed.

    Returns:
        One result per measure. Its statistic is the mean difference; `extra` has the number of sign patterns, and
        whether they are all there are.

    Conventions:
        a sum within 1e-12 of the sum of |d| is zero, so that ties are ties in floating point too · queries that do not
        differ are kept: they move the interval, and leave an exact p as it is (each pattern of the others then counts
        2^z times in 2^n) · all differences zero: p 1, an interval of [0, 0] where it is bounded · one constant difference: p is
        2 / N · no query: no p-value, and a note.

    Source:
        Fisher 1935, The Design of Experiments; Hartigan 1969, JASA 64 (typical values); Phipson & Smyth 2010,
        Stat. Appl. Genet. Mol. Biol. 9(1) (the observed pattern counts). Equal to `scipy.stats.permutation_test` with
        permutation_type='samples' where both count all patterns, two-sided and one-sided.
    """
    check_alpha(alpha)
    check_draws(seed, n_draws)
    matrix = as_matrix(differences, "differences")
    n = len(matrix)
    if not n:
        return [untested(NO_QUERY) for _ in range(matrix.shape[1])]
    columns = [fixed_point(column) for column in matrix.T]
    n_patterns = 1 << n if n <= EXACT_UP_TO else n_draws + n_draws % 2
    sums, sizes = _subset_sums(np.column_stack([column.units for column in columns]), n_patterns // 2, seed)
    return [
        _result(column, mean, sums[:, index], sizes, alpha)
        for index, (column, mean) in enumerate(zip(columns, (describe(c).mean for c in matrix.T), strict=True))
    ]


def _subset_sums(units: NDArray[np.float64], n_rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums [n_rows, M] and sizes [n_rows] of the first subset of each pair; row 0 is the empty set."""
    n = len(units)
    counted = np.column_stack([units, np.ones(n)])  # the last column counts the members
    out = np.zeros((n_rows, counted.shape[1]))
    if n <= EXACT_UP_TO:
        # Every set without the last query: the complements are those with it.
        for start, members in counted_subset_blocks(n_rows, n):
            _add_product(out[start : start + len(members)], members, counted)
    else:
        for start, members in subset_blocks(seed, n_rows - 1, n):
            _add_product(out[start + 1 : start + 1 + len(members)], members, counted)
    return out[:, :-1], out[:, -1]


def _add_product(out: NDArray[np.float64], members: NDArray[np.uint8], counted: NDArray[np.float64]) -> None:
    """Add members @ counted to `out`, in blocks small enough for the BLAS to stay single-threaded.

    On a busy machine, threads that synchronise thousands of times take ten times as long. The sums are of whole numbers, so
    the block size does not change them.
    """
    n, columns = counted.shape
    rows = min(len(members), max(1, PRODUCT_WORK // (columns * 64)))
    width = max(1, PRODUCT_WORK // (columns * rows))
    for top in range(0, len(members), rows):
        block = members[top : top + rows].astype(np.float64)
        for left in range(0, n, width):
            out[top : top + rows] += block[:, left : left + width] @ counted[left : left + width]


def _result(
    column: FixedPoint, mean: float | None, sums: NDArray[np.float64], sizes: NDArray[np.float64], alpha: float
) -> TestResult:
    n = len(column.units)
    n_patterns = 2 * len(sums)
    both_sums = column.zero_rounding(np.concatenate([sums, column.total - sums]))
    both_sizes = np.concatenate([sizes, n - sizes])
    drawn = both_sizes > 0
    means = both_sums[drawn] / both_sizes[drawn]
    # The empty set is the observed pattern, so it counts on both sides; it may be drawn again.
    n_empty = n_patterns - len(means)
    p_greater = (n_empty + int(np.count_nonzero(means <= 0))) / n_patterns
    p_less = (n_empty + int(np.count_nonzero(means >= 0))) / n_patterns
    low, high = _ends(means, tail_rank(alpha, n_patterns) - (n_empty - 1))
    exact = n <= EXACT_UP_TO
    return TestResult(
        statistic=mean,
        p_two_sided=min(1.0, 2 * min(p_greater, p_less)),
        p_one_sided=p_greater,
        ci_low=None if low is None else column.value(low),
        ci_high=None if high is None else column.value(high),
        note=None if low is not None else f"{n} queries are too few for a bounded interval at alpha {alpha:g}",
        extra={"sign_patterns": n_patterns, "exact": "yes" if exact else "no"},
    )


def tail_rank(alpha: float, n_patterns: int) -> int:
    """The largest integer m with 2 m / n_patterns <= alpha in floating point: floor(alpha / 2 * n_patterns)."""
    rank = int(alpha / 2 * n_patterns)
    while 2 * (rank + 1) / n_patterns <= alpha:
        rank += 1
    while rank and 2 * rank / n_patterns > alpha:
        rank -= 1
    return rank


def _ends(means: FloatN, rank: int) -> tuple[float, float] | tuple[None, None]:
    """The `rank`-th smallest and the `rank`-th largest; None where the rank is not above 0."""
    if rank < 1:
        return None, None
    ordered = np.partition(means, (rank - 1, len(means) - rank))
    return float(ordered[rank - 1]), float(ordered[len(means) - rank])
