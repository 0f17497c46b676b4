"""Numbers scaled to whole ones, so that a sum of them is the same in every order, on every machine and thread count.

A matrix product adds in whatever order the processor's library likes, and its last bits follow. Resampling compares
millions of such sums with each other and with zero, where the last bit decides. Whole numbers whose absolute values sum
to less than 2^53 are added by float64 without any rounding: then order cannot matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.arguments import FloatN
from cranfield.stats.noise import NOISE

BITS = 52
"""Absolute values sum to at most 2^52 units, and rounding adds at most half a unit each: below 2^53 for any real n."""


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A vector in whole units of a power of two."""

    units: FloatN
    """Whole numbers; value = units * 2^exponent."""
    exponent: int
    noise: float
    """A sum of at most this many units is zero."""

    @property
    def total(self) -> float:
        """Sum of the vector, in units."""
        return float(self.units.sum())

    def value(self, units: float) -> float:
        """Turn one number of units back into a value, without the digits that are finer than a unit."""
        exact = math.ldexp(units, self.exponent)
        return round(exact, math.floor(-self.exponent * math.log10(2))) or exact

    def without_noise(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same sums, those that are zero but for rounding set to 0."""
        return np.where(np.abs(sums) <= self.noise, 0.0, sums)


def fixed_point(vector: FloatN, largest_sum: float | None = None) -> FixedPoint:
    """Scale `vector` to whole numbers; a value moves by at most half of 2^-52 of `largest_sum`.

    Args:
        vector: the values.
        largest_sum: no sum that will be asked for has absolute values adding up to more; None is the sum of them all.
    """
    size = math.fsum(np.abs(vector).tolist()) if largest_sum is None else largest_sum
    exponent = math.frexp(size)[1] - BITS
    units = np.rint(np.ldexp(vector, -exponent))
    return FixedPoint(units, exponent, NOISE * float(np.abs(units).sum()))
