"""From the tests of a calibration to one diagnosis, by stated rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cranfield.stats.calibration import NullTest
from cranfield.stats.proportion import exact_interval

FEWEST = 20
"""With fewer answers there is no diagnosis."""
MARGIN = 0.1
"""A score is well calibrated where its net bias is shown to be smaller than this."""
ALPHA_BIAS, ALPHA_ECE = 0.03, 0.01
"""Significance levels of the two tests: together, a calibrated score is blamed in at most 4 % of samples."""
ALPHA = 0.05
"""Of the interval of the net bias (two one-sided tests), and of the test where answers go wrong."""


class Diagnosis(StrEnum):
    """What the answers show about a confidence."""

    WELL_CALIBRATED = "well-calibrated"
    OVER_CONFIDENT = "over-confident"
    UNDER_CONFIDENT = "under-confident"
    MISCALIBRATED = "miscalibrated"
    """Beyond chance, but without a net direction: too high for some scores and too low for others."""
    SYNTHESIS_BOTTLENECK = "synthesis is the bottleneck"
    INSUFFICIENT_DATA = "insufficient data"


RULES: dict[Diagnosis, str] = {
    Diagnosis.WELL_CALIBRATED: f"no test is significant, and the 90 % CI of the net bias lies within ±{MARGIN:g}",
    Diagnosis.OVER_CONFIDENT: "the net bias (mean score minus share correct) is significantly above 0",
    Diagnosis.UNDER_CONFIDENT: "the net bias is significantly below 0",
    Diagnosis.MISCALIBRATED: "the ECE is significantly larger than that of a calibrated score, the net bias is not significant",
    Diagnosis.SYNTHESIS_BOTTLENECK: (
        "of the answers that lack facts, significantly more than half have the right structure (exact binomial test)"
    ),
    Diagnosis.INSUFFICIENT_DATA: (
        f"fewer than {FEWEST} answers; or no test is significant, and the 90 % CI of the net bias reaches beyond ±{MARGIN:g}"
    ),
}
"""The rule of each diagnosis: the net bias is tested at .03, the ECE in bins of equal mass at .01."""


def diagnose(n: int, bias: NullTest, ece: NullTest, bias_interval: tuple[float, float]) -> Diagnosis:
    """The diagnosis of one confidence against one correctness.

    Args:
        n: answers.
        bias: test of the net bias.
        ece: test of the ECE in bins of equal mass.
        bias_interval: of 90 %: two one-sided tests at .05.
    """
    if n < FEWEST:
        return Diagnosis.INSUFFICIENT_DATA
    if bias.p <= ALPHA_BIAS:
        return Diagnosis.OVER_CONFIDENT if bias.value > 0 else Diagnosis.UNDER_CONFIDENT
    if ece.p <= ALPHA_ECE:
        return Diagnosis.MISCALIBRATED
    is_within = bias_interval[0] > -MARGIN and bias_interval[1] < MARGIN
    return Diagnosis.WELL_CALIBRATED if is_within else Diagnosis.INSUFFICIENT_DATA


@dataclass(frozen=True, slots=True)
class Losses:
    """Where answers go wrong, over the queries with both kinds of correctness."""

    n: int
    n_retrieval: int
    """Facts missing, and the structure wrong too."""
    n_synthesis: int
    """Facts missing although the structure is right."""

    @property
    def is_synthesis(self) -> bool:
        """Whether significantly more than half of the losses are of synthesis."""
        lost = self.n_retrieval + self.n_synthesis
        return self.n >= FEWEST and lost > 0 and exact_interval(self.n_synthesis, lost, 1 - 2 * ALPHA)[0] > 0.5
