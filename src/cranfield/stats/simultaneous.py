"""All pairs of many systems at once: single-step max-T by flipping signs, and Tukey's honestly significant difference.

Values are float64[Q, S], queries by systems, none missing. A pair (i, j) is system j minus system i.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.stats.bootstrap import fixed_point, subset_blocks
from cranfield.stats.describe import TOLERANCE, FloatN, align_with_test, as_matrix, check_alpha, check_draws
from cranfield.stats.result import DEFAULT_DRAWS, TestResult

FloatQS = NDArray[np.float64]
"""Queries by systems."""
Pairs = Sequence[tuple[int, int]]
"""Places of the first and the second system of each pair."""

ENUMERATED_UP_TO, ENUMERATED_CELLS = 20, 1 << 25
"""Up to so many queries on which any two systems differ, and so many patterns times pairs, all sign patterns are counted."""

CELLS = 1 << 16
"""Numbers processed at once (512 KB of float64); does not change the result."""

TABULATED_FROM, LARGEST_Q = 40, 12.0
"""More pairs than this have their Tukey p interpolated between `TABLE_POINTS` of the studentized range."""
TABLE_POINTS = 32

SMALLEST_TAIL = 1e-12
"""The numerical integration of the studentized range is good to about so much."""


@dataclass(frozen=True, slots=True)
class Critical:
    """What a pair needs to be significant."""

    n_patterns: int
    """Sign patterns, the observed one and mirror images included."""
    is_exact: bool
    t: float | None
    """|t| must be above it; None where no pair can be significant."""


def max_t_patterns(n_moving: int, n_pairs: int, n_draws: int) -> tuple[int, bool]:
    """How many sign patterns `max_t` uses, mirror images included, and whether they are all there are.

    Args:
        n_moving: queries on which any two systems differ.
        n_pairs: pairs that are adjusted together.
        n_draws: sign patterns where not all are counted.
    """
    if n_moving <= ENUMERATED_UP_TO and n_pairs << n_moving <= ENUMERATED_CELLS:
        return 1 << n_moving, True
    return n_draws + n_draws % 2, False


def moving_queries(values: FloatQS) -> int:
    """On how many queries any two systems differ."""
    return int(np.count_nonzero(_is_moving(as_matrix(values))))


def max_t(
    values: FloatQS, pairs: Pairs, *, alpha: float = 0.05, seed: int = 0, n_draws: int = DEFAULT_DRAWS
) -> list[TestResult]:
    """Single-step max-T: the paired permutation test of every pair, adjusted by the largest statistic of all of them.

        t = mean(d) / (std(d) / sqrt(Q)),  d the differences of one pair
        p_adjusted = share of the sign patterns whose largest |t| of all pairs is at least |t|

    A sign pattern flips whole queries, for all pairs alike, so that the pairs keep their dependence on each other. Under every
    pattern std(d) follows from the sum of d and its unchanged sum of squares: |t| grows with |sum(d)| / sqrt(sum(d^2)).

    Args:
        values: float64[Q, S].
        pairs: the family that is adjusted together.
        alpha: family-wise error rate; the intervals cover 1 - alpha together.
        seed: of the random sign patterns, which are those of `permutation`.
        n_draws: sign patterns where not all are counted; see `max_t_patterns`.

    Returns:
        A result for each pair: t, the p-value of the pair alone, its adjusted p-value, and the simultaneous interval of its
        mean difference: mean ± t_c * std(d) / sqrt(Q), with t_c the critical value of max-T. An adjusted p at most alpha
        and an interval without zero are one statement. `extra` has the number of sign patterns.

    Conventions:
        no adjusted p is under 2 / patterns, whatever the number of pairs · where that is above alpha the intervals are
        unbounded · a pair without any difference: p 1 and an interval of [0, 0] · sums within 1e-12 are equal.

    Source:
        Westfall & Young 1993, Resampling-Based Multiple Testing, 2.3 (subset pivotality holds: the pattern of the true
        null hypotheses does not depend on the others); Carterette 2012, TOIS 30(1).
    """
    check_alpha(alpha)
    check_draws(seed, n_draws)
    matrix = as_matrix(values)
    if not pairs:
        return []
    if not len(matrix):
        raise UsageError("no query to test", expected="one query or more")
    family = _Family(matrix, pairs)
    n_patterns, is_exact = max_t_patterns(len(family.units), len(pairs), n_draws)
    alone, largest = family.count(_sign_blocks(seed, n_patterns, *family.units.shape, is_exact=is_exact))
    critical = _critical(largest, len(matrix), alpha, n_patterns, is_exact=is_exact)
    ordered = np.sort(largest)
    as_large = len(ordered) - np.searchsorted(ordered, family.ratio - TOLERANCE)
    return [
        family.result(place, int(alone[place]) / len(largest), int(as_large[place]) / len(largest), critical, alpha)
        for place in range(len(pairs))
    ]


def tukey_hsd(values: FloatQS, pairs: Pairs) -> FloatN:
    """Tukey's honestly significant difference on systems by queries: the adjusted p-value of each pair.

        q = |mean_i - mean_j| / sqrt(MSE / Q),  MSE of the additive model value = system + query
        p = P(studentized range of S means with (S - 1)(Q - 1) degrees of freedom >= q)

    Args:
        values: float64[Q, S], two queries or more and two systems or more.
        pairs: places of two systems; all S systems are the family, whichever pairs are asked for.

    Returns:
        One p-value per pair.

    Conventions:
        assumes normal residuals with one variance for all pairs: a pair whose differences spread more than the average has
        too small a p-value, so the family-wise error can exceed alpha where systems differ in kind · no residual at all: p 0
        where the means differ, else 1 · of more than 40 pairs p is interpolated to 1e-4.

    Source:
        Tukey 1953; Sakai 2018, Laboratory Experiments in Information Retrieval, 4.3. For two systems equal to the paired
        t test; p by `scipy.stats.studentized_range`.

    Raises:
        UsageError: fewer than two queries or systems.
    """
    matrix = as_matrix(values)
    n, systems = matrix.shape
    if n < 2 or systems < 2:
        raise UsageError(f"{n} queries and {systems} systems", expected="two or more of each")
    means = matrix.mean(axis=0)
    residual = matrix - means - matrix.mean(axis=1, keepdims=True) + matrix.mean()
    df = (systems - 1) * (n - 1)
    error = math.sqrt(float((residual**2).sum()) / df / n)
    gaps = np.abs(np.array([means[j] - means[i] for i, j in pairs]))
    size = float(np.abs(matrix).max(initial=0.0))
    gaps[gaps <= TOLERANCE * size] = 0.0
    if error <= TOLERANCE * size:
        return np.where(gaps > 0, 0.0, 1.0)
    return _studentized_range_tail(gaps / error, systems, df)


class _Family:
    """The pairs of `max_t`, in whole units so that sums do not depend on order."""

    def __init__(self, matrix: FloatQS, pairs: Pairs) -> None:
        moving = _is_moving(matrix)
        self.n = len(matrix)
        centred = matrix[moving] - matrix[moving].mean(axis=1, keepdims=True)
        fixed = fixed_point(centred.ravel(), largest_sum=2 * float(np.abs(centred).sum(axis=0).max(initial=0.0)) or 1.0)
        self.units = fixed.units.reshape(centred.shape)
        places_of: dict[int, list[int]] = {}
        for place, (first, _) in enumerate(pairs):
            places_of.setdefault(first, []).append(place)
        self.by_first = {
            first: (np.array([pairs[place][1] for place in places]), np.array(places))
            for first, places in places_of.items()
        }
        self.mean, self.spread, self.ratio = np.zeros(len(pairs)), np.zeros(len(pairs)), np.zeros(len(pairs))
        self.weight = np.zeros(len(pairs))
        for first, (seconds, places) in self.by_first.items():
            d = matrix[:, seconds] - matrix[:, [first]]
            d[np.abs(d) <= TOLERANCE * np.maximum(np.abs(matrix[:, seconds]), np.abs(matrix[:, [first]]))] = 0.0
            squares = (d**2).sum(axis=0)
            self.mean[places] = d.mean(axis=0)
            self.spread[places] = np.sqrt(np.maximum(0.0, ((d - d.mean(axis=0)) ** 2).sum(axis=0)))
            known = squares > 0
            self.weight[places[known]] = math.ldexp(1.0, fixed.exponent) / np.sqrt(self.n * squares[known])
            self.ratio[places] = np.where(
                known, np.abs(d.sum(axis=0)) / np.sqrt(self.n * np.where(known, squares, 1)), 0
            )

    def count(self, sign_blocks: Iterable[NDArray[np.float64]]) -> tuple[NDArray[np.int64], FloatN]:
        """How many patterns reach each pair's own ratio, and the largest ratio of each pattern."""
        alone, largest = np.zeros(len(self.mean), dtype=np.int64), []
        for signs in sign_blocks:
            sums = signs @ self.units
            top = np.zeros(len(signs))
            for first, (seconds, places) in self.by_first.items():
                ratios = sums[:, seconds]
                ratios -= sums[:, [first]]
                np.abs(ratios, out=ratios)
                ratios *= self.weight[places]
                np.maximum(top, ratios.max(axis=1), out=top)
                alone[places] += (ratios >= self.ratio[places] - TOLERANCE).sum(axis=0)
            largest.append(top)
        return alone, np.concatenate(largest)

    def result(self, place: int, p: float, p_adjusted: float, critical: Critical, alpha: float) -> TestResult:
        """The result of one pair."""
        mean, std = float(self.mean[place]), float(self.spread[place]) / math.sqrt(max(1, self.n - 1))
        up = mean > 0
        is_moving = self.weight[place] > 0
        half = 0.0 if not is_moving else None if critical.t is None else critical.t * std / math.sqrt(self.n)
        low, high = (None, None) if half is None else (mean - half, mean + half)
        if is_moving and half is not None:
            scale = max(abs(mean), std)
            low, high = align_with_test(low, high, rejected=p_adjusted <= alpha, upward=up, scale=scale)
        return TestResult(
            statistic=mean / (std / math.sqrt(self.n)) if std else None,
            p_two_sided=p if is_moving else 1.0,
            p_one_sided=(p / 2 if up else 1 - p / 2) if is_moving else 0.5,
            p_adjusted=p_adjusted if is_moving else 1.0,
            ci_low=low,
            ci_high=high,
            estimate=mean,
            extra={"sign_patterns": critical.n_patterns, "exact": "yes" if critical.is_exact else "no"},
        )


def _is_moving(matrix: FloatQS) -> NDArray[np.bool_]:
    """Queries on which any two systems differ."""
    size = np.abs(matrix).max(axis=1, initial=0.0)
    return np.ptp(matrix, axis=1) > TOLERANCE * size if matrix.size else np.zeros(len(matrix), dtype=np.bool_)


def _sign_blocks(seed: int, n_patterns: int, n: int, systems: int, *, is_exact: bool) -> Iterator[NDArray[np.float64]]:
    """Signs [rows, n], one pattern of each pair of mirror images; the first row of all is the observed one."""
    step = max(1, CELLS // max(1, systems))
    if is_exact:
        n_rows = 1 << max(0, n - 1)
        for start in range(0, n_rows, step):
            numbers = np.arange(start, min(start + step, n_rows))[:, np.newaxis]
            yield np.asarray(1 - 2 * (numbers >> np.arange(n) & 1), dtype=np.float64)
        return
    yield np.ones((1, n))
    for _, members in subset_blocks(seed, n_patterns // 2 - 1, n):
        for start in range(0, len(members), step):
            yield 1 - 2 * members[start : start + step].astype(np.float64)


def _critical(largest: FloatN, n: int, alpha: float, n_patterns: int, *, is_exact: bool) -> Critical:
    """The critical value of |t|: the largest ratio that is reached too often, as a t."""
    allowed = int(alpha * len(largest) * (1 + TOLERANCE))
    if not allowed:
        return Critical(n_patterns, is_exact, None)
    ratio = float(np.sort(largest)[len(largest) - allowed - 1]) if allowed < len(largest) else 0.0
    if ratio >= 1 - TOLERANCE:
        return Critical(n_patterns, is_exact, None)
    return Critical(n_patterns, is_exact, ratio * math.sqrt((n - 1) / (1 - ratio**2)))


def _studentized_range_tail(q: FloatN, systems: int, df: int) -> FloatN:
    from scipy.interpolate import PchipInterpolator
    from scipy.special import ndtr, ndtri
    from scipy.stats import studentized_range

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the integration, in tails that are 0 to 12 digits
        if len(q) <= TABULATED_FROM:
            tails = studentized_range.sf(q, systems, df)
        else:
            points = np.linspace(0.0, min(float(q.max()), LARGEST_Q), TABLE_POINTS)
            table = np.clip(studentized_range.sf(points, systems, df), SMALLEST_TAIL, 1 - SMALLEST_TAIL)
            quantiles = PchipInterpolator(points, ndtri(np.minimum.accumulate(table)))  # close to a straight line
            tails = ndtr(quantiles(np.minimum(q, points[-1])))
    return np.clip(np.asarray(tails, dtype=np.float64), 0.0, 1.0)
