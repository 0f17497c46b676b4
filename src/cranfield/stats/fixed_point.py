"""Numbers scaled to integers, so that their sums do not depend on order, machine or thread count.

A matrix product adds in an order that the BLAS chooses, which changes the last bits. Resampling compares millions of such sums
with each other and with zero. Integers whose absolute values sum to less than 2^53 are added exactly in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.arguments import FloatN
from cranfield.stats.rounding import TOLERANCE

BITS = 52
"""Absolute values sum to at most 2^52 units, and rounding adds at most half a unit each: below 2^53 for any real n."""


@dataclass(frozen=True, slots=True)
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
