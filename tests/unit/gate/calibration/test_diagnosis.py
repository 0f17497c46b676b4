"""The rules of the diagnosis: what a calibrated score, a biased one, one with another slope and an ignorant one are called."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from cranfield.gate.calibration import diagnosis as d
from cranfield.gate.calibration.diagnosis import CalibrationEvidence, Diagnosis, SlopeStatistics, diagnose
from cranfield.gate.calibration.report import CalibrationOptions, Group, calibrate, group_of
from cranfield.gate.calibration.table import CalibrationAnswers, Correctness, ScoredAnswer
from cranfield.gate.reports.calibration_verdict import verdict_of
from cranfield.reporting.document import VerdictBlock
from cranfield.stats.calibration import Floats, NullTest, chances_with_sum, logits

FEW = CalibrationOptions(draws=199)
GOOD = {Diagnosis.WELL_CALIBRATED}
SHAPES = {
    "even": lambda draw, n: draw.random(n),
    "high": lambda draw, n: draw.beta(5, 2, n),
    "extreme": lambda draw, n: draw.beta(0.5, 0.5, n),
    "narrow": lambda draw, n: np.clip(draw.normal(0.7, 0.05, n), 0, 1),
    "rounded": lambda draw, n: draw.choice([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0], n),
}


@cache
def offset(shape: str, slope: float) -> float:
    """The intercept without a net bias."""
    scores = SHAPES[shape](np.random.default_rng(0), 50_000)
    chance = chances_with_sum(slope * logits(scores), float(scores.sum()))[0]
    return float(np.log(chance / (1 - chance)) - slope * logits(scores)[0])


def found(shape: str, slope: float, n: int, samples: int, seed: int = 5, bias: float = 0) -> Counter[Diagnosis]:
    """How many samples have each word among their findings."""
    draw, counts = np.random.default_rng(seed), Counter[Diagnosis]()
    for _ in range(samples):
        scores: Floats = SHAPES[shape](draw, n)
        chances = scores - bias if slope == 1 else 1 / (1 + np.exp(-slope * logits(scores) - offset(shape, slope)))
        counts.update(group_of(scores, draw.random(n) < chances, FEW).findings)
    return counts


def of(scores: list[float], right: list[bool]) -> Group:
    return group_of(np.array(scores), np.array(right), FEW)


def verdict(scores: list[float], right: list[bool]) -> VerdictBlock:
    pairs = enumerate(zip(scores, right, strict=True))
    answers = [ScoredAnswer(f"q{n}", score, {Correctness.STATED: ok}) for n, (score, ok) in pairs]
    return verdict_of(calibrate(CalibrationAnswers("t", "confidence", {}, answers), FEW))


PASSED = NullTest(0.0, 0.0, 0.5)
CALIBRATED = CalibrationEvidence(
    bias=PASSED,
    slope=PASSED,
    spiegelhalter=PASSED,
    ece=PASSED,
    ece_mass=PASSED,
    bias_interval=(-0.06, 0.06),
    bias_shown=(-0.05, 0.05),
    slopes=SlopeStatistics(low=3.0, calibrated=0.0, high=-3.0),
    rank_z=5.0,
    attainable_skill=0.3,
    n_contradicted=0,
    n_needed=200,
)
HIGH, LOW = NullTest(0.1, 0, 0.01), NullTest(-0.1, 0, 0.01)
ABOVE, BELOW = SlopeStatistics(6, 2, -2), SlopeStatistics(-1, -2, -6)
FLAT = {"slope": LOW, "slopes": BELOW, "rank_z": 1.9}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "well-calibrated"),
        ({"bias_shown": (-0.05, d.MARGIN)}, "insufficient data"),
        ({"bias_shown": (-d.MARGIN, 0.05)}, "insufficient data"),
        ({"slopes": SlopeStatistics(1.7, 0, -3)}, "insufficient data"),  # 1.7 is p = .045
        ({"slopes": SlopeStatistics(3, 0, -1.7)}, "insufficient data"),
        ({"bias": HIGH, "bias_interval": (0.01, 0.2)}, "over-confident"),
        ({"bias": LOW, "bias_interval": (-0.2, -0.01)}, "under-confident"),
        ({"bias": NullTest(0.1, 0, 0.011), "bias_interval": (0.01, 0.2)}, "well-calibrated"),
        ({"bias": HIGH, "bias_interval": (-0.01, 0.2)}, "miscalibrated"),  # more variance than a calibrated score, no direction
        ({"slope": LOW, "slopes": BELOW}, "over-dispersed"),
        ({"slope": HIGH, "slopes": ABOVE}, "under-dispersed"),
        ({"slope": NullTest(-2, 0, 0.011), "slopes": BELOW}, "insufficient data"),
        ({"slope": LOW, "slopes": replace(BELOW, calibrated=-1.9)}, "miscalibrated"),
        (FLAT, "uninformative"),
        (FLAT | {"rank_z": 2.0}, "over-dispersed"),
        (FLAT | {"rank_z": -1.9}, "uninformative"),
        (FLAT | {"rank_z": -2.0}, "reversed"),
        ({"rank_z": 1.9}, "well-calibrated"),
        ({"rank_z": 1.9, "attainable_skill": 0.019}, "uninformative"),
        ({"rank_z": 2.0, "attainable_skill": 0.019}, "well-calibrated"),
        ({"spiegelhalter": NullTest(3, 0, 0.005)}, "miscalibrated"),
        ({"spiegelhalter": NullTest(3, 0, 0.006)}, "well-calibrated"),
        ({"ece_mass": NullTest(0.2, 0.1, 0.005)}, "miscalibrated"),
        ({"ece_mass": NullTest(0.2, 0.1, 0.006)}, "well-calibrated"),
        ({"ece": NullTest(0.2, 0.1, 0.0001)}, "well-calibrated"),  # that in bins of equal mass decides
        ({"n_contradicted": 1}, "miscalibrated"),
        # Of what is not calibrated, each direction is named at .05, in one order.
        ({"bias": NullTest(0.1, 0, 0.05), "bias_interval": (0.01, 0.2)} | FLAT, "over-confident uninformative"),
        ({"bias": NullTest(0.1, 0, 0.051), "bias_interval": (0.01, 0.2)} | FLAT, "uninformative"),
        ({"bias": HIGH, "bias_interval": (0.01, 0.2), "slope": LOW, "slopes": BELOW}, "over-confident over-dispersed"),
        ({"bias": LOW, "bias_interval": (-0.2, -0.1)} | FLAT | {"rank_z": -3}, "reversed under-confident"),
        ({"ece_mass": NullTest(0.2, 0.1, 0.005), "slope": NullTest(-2, 0, 0.05), "slopes": BELOW}, "over-dispersed"),
    ],
)  # fmt: skip
def test_each_rule(changes: dict[str, Any], expected: str) -> None:
    words = " ".join(each.value for each in diagnose(replace(CALIBRATED, **changes)))
    assert words == expected


def test_the_levels_of_the_family_add_up_to_what_is_stated() -> None:
    levels = (d.ALPHA_BIAS, d.ALPHA_SLOPE, d.ALPHA_SPIEGELHALTER, d.ALPHA_ECE)
    assert sum(levels) == pytest.approx(d.ALPHA_FAMILY)
    assert d.ALPHA_FAMILY <= 0.05


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("slope", [0, 0.25, 0.5])
def test_another_slope_is_seldom_called_well_calibrated(shape: str, slope: float) -> None:
    """200 answers without a net bias; 5 of 40 is the 99th percentile at a rate of .05. bench/calibration.py has more."""
    counts = found(shape, slope, 200, 40)
    assert counts[Diagnosis.WELL_CALIBRATED] <= 5
    if slope == 0:
        assert counts[Diagnosis.UNINFORMATIVE] >= 34  # 95 %: the 1st percentile


def test_a_calibrated_score_is_called_so_where_the_answers_can_show_it() -> None:
    assert found("even", 1, 200, 40)[Diagnosis.WELL_CALIBRATED] >= 35
    assert found("extreme", 1, 200, 40)[Diagnosis.WELL_CALIBRATED] >= 35
    assert found("high", 1, 500, 40)[Diagnosis.WELL_CALIBRATED] >= 35


@pytest.mark.slow  # 1,000 samples each take 10 s
@pytest.mark.parametrize(("shape", "slope", "n", "word", "least", "most"), [
    ("even", 1, 200, Diagnosis.WELL_CALIBRATED, 0.95, 1),
    ("extreme", 1, 200, Diagnosis.WELL_CALIBRATED, 0.95, 1),
    ("high", 1, 500, Diagnosis.WELL_CALIBRATED, 0.95, 1),
    ("rounded", 1, 500, Diagnosis.WELL_CALIBRATED, 0.95, 1),
    *((shape, slope, 200, Diagnosis.WELL_CALIBRATED, 0, 0.05) for shape, slope in [("even", 0.5), ("high", 0.5), ("high", 2), ("rounded", 0.5)]),
    ("even", 0.5, 200, Diagnosis.OVER_DISPERSED, 0.9, 1),
    ("even", 2, 200, Diagnosis.UNDER_DISPERSED, 0.9, 1),
    ("high", 0, 200, Diagnosis.UNINFORMATIVE, 0.92, 1),
])  # fmt: skip
def test_error_rates_of_the_slope(shape: str, slope: float, n: int, word: Diagnosis, least: float, most: float) -> None:
    """With the standard error of 1,000 samples as tolerance, twice."""
    share = found(shape, slope, n, 1000, seed=13)[word] / 1000
    assert least - 0.014 <= share <= most + 0.014


@pytest.mark.parametrize("n", [20, 60])
def test_a_calibrated_score_is_seldom_blamed_with_few_answers(n: int) -> None:
    """At .03, 6 of 60 are exceeded in 1 of 500 tests."""
    for shape in SHAPES:
        counts = found(shape, 1, n, 60)
        calm = (Diagnosis.WELL_CALIBRATED, Diagnosis.INSUFFICIENT_DATA, Diagnosis.UNINFORMATIVE)
        assert sum(counts[word] for word in calm) >= 54, (shape, counts)


SPREAD = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95] * 20
"""200 scores; the nth time of each is right if n / 20 is under it."""
EXACT = [place // 10 < round(20 * score) for place, score in enumerate(SPREAD)]
AT_RANDOM = [place // 10 % 2 == 0 for place in range(200)]
"""Of each score, half are right."""
FEW_RIGHT = [score > 0.5 for score in SPREAD[:17]] + [False, True, False]


@pytest.mark.parametrize(
    ("scores", "right", "words", "next_step"),
    [
        (SPREAD, EXACT, "well-calibrated", "Calibrate again when"),
        # Equal scores, or nearly so, never say which answer is right, even if as many are right as they state.
        ([0.7] * 200, [True] * 140 + [False] * 60, "uninformative", "Do not use it for decisions"),
        ([0.95] * 200, [True] * 120 + [False] * 80, "over-confident, uninformative", "Do not use it for decisions"),
        ([1.0] * 20, [True] * 20, "uninformative", "All answers are right"),
        ([0.69, 0.7, 0.71, 0.7] * 50, [True] * 140 + [False] * 60, "uninformative", "Do not use it for decisions"),
        # Scores of 0 and 1 state certainty: one that is contradicted is not calibrated.
        ([*SPREAD, 1.0], [*EXACT, False], "miscalibrated", "Avoid scores of exactly 0 or 1"),
        ([*SPREAD, 0.0], [*EXACT, True], "miscalibrated", "Avoid scores of exactly 0 or 1"),
        ([*SPREAD, 0.0, 1.0], [*EXACT, False, True], "well-calibrated", "Calibrate again when"),
        # Separated outcomes: the slope has no finite estimate, and the tests are defined.
        ([0.6, 0.4] * 100, [True, False] * 100, "under-dispersed", "no finite estimate"),
        ([0.99, 0.01] * 100, [True, False] * 100, "insufficient data", "score more answers, with intermediate scores"),
        ([1.0, 0.0] * 100, [True, False] * 100, "insufficient data", "score more answers, with intermediate scores"),
        ([1.0] * 19 + [0.5], [True] * 20, "insufficient data", "all of these are correct"),
        ([0.4, 0.6] * 100, [True, False] * 100, "reversed", "Check what it measures"),
        ([0.9, 0.5] * 100, [False] * 200, "over-confident", "Recalibrate it"),
        (SPREAD[:19], EXACT[:19], "insufficient data", "at least 20 answers"),
        (SPREAD[:20], FEW_RIGHT, "insufficient data", "answers with such scores"),
        (SPREAD, AT_RANDOM, "uninformative", "Do not use it for decisions"),
    ],
)  # fmt: skip
def test_what_is_read_of_unusual_answers(scores: list[float], right: list[bool], words: str, next_step: str) -> None:
    block = verdict(scores, right)
    assert block.name == words
    assert next_step in block.sentence
    assert ("can be read as a probability" in block.sentence) == (words == "well-calibrated")
    assert ("(net bias within ±0.12, slope 0.5 to 2)" in block.sentence) == (words == "well-calibrated")
    assert block.tone == {"well-calibrated": "good", "insufficient data": "open"}.get(words, "bad")


def test_the_reasons_have_the_figures() -> None:
    flat = verdict(SPREAD, AT_RANDOM)
    assert [fact.label for fact in flat.facts] == ["answers", "net bias", "slope", "Spiegelhalter's z", "ECE"]
    assert flat.reasons[0].startswith("uninformative: AUROC 0.5000, p 1; slope ")
    assert flat.reasons[1].endswith("as it is, no better than always stating 0.5000")
    assert verdict([0.7] * 200, [True] * 140 + [False] * 60).reasons[1:] == (
        "the scores hardly differ: even if they were calibrated, the expected Brier skill would be 0.0000",
        "Brier skill 0.0000: as it is, no better than always stating 0.7000",
    )
    assert verdict([*SPREAD, 1.0], [*EXACT, False]).reasons[-1] == (
        "1 answer with score 1 but wrong, or with score 0 but correct; a calibrated score has none"
    )
    few = verdict(SPREAD[:20], FEW_RIGHT)
    assert [reason.split(" (")[0] for reason in few.reasons[:2]] == [
        "not shown: net bias within ±0.12",
        "not shown: slope within 0.5 to 2",
    ]


def test_certain_answers_do_not_make_the_bias_certain() -> None:
    """20 scores of 0 and 1, all as stated: the differences have no variance, but .161 could be otherwise (Wilson, 95 %: 0 of 20)."""
    group = of([0.0, 1.0] * 10, [False, True] * 10)
    assert group.evidence is not None
    assert group.evidence.bias_interval == (pytest.approx(-0.161, abs=0.001), pytest.approx(0.161, abs=0.001))
