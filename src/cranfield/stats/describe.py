"""Mean, median and spread of a list of numbers, the same in whatever order they come."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cranfield.stats.arguments import Values, as_vector
from cranfield.stats.noise import NOISE


@dataclass(frozen=True, slots=True)
class Description:
    """Where the values lie and how far they spread. None is "not defined", never 0."""

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
    mean = min(max(math.fsum(vector.tolist()) / n, low), high)
    median = float(np.median(vector))
    if n == 1:
        return Description(mean, median, None, 1)
    if high - low <= NOISE * max(abs(low), abs(high)):
        return Description(mean, median, 0.0, n)
    centred = vector - mean
    # A power of two costs no digit, and keeps squares from overflow and underflow.
    scale = math.ldexp(1.0, math.frexp(max(high - mean, mean - low))[1] - 1)
    scaled = (centred / scale).tolist()
    # The second term is 0 but for the rounding of the mean.
    squares = math.fsum(x * x for x in scaled) - math.fsum(scaled) ** 2 / n
    return Description(mean, median, scale * math.sqrt(squares / (n - 1)), n)
