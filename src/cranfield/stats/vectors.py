"""Values as float64 vectors: checks of arguments, differences, and the tolerance of comparisons.

Two sums of the same terms in another order differ in their last bits. Ranks, counts and ties must not depend on that: a
difference below the tolerance is rounding error.
"""

from __future__ import annotations

from collections.abc import Sequence

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
