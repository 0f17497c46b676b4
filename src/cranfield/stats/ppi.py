"""Prediction-powered inference: a mean of few labels, corrected and made more precise by predictions of all units.

Every unit has a prediction, such as the grade of a model; a random sample of the units also has a label, such as the grade
of a person. The mean of the predictions alone is biased by their error. The estimate here corrects that,
whatever the predictions are worth, and is more precise than the mean of the labels where they are worth something. It is
unbiased where `power` is given; where lambda comes from the same labels, the bias is of the order of 1 / n: with 10 labels of
which few are not 0, a fifth of the mean and more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import UsageError
from cranfield.stats.interval import t_quantile
from cranfield.stats.vectors import FloatN, Values, as_vector

FEWEST_LABELS = 10
"""No interval under this many labels."""
FEWEST_OTHERS = 5
"""Labels that are not the most common one; with fewer the interval is too short (of 20 labels, 5 % of them relevant, it holds
the mean in 6 of 10 samples)."""
SAMPLE_LEVEL = 0.01
"""A sample whose predictions differ from the others' with a smaller p-value is no random sample."""


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """A mean by prediction-powered inference; None where undefined, with the reason in `note`."""

    estimate: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    """Units with a label."""
    n_all: int
    """Units, with those that have a label."""
    power: float | None
    """Lambda of PPI++: 0 is the mean of the labels, 1 the full correction."""
    label_mean: float | None
    """Of the labels alone, weighted by the inverse of their inclusion."""
    label_se: float | None
    prediction_mean: float | None
    """Of all predictions: not corrected."""
    sample_p: float | None
    """Two-sided p-value of the mean prediction of the sample, were it a random sample of all units."""
    note: str = ""

    @property
    def looks_random(self) -> bool:
        """Whether the predictions of the sample are as near to the others' as those of a random one; else it is not valid."""
        return self.sample_p is None or self.sample_p >= SAMPLE_LEVEL


def corrected_mean(
    predictions: Values,
    labels: Sequence[float | None],
    *,
    inclusion: Values | None = None,
    power: float | None = None,
    finite: bool = False,
    level: float = 0.95,
) -> CorrectedMean:
    """Estimate the mean label of all units, or of the population that they are a sample of.

        b        = lambda N / (N - n)
        estimate = b mean(f) + sum_S w (y - b f) / sum_S w,   w = 1 / inclusion
        lambda   = (N - n) / N  Cov_S(y, f) / Var(f), clipped to 0 to 1
        Var      = sum_S (1 - inclusion) (w (e - mean_S e))^2 n / (n - 1) / (sum_S w)^2,   e = y - b f
        Var     += Var_S(y) / N, unless `finite`

    Args:
        predictions: f, one per unit (N).
        labels: y, one per unit; None where it has none (n have one).
        inclusion: probability with which each unit was sampled; None: the same for all, n / N.
        power: lambda; None: the one with the smallest variance.
        finite: the mean of these units is estimated, not that of a population from which they come.
        level: of the interval, Student's t with n - 1 degrees of freedom.

    Conventions:
        no interval under 10 labels, or where all labels are the same and others are missing · predictions all equal: lambda is 0 · all units have a label: the mean of the labels.

    Source:
        Angelopoulos, Bates, Fannjiang, Jordan & Zrnic 2023, Science 382; Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453
        (PPI++), written for a sample within the units: lambda is the same. The variance is that of the difference estimator of
        Särndal, Swensson & Wretman 1992.

    Raises:
        UsageError: lengths differ, a probability is not within 0 to 1, or lambda is not.

    Example:
        >>> found = corrected_mean([1, 2, 3, 2], [1, None, 2, None], power=0.5)
        >>> found.estimate  # 1/2 * (2 + 2)/2 + ((1 - 1/2 * 1) + (2 - 1/2 * 3))/2
        1.5
    """
    f, sampled, y, w = _checked(predictions, labels, inclusion, power)
    n, n_all = len(y), len(f)
    mean_f = float(f.mean()) if n_all else None
    if mean_f is None or n < 2:
        note = f"{n} labels: a mean with an interval needs {FEWEST_LABELS}"
        only = float(y[0]) if n else None
        return CorrectedMean(None, None, None, None, n, n_all, None, only, None, mean_f, None, note)
    return _corrected(_Sample(f, f[sampled], y, w), power, level, is_finite=finite)


@dataclass(frozen=True, slots=True)
class _Sample:
    f: FloatN
    """Predictions of all units."""
    f_sampled: FloatN
    y: FloatN
    w: FloatN

    @property
    def others(self) -> float:
        """Share of the units without a label."""
        return 1 - len(self.y) / len(self.f)


def _corrected(sample: _Sample, power: float | None, level: float, *, is_finite: bool) -> CorrectedMean:
    f, y, w, others, n, n_all = sample.f, sample.y, sample.w, sample.others, len(sample.y), len(sample.f)
    tuned = _tuned(sample) if power is None else power
    b = tuned / others if others else 0.0
    error = y - b * sample.f_sampled
    mean_f = float(f.mean())
    estimate = b * mean_f + float(np.average(error, weights=w))
    super_variance = 0.0 if is_finite else _variance(y, w) / n_all
    se, label_se = (math.sqrt(_sampling_variance(values, w, others) + super_variance) for values in (error, y))
    low = high = None
    note = f"{n} labels: no interval under {FEWEST_LABELS}"
    n_others = n - int(np.unique(y, return_counts=True)[1].max())
    if n >= FEWEST_LABELS and others and not n_others:
        note = f"all {n} labels are the same: no interval"
    elif n >= FEWEST_LABELS:
        half = t_quantile((1 + level) / 2, n - 1) * se
        is_short = others and n_others < FEWEST_OTHERS
        low, high = estimate - half, estimate + half
        note = f"{n - n_others} of {n} labels are the same: the interval is too short" if is_short else ""
    return CorrectedMean(
        estimate=estimate,
        se=se,
        ci_low=low,
        ci_high=high,
        n=n,
        n_all=n_all,
        power=tuned,
        label_mean=float(np.average(y, weights=w)),
        label_se=label_se,
        prediction_mean=mean_f,
        sample_p=_sample_p(sample),
        note=note,
    )


def _checked(
    predictions: Values, labels: Sequence[float | None], inclusion: Values | None, power: float | None
) -> tuple[FloatN, NDArray[np.int64], FloatN, FloatN]:
    """Predictions, indices of the sample, its labels, and its weights, whose mean is 1 / the mean inclusion."""
    f = as_vector(predictions)
    if len(labels) != len(f):
        raise UsageError("predictions and labels do not pair", expected=f"{len(f)} labels", got=str(len(labels)))
    if power is not None and not 0 <= power <= 1:
        raise UsageError(f"lambda is {power:g}", expected="a number from 0 to 1")
    sampled = np.array([place for place, label in enumerate(labels) if label is not None], dtype=np.int64)
    y = as_vector([label for label in labels if label is not None])
    if inclusion is None:
        return f, sampled, y, np.full(len(y), len(f) / max(len(y), 1))
    shares = as_vector(inclusion)
    if len(shares) != len(f) or (len(f) and not (shares.min() > 0 and shares.max() <= 1)):
        raise UsageError("an inclusion is not a probability", expected=f"{len(f)} numbers over 0, up to 1")
    return f, sampled, y, 1 / shares[sampled]


def _tuned(sample: _Sample) -> float:
    f, y, w = sample.f_sampled, sample.y, sample.w
    spread = float(sample.f.var(ddof=1))
    if not spread:
        return 0.0
    centred = (y - np.average(y, weights=w)) * (f - np.average(f, weights=w))
    slope = float(np.average(centred, weights=w)) * len(y) / (len(y) - 1) / spread
    return min(max(slope * sample.others, 0.0), 1.0)


def _variance(values: FloatN, w: FloatN) -> float:
    """Of the population, by the sample."""
    centred = values - np.average(values, weights=w)
    return float(np.average(centred**2, weights=w)) * len(values) / (len(values) - 1)


def _sampling_variance(values: FloatN, w: FloatN, others: float) -> float:
    """Of the weighted mean, over samples of the same units."""
    if not others:
        return 0.0
    centred = w * (values - np.average(values, weights=w))
    left_out = 1 - 1 / w
    n = len(values)
    return float((left_out * centred**2).sum()) / float(w.sum()) ** 2 * n / (n - 1)


def _sample_p(sample: _Sample) -> float | None:
    """How likely a random sample has predictions as far from the mean of all, whose variance is known."""
    f, w = sample.f, sample.w
    variance = float(f.var(ddof=1)) * float(((1 - 1 / w) * w**2).sum()) / float(w.sum()) ** 2
    if not sample.others or not variance:
        return None
    distance = abs(float(np.average(sample.f_sampled, weights=w)) - float(f.mean()))
    return math.erfc(distance / math.sqrt(2 * variance))
