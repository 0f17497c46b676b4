"""The bootstrap: resamples of values and of clusters, and their percentiles.

Subsets and indices depend on seed and position only. Draws come in chunks; each chunk has its own generator, seeded by (seed,
purpose, chunk number), so results do not depend on threads or order. Only the raw stream of PCG64 is used, which NumPy guarantees to
be stable.

A matrix product adds in an order that the BLAS chooses, which changes the last bits. Resampling compares millions of such sums
with each other and with zero. Integers whose absolute values sum to less than 2^53 are added exactly in float64.

Queries of one cluster (of a user, of a session, of a random group) are alike, so the cluster is what varies, and what resampling and
sign flips move. A cluster is the sum of its values and the number of its queries; clusters may be of any size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.stats.describe import (
    TOLERANCE,
    Description,
    FloatN,
    Values,
    align_with_test,
    as_vector,
    check_alpha,
    check_draws,
    describe,
)
from cranfield.stats.result import NO_QUERY, TestResult, untested

SIGNS, RESAMPLES, KEYS = 1, 2, 3
"""Purposes: procedures with different purposes share no random numbers."""

CHUNK_ROWS, CHUNK_CELLS = 1024, 1 << 23
"""Rows drawn by one generator, fewer where they are long. Changing it changes the draws."""

BLOCK_CELLS = 1 << 17
"""Cells processed at once (1 MB of float64, to fit the processor cache); does not change the result."""

BITS = 52
"""Absolute values sum to at most 2^52 units, and rounding adds at most half a unit each: below 2^53 for any real n."""


def subset_blocks(seed: int, n_rows: int, n: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Random subsets of n things, each thing in or out with equal chance.

    Yields:
        The number of the first row, and uint8[rows, n] of 0 and 1.
    """
    words = -(-n // 64)
    for start, raw in _drawn(seed, SIGNS, n_rows, n, words):
        packed = raw.astype("<u8", copy=False).view(np.uint8)
        yield start, np.unpackbits(packed, axis=1, count=n, bitorder="little")


def key_blocks(seed: int, n_rows: int, n: int) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """Random 64-bit keys, by whose order things are permuted.

    Yields:
        The number of the first row, and uint64[rows, n].
    """
    for start, raw in _drawn(seed, KEYS, n_rows, n, n):
        yield start, raw.astype("<u8", copy=False).view(np.uint64)


def index_blocks(seed: int, n_rows: int, n: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Random samples of n indices under n, with replacement.

    An index is a 32-bit random number times n, divided by 2^32: uneven by less than n / 2^32.

    Yields:
        The number of the first row, and int64[rows, n].
    """
    words = -(-n // 2)
    for start, raw in _drawn(seed, RESAMPLES, n_rows, n, words):
        wide = raw.astype("<u8", copy=False).view("<u4")[:, :n].astype(np.uint64)
        wide *= np.uint64(n)
        wide >>= np.uint64(32)
        yield start, wide.view(np.int64)  # under n, so the sign bit is never set


def _drawn(seed: int, purpose: int, n_rows: int, n: int, words: int) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """The number of the first row, and uint64[rows, words] of random numbers: chunk by chunk, each in blocks."""
    chunk = max(1, min(CHUNK_ROWS, CHUNK_CELLS // n))
    for number, first in enumerate(range(0, n_rows, chunk)):
        generator = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, number)))
        for at, rows in _blocks(min(chunk, n_rows - first), n):
            raw = np.asarray(generator.random_raw(rows * words), dtype=np.uint64)
            yield first + at, raw.reshape(rows, words)


def _blocks(n_rows: int, n: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK_CELLS // n)
    return ((at, min(step, n_rows - at)) for at in range(0, n_rows, step))


@dataclass(frozen=True, slots=True, eq=False)
class FixedPoint:
    """A vector in whole units of a power of two."""

    units: FloatN
    """Whole numbers; value = units * 2^exponent."""
    exponent: int
    tolerance: float
    """A sum of at most this many units is zero."""

    @property
    def total(self) -> float:
        """Sum of the vector, in units."""
        return float(self.units.sum())

    def value(self, units: float) -> float:
        """Convert a number of units back into a value, rounded to the precision of a unit."""
        exact = math.ldexp(units, self.exponent)
        return round(exact, math.floor(-self.exponent * math.log10(2))) or exact

    def zero_rounding(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sums, with rounding error set to 0."""
        return np.where(np.abs(sums) <= self.tolerance, 0.0, sums)


def fixed_point(vector: FloatN, largest_sum: float | None = None) -> FixedPoint:
    """Scale `vector` to whole numbers; a value moves by at most half of 2^-52 of `largest_sum`.

    Args:
        vector: the values.
        largest_sum: upper bound of the sum of absolute values in any sum to be computed; None is the sum of all.
    """
    size = math.fsum(np.abs(vector).tolist()) if largest_sum is None else largest_sum
    exponent = math.frexp(size)[1] - BITS
    units = np.rint(np.ldexp(vector, -exponent))
    return FixedPoint(units, exponent, TOLERANCE * float(np.abs(units).sum()))


FEW_CLUSTERS = 10
"""Under so many, the standard error is too uncertain to rely on, whatever the number of queries."""


def describe_clusters(sums: Values, sizes: Values) -> Description:
    """The mean over all queries, with the spread between clusters.

        mean = sum(D_g) / N,  N = sum(n_g);  std = sqrt(G) * SE,  SE^2 = G / (G - 1) * sum((D_g - mean n_g)^2) / N^2

    So std / sqrt(G) is the cluster-robust standard error of the mean, as it is for G values: what takes a description of
    values (`t_interval`, `t_test`) takes this one.

    Args:
        sums: of the values of each of G clusters.
        sizes: queries of each, above 0.

    Returns:
        A description whose n is G, and which has no median.

    Conventions:
        no cluster: all None · one: no std · all clusters have one mean: std 0.

    Source:
        Cochran 1977, Sampling Techniques, 6.3 (ratio estimator); Cameron & Miller 2015, J. Human Resources 50(2). Equal to
        `statsmodels` OLS on a constant with `cov_type="cluster"`, t distribution of G - 1 degrees of freedom.

    Raises:
        UsageError: not one size for each sum, or a size that is not above 0.

    Example:
        >>> describe_clusters([2.0, 1.0], [2.0, 2.0])  # mean 3 / 4; residuals +-.5: SE^2 = 2 * .5 / 16
        Description(mean=0.75, median=None, std=0.3535533905932738, n=2)
    """
    totals = as_vector(sums, "sums")
    counts = check_sizes(sizes, len(totals))
    n_clusters = len(totals)
    if not n_clusters:
        return Description(None, None, None, 0)
    n = math.fsum(counts.tolist())
    mean = math.fsum(totals.tolist()) / n
    if n_clusters == 1:
        return Description(mean, None, None, 1)
    means = totals / counts
    if float(np.ptp(means)) <= TOLERANCE * float(np.abs(means).max()):
        return Description(mean, None, 0.0, n_clusters)
    squares = math.fsum((influences(totals, counts) ** 2).tolist())
    return Description(mean, None, n_clusters * math.sqrt(squares / (n_clusters - 1)) / n, n_clusters)


def describe_mean(sums: FloatN, sizes: FloatN | None) -> float | None:
    """The mean over all queries; without sizes each sum is one of a query."""
    return describe(sums).mean if sizes is None else describe_clusters(sums, sizes).mean


def influences(sums: FloatN, sizes: FloatN) -> FloatN:
    """What each cluster adds to the error of the mean: its sum less what the mean gives for its size; they add up to 0."""
    residuals: FloatN = sums - math.fsum(sums.tolist()) / math.fsum(sizes.tolist()) * sizes
    return residuals


def check_sizes(sizes: Values, n: int) -> FloatN:
    """The sizes of n sums of queries, as a vector.

    Raises:
        UsageError: not one for each, or one that is not above 0.
    """
    counts = as_vector(sizes, "sizes")
    if len(counts) != n:
        raise UsageError(f"{n} sums of differences and {len(counts)} sizes", expected="one size for each")
    if n and counts.min() <= 0:
        raise UsageError(f"a size is {counts.min():g}", expected="a number above 0")
    return counts


DEFAULT_RESAMPLES = 20_000
"""Monte Carlo error of the ends of a 95 % CI: about 1 % of its width."""

MIN_QUERIES = 6
"""With fewer, all differences have one sign by chance in 1 of 20 samples or more, and the bootstrap would reject."""


def bootstrap(
    difference: Values,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    n_draws: int = DEFAULT_RESAMPLES,
    sizes: Values | None = None,
) -> TestResult:
    """BCa bootstrap interval of the mean difference, and the p-value obtained by inverting it.

    The ends are percentiles of the resampled means, corrected for bias (z0, from the share of resampled means below the
    observed) and for skew (a, from the third moment of the differences). Plain percentiles are inaccurate for skewed
    differences, as when a few queries change a lot and most not at all. The p-value is the smallest alpha at which the
    interval excludes zero.

        z(G) = (w - z0) / (1 + a (w - z0)) - z0,  w = Phi^-1(G);   p(greater) = Phi(z((#{means <= 0} + 1) / N))

    Args:
        difference: candidate minus baseline, one per query.
        alpha: the interval covers 1 - alpha.
        seed: of the random resamples.
        n_draws: samples of queries, the observed one included.
        sizes: where each difference is the *sum* over so many queries that belong together (a user, a session, a group):
            whole sums are resampled, and a mean is a sum over the number of its queries. None: each is a query.

    Returns:
        The mean difference, both p-values, and the interval of the mean difference.

    Conventions:
        under 6 queries: no p-value, no interval, and a note · with few queries (under about 30) the interval is somewhat
        narrow, as every bootstrap of a mean is: prefer the permutation test there · no one-sided p is under
        1 / n_draws, and an alpha / 2 under it gives no bounded interval · all differences equal: an interval of width 0.

    Source:
        Efron 1987, JASA 82(397). Ends equal to those of `scipy.stats.bootstrap(method="BCa")` on the same resamples, to
        the neighbouring resampled mean.
    """
    check_alpha(alpha)
    check_draws(seed, n_draws)
    vector = as_vector(difference, "differences")
    if not vector.size:
        return untested(NO_QUERY)
    if len(vector) < MIN_QUERIES:
        return untested(f"too few queries to resample (n < {MIN_QUERIES})")
    if sizes is None:
        return _bca(vector, vector, None, alpha, seed, n_draws)
    counts = check_sizes(sizes, len(vector))
    return _bca(vector, influences(vector, counts), counts, alpha, seed, n_draws)


def _bca(vector: FloatN, influence: FloatN, counts: FloatN | None, alpha: float, seed: int, n_draws: int) -> TestResult:
    """The interval; with counts, resampled sums are scaled to the number of queries that there are."""
    n = len(vector) if counts is None else float(counts.sum())
    fixed = fixed_point(vector)
    sums = np.sort(_resampled_sums(fixed, counts, seed, n_draws - 1))
    curve = _Curve(n_draws, _bias(sums, fixed.total), _acceleration(influence))
    sums = fixed.zero_rounding(sums)
    p_greater = curve.alpha_of(int(np.count_nonzero(sums <= 0)) + 1)
    p_less = curve.mirrored().alpha_of(int(np.count_nonzero(sums >= 0)) + 1)
    p_two_sided = min(1.0, 2 * min(p_greater, p_less))
    low_rank, high_rank = curve.rank_of(alpha / 2), curve.mirrored().rank_of(alpha / 2)
    low, high = align_with_test(
        fixed.value(float(sums[low_rank - 1]) / n) if low_rank else None,
        fixed.value(float(sums[len(sums) - high_rank]) / n) if high_rank else None,
        rejected=p_two_sided <= alpha,
        upward=p_greater < p_less,
        scale=float(np.abs(vector).max()),
    )
    mean = describe_mean(vector, counts)
    return TestResult(
        statistic=mean,
        p_two_sided=p_two_sided,
        p_one_sided=p_greater,
        ci_low=low,
        ci_high=high,
        estimate=mean,
        extra={"resamples": n_draws - 1, "bias": curve.bias, "acceleration": curve.acceleration},
    )


@dataclass(frozen=True, slots=True)
class _Curve:
    """Maps the nominal tail of the interval (alpha) to the number of resampled means it cuts off, for the low end."""

    n_patterns: int
    bias: float
    acceleration: float

    def mirrored(self) -> _Curve:
        """The same for the high end: that of the negated differences."""
        return _Curve(self.n_patterns, -self.bias, -self.acceleration)

    def rank_of(self, alpha: float) -> int:
        """How many resampled means the low end cuts off, its own included; 0 is none, so no end."""
        from scipy.special import ndtr, ndtri

        if alpha * self.n_patterns < 1:
            return 0
        shifted = self.bias + float(ndtri(alpha))
        share = float(ndtr(self.bias + shifted / (1 - self.acceleration * shifted)))
        return min(math.floor(self.n_patterns * share), self.n_patterns - 1)

    def alpha_of(self, rank: int) -> float:
        """The smallest alpha whose `rank_of` is `rank` or more; at least one over the number of patterns."""
        from scipy.special import ndtr, ndtri

        if rank >= self.n_patterns:
            return 1.0
        shifted = float(ndtri(rank / self.n_patterns)) - self.bias
        return max(1 / self.n_patterns, float(ndtr(shifted / (1 + self.acceleration * shifted) - self.bias)))


def _bias(sums: FloatN, total: float) -> float:
    """Where the observed mean lies among the resampled ones, in standard deviations; equal ones count half."""
    from scipy.special import ndtri

    if len(sums) < 2:
        return 0.0
    below = float(np.count_nonzero(sums < total)) + float(np.count_nonzero(sums == total)) / 2
    return float(ndtri(min(max(below, 1.0), len(sums) - 1.0) / len(sums)))


def _resampled_sums(fixed: FixedPoint, counts: FloatN | None, seed: int, n_rows: int) -> FloatN:
    sums = np.empty(n_rows)
    for start, indices in index_blocks(seed, n_rows, len(fixed.units)):
        rows = slice(start, start + len(indices))
        # Every index is under n; "clip" only spares NumPy the search for one that is not.
        sums[rows] = np.take(fixed.units, indices, mode="clip").sum(axis=1)
        if counts is not None:
            sums[rows] *= counts.sum() / np.take(counts, indices, mode="clip").sum(axis=1)
    return sums


def _acceleration(vector: FloatN) -> float:
    """Efron's acceleration of a mean: sum of cubes over 6 times the sum of squares to the power 3/2, about the mean.

    It never passes 1/6 on either side, and no share of fewer than 10^8 resamples is 6 standard deviations out: the
    denominators of the curve stay above 0.
    """
    about = describe(vector)
    if not about.std or about.mean is None:
        return 0.0
    centred = (vector - about.mean) / about.std
    cubes, squares = math.fsum((centred**3).tolist()), math.fsum((centred**2).tolist())
    return cubes / (6 * math.sqrt(squares) ** 3)
