"""Ratios of sums over the same things, such as tokens per success over tasks, and the difference of two of them."""

from __future__ import annotations

import math

import numpy as np

from cranfield.base.errors import UsageError
from cranfield.stats.describe import TOLERANCE, FloatN, Values, as_vector, t_quantile, total

Part = tuple[Values, Values]
"""Numerators and denominators, one of each per query."""


def ratio_of_sums(numerators: Values, denominators: Values) -> float | None:
    """Sum over sum; None where the denominators add up to 0 or less.

    Example:
        >>> ratio_of_sums([300.0, 500.0], [1.0, 0.0])  # 800 tokens, one success
        800.0
    """
    over, under = total(numerators), total(denominators)
    return over / under if over is not None and under is not None and under > 0 else None


def ratio_difference(first: Part, second: Part, level: float = 0.95) -> tuple[float, float, float] | None:
    """Difference of two ratios of sums, first less second, with an interval.

        R = sum(x) / sum(y);  ends of one ratio: R exp(± t sqrt(var(e) / n)),  e = (x - R y) / (R mean(y))
        low = R1 - R2 - sqrt(a^2 + b^2 - 2 r a b),  a = R1 - low1,  b = high2 - R2,  r the correlation of e1 and e2

    Each ratio has an interval on the logarithmic scale by the delta method; the two are combined by the method of variance
    estimates recovery (MOVER). A symmetric interval of the difference, by the delta method or the jackknife, covers too often:
    where a denominator happens to be small, the ratio and its standard error are large together.

    Args:
        first: x and y, one per query; x of 0 or more.
        second: the same, of the same queries in the same order.
        level: of the interval.

    Returns:
        The difference and both ends; None under two queries, and where a sum is not above 0.

    Source:
        Zou & Donner 2008, Stat. Med. 27(10) (MOVER); Zou 2009, Stat. Med. 28(8) (correlated estimates).

    Raises:
        UsageError: vectors of different lengths, or a level that is not between 0 and 1.

    Example:
        >>> ratio_difference(([2.0, 4.0], [1.0, 1.0]), ([1.0, 2.0], [1.0, 1.0]))[0]  # 6 / 2 - 3 / 2
        1.5
    """
    if not 0 < level < 1:
        raise UsageError(f"level is {level:g}", expected="a number between 0 and 1, such as 0.95")
    x1, y1, x2, y2 = (as_vector(values) for values in (*first, *second))
    if len({x1.size, y1.size, x2.size, y2.size}) > 1:
        raise UsageError("the two ratios are of different queries", expected=f"{x1.size} values in each vector")
    if x1.size < 2 or min(x1.sum(), y1.sum(), x2.sum(), y2.sum()) <= 0:
        return None
    ratio1, e1 = _ratio_and_errors(x1, y1)
    ratio2, e2 = _ratio_and_errors(x2, y2)
    quantile = t_quantile((1 + level) / 2, x1.size - 1)
    low1, high1 = _log_ends(ratio1, e1, quantile)
    low2, high2 = _log_ends(ratio2, e2, quantile)
    r = _correlation(e1, e2)
    difference = ratio1 - ratio2
    low = difference - _combined(ratio1 - low1, high2 - ratio2, r)
    return difference, low, difference + _combined(high1 - ratio1, ratio2 - low2, r)


def _ratio_and_errors(x: FloatN, y: FloatN) -> tuple[float, FloatN]:
    """The ratio, and what each query adds to its relative error."""
    ratio = float(x.sum() / y.sum())
    return ratio, (x - ratio * y) / (ratio * float(y.mean()))


def _log_ends(ratio: float, errors: FloatN, quantile: float) -> tuple[float, float]:
    half = quantile * float(errors.std(ddof=1)) / math.sqrt(errors.size)
    return ratio * math.exp(-half), ratio * math.exp(half)


def _correlation(a: FloatN, b: FloatN) -> float:
    spread = float(np.sqrt((a @ a) * (b @ b)))  # the errors of a ratio add up to 0
    return float(a @ b) / spread if spread > TOLERANCE * TOLERANCE else 0.0


def _combined(a: float, b: float, r: float) -> float:
    return math.sqrt(max(a * a + b * b - 2 * r * a * b, 0.0))
