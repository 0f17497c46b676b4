"""Paired tests without resampling, other than Wilcoxon's."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.stats.describe import (
    Description,
    FloatN,
    Values,
    align_with_test,
    as_vector,
    check_alpha,
    describe,
    differences,
    nonzero,
    t_interval,
    t_tail,
)
from cranfield.stats.result import NO_QUERY, TestResult, untested

ONE_QUERY = "one query has no spread (n < 2)"
ALL_EQUAL = "every query differs by the same amount: no spread, t is infinite"
ALL_ZERO = "no query differs"


def paired_t(difference: Values, *, alpha: float = 0.05) -> TestResult:
    """Student's t test of the mean difference.

        t = mean(d) / (std(d) / sqrt(n)), n - 1 degrees of freedom

    Returns:
        t, both p-values, and the t interval of the mean difference at 1 - alpha.

    Conventions:
        all differences equal and not zero: no t (it is infinite), p 0 and an interval of width 0, as in the limit, and a
        note · all zero: no t, p 1, interval [0, 0], and a note · under two queries: no p-value, and a note.

    Source:
        Student 1908, Biometrika 6(1). Equal to `scipy.stats.ttest_rel`.
    """
    vector = as_vector(difference, "differences")
    return t_test(describe(vector), alpha=alpha, scale=float(np.abs(vector).max(initial=0.0)))


def t_test(about: Description, *, alpha: float = 0.05, scale: float = 0.0) -> TestResult:
    """The same of a description of the differences, or of clusters of them.

    Args:
        about: mean, standard deviation and number.
        alpha: the interval covers 1 - alpha.
        scale: size of the largest difference.
    """
    check_alpha(alpha)
    interval = t_interval((), 1 - alpha, about)
    if about.mean is None or about.std is None or interval is None:
        return untested(ONE_QUERY if about.n else NO_QUERY)
    if about.std == 0:
        note = ALL_EQUAL if about.mean else ALL_ZERO
        one_sided = _step(-about.mean)
        return TestResult(
            None,
            0.0 if about.mean else 1.0,
            one_sided,
            ci_low=interval[0],
            ci_high=interval[1],
            note=note,
            estimate=about.mean,
        )
    t = about.mean / (about.std / math.sqrt(about.n))
    p_two_sided = min(1.0, 2 * t_tail(abs(t), about.n - 1))
    low, high = align_with_test(*interval, rejected=p_two_sided <= alpha, upward=t > 0, scale=scale)
    p_one_sided, extra = t_tail(t, about.n - 1), {"df": about.n - 1}
    return TestResult(t, p_two_sided, p_one_sided, ci_low=low, ci_high=high, estimate=about.mean, extra=extra)


def tost(difference: Values, margin: float, *, alpha: float = 0.05) -> TestResult:
    """Two one-sided t tests (TOST): is the mean difference within ± `margin`?

    Both "at or below -margin" and "at or above margin" have to be rejected at alpha, which is the same as the
    t interval at 1 - 2 alpha lying within the margin.

    Args:
        difference: candidate minus baseline, one per query.
        margin: largest mean difference that does not matter; above 0.
        alpha: of each of the two tests.

    Returns:
        The t of the test that came closer to failing, and the interval at 1 - 2 alpha (none for alpha of .5 or more). The
        p-value of equivalence is `extra["p_equivalence"]`, the larger of the two; `p_two_sided` and `p_one_sided` are None,
        as this test is about equivalence.

    Conventions:
        all differences equal: no t, p 0 within the margin, 1 on it or beyond, and a note · under two queries: no p-value, and
        a note.

    Source:
        Schuirmann 1987, J. Pharmacokinet. Biopharm. 15(6). Equal to `statsmodels.stats.weightstats.ttost_paired`.

    Raises:
        UsageError: a margin not above 0.
    """
    check_alpha(alpha)
    if not 0 < margin < math.inf:
        raise UsageError(f"margin is {margin:g}", expected="a number above 0, in units of the measure")
    vector = as_vector(difference, "differences")
    about = describe(vector)
    if about.mean is None or about.std is None:
        return untested(ONE_QUERY if about.n else NO_QUERY)
    low, high = (t_interval(vector, 1 - 2 * alpha) if alpha < 0.5 else None) or (None, None)
    t_low, p_low, _ = _against_bound(about.mean + margin, about)
    t_high, _, p_high = _against_bound(about.mean - margin, about)
    statistic, note = t_low if p_low >= p_high else t_high, _no_spread_note(about)
    extra = {"margin": margin, "p_equivalence": max(p_low, p_high), "p_above_low": p_low, "p_below_high": p_high}
    return TestResult(statistic, None, None, ci_low=low, ci_high=high, note=note, estimate=about.mean, extra=extra)


def noninferiority(difference: Values, margin: float, *, alpha: float = 0.05) -> TestResult:
    """Non-inferiority: one one-sided t test that the mean difference is above -`margin`.

    Args:
        difference: candidate minus baseline, one per query; negated for a measure of which less is better.
        margin: largest loss that does not matter; 0 or more. At 0 it is a test of superiority.
        alpha: of the test.

    Returns:
        t against -margin, and the interval at 1 - 2 alpha (none for alpha of .5 or more): its lower end is above -margin
        exactly when the test rejects a loss of the margin or more. `extra["p_noninferior"]` is the p-value of that;
        `extra["p_inferior"]` is that of the other side, a loss beyond the margin. `p_two_sided` and
        `p_one_sided` are None, as this test is not about a difference from zero.

    Conventions:
        all differences equal: no t, p 0 above -margin, 1 on it or below, and a note · under two queries: no p-value, and a
        note.

    Source:
        Walker & Nowacki 2011, J. Gen. Intern. Med. 26(2). Equal to the lower test of
        `statsmodels.stats.weightstats.ttost_paired`.

    Raises:
        UsageError: a margin under 0.
    """
    check_alpha(alpha)
    if not 0 <= margin < math.inf:
        raise UsageError(f"margin is {margin:g}", expected="a number of 0 or more, in units of the measure")
    vector = as_vector(difference, "differences")
    about = describe(vector)
    if about.mean is None or about.std is None:
        return untested(ONE_QUERY if about.n else NO_QUERY)
    low, high = (t_interval(vector, 1 - 2 * alpha) if alpha < 0.5 else None) or (None, None)
    statistic, p_above, p_below = _against_bound(about.mean + margin, about)
    note = _no_spread_note(about)
    extra = {"margin": margin, "p_noninferior": p_above, "p_inferior": p_below}
    return TestResult(statistic, None, None, ci_low=low, ci_high=high, note=note, estimate=about.mean, extra=extra)


def sign_test(difference: Values, *, alpha: float = 0.05) -> TestResult:
    """Sign test: exact binomial test of the share of positive differences among the non-zero ones.

    Returns:
        The number of positive differences, both p-values, and the interval of the median of the *non-zero* differences:
        their (k + 1)-th smallest to their (k + 1)-th largest, k the largest
        count that the test rejects at alpha. Without such a k the interval is unbounded.

    Conventions:
        zero differences are dropped · no non-zero difference: p 1, and a note · no query: no p-value, and a note.

    Source:
        Arbuthnot 1710; Conover 1999, Practical Nonparametric Statistics, 3.4. Equal to `scipy.stats.binomtest` at 1/2.
    """
    check_alpha(alpha)
    vector = as_vector(difference, "differences")
    if not vector.size:
        return untested(NO_QUERY)
    kept = np.sort(nonzero(vector))
    n, positive = len(kept), int(np.count_nonzero(kept > 0))
    tails = _binomial_tails(n)
    rejected = int(np.count_nonzero(2 * tails[: (n + 1) // 2] <= alpha))  # counts 0 to rejected - 1
    bounded = rejected > 0
    return TestResult(
        statistic=float(positive),
        p_two_sided=_two_sided(tails, positive, n - positive),
        p_one_sided=float(tails[n - positive]),
        ci_low=float(kept[rejected - 1]) if bounded else None,
        ci_high=float(kept[n - rejected]) if bounded else None,
        note=_sign_note(len(vector), n, is_bounded=bounded),
        estimate=float(np.median(kept)) if n else None,
        extra={"n_positive": positive, "n_negative": n - positive},
    )


def _sign_note(n: int, n_nonzero: int, *, is_bounded: bool) -> str | None:
    if is_bounded:
        return None
    if not n_nonzero:
        return ALL_ZERO
    return f"{n} queries, of which {n_nonzero} differ, are too few for a bounded interval at this alpha"


def mcnemar(baseline: Values | NDArray[np.bool_], candidate: Values | NDArray[np.bool_]) -> TestResult:
    """McNemar's test: exact binomial test of the queries that only one side gets right.

    Args:
        baseline: 0 or 1 per query.
        candidate: 0 or 1 per query, in the same order.

    Returns:
        The smaller of the two discordant counts and both p-values; `extra` has the counts. No interval.

    Conventions:
        no discordant query: p 1, and a note · no query: no p-value, and a note.

    Source:
        McNemar 1947, Psychometrika 12(2). Equal to `statsmodels.stats.contingency_tables.mcnemar(exact=True)`.

    Raises:
        UsageError: the two do not pair, or hold something other than 0 and 1.
    """
    difference = differences(np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64))
    if not (is_binary(baseline) and is_binary(candidate)):
        raise UsageError("mcnemar needs binary values", expected="only 0 and 1 on both sides")
    if not difference.size:
        return untested(NO_QUERY)
    only_baseline, only_candidate = int((difference < 0).sum()), int((difference > 0).sum())
    tails = _binomial_tails(only_baseline + only_candidate)
    return TestResult(
        statistic=float(min(only_baseline, only_candidate)),
        p_two_sided=_two_sided(tails, only_baseline, only_candidate),
        p_one_sided=float(tails[only_baseline]),
        note=None if difference.any() else ALL_ZERO,
        extra={"baseline_only": only_baseline, "candidate_only": only_candidate},
    )


def is_binary(values: Values | NDArray[np.bool_]) -> bool:
    """True when every value is 0 or 1."""
    return bool(np.isin(np.asarray(values, dtype=np.float64), (0.0, 1.0)).all())


def _binomial_tails(n: int) -> FloatN:
    """Probability of at most k heads in n fair throws, for k = 0 to n."""
    from scipy.special import betainc

    k = np.arange(n)
    return np.append(np.asarray(betainc(n - k, k + 1, 0.5), dtype=np.float64), 1.0)


def _two_sided(tails: FloatN, a: int, b: int) -> float:
    return min(1.0, 2 * float(tails[min(a, b)]))


def _against_bound(distance: float, about: Description) -> tuple[float | None, float, float]:
    """Two one-sided t tests of a mean against a bound.

    Args:
        distance: the mean minus the bound.
        about: the differences.

    Returns:
        t (None where it is infinite), the p-value of "the mean is above the bound", and that of "below".
    """
    if not about.std:
        return None, _step(-distance), _step(distance)
    t = distance / (about.std / math.sqrt(about.n))
    return (t if math.isfinite(t) else None), t_tail(t, about.n - 1), t_tail(-t, about.n - 1)


def _no_spread_note(about: Description) -> str | None:
    if about.std:
        return None
    return ALL_EQUAL if about.mean else ALL_ZERO


def _step(distance: float) -> float:
    """Limit of a tail probability without spread: 0 where the bound is exceeded, else 1."""
    return 0.0 if distance < 0 else 1.0
