"""Variance between groups and within them: how much of the spread of repeated values is that of what they repeat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of a random effect."""

    between: float | None
    """Variance of the true means of the groups, 0 or more; None under two groups."""
    within: float | None
    """Variance of one value about the true mean of its group; None where no group has two values."""

    @property
    def icc(self) -> float | None:
        """Intraclass correlation: the share of `between` in the sum; None without either, or without any variance."""
        if self.between is None or self.within is None or not self.between + self.within:
            return None
        return self.between / (self.between + self.within)


def nested_variance(groups: Sequence[Sequence[float]]) -> Components:
    """Split the variance of values in groups by the analysis of variance.

        within = SSW / (N - G);  between = (SSB / (G - 1) - within) / n0,  n0 = (N - sum(n_g^2) / N) / (G - 1)

    Args:
        groups: the values of each group; those without any are left out.

    Conventions:
        an estimate of `between` under 0 is 0 · groups of one value each: both None, as nothing tells the two apart.

    Source:
        Searle, Casella & McCulloch 1992, Variance Components, 3.6. With equal groups equal to the REML estimates of
        `statsmodels.MixedLM` where `between` is above 0.

    Example:
        >>> nested_variance([[1.0, 3.0], [5.0, 7.0]])  # SSW 4 / 2 = 2; SSB 16, (16 - 2) / 2 = 7
        Components(between=7.0, within=2.0)
    """
    kept = [group for group in groups if group]
    n, n_groups = sum(map(len, kept)), len(kept)
    within = pooled_variance(kept)
    if within is None or n_groups < 2:
        return Components(None, within)
    grand = math.fsum(value for group in kept for value in group) / n
    squares = math.fsum(len(group) * (math.fsum(group) / len(group) - grand) ** 2 for group in kept)
    size = (n - sum(len(group) ** 2 for group in kept) / n) / (n_groups - 1)
    return Components(max(0.0, (squares / (n_groups - 1) - within) / size), within)


def paired_variance(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Components:
    """Split the variance of the difference between two conditions, each repeated in every group.

        within = s1^2 + s2^2, the pooled variances of the two;  between = var(D) - mean(s1^2 / n1 + s2^2 / n2)

    D is the difference of a group's two means, n1 and n2 its numbers of values. So `between` is the variance of the true
    differences, which is the interaction of group and condition, and `within` that of a difference of two single values.

    Args:
        first: the values of each group in one condition; none is empty.
        second: in the other, in the same order.

    Conventions:
        as in `nested_variance`; both conditions need a group with two values.

    Example:
        >>> paired_variance([[1.0, 3.0], [5.0, 7.0]], [[0.0, 0.0], [0.0, 0.0]])  # D 2, 6: var 8; 8 - 2 / 2
        Components(between=7.0, within=2.0)
    """
    of_first, of_second = pooled_variance(first), pooled_variance(second)
    if of_first is None or of_second is None:
        return Components(None, None)
    deltas = [math.fsum(a) / len(a) - math.fsum(b) / len(b) for a, b in zip(first, second, strict=True)]
    spread = pooled_variance([deltas])
    if spread is None:
        return Components(None, of_first + of_second)
    noise = math.fsum(of_first / len(a) + of_second / len(b) for a, b in zip(first, second, strict=True)) / len(deltas)
    return Components(max(0.0, spread - noise), of_first + of_second)


def pooled_variance(groups: Sequence[Sequence[float]]) -> float | None:
    """Sum of squares about the mean of each group over its degrees of freedom; None where no group has two values."""
    squares, freedom = [], 0
    for group in groups:
        if len(group) > 1:
            mean = math.fsum(group) / len(group)
            squares += [(value - mean) ** 2 for value in group]
            freedom += len(group) - 1
    return math.fsum(squares) / freedom if freedom else None
