"""Effect size and power: what n queries can detect, and how many are needed, from the spread of the differences.

`resampled_power` resamples the observed differences, where the normal approximation is poor.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.stats.describe import FloatN, Values, as_vector, check_alpha, check_draws, describe, t_quantile
from cranfield.stats.permutation import permutation_p_values

USUAL_POWER = 0.8
"""Usual power: probability of detecting a true difference."""

MAX_QUERIES = 10_000_000
"""Largest number of queries considered."""

TRIALS = 1_000
"""Simulated test sets; Monte Carlo error of the power is about 1 in 100."""

TRIAL_DRAWS = 1_000
"""Sign patterns of the permutation test in each simulated test set."""

TRIAL_CELLS = 1 << 22
"""Differences in memory at once; does not change the result."""

TRIAL_SETS = 5
"""Purpose of the random numbers; see `resampling`."""


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
    """Smallest true mean difference that a two-sided paired t test would find with probability `power`: `power_of` inverted.

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
    check_power(power, alpha)
    _check_spread(std)
    if n < 2:
        return None
    critical = t_quantile(1 - alpha / 2, n - 1)
    low, high = 0.0, 1.0
    while _power_of_shift(high, critical, n - 1) < power:
        low, high = high, 2 * high
    _, high = _bisect(lambda shift: _power_of_shift(shift, critical, n - 1) < power, low, high)
    return high * std / math.sqrt(n)


def power_of(std: float, difference: float, n: int, *, alpha: float = 0.05) -> float:
    """Power of a two-sided paired t test on n queries for a true mean difference.

    Args:
        std: standard deviation of the differences, 0 or more.
        difference: the true mean difference, of either sign.
        n: number of queries, 2 or more.
        alpha: of the test.

    Returns:
        A probability; alpha where the difference is 0. Without spread it is 1.

    Source:
        Noncentral t. Equal to `statsmodels.stats.power.TTestPower().power(difference / std, n, alpha)`.

    Example:
        >>> round(power_of(0.3, 0.1, 50), 4)
        0.6371
    """
    check_alpha(alpha)
    _check_spread(std)
    if n < 2:
        raise UsageError(f"{n} queries", expected="2 or more: one has no spread")
    if not math.isfinite(difference):
        raise UsageError(f"difference is {difference:g}", expected="a finite number, in units of the measure")
    if not std:
        return 1.0 if difference else alpha
    shift = abs(difference) / std * math.sqrt(n)
    critical = t_quantile(1 - alpha / 2, n - 1)
    if shift > critical + 40:  # 40 standard deviations beyond: the tail is 0, and SciPy may return NaN
        return 1.0
    return min(1.0, _power_of_shift(shift, critical, n - 1))


def queries_needed(std: float, difference: float, *, alpha: float = 0.05, power: float = USUAL_POWER) -> int | None:
    """Fewest queries on which a two-sided paired t test finds a true mean difference with probability `power`.

    Args:
        std: standard deviation of the differences.
        difference: the true mean difference, of either sign; not 0.
        alpha: of the test.
        power: above alpha, below 1.

    Returns:
        2 or more; None where it is beyond 10 million.

    Source:
        Equal to `statsmodels.stats.power.TTestPower().solve_power(difference / std, alpha=alpha, power=power)`, rounded up.

    Raises:
        UsageError: a difference of 0, a negative spread, a power that is not between alpha and 1.

    Example:
        >>> queries_needed(0.3, 0.1)  # 73 queries have a power of .802, 72 one of .797
        73
    """
    check_alpha(alpha)
    check_power(power, alpha)
    _check_spread(std)
    if not 0 < abs(difference) < math.inf:
        raise UsageError(f"difference is {difference:g}", expected="a number that is not 0, in units of the measure")
    low, high = 1, 2  # `low` is not enough
    while power_of(std, difference, high, alpha=alpha) < power:
        if high >= MAX_QUERIES:
            return None
        low, high = high, min(2 * high, MAX_QUERIES)
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(std, difference, middle, alpha=alpha) < power:
            low = middle
        else:
            high = middle
    return high


def resampled_power(
    differences: Values, difference: float, n: int, *, alpha: float = 0.05, seed: int = 0, n_trials: int = TRIALS
) -> float | None:
    """Power of the permutation test on n queries resampled from the observed differences.

    Queries are drawn with replacement, with exponential tilting: query i has the weight exp(t d_i), with the t for which the
    mean is `difference`. Of all weights with this mean, these are the nearest to equal ones.

    Args:
        differences: candidate minus baseline of an earlier comparison, one per query.
        difference: the assumed true mean difference.
        n: queries in each simulated test set.
        alpha: of the test.
        seed: of the draws.
        n_trials: simulated test sets.

    Returns:
        A share of `n_trials`: its standard error is at most .5 / sqrt(n_trials). None where `difference` is not between
        the smallest and the largest of the differences: no weights have such a mean.

    Source:
        Efron & Tibshirani 1993, An Introduction to the Bootstrap, 16.5 and 25.3; Efron 1981, Can. J. Stat. 9(2) (tilting).

    Raises:
        UsageError: fewer than two differences, or n under 2.
    """
    check_alpha(alpha)
    check_draws(seed, n_trials)
    vector = as_vector(differences, "differences")
    if len(vector) < 2 or n < 2:
        raise UsageError(f"{len(vector)} differences, and {n} queries to draw", expected="2 or more of both")
    if not vector.min() < difference < vector.max():
        return None
    upto = np.cumsum(tilted(vector, difference))
    found, per_block = 0, max(1, TRIAL_CELLS // n)
    for start in range(0, n_trials, per_block):
        trials = range(start, min(start + per_block, n_trials))
        drawn = np.column_stack([vector[_sampled_positions(seed, trial, n, upto)] for trial in trials])
        found += int(np.count_nonzero(permutation_p_values(drawn, seed=seed, n_draws=TRIAL_DRAWS) <= alpha))
    return found / n_trials


def tilted(vector: FloatN, mean: float) -> FloatN:
    """Weights exp(t d), adding up to 1, with which the mean is `mean`; that lies between the smallest and the largest.

    Example:
        >>> tilted(np.array([0.0, 1.0]), 0.75)
        array([0.25, 0.75])
    """
    scaled = (vector - mean) / float(np.abs(vector - mean).max())
    low, high = -1.0, 1.0
    while _tilt(scaled, low) @ scaled > 0:
        low *= 2
    while _tilt(scaled, high) @ scaled < 0:
        high *= 2
    low, high = _bisect(lambda t: bool(_tilt(scaled, t) @ scaled < 0), low, high)
    return _tilt(scaled, (low + high) / 2)


def _bisect(is_below: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Narrow an interval to a root: `is_below` holds at its low end, and not at its high end."""
    while high - low > 1e-13 * max(-low, high):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if is_below(middle):
            low = middle
        else:
            high = middle
    return low, high


def _tilt(scaled: FloatN, t: float) -> FloatN:
    weights = np.exp(t * scaled - np.max(t * scaled))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _power_of_shift(shift: float, critical: float, df: int) -> float:
    """Probability that a t variable shifted by `shift` leaves [-critical, critical]."""
    from scipy.special import nctdtr

    # The far side is under Phi(-shift): nothing from 7 on, where SciPy may also give a NaN for it.
    far_side = float(nctdtr(df, shift, -critical)) if shift < 7 else 0.0
    return 1 - float(nctdtr(df, shift, critical)) + far_side


def check_power(power: float, alpha: float) -> None:
    """Check a power.

    Raises:
        UsageError: not between alpha and 1.
    """
    if not alpha < power < 1:
        raise UsageError(f"power is {power:g}", expected=f"a number between alpha ({alpha:g}) and 1, such as 0.8")


def _check_spread(std: float) -> None:
    if not 0 <= std < math.inf:
        raise UsageError(f"standard deviation is {std:g}", expected="a number of 0 or more")


def _sampled_positions(seed: int, trial: int, n: int, upto: FloatN) -> NDArray[np.int64]:
    """Positions of n queries, by seed and trial alone; `upto` holds the cumulative weights."""
    generator = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(TRIAL_SETS, trial)))
    raw = np.asarray(generator.random_raw(n), dtype=np.uint64) >> np.uint64(11)
    places = np.searchsorted(upto, raw.astype(np.float64) * 2.0**-53, side="right")
    return np.minimum(places, len(upto) - 1)
