"""Two independent groups of queries under one system: standard against hard, evaluated against held out.

The queries of the two groups do not pair. Results: the difference of the means with an interval and two p-values, and whether
a group is at the ceiling of its measure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.bootstrap import BLOCK_CELLS, fixed_point
from cranfield.stats.describe import (
    TOLERANCE,
    Description,
    FloatN,
    Values,
    as_vector,
    check_alpha,
    check_draws,
    describe,
    t_quantile,
    t_tail,
)

DEFAULT_LABELLINGS = 9_999
"""Random labellings of the queries, not counting the observed one."""

LABELS = 3
"""Purpose of the random numbers; see `resampling`."""

CEILING_MEAN = 0.95
"""A group whose mean is this share of the maximum, or more, is at the ceiling."""

CEILING_SHARE = 0.8
"""So is one where this share of the queries, or more, have the maximum."""


@dataclass(frozen=True, slots=True)
class GroupContrast:
    """Difference of the means of two groups of queries, a minus b; None where undefined, with the reason in `note`."""

    a: Description
    b: Description
    alpha: float
    labellings: int
    """B, the random labellings of the permutation p."""
    difference: float | None = None
    """Mean of a minus mean of b; None where a group is empty."""
    ci_low: float | None = None
    ci_high: float | None = None
    """Welch's t interval of the difference, at 1 - alpha."""
    statistic: float | None = None
    """Welch's t."""
    df: float | None = None
    """Its degrees of freedom, by Satterthwaite."""
    p_welch: float | None = None
    """Two-sided, of Welch's t test."""
    p_permutation: float | None = None
    """Two-sided: (k + 1) / (B + 1), k of B random labellings have means at least as far apart."""
    hedges_g: float | None = None
    """Difference in pooled standard deviations, corrected for few queries."""
    note: str | None = None
    """Why something has no value."""


def two_groups(
    a: Values, b: Values, *, alpha: float = 0.05, seed: int = 0, n_draws: int = DEFAULT_LABELLINGS
) -> GroupContrast:
    """Compare the means of two disjoint groups of queries.

        t = (mean(a) - mean(b)) / sqrt(var(a) / n_a + var(b) / n_b)
        g = J (mean(a) - mean(b)) / s,  J = gamma(f / 2) / (sqrt(f / 2) gamma((f - 1) / 2)),  f = n_a + n_b - 2

    Args:
        a: one value per query of the first group.
        b: the same of the second group.
        alpha: the interval covers 1 - alpha.
        seed: of the random labellings.
        n_draws: random labellings, the observed one not included.

    Conventions:
        an empty group: only the descriptions · a group of one query: no spread, so no interval, no Welch test and no g ·
        no spread in either group: the same; the permutation p is still given · the permutation p tests that the two
        distributions are equal: prefer Welch's where one group is small and has a much larger variance.

    Source:
        Welch 1947, Biometrika 34(1/2); Hedges 1981, J. Educ. Stat. 6(2); Phipson & Smyth 2010, Stat. Appl. Genet. Mol.
        Biol. 9(1). Equal to `scipy.stats.ttest_ind(equal_var=False)`.

    Example:
        >>> contrast = two_groups([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])  # variances 1: t = 1 / sqrt(2/3), 4 df
        >>> round(contrast.statistic, 4), round(contrast.df, 4), round(contrast.p_welch, 4)
        (1.2247, 4.0, 0.2879)
    """
    check_alpha(alpha)
    check_draws(seed, n_draws)
    first, second = as_vector(a, "values of the first group"), as_vector(b, "values of the second group")
    about_a, about_b = describe(first), describe(second)
    contrast = GroupContrast(about_a, about_b, alpha, n_draws)
    if about_a.mean is None or about_b.mean is None:
        return replace(contrast, note="one of the groups is empty")
    contrast = replace(
        contrast,
        difference=about_a.mean - about_b.mean,
        p_permutation=_permutation_p(first, second, seed, n_draws),
    )
    if about_a.std is None or about_b.std is None:
        return replace(
            contrast, note="a group of one query has no spread: no interval, no Welch test and no effect size"
        )
    if not about_a.std and not about_b.std:
        return replace(contrast, note="no spread in either group: no interval, no Welch test and no effect size")
    return _with_welch(contrast, about_a.mean - about_b.mean, about_a.std, about_b.std)


def at_ceiling(values: Values, maximum: float | None) -> str | None:
    """A sentence where a group of queries is so near the maximum that an improvement cannot show.

    The rule: the mean is 95 % of the maximum or more, or 80 % of the queries or more have the maximum.

    Args:
        values: one per query.
        maximum: the largest value the measure can take; None, or infinite, for a measure without one.

    Returns:
        A sentence; None where the group is not at the ceiling, is empty, or the measure has no maximum above 0.

    Example:
        >>> at_ceiling([1.0, 1.0, 1.0, 1.0, 0.0], 1.0)
        'at the ceiling: mean 0.800 of 1, and 4 of 5 queries have the maximum; it cannot show improvements'
    """
    vector = as_vector(values)
    about = describe(vector)
    if about.mean is None or maximum is None or not 0 < maximum < math.inf:
        return None
    n_top = int(np.count_nonzero(vector >= maximum * (1 - TOLERANCE)))
    if about.mean < CEILING_MEAN * maximum * (1 - TOLERANCE) and n_top < CEILING_SHARE * about.n * (1 - TOLERANCE):
        return None
    return (
        f"at the ceiling: mean {about.mean:.3f} of {maximum:g}, and {n_top} of {about.n} queries have the maximum; "
        "it cannot show improvements"
    )


def _with_welch(contrast: GroupContrast, difference: float, std_a: float, std_b: float) -> GroupContrast:
    """Add Welch's test, its interval and the effect size."""
    n_a, n_b = contrast.a.n, contrast.b.n
    unit = max(std_a, std_b)  # squares of very small or large spreads leave the range of a float
    part_a, part_b = (std_a / unit) ** 2 / n_a, (std_b / unit) ** 2 / n_b
    error = unit * math.sqrt(part_a + part_b)
    df = max(1.0, (part_a + part_b) ** 2 / (part_a**2 / (n_a - 1) + part_b**2 / (n_b - 1)))
    half = t_quantile(1 - contrast.alpha / 2, df) * error
    freedom = n_a + n_b - 2
    pooled = unit * math.sqrt(((n_a - 1) * (std_a / unit) ** 2 + (n_b - 1) * (std_b / unit) ** 2) / freedom)
    correction = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    return replace(
        contrast,
        ci_low=difference - half,
        ci_high=difference + half,
        statistic=difference / error,
        df=df,
        p_welch=min(1.0, 2 * t_tail(abs(difference / error), df)),
        hedges_g=correction * difference / pooled,
    )


def _permutation_p(a: FloatN, b: FloatN, seed: int, n_draws: int) -> float:
    """Share of labellings whose means are at least as far apart, the observed one counted.

    The first group's sum determines both means, as the total is fixed. So |sum - its expectation| is compared.
    """
    fixed = fixed_point(np.concatenate([a, b]))
    n, n_a = len(fixed.units), len(a)
    expected = n_a * fixed.total / n
    observed = abs(float(fixed.units[:n_a].sum()) - expected)
    sums = _first_group_sums(fixed.units, n_a, seed, n_draws)
    as_far = int(np.count_nonzero(np.abs(sums - expected) >= observed - fixed.tolerance))
    return (as_far + 1) / (n_draws + 1)


def _first_group_sums(units: FloatN, n_a: int, seed: int, n_draws: int) -> NDArray[np.float64]:
    """Sums of `n_a` of the numbers, drawn without replacement, once a labelling."""
    n = len(units)
    rows = max(1, BLOCK_CELLS // n)  # part of the answer: each block has its own generator
    sums = np.empty(n_draws)
    if n_a == n:
        return np.full(n_draws, units.sum())
    for number, start in enumerate(range(0, n_draws, rows)):
        generator = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(LABELS, number)))
        size = min(rows, n_draws - start)
        keys = np.asarray(generator.random_raw(size * n), dtype=np.uint64).reshape(size, n)
        members = np.argpartition(keys, n_a - 1, axis=1)[:, :n_a]
        sums[start : start + size] = units[members].sum(axis=1)
    return sums
