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

A query that does not differ adds nothing to a sum. With z such queries among n, the 2^n means are 2^(n - z) sums, each divided
by the size of its set and 0 to z more, which occur in binomial proportion: (z + 1) * 2^(n - z) weighted values. So 14
queries that differ among 50 are enumerated too.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.bootstrap import FixedPoint, check_sizes, describe_mean, fixed_point, subset_blocks
from cranfield.stats.describe import FloatN, Values, as_matrix, as_vector, check_alpha, check_draws
from cranfield.stats.result import DEFAULT_DRAWS, NO_QUERY, TestResult, untested

EXACT_UP_TO = 20
"""Up to this many queries all 2^n sign patterns are enumerated; of more queries where enough of them do not differ."""

EXACT_VALUES = 1 << EXACT_UP_TO
"""Most weighted values that are enumerated."""

COUNTED_EXACTLY = 52
"""Patterns of up to so many queries are counted in whole numbers; of more, in shares."""

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
    differences: NDArray[np.float64],
    *,
    alpha: float = 0.05,
    seed: int = 0,
    n_draws: int = DEFAULT_DRAWS,
    sizes: FloatN | None = None,
) -> list[TestResult]:
    """Test whether each mean difference is zero; those that are not enumerated, with the same random sign patterns.

    Args:
        differences: float64[n, M], queries by measures, candidate minus baseline.
        alpha: the interval covers 1 - alpha.
        seed: of the random sign patterns.
        n_draws: sign patterns to use where not all are enumerated; an odd number is rounded up. They come in pairs, a
            set and its complement, the first of them the observed one. So swapping the two systems mirrors every number.
        sizes: queries that each row is the *sum* of, and that have one sign together; None: each row is a query.

    Returns:
        One result per measure. Its statistic is the mean difference; `extra` has the number of sign patterns (of queries
        that differ, where all are enumerated), and whether those are all.

    Conventions:
        a sum within 1e-12 of the sum of |d| is zero, so that ties are ties in floating point too · queries that do not
        differ are kept: they move the interval, and leave an exact p as it is (each pattern of the others then counts
        2^z times in 2^n) · with sizes, up to 20 rows are enumerated · all differences zero: p 1, an interval of [0, 0] where
        it is bounded · one constant difference: p is 2 / N · no query: no p-value, and a note.

    Source:
        Fisher 1935; Hartigan 1969, JASA 64 (typical values); Phipson & Smyth 2010, SAGMB 9(1) (the observed pattern counts).
        Equal to `scipy.stats.permutation_test` with permutation_type='samples' where both count all patterns.
    """
    check_alpha(alpha)
    check_draws(seed, n_draws)
    matrix = as_matrix(differences, "differences")
    if not (n := len(matrix)):
        return [untested(NO_QUERY)] * matrix.shape[1]
    counts = np.ones(n) if sizes is None else check_sizes(sizes, n)
    columns = [(fixed_point(column), describe_mean(column, sizes)) for column in matrix.T]
    results = {
        place: _enumerated(column, mean, alpha, sizes)
        for place, (column, mean) in enumerate(columns)
        if is_enumerated(n, len(_moving(column)) if sizes is None else n)
    }
    drawn = [place for place in range(len(columns)) if place not in results]
    units = np.column_stack([columns[place][0].units for place in drawn]) if drawn else np.zeros((n, 0))
    sums, n_members = _subset_sums(units, (n_draws + 1) // 2 if drawn else 1, seed, counts)
    for place, of_column in zip(drawn, sums.T, strict=True):
        results[place] = _drawn(*columns[place], of_column, (n_members, counts.sum()), alpha)
    return [results[place] for place in range(len(columns))]


def permutation_p_values(
    differences: NDArray[np.float64], *, seed: int = 0, n_draws: int = DEFAULT_DRAWS
) -> NDArray[np.float64]:
    """The two-sided p-values of `permutations`, float64[M], without their intervals: much faster where all patterns count.

    Args:
        differences: float64[n, M], n of 1 or more.
        seed: of the random sign patterns.
        n_draws: sign patterns to use where not all are enumerated.
    """
    columns = [fixed_point(column) for column in as_matrix(differences, "differences").T]
    n, p_values = len(differences), np.ones(len(columns))
    drawn = [place for place, column in enumerate(columns) if not is_enumerated(n, len(_moving(column)))]
    for place in set(range(len(columns))) - set(drawn):
        p_values[place] = _two_sided(_exact_tails(columns[place]))
    if drawn:
        units = np.column_stack([columns[place].units for place in drawn])
        sums, _ = _subset_sums(units, (n_draws + 1) // 2, seed, np.ones(n))
        for index, place in enumerate(drawn):
            both = np.concatenate([sums[:, index], columns[place].total - sums[:, index]])
            p_values[place] = _two_sided(_tails(columns[place].zero_rounding(both)))
    return p_values


def _exact_tails(column: FixedPoint) -> tuple[float, float]:
    """Shares of all sign patterns whose sum is at most 0, and at least 0: counted over the sorted sums of two halves."""
    moving = _moving(column)
    middle = len(moving) // 2
    halves = [np.zeros(1), np.zeros(1)]
    for half, members in enumerate((moving[:middle], moving[middle:])):
        for units in members:
            halves[half] = np.concatenate([halves[half], halves[half] + units])
    left, right = np.sort(halves[0]), halves[1]
    n_patterns = len(left) * len(right)
    zero = math.floor(column.tolerance)
    greater = int(np.searchsorted(left, zero - right, side="right").sum())
    less = n_patterns - int(np.searchsorted(left, -zero - right, side="left").sum())
    return greater / n_patterns, less / n_patterns


def is_enumerated(n: int, n_nonzero: int) -> bool:
    """Whether all sign patterns of n queries are counted, of which `n_nonzero` differ."""
    return n_nonzero <= EXACT_UP_TO and (n - n_nonzero + 1) << n_nonzero <= EXACT_VALUES


def _moving(column: FixedPoint) -> NDArray[np.float64]:
    """The differences that are not zero, in units."""
    return column.units[np.abs(column.units) > column.tolerance]


def _enumerated(column: FixedPoint, mean: float | None, alpha: float, counts: FloatN | None) -> TestResult:
    """The result of all sign patterns; rows of different counts are not alike, even where they do not differ."""
    n, moving = len(column.units), column.units if counts is not None else _moving(column)
    sums, sizes = np.zeros(1), np.zeros(1)
    for units, count in zip(moving, np.ones(len(moving)) if counts is None else counts, strict=True):
        sums, sizes = np.concatenate([sums, sums + units]), np.concatenate([sizes, sizes + count])
    sums = column.zero_rounding(sums)
    weights, total = _zero_weights(n, n - len(moving))
    values = np.concatenate([np.divide(sums, np.maximum(sizes + extra, 1)) for extra in range(len(weights))])[1:]
    repeated = np.repeat(weights, len(sums))[1:]  # the first is the empty set, which is what was observed
    low, high = _weighted_ends(values, repeated, tail_rank(alpha, total))
    return _result(column, mean, _tails(sums), (low, high), len(sums), is_exact=True)


def _zero_weights(n: int, n_zero: int) -> tuple[NDArray[np.float64], int]:
    """How many sets of the queries that do not differ have 0, 1, ... members, and the number of all sign patterns.

    Beyond 2^52 patterns both are in shares of 2^52, rounded.
    """
    if n <= COUNTED_EXACTLY:
        return np.array([float(math.comb(n_zero, members)) for members in range(n_zero + 1)]), 1 << n
    total = 1 << COUNTED_EXACTLY
    members = range(n_zero + 1)
    logarithms = [math.lgamma(n_zero + 1) - math.lgamma(k + 1) - math.lgamma(n_zero - k + 1) for k in members]
    shares = np.exp(np.array(logarithms) - n_zero * math.log(2))
    return shares / shares.sum() * 2.0 ** (COUNTED_EXACTLY - (n - n_zero)), total


def _weighted_ends(values: FloatN, weights: FloatN, rank: int) -> tuple[float, float] | tuple[None, None]:
    """The `rank`-th smallest and the `rank`-th largest value, each counted as often as its weight."""
    if rank < 1:
        return None, None
    if weights.min() == weights.max() == 1:
        return _ends(values, rank)
    order = np.argsort(values, kind="stable")
    ordered, counts = values[order], weights[order]
    from_below, from_above = np.cumsum(counts), np.cumsum(counts[::-1])
    low = min(int(np.searchsorted(from_below, rank)), len(ordered) - 1)
    high = min(int(np.searchsorted(from_above, rank)), len(ordered) - 1)
    return float(ordered[low]), float(ordered[len(ordered) - 1 - high])


def _subset_sums(
    units: NDArray[np.float64], n_rows: int, seed: int, counts: FloatN
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums [n_rows, M] and sizes [n_rows] of the first subset of each pair; row 0 is the empty set."""
    n = len(units)
    counted = np.column_stack([units, counts])  # the last column counts the members
    out = np.zeros((n_rows, counted.shape[1]))
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


def _drawn(
    column: FixedPoint, mean: float | None, sums: NDArray[np.float64], members: tuple[FloatN, float], alpha: float
) -> TestResult:
    """The result of random sign patterns; `members` are the sizes of the sets, and of all of them."""
    sizes, n = members
    n_patterns = 2 * len(sums)
    both_sums = column.zero_rounding(np.concatenate([sums, column.total - sums]))
    both_sizes = np.concatenate([sizes, n - sizes])
    is_set = both_sizes > 0
    means = both_sums[is_set] / both_sizes[is_set]
    n_empty = n_patterns - len(means)
    ends = _ends(means, tail_rank(alpha, n_patterns) - (n_empty - 1))
    return _result(column, mean, _tails(both_sums), ends, n_patterns, is_exact=False)


def _tails(sums: FloatN) -> tuple[float, float]:
    """Shares of the sums that are at most 0, and at least 0; the empty set is the observed pattern, and counts in both."""
    return int(np.count_nonzero(sums <= 0)) / len(sums), int(np.count_nonzero(sums >= 0)) / len(sums)


def _two_sided(tails: tuple[float, float]) -> float:
    return min(1.0, 2 * min(tails))


def _result(
    column: FixedPoint,
    mean: float | None,
    tails: tuple[float, float],
    ends: tuple[float | None, float | None],
    n_patterns: int,
    *,
    is_exact: bool,
) -> TestResult:
    low, high = ends
    return TestResult(
        statistic=mean,
        p_two_sided=_two_sided(tails),
        p_one_sided=tails[0],
        ci_low=None if low is None else column.value(low),
        ci_high=None if high is None else column.value(high),
        note=None if low is not None else _too_few(column, is_exact=is_exact),
        estimate=mean,
        extra={"sign_patterns": n_patterns, "exact": "yes" if is_exact else "no"},
    )


def _too_few(column: FixedPoint, *, is_exact: bool) -> str:
    n = len(column.units)
    if not is_exact:
        return "too few random draws for a bounded interval at this alpha"
    return f"{n} queries, of which {len(_moving(column))} differ, are too few for a bounded interval at this alpha"


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
