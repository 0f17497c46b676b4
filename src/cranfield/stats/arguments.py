"""Argument checks shared by the functions of `stats`: finite numbers, alpha, seed, number of draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import UsageError

FloatN = NDArray[np.float64]
"""One number per query."""

Values = Sequence[float] | FloatN


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


def _refuse_not_finite(array: NDArray[np.float64], what: str) -> None:
    bad = int(array.size - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise UsageError(f"{bad} of {array.size} {what} are not finite numbers", hint="leave unscored queries out")
