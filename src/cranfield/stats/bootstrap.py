"""The bootstrap interval of a mean difference, and the p-value that belongs to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cranfield.stats.clustered import check_sizes, describe_mean, influences
from cranfield.stats.describe import FloatN, Values, align_with_test, as_vector, check_alpha, check_draws, describe
from cranfield.stats.resampling import FixedPoint, fixed_point, index_blocks
from cranfield.stats.result import NO_QUERY, TestResult, untested

DEFAULT_RESAMPLES = 20_000
"""Monte Carlo error of the ends of a 95 % CI: about 1 % of its width."""

FEWEST_QUERIES = 6
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
    if len(vector) < FEWEST_QUERIES:
        return untested(f"too few queries to resample (n < {FEWEST_QUERIES})")
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
