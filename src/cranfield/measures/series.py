"""Sums of discounts over the ranks from 1 to n without adding them one by one: exact to rounding at any depth.

The series are those of Abramowitz & Stegun 1964, Handbook of Mathematical Functions, 6.3.18 and 6.4.12, used from 12 on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EULER = 0.57721566490153286061
SHIFT = 12
"""The series are as exact as a float from here; smaller arguments are moved up by as many terms."""
AT_ONCE = 1 << 20
"""Terms in memory of a sum without a closed form."""


def inverse_squares(x: Floats) -> Floats:
    """Sum of 1 / (x + m)^2 over m = 0, 1, 2 … without end; 0 at infinity. `x` is above 0."""
    head = np.zeros_like(x)
    for m in range(SHIFT):
        head += (x + m) ** -2.0
    z = 1.0 / (x + SHIFT)
    z2 = z * z
    odd = 1 / 6 + z2 * (-1 / 30 + z2 * (1 / 42 + z2 * (-1 / 30 + z2 * 5 / 66)))
    return head + z + z2 / 2 + z * z2 * odd


def harmonic(n: Floats) -> Floats:
    """1 + 1/2 + … + 1/n; 0 for n = 0. `n` holds whole numbers."""
    first = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1, SHIFT))))
    z = np.maximum(n, SHIFT) + 1.0
    w = z**-2.0
    even = w * (1 / 12 + w * (-1 / 120 + w * (1 / 252 + w * (-1 / 240 + w / 132))))
    return np.where(n < SHIFT, first[np.minimum(n, SHIFT - 1).astype(np.int64)], np.log(z) - 0.5 / z - even + EULER)


def log_discounts(n: int) -> float:
    """Sum of 1 / log2(i + 1) for i from 1 to n, added in portions: a great n takes time and no memory."""
    total = 0.0
    for first in range(1, n + 1, AT_ONCE):
        ranks = np.arange(first, min(first + AT_ONCE, n + 1), dtype=np.float64)
        total += float(np.sum(1.0 / np.log2(ranks + 1.0)))
    return total
