"""Queries of a kind that a sample does not contain: how many there can be, and what they can change.

A sample of n queries contains none of a kind whose share of all queries is p with probability (1 - p)^n. The kinds for which
that is less than alpha are excluded at 1 - alpha; the largest share that is not excluded is 1 - alpha^(1/n), about 3 / n at .05.
With a mean difference of m over all other queries and of x over those of the kind, the mean over all is (1 - p) m + p x.
"""

from __future__ import annotations

import math

from cranfield.base.errors import UsageError
from cranfield.stats.describe import check_alpha


def largest_unseen_share(n: int, alpha: float = 0.05) -> float:
    """The largest share of all queries of which a random sample of n contains none with probability alpha or more.

        p = 1 - alpha^(1/n)

    The exact bound; the rule of three, 3 / n, is its approximation at .05: .30 for .259 at n = 10, .06 for .058 at n = 50.

    Args:
        n: queries in the sample, 1 or more.
        alpha: the bound holds with confidence 1 - alpha, one-sided.

    Raises:
        UsageError: no query, or an alpha that is not between 0 and 1.

    Source:
        Hanley & Lippman-Hand 1983, "If nothing goes wrong, is everything all right?", JAMA 249(13).

    Example:
        >>> round(largest_unseen_share(10), 4)  # .05^(1/10) = .7411
        0.2589
    """
    check_alpha(alpha)
    if n < 1:
        raise UsageError(f"{n} queries", expected="1 or more")
    return -math.expm1(math.log(alpha) / n)


def turning_difference(share: float, mean: float, threshold: float = 0.0) -> float:
    """The mean difference on unseen queries at which the mean over all queries is the threshold.

        (1 - share) mean + share x = threshold

    Args:
        share: of the unseen queries, above 0.
        mean: difference over all other queries: an end of its interval, or its estimate.
        threshold: 0, or a margin.

    Example:
        >>> round(turning_difference(0.25, 0.1), 4)  # .75 * .1 + .25 * -.3 = 0
        -0.3
    """
    return (threshold - (1 - share) * mean) / share


def unanimous_interval(value: float, n: int, *, alpha: float = 0.05, bound: float = 1.0) -> tuple[float, float]:
    """Interval of the mean of a bounded variable of which a sample has one value only.

        value ± p (bound ± value),  p = 1 - (alpha / 2)^(1/n)

    Student's t has an interval of width 0 there, however few the queries. What they exclude is that a share of more than p of all
    queries has another value; those can be at either bound.

    Args:
        value: of every query.
        n: queries in the sample, 1 or more.
        alpha: the interval covers 1 - alpha or more.
        bound: the variable lies between -bound and bound.

    Example:
        >>> low, high = unanimous_interval(0.0, 30)  # 1 - .025^(1/30) = .1157
        >>> round(low, 4), round(high, 4)
        (-0.1157, 0.1157)
    """
    share = largest_unseen_share(n, alpha / 2)
    return value - share * (bound + value), value + share * (bound - value)


def unanimous_p(value: float, n: int, *, threshold: float = 0.0, bound: float = 1.0) -> float:
    """One-sided p-value of "the mean is at the threshold or below", from a sample of n equal values: `unanimous_interval` inverted.

        p = ((bound + threshold) / (bound + value))^n where the value is above the threshold, else 1

    Example:
        >>> unanimous_p(1.0, 5)  # every task is won: (1 / 2)^5, as in the sign test
        0.03125
    """
    return ((bound + threshold) / (bound + value)) ** n if value > threshold else 1.0
