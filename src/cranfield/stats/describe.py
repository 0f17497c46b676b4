"""Values as float64 vectors: checks of arguments, differences, and the tolerance of comparisons.

Two sums of the same terms in another order differ in their last bits. Ranks, counts and ties must not depend on that: a
difference below the tolerance is rounding error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import UsageError

FloatN = NDArray[np.float64]
"""One number per query."""

Values = Sequence[float] | FloatN

TOLERANCE = 1e-12
"""Relative size below which a difference is rounding error."""


def as_vector(values: Values, what: str = "values") -> FloatN:
    """Copy `values` into a float64 vector.

    Raises:
        UsageError: more than one axis, or a value that is not a finite number. Leave queries without a value out.
    """
    vector = np.array(values, dtype=np.float64)
    if vector.ndim != 1:
        raise UsageError(f"{what} have {vector.ndim} axes", expected="one number per query")
    _refuse_not_finite(vector, what)
    return vector


def as_matrix(values: NDArray[np.float64], what: str = "values") -> NDArray[np.float64]:
    """Copy `values` into a float64 matrix [n, M], queries by measures.

    Raises:
        UsageError: not two axes, or a value that is not a finite number.
    """
    matrix = np.array(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise UsageError(f"{what} have {matrix.ndim} axes", expected="queries by measures")
    _refuse_not_finite(matrix, what)
    return matrix


def check_alpha(alpha: float) -> None:
    """Check a significance level.

    Raises:
        UsageError: not between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha:g}", expected="a number between 0 and 1, such as 0.05")


def check_draws(seed: int, n_draws: int) -> None:
    """Check a seed and a number of random draws.

    Raises:
        UsageError: a negative seed, or fewer than 2 draws.
    """
    if seed < 0:
        raise UsageError(f"seed is {seed}", expected="a whole number of 0 or more")
    if n_draws < 2:
        raise UsageError(f"{n_draws} random draws", expected="2 or more")


def differences(baseline: Values, candidate: Values) -> FloatN:
    """Candidate minus baseline, query by query, with rounding error set to 0.

    0.3 - (0.1 + 0.2) is 5.6e-17: a difference of at most `TOLERANCE` times the larger of the two values becomes 0.

    Raises:
        UsageError: the two do not pair, or hold a value that is not a finite number.

    Example:
        >>> differences([0.1 + 0.2, 0.5], [0.3, 1.0])
        array([0. , 0.5])
    """
    a, b = as_vector(baseline, "baseline values"), as_vector(candidate, "candidate values")
    if a.shape != b.shape:
        raise UsageError("the two sides do not pair", expected=f"{a.size} candidate values", got=str(b.size))
    difference = b - a
    difference[np.abs(difference) <= TOLERANCE * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return difference


def nonzero(difference: FloatN) -> FloatN:
    """The differences that are not zero: more than `TOLERANCE` times the largest."""
    size = np.abs(difference)
    kept: FloatN = difference[size > TOLERANCE * size.max(initial=0.0)]
    return kept


def _refuse_not_finite(array: NDArray[np.float64], what: str) -> None:
    bad = int(array.size - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise UsageError(f"{bad} of {array.size} {what} are not finite numbers", hint="leave unscored queries out")


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
