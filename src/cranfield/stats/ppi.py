"""Prediction-powered inference: a mean of few labels, corrected and made more precise by predictions of all units.

Every unit has a prediction, such as the grade of a model; a random sample of the units also has a label, such as the grade
of a person. The mean of the predictions alone is biased by their error. The estimate here corrects that,
whatever the predictions are worth, and is more precise than the mean of the labels where they are worth something. Lambda comes
from the same labels, which makes a bias of the order of 1 / n: with 10 labels of which few are not 0, a fifth of the mean and
more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cranfield.base.errors import UsageError
from cranfield.stats.describe import FloatN, Values, as_vector, t_quantile

MIN_LABELS = 10
"""No interval under this many labels."""
MIN_OTHERS = 5
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
    """Mean of the labels alone."""
    label_se: float | None
    prediction_mean: float | None
    """Mean of all predictions: not corrected."""
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
    finite: bool = False,
    level: float = 0.95,
) -> CorrectedMean:
    """Estimate the mean label of all units, or of the population that they are a sample of.

        b        = lambda N / (N - n)
        estimate = b mean(f) + mean_S(y - b f)
        lambda   = (N - n) / N  Cov_S(y, f) / Var(f), clipped to 0 to 1; the one with the smallest variance
        Var      = (N - n) / N  Var_S(y - b f) / n
        Var     += Var_S(y) / N, unless `finite`

    Args:
        predictions: f, one per unit (N).
        labels: y, one per unit; None where it has none. The n that have one are a simple random sample.
        finite: the mean of these units is estimated, not that of a population from which they come.
        level: of the interval, Student's t with n - 1 degrees of freedom.

    Conventions:
        no interval under 10 labels, or where all labels are the same and others are missing · predictions all equal: lambda is 0 · all units have a label: the mean of the labels.

    Source:
        Angelopoulos, Bates, Fannjiang, Jordan & Zrnic 2023, Science 382; Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453
        (PPI++), written for a sample within the units: lambda is the same. The variance is that of the difference estimator of
        Särndal, Swensson & Wretman 1992.

    Raises:
        UsageError: lengths differ.

    Example:
        >>> found = corrected_mean([1, 2, 3, 6], [1, None, 2, None])  # Cov_S 1, Var(f) 14/3: lambda 3/28 * 2 / 2
        >>> found.power, found.estimate  # b = 3/14: b * 3 + ((1 - b) + (2 - 3 b)) / 2
        (0.10714285714285714, 1.7142857142857142)
    """
    f = as_vector(predictions)
    if len(labels) != len(f):
        raise UsageError(
            "predictions and labels have different lengths", expected=f"{len(f)} labels", got=str(len(labels))
        )
    sampled = [place for place, label in enumerate(labels) if label is not None]
    y = as_vector([label for label in labels if label is not None])
    n, n_all = len(y), len(f)
    mean_f = float(f.mean()) if n_all else None
    if mean_f is None or n < 2:
        note = f"{n} labels: a mean with an interval needs {MIN_LABELS}"
        only = float(y[0]) if n else None
        return CorrectedMean(None, None, None, None, n, n_all, None, only, None, mean_f, None, note)
    return _corrected(_Sample(f, f[sampled], y), level, is_finite=finite)


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    f: FloatN
    """Predictions of all units."""
    f_sampled: FloatN
    y: FloatN

    @property
    def others(self) -> float:
        """Share of the units without a label."""
        return 1 - len(self.y) / len(self.f)


def _corrected(sample: _Sample, level: float, *, is_finite: bool) -> CorrectedMean:
    f, y, others, n, n_all = sample.f, sample.y, sample.others, len(sample.y), len(sample.f)
    tuned = _tuned(sample)
    b = tuned / others if others else 0.0
    error = y - b * sample.f_sampled
    mean_f = float(f.mean())
    estimate = b * mean_f + float(error.mean())
    super_variance = 0.0 if is_finite else float(y.var(ddof=1)) / n_all
    se, label_se = (math.sqrt(others * float(v.var(ddof=1)) / n + super_variance) for v in (error, y))
    low = high = None
    note = f"{n} labels: no interval under {MIN_LABELS}"
    n_others = n - int(np.unique(y, return_counts=True)[1].max())
    if n >= MIN_LABELS and others and not n_others:
        note = f"all {n} labels are the same: no interval"
    elif n >= MIN_LABELS:
        half = t_quantile((1 + level) / 2, n - 1) * se
        is_short = others and n_others < MIN_OTHERS
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
        label_mean=float(y.mean()),
        label_se=label_se,
        prediction_mean=mean_f,
        sample_p=_sample_p(sample),
        note=note,
    )


def _tuned(sample: _Sample) -> float:
    spread = float(sample.f.var(ddof=1))
    if not spread:
        return 0.0
    slope = float(np.cov(sample.y, sample.f_sampled)[0, 1]) / spread
    return min(max(slope * sample.others, 0.0), 1.0)


def _sample_p(sample: _Sample) -> float | None:
    """How likely a random sample has predictions as far from the mean of all, whose variance is known."""
    variance = float(sample.f.var(ddof=1)) * sample.others / len(sample.y)
    if not variance:
        return None
    distance = abs(float(sample.f_sampled.mean()) - float(sample.f.mean()))
    return math.erfc(distance / math.sqrt(2 * variance))
