"""A confidence against whether the answers were right: every figure of `cranfield calibrate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cranfield.base.errors import Problem, UsageError, unknown_name
from cranfield.gate.calibration.diagnosis import (
    ALPHA_SHOWN,
    FEWEST,
    MARGIN,
    SLOPES,
    CalibrationEvidence,
    Diagnosis,
    Losses,
    SlopeStatistics,
    diagnose,
)
from cranfield.gate.calibration.table import CalibrationAnswers, Correctness, Exclusion, ScoredAnswer
from cranfield.model.results import Record
from cranfield.stats import calibration as stats
from cranfield.stats.calibration import (
    answers_needed,
    rank_statistic,
    slope_statistic,
    slope_weights,
    spiegelhalter_weights,
)
from cranfield.stats.confusion import wilson_interval
from cranfield.stats.describe import t_interval

MAX_VALUES = 12
"""A stratum with more values is reported only where it is asked for."""


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """What is asked of a confidence."""

    threshold: float = 0.8
    """Answers with at least this score are those that the system would give without help."""
    target: float = 0.8
    """Share of correct answers that an advised threshold must have."""
    by: Sequence[str] | None = None
    """Strata; None: all with at most `MAX_VALUES` values."""
    seed: int = 0
    draws: int = stats.DRAWS

    def __post_init__(self) -> None:
        """Refuse a threshold or target that is no share."""
        shares = {"threshold": self.threshold, "target": self.target}
        problems = [
            Problem(f"{{{name}}} is {value:g}", expected="a number from 0 to 1", parameters=(name,))
            for name, value in shares.items()
            if not stats.is_finite_share(value)
        ]
        if self.draws < 1:
            problems.append(Problem(f"draws is {self.draws}", expected="1 or more"))
        if problems:
            raise UsageError(problems)


@dataclass(frozen=True, slots=True)
class Routed:
    """The answers from a threshold on."""

    threshold: float
    n: int
    right: int
    share: float | None
    """Share of correct answers; None where no answer reaches the threshold."""
    interval: tuple[float, float] | None
    """Wilson's interval of the share."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A threshold from which on the target is supported."""

    threshold: float
    n: int
    right: int
    lower: float
    """One-sided lower bound of the share of correct answers, corrected for the number of candidate thresholds."""


@dataclass(frozen=True, slots=True)
class Group:
    """Calibration within some answers, at least one: all, or those of a stratum."""

    n: int
    right: int
    share: float
    """Share of correct answers."""
    interval: tuple[float, float]
    """Wilson's interval of the share."""
    mean_score: float
    evidence: CalibrationEvidence | None
    """None with fewer than `FEWEST` answers."""
    diagnosis: Diagnosis
    """The first that holds."""
    findings: tuple[Diagnosis, ...]
    """Every diagnosis that holds, the diagnosis of the group first."""


@dataclass(frozen=True, slots=True)
class CalibrationStratum:
    """The answers with a value of a stratum."""

    stratum: str
    value: str
    group: Group


@dataclass(frozen=True, slots=True)
class Calibration:
    """A confidence against one kind of correctness."""

    kind: Correctness
    rule: str
    """What is correct."""
    group: Group
    excluded: Mapping[Exclusion, tuple[str, ...]]
    """Reason to the ids of queries that are not counted."""
    bins: tuple[stats.Bin, ...]
    bins_mass: tuple[stats.Bin, ...]
    brier: float
    brier_skill: float | None
    log_loss: float | None
    fit: stats.LogisticFit | None
    auroc: float | None
    risk: tuple[stats.CoveragePoint, ...]
    aurc: float
    routed: Routed
    advice: Advice | None
    """None: no threshold is supportable."""
    strata: tuple[CalibrationStratum, ...]


@dataclass(frozen=True, slots=True)
class CalibrationSource:
    """Whose answers a calibration is of; the fields are those of `CalibrationAnswers`."""

    name: str
    score: str
    testset: str
    n_queries: int
    queries_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport(Record):
    """A confidence against each kind of correctness that is known, facts first."""

    source: CalibrationSource
    diagnosis: Diagnosis
    """That of the first kind of correctness, unless most of what is lost is lost after retrieval."""
    losses: Losses | None
    """None where facts, or structure, are not known."""
    calibrations: tuple[Calibration, ...]
    options: CalibrationOptions


def calibrate(source: CalibrationAnswers, options: CalibrationOptions | None = None) -> CalibrationReport:
    """Compare the confidence of answers with whether they were right.

    Raises:
        UsageError: no answer has both a score and a correctness, or a stratum that no query has.
    """
    options = options or CalibrationOptions()
    counted = [kind for kind in source.kinds if any(answer.excluded(kind) is None for answer in source.answers)]
    if not counted:
        counts = Counter(
            answer.excluded(source.kinds[0]) if source.kinds else Exclusion.NO_CORRECTNESS for answer in source.answers
        )
        got = ", ".join(f"{count} {why}" for why, count in counts.items()) or "no answer"
        raise UsageError("no answer has both a score and a correctness", path=source.name, got=got)
    keys = _stratum_keys(source.answers, options.by)
    found = tuple(_calibration(source, kind, keys, options) for kind in counted)
    losses = _losses(source.answers)
    is_synthesis = losses is not None and losses.is_synthesis
    return CalibrationReport(
        source=CalibrationSource(source.name, source.score, source.testset, len(source.answers), source.queries_digest),
        diagnosis=Diagnosis.SYNTHESIS_BOTTLENECK if is_synthesis else found[0].group.diagnosis,
        losses=losses,
        calibrations=found,
        options=options,
    )


def _stratum_keys(answers: Sequence[ScoredAnswer], by: Sequence[str] | None) -> tuple[str, ...]:
    values: dict[str, set[str]] = {}
    for answer in answers:
        for key, value in answer.strata.items():
            values.setdefault(key, set()).add(value)
    if by is None:
        return tuple(key for key, found in values.items() if 1 < len(found) <= MAX_VALUES)
    if problems := [unknown_name("stratum", key, values) for key in by if key not in values]:
        raise UsageError(problems)
    return tuple(by)


def _calibration(
    source: CalibrationAnswers, kind: Correctness, keys: Sequence[str], options: CalibrationOptions
) -> Calibration:
    counted = [answer for answer in source.answers if answer.excluded(kind) is None]
    scores, correct = _arrays(counted, kind)
    excluded: dict[Exclusion, tuple[str, ...]] = {}
    for answer in source.answers:
        if (why := answer.excluded(kind)) is not None:
            excluded[why] = (*excluded.get(why, ()), answer.query_id)
    advised = stats.supported_threshold(scores, correct, options.target)
    width = stats.equal_width_bins(scores)
    return Calibration(
        kind=kind,
        rule=source.rules.get(kind, kind.value),
        group=group_of(scores, correct, options),
        excluded=excluded,
        bins=stats.reliability(scores, correct, width, n_equal=stats.EQUAL_WIDTH_BINS),
        bins_mass=stats.reliability(scores, correct, stats.equal_mass_bins(scores)),
        brier=stats.brier_score(scores, correct),
        brier_skill=stats.brier_skill(scores, correct),
        log_loss=stats.log_loss(scores, correct),
        fit=stats.logistic_fit(scores, correct),
        auroc=stats.auroc(scores, correct),
        risk=stats.risk_coverage(scores, correct),
        aurc=stats.area_under_risk_coverage(scores, correct),
        routed=_routed(options.threshold, *stats.routed(scores, correct, options.threshold)),
        advice=None if advised is None else Advice(*advised),
        strata=tuple(_strata(counted, kind, keys, options)),
    )


def _routed(threshold: float, n: int, right: int) -> Routed:
    return Routed(threshold, n, right, right / n if n else None, wilson_interval(right, n) if n else None)


def _arrays(answers: Iterable[ScoredAnswer], kind: Correctness) -> tuple[stats.Floats, stats.Bools]:
    pairs = [(answer.score, answer.correct[kind]) for answer in answers]
    return np.array([score for score, _ in pairs], dtype=np.float64), np.array(
        [right for _, right in pairs], dtype=bool
    )


def group_of(scores: stats.Floats, correct: stats.Bools, options: CalibrationOptions) -> Group:
    """What some answers show.

    Args:
        scores: float64[n] of confidences from 0 to 1, n at least 1.
        correct: bool[n], in the same order.
        options: seed and number of the draws.
    """
    evidence = _evidence(scores, correct, options) if len(scores) >= FEWEST else None
    n, right, findings = len(scores), int(correct.sum()), diagnose(evidence)
    interval = wilson_interval(right, n)
    return Group(n, right, right / n, interval, float(scores.mean()), evidence, findings[0], findings)


def _evidence(scores: stats.Floats, correct: stats.Bools, options: CalibrationOptions) -> CalibrationEvidence:
    binnings = (stats.equal_width_bins(scores), stats.equal_mass_bins(scores))
    weights = (slope_weights(scores), spiegelhalter_weights(scores))
    bias, ece, ece_mass, slope, spiegelhalter = stats.null_tests(
        scores, correct, binnings, weights, seed=options.seed, draws=options.draws
    )
    constant = float(scores.mean() * (1 - scores.mean()))
    return CalibrationEvidence(
        bias=bias,
        slope=slope,
        spiegelhalter=spiegelhalter,
        ece=ece,
        ece_mass=ece_mass,
        bias_interval=_bias_interval(scores, correct, 0.95),
        bias_shown=_bias_interval(scores, correct, 1 - 2 * ALPHA_SHOWN),
        slopes=SlopeStatistics(*(slope_statistic(scores, correct, slope) for slope in (SLOPES[0], 1.0, SLOPES[1]))),
        rank_z=rank_statistic(scores, correct),
        attainable_skill=float(scores.var()) / constant if constant > 0 else 0.0,
        n_contradicted=int((np.abs(scores - correct) > 1 - stats.EDGE).sum()),
        n_needed=answers_needed(scores, MARGIN, SLOPES, ALPHA_SHOWN),
    )


def _bias_interval(scores: stats.Floats, correct: stats.Bools, level: float) -> tuple[float, float]:
    """Student's t interval of the mean of score minus outcome; by Wilson's interval where that has no width, or outcomes are equal."""
    found = t_interval(scores - correct, level)
    if found is not None and correct.any() and not correct.all():
        if found[0] < found[1]:
            return found
        surprising = wilson_interval(0, len(correct), level)[1]  # every score is 0 or 1, and right
        return -surprising, surprising
    low, high = wilson_interval(int(correct.sum()), len(correct), level)
    return float(scores.mean()) - high, float(scores.mean()) - low


def _strata(
    answers: Sequence[ScoredAnswer], kind: Correctness, keys: Sequence[str], options: CalibrationOptions
) -> Iterable[CalibrationStratum]:
    for key in keys:
        for value in sorted({answer.strata[key] for answer in answers if key in answer.strata}):
            members = [answer for answer in answers if answer.strata.get(key) == value]
            yield CalibrationStratum(key, value, group_of(*_arrays(members, kind), options))


def _losses(answers: Sequence[ScoredAnswer]) -> Losses | None:
    both = [
        answer.correct
        for answer in answers
        if not answer.is_failed and {Correctness.FACTS, Correctness.STRUCTURAL} <= answer.correct.keys()
    ]
    if not both:
        return None
    lost = [correct[Correctness.STRUCTURAL] for correct in both if not correct[Correctness.FACTS]]
    return Losses.of(len(both), lost.count(False), lost.count(True))
