"""Effect size, and minimal detectable effect."""

from __future__ import annotations

import math

from cranfield.errors import UsageError
from cranfield.stats.arguments import Values, as_vector, check_alpha
from cranfield.stats.describe import describe
from cranfield.stats.interval import t_quantile

USUAL_POWER = 0.8
"""Usual power: probability of detecting a true difference."""


def cohens_dz(difference: Values) -> float | None:
    """Mean difference in units of its own standard deviation.

    Returns:
        mean(d) / std(d); None under two queries, and where all differences are equal.

    Source:
        Cohen 1988, Statistical Power Analysis for the Behavioral Sciences, 2.3.5.

    Example:
        >>> cohens_dz([1.0, 2.0, 3.0])  # 2 / 1
        2.0
    """
    about = describe(as_vector(difference, "differences"))
    return about.mean / about.std if about.mean is not None and about.std else None


def minimal_detectable_effect(std: float, n: int, alpha: float = 0.05, power: float = USUAL_POWER) -> float | None:
    """Smallest true mean difference that a two-sided paired t test would find with probability `power`.

    Args:
        std: standard deviation of the differences.
        n: number of queries.
        alpha: of the test.
        power: above alpha, below 1.

    Returns:
        In units of the measure; None under two queries. 0 where there is no spread.

    Source:
        Noncentral t. Equal to `statsmodels.stats.power.TTestPower().solve_power(...) * std`.

    Raises:
        UsageError: a power that is not between alpha and 1, or a negative spread.

    Example:
        >>> round(minimal_detectable_effect(0.3, 50, 0.05), 4)
        0.1213
    """
    check_alpha(alpha)
    if not alpha < power < 1:
        raise UsageError(f"power is {power:g}", expected=f"a number between alpha ({alpha:g}) and 1, such as 0.8")
    if not 0 <= std < math.inf:
        raise UsageError(f"standard deviation is {std:g}", expected="a number of 0 or more")
    if n < 2:
        return None
    critical = t_quantile(1 - alpha / 2, n - 1)
    low, high = 0.0, 1.0
    while power_of_shift(high, critical, n - 1) < power:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if power_of_shift(middle, critical, n - 1) < power:
            low = middle
        else:
            high = middle
    return high * std / math.sqrt(n)


def power_of_shift(shift: float, critical: float, df: int) -> float:
    """Probability that a t variable shifted by `shift` leaves [-critical, critical]."""
    from scipy.special import nctdtr

    # The far side is under Phi(-shift): nothing from 7 on, where SciPy may also give a NaN for it.
    far_side = float(nctdtr(df, shift, -critical)) if shift < 7 else 0.0
    return 1 - float(nctdtr(df, shift, critical)) + far_side
