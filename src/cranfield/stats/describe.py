"""What a sample of values comes to: mean, median, spread and the interval of the mean.

Values are float64 vectors. Two sums of the same terms in another order differ in their last bits; ranks, counts and ties must not
depend on that, so a difference below the tolerance is rounding error.

Student's t distribution is computed without SciPy, whose special functions take longer to import than `cranfield evaluate` takes for
everything else: the incomplete beta function by its continued fraction, the quantile by Newton's method on logarithms, which cannot
overshoot there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import InternalError, UsageError

FloatN = NDArray[np.float64]
"""One number per query."""

Values = Sequence[float] | FloatN

TOLERANCE = 1e-12
"""Relative size below which a difference is rounding error."""


def as_vector(values: Values, what: str = "values") -> FloatN:
    """Copy `values` into a float64 vector.

    Raises:
        UsageError: more than one axis, or a value that is not a finite number. Leave queries without a value out.
    """
    vector = np.array(values, dtype=np.float64)
    if vector.ndim != 1:
        raise UsageError(f"{what} have {vector.ndim} axes", expected="one number per query")
    _refuse_not_finite(vector, what)
    return vector


def as_matrix(values: NDArray[np.float64], what: str = "values") -> NDArray[np.float64]:
    """Copy `values` into a float64 matrix [n, M], queries by measures.

    Raises:
        UsageError: not two axes, or a value that is not a finite number.
    """
    matrix = np.array(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise UsageError(f"{what} have {matrix.ndim} axes", expected="queries by measures")
    _refuse_not_finite(matrix, what)
    return matrix


def check_alpha(alpha: float) -> None:
    """Check a significance level.

    Raises:
        UsageError: not between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha:g}", expected="a number between 0 and 1, such as 0.05")


def check_draws(seed: int, n_draws: int) -> None:
    """Check a seed and a number of random draws.

    Raises:
        UsageError: a negative seed, or fewer than 2 draws.
    """
    if seed < 0:
        raise UsageError(f"seed is {seed}", expected="a whole number of 0 or more")
    if n_draws < 2:
        raise UsageError(f"{n_draws} random draws", expected="2 or more")


def differences(baseline: Values, candidate: Values) -> FloatN:
    """Candidate minus baseline, query by query, with rounding error set to 0.

    0.3 - (0.1 + 0.2) is 5.6e-17: a difference of at most `TOLERANCE` times the larger of the two values becomes 0.

    Raises:
        UsageError: the two do not pair, or hold a value that is not a finite number.

    Example:
        >>> differences([0.1 + 0.2, 0.5], [0.3, 1.0])
        array([0. , 0.5])
    """
    a, b = as_vector(baseline, "baseline values"), as_vector(candidate, "candidate values")
    if a.shape != b.shape:
        raise UsageError("the two sides have different lengths", expected=f"{a.size} candidate values", got=str(b.size))
    difference = b - a
    difference[np.abs(difference) <= TOLERANCE * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return difference


def nonzero(difference: FloatN) -> FloatN:
    """The differences that are not zero: more than `TOLERANCE` times the largest."""
    size = np.abs(difference)
    kept: FloatN = difference[size > TOLERANCE * size.max(initial=0.0)]
    return kept


def _refuse_not_finite(array: NDArray[np.float64], what: str) -> None:
    bad = int(array.size - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise UsageError(f"{bad} of {array.size} {what} are not finite numbers", hint="leave unscored queries out")


@dataclass(frozen=True, slots=True)
class Description:
    """Mean, median and standard deviation; None where undefined."""

    mean: float | None
    """None without values."""
    median: float | None
    """None without values."""
    std: float | None
    """Sample standard deviation (n - 1); None under two values, 0 when they are equal but for rounding."""
    n: int


def describe(values: Values) -> Description:
    """Summarise `values`.

    Sums are exact (`math.fsum`) before they are rounded once, so the order of the values does not matter.

    Example:
        >>> describe([0.0, 0.0, 3.0])  # squares about 1: 1 + 1 + 4 = 6, over 2
        Description(mean=1.0, median=0.0, std=1.7320508075688772, n=3)
    """
    vector = as_vector(values)
    n = vector.size
    if not n:
        return Description(None, None, None, 0)
    low, high = float(vector.min()), float(vector.max())
    # A rounded sum divided by n can leave the range of the values by a last bit.
    mean = min(
        max(
            math.fsum((vector / n).tolist()) if max(abs(low), abs(high)) > LARGE else math.fsum(vector.tolist()) / n,
            low,
        ),
        high,
    )
    median = _median(vector)
    if n == 1:
        return Description(mean, median, None, 1)
    if high - low <= TOLERANCE * max(abs(low), abs(high)):
        return Description(mean, median, 0.0, n)
    centred = vector - mean
    # A power of two costs no digit, and keeps squares from overflow and underflow.
    scale = math.ldexp(1.0, math.frexp(max(high - mean, mean - low))[1] - 1)
    scaled = centred / scale
    # The second term is 0 but for the rounding of the mean.
    squares = math.fsum((scaled * scaled).tolist()) - math.fsum(scaled.tolist()) ** 2 / n
    return Description(mean, median, scale * math.sqrt(squares / (n - 1)), n)


LARGE = 1e290
"""Sums of greater numbers may be too large for a number."""


def total(values: Values) -> float | None:
    """Sum of the values; None without any, or where it is too large for a number."""
    vector = as_vector(values)
    try:
        return math.fsum(vector.tolist()) if vector.size else None
    except OverflowError:
        return None


def _median(vector: FloatN) -> float:
    """The middle value, or the mean of the two in the middle. `np.median` imports masked arrays, which takes longer."""
    half = vector.size // 2
    ordered = np.partition(vector, [max(half - 1, 0), half])
    low, high = float(ordered[max(half - 1, 0)]), float(ordered[half])
    if vector.size % 2:
        return high
    # Halving first loses the smallest numbers; adding first overflows at the largest.
    return (low + high) / 2 if math.isfinite(low + high) else low / 2 + high / 2


SMALLEST_FACTOR = 1e-5
"""Floor of the values in a geometric mean, so that one zero does not make it 0."""


def geometric_mean(values: Values) -> float | None:
    """The n-th root of the product; None without values, or where one is under 0.

    Source: Robertson 2006, CIKM ("On GMAP"); trec_eval's floor of 0.00001.

    Example:
        >>> geometric_mean([0.25, 1.0])  # sqrt(0.25 x 1)
        0.5
    """
    vector = as_vector(values)
    if not vector.size or vector.min() < 0:
        return None
    return math.exp(math.fsum(np.log(np.maximum(vector, SMALLEST_FACTOR)).tolist()) / vector.size)


def weighted_mean(values: Values, weights: Values) -> float | None:
    """Sum of value times weight over the sum of the weights; None where all weights are equal or none is above 0.

    Example:
        >>> weighted_mean([1.0, 0.0], [3.0, 1.0])  # 3 of 4 questions are the first
        0.75
    """
    vector, weight = as_vector(values), as_vector(weights)
    if not vector.size or weight.min() == weight.max() or weight.sum() <= 0:
        return None
    return math.fsum((vector * weight).tolist()) / math.fsum(weight.tolist())


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


def stratified_interval(values: FloatN, groups: NDArray[np.intp], level: float = 0.95) -> tuple[float, float] | None:
    """Student's t interval of the mean where the number of values of each group is given.

        mean ± t_{(1 + level) / 2, df} * sqrt(sum_g n_g s_g^2) / n

    s_g is the spread within a group, and df the effective degrees of freedom. Groups of one value are one group together.

        >>> low, high = stratified_interval(np.array([1.0, 3.0, 10.0, 10.0]), np.array([0, 0, 1, 1]))
        >>> round(low, 4), round(high, 4)  # 6 ± 12.7062 * sqrt(2 * 2) / 4
        (-0.3531, 12.3531)

    Args:
        values: float64[n].
        groups: intp[n], numbered from 0.
        level: of confidence, in (0, 1).

    Returns:
        Both ends; those of `t_interval`, which takes the spread between groups in too, where a group of one value is left.

    Source:
        Cochran 1977, Sampling Techniques, Wiley, section 5.4; the degrees of freedom are of Satterthwaite 1946.
    """
    size = np.bincount(groups)
    merged = np.where(size[groups] > 1, groups, len(size))
    spreads = [describe(values[merged == group]) for group in np.unique(merged)]
    if not spreads or any(spread.std is None for spread in spreads):
        return t_interval(values, level)
    parts = [(spread.n, spread.n * (spread.std or 0.0) ** 2) for spread in spreads]
    variance, mean = sum(part for _, part in parts), float(values.mean())
    if not variance:
        return mean, mean
    freedom = variance**2 / sum(part**2 / (n - 1) for n, part in parts)
    half = t_quantile((1 + level) / 2, freedom) * math.sqrt(variance) / len(values)
    return mean - half, mean + half


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
