"""Running sums and products along the results of each query, and the rows they run over.

The numbers of a query do not depend on other queries, to the last bit: one running sum over all queries and a
subtraction would not give that. Axes: Q queries, N rows sorted by query, then rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]


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
