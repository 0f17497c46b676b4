"""Mean, median and spread of a list of numbers, independent of their order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cranfield.stats.vectors import TOLERANCE, FloatN, Values, as_vector


@dataclass(frozen=True, slots=True)
class Description:
    """Mean, median and standard deviation; None where undefined."""

    mean: float | None
    """None without values."""
    median: float | None
    """None without values."""
    std: float | None
    """Sample standard deviation (n - 1); None under two values, 0 when they are equal but for rounding."""
    n: int


def describe(values: Values) -> Description:
    """Summarise `values`.

    Sums are exact (`math.fsum`) before they are rounded once, so the order of the values does not matter.

    Example:
        >>> describe([0.0, 0.0, 3.0])  # squares about 1: 1 + 1 + 4 = 6, over 2
        Description(mean=1.0, median=0.0, std=1.7320508075688772, n=3)
    """
    vector = as_vector(values)
    n = vector.size
    if not n:
        return Description(None, None, None, 0)
    low, high = float(vector.min()), float(vector.max())
    # A rounded sum divided by n can leave the range of the values by a last bit.
    mean = min(max(_sum(vector / n) if max(abs(low), abs(high)) > LARGE else math.fsum(vector.tolist()) / n, low), high)
    median = _median(vector)
    if n == 1:
        return Description(mean, median, None, 1)
    if high - low <= TOLERANCE * max(abs(low), abs(high)):
        return Description(mean, median, 0.0, n)
    centred = vector - mean
    # A power of two costs no digit, and keeps squares from overflow and underflow.
    scale = math.ldexp(1.0, math.frexp(max(high - mean, mean - low))[1] - 1)
    scaled = (centred / scale).tolist()
    # The second term is 0 but for the rounding of the mean.
    squares = math.fsum(x * x for x in scaled) - math.fsum(scaled) ** 2 / n
    return Description(mean, median, scale * math.sqrt(squares / (n - 1)), n)


LARGE = 1e290
"""Sums of greater numbers may be too large for a number."""


def _sum(vector: FloatN) -> float:
    return math.fsum(vector.tolist())


def total(values: Values) -> float | None:
    """Sum of the values; None without any, or where it is too large for a number."""
    vector = as_vector(values)
    try:
        return math.fsum(vector.tolist()) if vector.size else None
    except OverflowError:
        return None


def _median(vector: FloatN) -> float:
    """The middle value, or the mean of the two in the middle. `np.median` imports masked arrays, which takes longer."""
    half = vector.size // 2
    ordered = np.partition(vector, [max(half - 1, 0), half])
    low, high = float(ordered[max(half - 1, 0)]), float(ordered[half])
    if vector.size % 2:
        return high
    # Halving first loses the smallest numbers; adding first overflows at the largest.
    return (low + high) / 2 if math.isfinite(low + high) else low / 2 + high / 2


SMALLEST_FACTOR = 1e-5
"""Floor of the values in a geometric mean, so that one zero does not make it 0."""


def geometric_mean(values: Values) -> float | None:
    """The n-th root of the product; None without values, or where one is under 0.

    Source: Robertson 2006, CIKM ("On GMAP"); trec_eval's floor of 0.00001.

    Example:
        >>> geometric_mean([0.25, 1.0])  # sqrt(0.25 x 1)
        0.5
    """
    vector = as_vector(values)
    if not vector.size or vector.min() < 0:
        return None
    return math.exp(math.fsum(np.log(np.maximum(vector, SMALLEST_FACTOR)).tolist()) / vector.size)


def weighted_mean(values: Values, weights: Values) -> float | None:
    """Sum of value times weight over the sum of the weights; None where all weights are equal or none is above 0.

    Example:
        >>> weighted_mean([1.0, 0.0], [3.0, 1.0])  # 3 of 4 questions are the first
        0.75
    """
    vector, weight = as_vector(values), as_vector(weights)
    if not vector.size or weight.min() == weight.max() or weight.sum() <= 0:
        return None
    return math.fsum((vector * weight).tolist()) / math.fsum(weight.tolist())
