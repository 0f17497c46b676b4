"""Student's t distribution without SciPy: tail, quantile and the interval of a mean.

`cranfield evaluate` shows intervals and must start fast; importing SciPy's special functions takes longer than everything
else. The incomplete beta function is computed by its continued fraction, the quantile by Newton's method on logarithms, which
cannot overshoot there.
"""

from __future__ import annotations

import math
from functools import lru_cache

from cranfield.errors import InternalError, UsageError
from cranfield.stats.describe import TOLERANCE, Description, Values, describe

Ends = tuple[float | None, float | None]

SMALLEST_TAIL = 1e-100
"""Smallest supported tail probability; much smaller ones would underflow."""

_TERMS = 10_000  # about 50 are needed at worst, at any df
_STEPS = 200  # about 10 are needed; 40 very close to the median
_PRECISE = 2e-16
_GAMMA_RATIO = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144, 869 / 4194304)
_SERIES_FROM = 50.0  # here both ways are good to 1e-13


def t_interval(values: Values, level: float = 0.95, about: Description | None = None) -> tuple[float, float] | None:
    """Student's t interval of the mean; `about` is their description, where it was made before.

        mean ± t_{(1 + level) / 2, n - 1} * std / sqrt(n)

    Returns:
        Both ends; of width 0 where all values are equal; None under two values.

    Raises:
        UsageError: a level that is not between 0 and 1.

    Example:
        >>> low, high = t_interval([1.0, 2.0, 3.0])  # 2 ± 4.3027 * 1 / sqrt(3)
        >>> round(low, 4), round(high, 4)
        (-0.4841, 4.4841)
    """
    if not 0 < level < 1:
        raise UsageError(f"level is {level:g}", expected="a number between 0 and 1, such as 0.95")
    about = describe(values) if about is None else about
    if about.mean is None or about.std is None:
        return None
    half = t_quantile((1 + level) / 2, about.n - 1) * about.std / math.sqrt(about.n)
    return about.mean - half, about.mean + half


def total_interval(values: Values, n: int, level: float = 0.95) -> tuple[float, float] | None:
    """Prediction interval of the sum of n values, of which some are known.

    The known sum, plus m (mean ± t s sqrt(1/m + 1/k)) of the m = n - k others, for normal values of one distribution (Hahn and
    Meeker, *Statistical Intervals*, section 4.8).

    Args:
        values: the k known ones.
        n: of all, at least k.
        level: of confidence, in (0, 1).

    Returns:
        Both ends, in the unit of the values; None where k is under 2 and others are not known.

    Example:
        >>> total_interval([100.0, 120.0, 110.0], 3)
        (330.0, 330.0)
    """
    k, m = len(values), n - len(values)
    if m <= 0:
        return math.fsum(values), math.fsum(values)
    about = describe(values)
    if about.mean is None or about.std is None:
        return None
    half = t_quantile((1 + level) / 2, k - 1) * about.std * math.sqrt(m + m * m / k)
    middle = about.mean * n
    return middle - half, middle + half


def align_with_test(low: float | None, high: float | None, *, rejected: bool, upward: bool, scale: float) -> Ends:
    """Make an interval contain zero exactly where its own test does not reject zero.

    The set of values that a rank test does not reject can be open at zero, and a computed end can miss zero by rounding
    error. An end that must exclude zero is set to `TOLERANCE * scale`.

    Args:
        low: lower end; None is unbounded.
        high: upper end.
        rejected: the test rejects zero at the alpha of the interval.
        upward: it rejects in favour of positive differences.
        scale: size of the largest difference.
    """
    if not rejected:
        return (None if low is None else min(low, 0.0)), (None if high is None else max(high, 0.0))
    if upward:
        return (None if low is None else max(low, TOLERANCE * scale)), high
    return low, (None if high is None else min(high, -TOLERANCE * scale))


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """The value that a t variable with `df` degrees of freedom stays under with probability `p`.

    Returns:
        Equal to `scipy.stats.t.ppf` to 1e-10, relative, for df of 1 to 100,000 and p of 1e-6 to 1 - 1e-6.

    Raises:
        UsageError: p, or 1 - p, under 1e-100, or df under 1.

    Example:
        >>> round(t_quantile(0.975, 49), 4)
        2.0096
    """
    tail = min(p, 1 - p)
    if not tail >= SMALLEST_TAIL:
        raise UsageError(f"probability is {p:g}", expected=f"a number between {SMALLEST_TAIL:g} and 1")
    if not 1 <= df < math.inf:
        raise UsageError(f"degrees of freedom are {df:g}", expected="a number of 1 or more")
    if tail == 0.5:
        return 0.0
    size = _central_quantile(1 - 2 * tail, df) if tail > 0.25 else _tail_quantile(tail, df)
    return math.copysign(size, p - 0.5)


def t_tail(t: float, df: float) -> float:
    """Probability that a t variable with `df` degrees of freedom exceeds `t`."""
    if t < 0:
        return 1 - t_tail(-t, df)
    if t == math.inf:
        return 0.0
    inner, outer = _beta_arguments(t, df)
    if _is_central(outer, df):
        return (1 - _mass(t, df)) / 2
    return _front(t, df) * _beta_fraction(inner, outer, df / 2, 0.5) / 2


def _beta_arguments(t: float, df: float) -> tuple[float, float]:
    """Give df / (df + t^2) and t^2 / (df + t^2), for t of any size."""
    whole = math.hypot(math.sqrt(df), t)
    return (math.sqrt(df) / whole) ** 2, (t / whole) ** 2


def _is_central(outer: float, df: float) -> bool:
    """True where the fraction for the middle converges faster than the one for the tail."""
    return outer * (df + 5) < 3


def _mass(t: float, df: float) -> float:
    """Probability of lying between -t and t."""
    inner, outer = _beta_arguments(t, df)
    if _is_central(outer, df):
        return _front(t, df) * _beta_fraction(outer, inner, 0.5, df / 2)
    return 1 - 2 * t_tail(t, df)


def _central_quantile(mass: float, df: float) -> float:
    # log mass is concave in log t, and this start is below the root: Newton climbs to it and never beyond.
    density_at_0 = _gamma_ratio(df / 2) / math.sqrt(math.pi * df)
    t = mass / (2 * density_at_0)
    for _ in range(_STEPS):
        found = _mass(t, df)
        step = math.log(mass / found) * found / (2 * _front(t, df))
        t *= math.exp(step)
        if abs(step) < _PRECISE * 10:
            return t
    return _converged(t, step)


def _tail_quantile(tail: float, df: float) -> float:
    # log tail is concave in log t, and this start is above the root: Newton comes down to it and never beyond.
    t = 1.0
    while t_tail(t, df) > tail:
        t *= 2
    for _ in range(_STEPS):
        found = t_tail(t, df)
        step = math.log(found / tail) * found / _front(t, df)
        t *= math.exp(step)
        if abs(step) < _PRECISE * 10:
            return t
    return _converged(t, step)


def _converged(t: float, step: float) -> float:
    if abs(step) < 1e-12:  # oscillates in the last bits
        return t
    raise InternalError(f"the t quantile does not converge: {t!r} and a step of {step!r}")


def _front(t: float, df: float) -> float:
    """x^(df/2) (1 - x)^(1/2) / B(df/2, 1/2) at x = df / (df + t^2); it is also t times the density at t."""
    return _power(t, df) * t / math.hypot(math.sqrt(df), t) * _gamma_ratio(df / 2) / math.sqrt(math.pi)


def _power(t: float, df: float) -> float:
    """(1 + t^2 / df)^(-df/2); the two forms are accurate for different t."""
    root = math.sqrt(df)
    if t < root:
        return math.exp(-df / 2 * math.log1p((t / root) ** 2))
    return math.exp(-df * math.log(math.hypot(root, t) / root))


def _gamma_ratio(a: float) -> float:
    """Γ(a + 1/2) / Γ(a); for large a by its series, as the difference of two large logarithms loses digits."""
    if a < _SERIES_FROM:
        return math.exp(math.lgamma(a + 0.5) - math.lgamma(a))
    return math.sqrt(a) * math.fsum(term * a**-power for power, term in enumerate(_GAMMA_RATIO))


def _beta_fraction(x: float, y: float, a: float, b: float) -> float:
    """The continued fraction F of I_x(a, b) = x^a y^b / B(a, b) * F, with y = 1 - x, by Lentz's method.

    The form of Didonato & Morris 1992 (ACM TOMS 18): where x is close to 1 it loses no digits, as the better known one does.
    """
    edge = a * y - b * x + 1
    value = c = a * edge / (a + 1)
    d = 0.0
    for n in range(1, _TERMS):
        numerator = (a + n - 1) * (a + b + n - 1) * n * (b - n) * x * x / (a + 2 * n - 1) ** 2
        term = n + n * (b - n) * x / (a + 2 * n - 1) + (a + n) * (edge + n * (1 + y)) / (a + 2 * n + 1)
        d = 1 / (term + numerator * d)
        c = term + numerator / c
        value *= c * d
        if abs(c * d - 1) < _PRECISE:
            return 1 / value
    raise InternalError(f"the continued fraction of I_{x!r}({a!r}, {b!r}) does not converge")
