"""Tolerance of comparisons: below it, a difference is rounding error.

Two sums of the same terms in another order differ in their last bits. Ranks, counts and ties must not depend on that, and an
interval must agree with its own p-value about zero.
"""

from __future__ import annotations

import numpy as np

from cranfield.errors import UsageError
from cranfield.stats.arguments import FloatN, Values, as_vector

TOLERANCE = 1e-12
"""Relative size below which a difference is rounding error."""

Ends = tuple[float | None, float | None]


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


def align_with_test(low: float | None, high: float | None, *, rejected: bool, upward: bool, scale: float) -> Ends:
    """Make an interval contain zero exactly where its own test does not reject zero.

    The set of values that a rank test does not reject can be open at zero, and a computed end can miss zero by rounding
    error. An end that must exclude zero is set to `TOLERANCE * scale`.

    Args:
        low: lower end; None is unbounded.
        high: upper end.
        rejected: the test rejects zero at the alpha of the interval.
        upward: it rejects in favour of positive differences.
        scale: size of the largest difference.
    """
    if not rejected:
        return (None if low is None else min(low, 0.0)), (None if high is None else max(high, 0.0))
    if upward:
        return (None if low is None else max(low, TOLERANCE * scale)), high
    return low, (None if high is None else min(high, -TOLERANCE * scale))
