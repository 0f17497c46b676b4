"""A paired test over queries of several classes: the declared test, with the classes as strata.

The tests that flip signs (permutation, Wilcoxon, sign) flip the difference of a query, and a query is in one class: every
pattern is one of within-class permutations, so these tests are stratified as they are. The t test takes its error from the
spread within classes. The bootstrap draws queries of all classes: within a class of a few queries it would be too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cranfield.base.errors import UsageError
from cranfield.stats.describe import (
    Description,
    FloatN,
    Values,
    align_with_test,
    as_vector,
    check_alpha,
    describe,
    t_quantile,
    t_tail,
)
from cranfield.stats.paired import paired_t
from cranfield.stats.result import TestResult

WITHIN = "standard error from the spread within classes, Satterthwaite's degrees of freedom"
"""What `stratified_t` does, for a report."""


def stratified_t(difference: Values, labels: Sequence[str], *, alpha: float = 0.05) -> TestResult:
    """Student's t test of the mean difference, with the error taken within strata.

        t = sum(w_c mean_c) / sqrt(v),  v = sum(v_c),  v_c = w_c^2 var_c / n_c,  w_c = n_c / n
        v^2 / sum(v_c^2 / (n_c - 1)) degrees of freedom

    Args:
        difference: candidate minus baseline, one per query.
        labels: the stratum of each query.
        alpha: the interval covers 1 - alpha.

    Returns:
        t, both p-values, and the interval of the mean difference; `extra` has the degrees of freedom and the number of
        strata.

    Conventions:
        strata of one query have no spread of their own: together they are one stratum, and a single one of them joins the
        smallest other, of several the one whose spread is then the largest · one stratum, or no spread within any: `paired_t`.

    Source:
        Cochran 1977, Sampling Techniques, 5.4 (stratified mean and its variance); Satterthwaite 1946, Biometrics 2(6).

    Raises:
        UsageError: not one label for each difference.

    Example:
        >>> result = stratified_t([1.0, 3.0, 5.0, 7.0], ["a", "a", "b", "b"])  # v = 2 * (1/2)^2 * 2 / 2 = .5
        >>> round(result.statistic, 4), result.extra["df"]  # 4 / sqrt(.5); .25 / (2 * .0625)
        (5.6569, 2.0)
    """
    check_alpha(alpha)
    vector = as_vector(difference, "differences")
    if len(labels) != len(vector):
        raise UsageError(f"{len(vector)} differences and {len(labels)} labels", expected="one label for each")
    strata = _strata(vector, labels)
    error, df = error_within([describe(stratum) for stratum in strata], [len(each) / len(vector) for each in strata])
    mean = describe(vector).mean
    if len(strata) < 2 or not error or mean is None:
        return paired_t(vector, alpha=alpha)
    t = mean / error
    p_two_sided = min(1.0, 2 * t_tail(abs(t), df))
    half = t_quantile(1 - alpha / 2, df) * error
    low, high = align_with_test(
        mean - half,
        mean + half,
        rejected=p_two_sided <= alpha,
        upward=t > 0,
        scale=float(np.abs(vector).max()),
    )
    extra = {"df": df, "strata": len(strata)}
    return TestResult(t, p_two_sided, t_tail(t, df), ci_low=low, ci_high=high, extra=extra, estimate=mean)


def error_within(strata: Sequence[Description], shares: Sequence[float]) -> tuple[float, float]:
    """Standard error of the sum of share times mean over strata, from the spread within them, and its degrees of freedom.

    Args:
        strata: each of two values or more; of one value counts as without spread.
        shares: of the population, one for each.
    """
    parts = [
        (share**2 * (about.std or 0.0) ** 2 / about.n, max(1, about.n - 1))
        for about, share in zip(strata, shares, strict=True)
        if about.n
    ]
    variance = math.fsum(part for part, _ in parts)
    squares = math.fsum(part**2 / freedom for part, freedom in parts)
    return math.sqrt(variance), max(1.0, variance**2 / squares) if squares else 1.0


def _strata(vector: FloatN, labels: Sequence[str]) -> list[FloatN]:
    """The differences of each stratum, two at least in each where there are two."""
    groups: dict[str, list[float]] = {}
    for label, value in zip(labels, vector.tolist(), strict=True):
        groups.setdefault(label, []).append(value)
    singles = [value for group in groups.values() if len(group) == 1 for value in group]
    found = sorted((group for group in groups.values() if len(group) > 1), key=len)
    if len(singles) == 1 and found:
        smallest = [place for place, group in enumerate(found) if len(group) == len(found[0])]
        joined = max(smallest, key=lambda place: (_spread([*found[place], *singles]), _spread(found[place])))
        found[joined] = [*found[joined], *singles]
    elif singles:
        found.append(singles)
    return [np.array(group, dtype=np.float64) for group in found]


def _spread(values: Sequence[float]) -> float:
    return describe(np.array(values, dtype=np.float64)).std or 0.0
