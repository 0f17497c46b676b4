"""Queries of a kind that a sample does not contain: how many there can be, and what they can change.

A sample of n queries contains none of a kind whose share of all queries is p with probability (1 - p)^n. The kinds for which
that is less than alpha are excluded at 1 - alpha; the largest share that is not excluded is 1 - alpha^(1/n), about 3 / n at .05.
With a mean difference of m over all other queries and of x over those of the kind, the mean over all is (1 - p) m + p x.
"""

from __future__ import annotations

import math

from cranfield.errors import UsageError
from cranfield.stats.vectors import check_alpha


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
