"""Rank correlation of two measures over the same systems or queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.stats.describe import TOLERANCE, FloatN, Values, as_vector


def kendall_tau(a: Values, b: Values) -> float | None:
    """Kendall's tau-b: concordant minus discordant pairs, relative to the pairs that neither side ties.

        tau_b = (C - D) / sqrt((P - T_a)(P - T_b)),  P = n (n - 1) / 2,  T the pairs tied on that side

    Args:
        a: one value per system, or per query.
        b: the same of the other measure, in the same order.

    Returns:
        -1 to 1; None under two values, and where one side ties all of them.

    Conventions:
        values within 1e-12 of the largest are tied.

    Source:
        Kendall 1945, Biometrika 33(3). Equal to `scipy.stats.kendalltau`.

    Raises:
        UsageError: the two do not pair, or hold a value that is not a finite number.

    Example:
        >>> round(kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]), 4)  # 5 pairs agree, 1 does not: 4 of 6
        0.6667
    """
    first, second = as_vector(a), as_vector(b)
    if first.shape != second.shape:
        raise UsageError("the two orders have different lengths", expected=f"{first.size} values", got=str(second.size))
    places = _places(first), _places(second)
    if any(int(side.max(initial=0)) == 0 for side in places):
        return None
    from scipy.stats import kendalltau

    return float(kendalltau(*places).statistic)


def _places(vector: FloatN) -> NDArray[np.int64]:
    """0 for the smallest value, 1 for the next; values that differ by rounding share a place."""
    order = np.argsort(vector, kind="stable")
    steps = np.diff(vector[order]) > TOLERANCE * np.abs(vector).max(initial=0.0)
    places = np.zeros(vector.size, dtype=np.int64)
    places[order[1:]] = np.cumsum(steps)
    return places
