"""The bound between a difference and rounding, drawn once.

Two sums of the same terms in another order differ in their last bits. Whatever ranks, counts or looks for ties must not
take such noise for data; and an interval must not end on the other side of zero than its p-value says because of it.
"""

from __future__ import annotations

import numpy as np

from cranfield.errors import UsageError
from cranfield.stats.arguments import FloatN, Values, as_vector

NOISE = 1e-12
"""Relative size under which a difference is rounding."""

Ends = tuple[float | None, float | None]


def differences(baseline: Values, candidate: Values) -> FloatN:
    """Candidate minus baseline, query by query, with rounding set to an honest 0.

    0.3 - (0.1 + 0.2) is 5.6e-17 away from 0, and no query improved by it: a difference of at most `NOISE` times the
    larger of the two values is 0.

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
    difference[np.abs(difference) <= NOISE * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return difference


def nonzero(difference: FloatN) -> FloatN:
    """The differences that are not zero: more than `NOISE` times the largest."""
    size = np.abs(difference)
    kept: FloatN = difference[size > NOISE * size.max(initial=0.0)]
    return kept


def settle(low: float | None, high: float | None, *, rejected: bool, upward: bool, scale: float) -> Ends:
    """Put the ends of an interval on the side of zero that its own test puts them on.

    The set of values a rank test does not reject can be open at zero (zero is rejected, everything beyond it is not), and
    a computed end can miss zero by a rounding. An end that has to leave zero is put `NOISE * scale` beside it.

    Args:
        low: lower end; None is unbounded.
        high: upper end.
        rejected: the test rejects zero at the alpha of the interval.
        upward: it does so because the differences are too large, not too small.
        scale: size of the largest difference.
    """
    if not rejected:
        return (None if low is None else min(low, 0.0)), (None if high is None else max(high, 0.0))
    if upward:
        return (None if low is None else max(low, NOISE * scale)), high
    return low, (None if high is None else min(high, -NOISE * scale))
