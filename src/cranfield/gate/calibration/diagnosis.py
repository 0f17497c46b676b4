"""From the tests of a calibration to its diagnosis, by stated rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from statistics import NormalDist

from cranfield.stats.calibration import NullTest
from cranfield.stats.confusion import exact_interval

FEWEST = 20
"""With fewer answers there is no diagnosis."""
MARGIN = 0.12
"""A score is well calibrated where its net bias is shown to be smaller than this, at `ALPHA_SHOWN` ..."""
SLOPES = (0.5, 2.0)
"""... and its slope to lie between these. At a slope of 0.5 the Brier skill of a score without net bias is about 0."""
ALPHA_SHOWN = 0.04
"""Significance level of each of these four one-sided tests: at a margin and beyond it, at most 1 sample in 25 shows the
contrary."""
ALPHA_BIAS, ALPHA_SLOPE, ALPHA_SPIEGELHALTER, ALPHA_ECE = 0.01, 0.01, 0.005, 0.005
"""Significance levels of the tests of a calibrated score; they add up to `ALPHA_FAMILY`."""
ALPHA_FAMILY = 0.03
"""A calibrated score is blamed in at most this share of samples, all tests together."""
ALPHA = 0.05
"""Significance level of the direction that a score is blamed for, and of a slope other than 0, two-sided; of the
bottleneck, one-sided."""
LEAST_SKILL = 0.02
"""Scores that differ so little that their Brier skill is under this even if they are calibrated are as good as equal."""


class Diagnosis(StrEnum):
    """What the answers show about a confidence."""

    WELL_CALIBRATED = "well-calibrated"
    OVER_CONFIDENT = "over-confident"
    UNDER_CONFIDENT = "under-confident"
    REVERSED = "reversed"
    """Wrong answers have the higher scores."""
    UNINFORMATIVE = "uninformative"
    """It says nothing about which answers are right."""
    OVER_DISPERSED = "over-dispersed"
    """Slope under 1: the scores are spread too far, high ones too high and low ones too low."""
    UNDER_DISPERSED = "under-dispersed"
    """Slope over 1: the scores are not spread far enough, high ones too low and low ones too high."""
    MISCALIBRATED = "miscalibrated"
    """Beyond chance, but neither by a net bias nor by the spread of the scores."""
    SYNTHESIS_BOTTLENECK = "synthesis is the bottleneck"
    INSUFFICIENT_DATA = "insufficient data"


_WITHIN = f"the net bias to lie within ±{MARGIN:g} and the slope within {SLOPES[0]:g} to {SLOPES[1]:g}"
RULES: dict[Diagnosis, str] = {
    Diagnosis.REVERSED: "the score is not calibrated, the slope is significantly below 1, and the AUROC significantly below .5",
    Diagnosis.OVER_CONFIDENT: "the score is not calibrated, and the net bias (mean score minus share correct) is significantly above 0",
    Diagnosis.UNDER_CONFIDENT: "the score is not calibrated, and the net bias (mean score minus share correct) is significantly below 0",
    Diagnosis.UNINFORMATIVE: (
        "the AUROC is not significantly different from .5, and either the score is not calibrated and its slope significantly below 1, "
        f"or the scores differ so little that their Brier skill would be under {LEAST_SKILL:g} even if they were calibrated"
    ),
    Diagnosis.OVER_DISPERSED: "the score is not calibrated, the slope is significantly below 1, and the AUROC significantly above .5",
    Diagnosis.UNDER_DISPERSED: "the score is not calibrated, and the slope is significantly above 1",
    Diagnosis.MISCALIBRATED: "the score is not calibrated, and no rule above holds",
    Diagnosis.WELL_CALIBRATED: f"no test of a calibrated score is significant, and the answers show {_WITHIN}",
    Diagnosis.INSUFFICIENT_DATA: (
        f"fewer than {FEWEST} answers; or no test of a calibrated score is significant, and the answers do not show {_WITHIN}"
    ),
    Diagnosis.SYNTHESIS_BOTTLENECK: (
        "of the answers that lack facts, significantly more than half have the right structure (exact binomial test)"
    ),
}
"""The rule of each diagnosis. Of those that hold, the first is the diagnosis of a group, and the others are stated after it."""


@dataclass(frozen=True, slots=True)
class SlopeStatistics:
    """`slope_statistic` of some slopes: above 0, the answers speak for a larger slope."""

    low: float
    """Statistic of the lower end of `SLOPES`."""
    calibrated: float
    """Statistic of slope 1."""
    high: float
    """Statistic of the upper end of `SLOPES`."""


@dataclass(frozen=True, slots=True)
class CalibrationEvidence:
    """What the answers of a group show: at least `FEWEST` of them."""

    bias: NullTest
    slope: NullTest
    """Its value is a z: above 0, the slope is above 1."""
    spiegelhalter: NullTest
    """Its value is Spiegelhalter's z: above 0, the score errs more than it states."""
    ece: NullTest
    """In 10 bins of equal width; it is not part of a rule."""
    ece_mass: NullTest
    """In bins of equal mass."""
    bias_interval: tuple[float, float]
    """Interval of the net bias at 95 %."""
    bias_shown: tuple[float, float]
    """Interval of the net bias at 1 - 2 * `ALPHA_SHOWN`: two one-sided tests."""
    slopes: SlopeStatistics
    rank_z: float
    """`rank_statistic`: whether right answers have higher scores."""
    attainable_skill: float
    """Brier skill that these scores are expected to have if they are calibrated."""
    n_contradicted: int
    """Wrong answers with a score of 1, and correct answers with a score of 0: a calibrated score has none."""
    n_needed: int | None
    """Answers with such scores that show in 95 % of samples that a calibrated score is calibrated; None: no number does."""

    rank_p: float = field(init=False, default=1.0)
    """Two-sided p of an AUROC of .5."""
    slope_shown_p: float = field(init=False, default=1.0)
    """p-value for the slope not lying between `SLOPES`: the larger p of two one-sided tests."""

    def __post_init__(self) -> None:
        """Compute what follows from the statistics."""
        object.__setattr__(self, "rank_p", 2 * (1 - NormalDist().cdf(abs(self.rank_z))))
        object.__setattr__(self, "slope_shown_p", 1 - NormalDist().cdf(min(self.slopes.low, -self.slopes.high)))

    @property
    def is_calibration_rejected(self) -> bool:
        """Whether a test of a calibrated score is significant, or an answer contradicts its score."""
        levels = (
            (self.bias, ALPHA_BIAS),
            (self.slope, ALPHA_SLOPE),
            (self.spiegelhalter, ALPHA_SPIEGELHALTER),
            (self.ece_mass, ALPHA_ECE),
        )
        return self.n_contradicted > 0 or any(test.p <= alpha for test, alpha in levels)

    @property
    def is_bias_shown(self) -> bool:
        """Whether the net bias is shown to lie within the margin."""
        return self.bias_shown[0] > -MARGIN and self.bias_shown[1] < MARGIN

    @property
    def is_slope_shown(self) -> bool:
        """Whether the slope is shown to lie between `SLOPES`."""
        return self.slope_shown_p <= ALPHA_SHOWN


def diagnose(evidence: CalibrationEvidence | None) -> tuple[Diagnosis, ...]:
    """Every diagnosis that holds, in the order of `RULES`; None for too few answers."""
    if evidence is None:
        return (Diagnosis.INSUFFICIENT_DATA,)
    if found := {_of_bias(evidence), _of_slope(evidence)} - {None}:
        return tuple(diagnosis for diagnosis in RULES if diagnosis in found)
    if evidence.is_calibration_rejected:
        return (Diagnosis.MISCALIBRATED,)
    is_shown = evidence.is_bias_shown and evidence.is_slope_shown
    return (Diagnosis.WELL_CALIBRATED if is_shown else Diagnosis.INSUFFICIENT_DATA,)


def _of_bias(evidence: CalibrationEvidence) -> Diagnosis | None:
    """By the exact test and by the interval: outcomes that do not follow the score have more variance than a calibrated score."""
    low, high = evidence.bias_interval
    if not evidence.is_calibration_rejected or evidence.bias.p > ALPHA or low <= 0 <= high:
        return None
    return Diagnosis.OVER_CONFIDENT if low > 0 else Diagnosis.UNDER_CONFIDENT


def _of_slope(evidence: CalibrationEvidence) -> Diagnosis | None:
    """By the exact test and by that with a fitted intercept: a large net bias bends the slope."""
    slope, beyond = evidence.slopes.calibrated, NormalDist().inv_cdf(1 - ALPHA / 2)
    is_significant = evidence.is_calibration_rejected and evidence.slope.p <= ALPHA and abs(slope) > beyond
    is_below = is_significant and slope < 0
    if abs(evidence.rank_z) <= beyond and (is_below or evidence.attainable_skill < LEAST_SKILL):
        return Diagnosis.UNINFORMATIVE
    if is_below:
        return Diagnosis.REVERSED if evidence.rank_z < 0 else Diagnosis.OVER_DISPERSED
    return Diagnosis.UNDER_DISPERSED if is_significant else None


@dataclass(frozen=True, slots=True)
class Losses:
    """Where answers go wrong, over the queries with both kinds of correctness."""

    n: int
    n_retrieval: int
    """Facts missing, and the structure wrong too."""
    n_synthesis: int
    """Facts missing although the structure is right."""
    is_synthesis: bool
    """Whether significantly more than half of the losses are of synthesis."""

    @classmethod
    def of(cls, n: int, n_retrieval: int, n_synthesis: int) -> Losses:
        """Test them."""
        lost = n_retrieval + n_synthesis
        is_synthesis = n >= FEWEST and lost > 0 and exact_interval(n_synthesis, lost, 1 - 2 * ALPHA)[0] > 0.5
        return cls(n, n_retrieval, n_synthesis, is_synthesis)
