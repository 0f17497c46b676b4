"""Running sums and products along the results of each query, and sums of discounts in closed form.

The numbers of a query do not depend on other queries, to the last bit: one running sum over all queries and a
subtraction would not give that. Axes: Q queries, N rows sorted by query, then rank.

The sums of discounts over the ranks from 1 to n are exact to rounding at any depth. The series are those of Abramowitz &
Stegun 1964, Handbook of Mathematical Functions, 6.3.18 and 6.4.12, used from 12 on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]

EULER = 0.57721566490153286061
SHIFT = 12
"""The series are as exact as a float from here; smaller arguments are moved up by as many terms."""
AT_ONCE = 1 << 20
"""Terms that are added one by one of a sum without a closed form."""
PANEL = 1.1
"""End of a panel of its integral, as a multiple of its start."""


def running(operation: np.ufunc, query: Integers, values: Floats) -> Floats:
    """Each query's values up to and with each, put together in their order.

    The loop is over the queries, or over the places in their lists, whichever are fewer.

    Args:
        operation: `np.add` or `np.multiply`.
        query: int[N], sorted.
        values: float64[N].

    Returns:
        float64[N].
    """
    if not len(query):
        return np.zeros(0)
    start = starts(query)
    length = np.diff(start, append=len(query))
    result = np.empty(len(query))
    if len(start) <= length.max():
        for first, end in zip(start.tolist(), (start + length).tolist(), strict=True):
            operation.accumulate(values[first:end], out=result[first:end])
        return result
    longest_first = np.argsort(-length, kind="stable")
    start, length = start[longest_first], length[longest_first]
    carried = values[start]
    result[start] = carried
    for place in range(1, int(length[0])):
        going_on = int(np.searchsorted(-length, -place, side="left"))
        rows = start[:going_on] + place
        carried = operation(carried[:going_on], values[rows])
        result[rows] = carried
    return result


def before(query: Integers, values: NDArray[Any], first: float) -> NDArray[Any]:
    """Value of the row above each within its query; `first` where there is none."""
    shifted = np.empty_like(values)
    shifted[1:] = values[:-1]
    shifted[starts(query)] = first
    return shifted


def after(query: Integers, values: NDArray[Any], last: float) -> NDArray[Any]:
    """Value of the row below each within its query; `last` where there is none."""
    shifted = np.empty_like(values)
    shifted[:-1] = values[1:]
    shifted[starts(query)[1:] - 1] = last
    shifted[-1:] = last
    return shifted


def starts(query: Integers) -> NDArray[np.intp]:
    """intp: the first row of each query that has one."""
    changes = np.flatnonzero(np.diff(query)) + 1
    return np.concatenate(([0], changes)) if len(query) else changes


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
    """Sum of 1 / log2(i + 1) for i from 1 to n."""
    return sum_over_ranks(lambda rank: 1.0 / np.log2(rank + 1.0), n)


def sum_over_ranks(weight: Callable[[Floats], Floats], n: int) -> float:
    """Sum of a smooth, falling weight over the ranks from 1 to n.

    The first AT_ONCE are added; from there on a rank is a step of one in an integral, by Gauss-Legendre quadrature on panels
    that grow with the rank. With weights such as 1 / log2(i + 1) both agree to 12 digits and more.
    """
    total = float(np.sum(weight(np.arange(1, min(n, AT_ONCE) + 1, dtype=np.float64))))
    low, end = AT_ONCE + 0.5, n + 0.5
    points, shares = np.polynomial.legendre.leggauss(16) if low < end else (np.zeros(0), np.zeros(0))
    while low < end:
        high = min(low * PANEL, end)
        half = (high - low) / 2
        total += half * float(shares @ weight(low + half + half * points))
        low = high
    return total
