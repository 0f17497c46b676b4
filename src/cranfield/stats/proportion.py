"""Intervals of a proportion."""

from __future__ import annotations

import math
from statistics import NormalDist

from cranfield.base.errors import UsageError


def wilson_interval(right: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion.

        (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n),  p = right / n

    Args:
        right: successes, from 0 to n.
        n: trials, at least 1.
        level: of the interval.

    Raises:
        UsageError: counts or a level out of bounds.

    Source: Wilson (1927), "Probable inference, the law of succession, and statistical inference", JASA 22.

    Example:
        >>> low, high = wilson_interval(8, 10)
        >>> round(low, 4), round(high, 4)
        (0.4902, 0.9433)
    """
    _check(right, n, level)
    z, p = NormalDist().inv_cdf((1 + level) / 2), right / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


def exact_interval(right: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of Clopper and Pearson: the proportions that the exact binomial test does not reject.

    Args:
        right: successes, from 0 to n.
        n: trials, at least 1.
        level: of the interval.

    Raises:
        UsageError: counts or a level out of bounds.

    Source: Clopper and Pearson (1934), Biometrika 26(4). Equal to `scipy.stats.binomtest(right, n).proportion_ci()`.

    Example:
        >>> low, high = exact_interval(8, 10)
        >>> round(low, 4), round(high, 4)
        (0.4439, 0.9748)
    """
    from scipy.special import betaincinv

    _check(right, n, level)
    tail = (1 - level) / 2
    low = float(betaincinv(right, n - right + 1, tail)) if right else 0.0
    high = float(betaincinv(right + 1, n - right, 1 - tail)) if right < n else 1.0
    return low, high


def _check(right: int, n: int, level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level is {level:g}", expected="a number between 0 and 1, such as 0.95")
    if not 0 <= right <= n or not n:
        raise UsageError(f"{right} of {n}", expected="a number of successes from 0 to n, and an n of 1 or more")
