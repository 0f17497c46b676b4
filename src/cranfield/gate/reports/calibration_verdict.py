"""The verdict of a calibration in words: what the answers show, why, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.base.numbers import (
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_p,
    format_value,
)
from cranfield.base.words import count_noun
from cranfield.gate.calibration.diagnosis import (
    ALPHA_SHOWN,
    FEWEST,
    LEAST_SKILL,
    MARGIN,
    SLOPES,
    Diagnosis,
    Losses,
)
from cranfield.gate.calibration.report import Calibration, CalibrationReport, Group
from cranfield.reporting.document import Tone, VerdictBlock, VerdictFact
from cranfield.stats.calibration import EDGE

BETWEEN = f"{SLOPES[0]:g} to {SLOPES[1]:g}"
WITHIN = f"slope within {BETWEEN}"
SHOWN_OR_NOT = {True: "shown", False: "not shown"}
_MEANING: dict[Diagnosis, str] = {
    Diagnosis.REVERSED: "is higher for wrong answers than for right ones",
    Diagnosis.OVER_CONFIDENT: "is too high",
    Diagnosis.UNDER_CONFIDENT: "is too low",
    Diagnosis.UNINFORMATIVE: "does not significantly distinguish right from wrong answers",
    Diagnosis.OVER_DISPERSED: "is too extreme, the highest scores too high and the lowest too low",
    Diagnosis.UNDER_DISPERSED: "is not extreme enough, the highest scores too low and the lowest too high",
    Diagnosis.MISCALIBRATED: "is not calibrated",
    Diagnosis.WELL_CALIBRATED: f"can be read as a probability (net bias within ±{MARGIN:g}, slope {BETWEEN})",
}
_RECALIBRATE = "Recalibrate it on separate answers"
_SHIFT = f"{_RECALIBRATE}, or use a threshold above which enough answers are correct."
_STRETCH = f"{_RECALIBRATE}: multiply its logits by the slope, and add the intercept."
_NEXT: dict[Diagnosis, str] = {
    Diagnosis.REVERSED: "Check what it measures (for example an error or a distance), and which answers count as correct.",
    Diagnosis.OVER_CONFIDENT: _SHIFT,
    Diagnosis.UNDER_CONFIDENT: _SHIFT,
    Diagnosis.UNINFORMATIVE: "Do not use it for decisions: recalibration adds no information, so another signal is needed.",
    Diagnosis.OVER_DISPERSED: _STRETCH,
    Diagnosis.UNDER_DISPERSED: _STRETCH,
    Diagnosis.MISCALIBRATED: "Check which bins deviate, and recalibrate it (isotonic regression, with at least some hundred answers).",
    Diagnosis.WELL_CALIBRATED: "Calibrate again when the system, the queries or the rule of correctness change.",
}
_TONES: dict[Diagnosis, Tone] = {Diagnosis.WELL_CALIBRATED: "good", Diagnosis.INSUFFICIENT_DATA: "open"}


def verdict_of(report: CalibrationReport) -> VerdictBlock:
    """Every diagnosis of the first kind of correctness; or that answers go wrong after retrieval."""
    first, losses = report.calibrations[0], report.losses
    group = first.group
    if report.diagnosis is Diagnosis.SYNTHESIS_BOTTLENECK and losses is not None:
        name = report.diagnosis.value
        sentence = (
            "Retrieved results are correct more often than the answers generated from them. Improve answer generation."
        )
        reasons = [losses_text(losses), f"The score against {first.kind.value}: {findings_text(group)}"]
    else:
        name, sentence, reasons = findings_text(group), _sentence(first, report.source.score), list(_reasons(first))
    return VerdictBlock(name, sentence, _TONES.get(report.diagnosis, "bad"), tuple(_facts(first)), tuple(reasons))


def findings_text(group: Group) -> str:
    """`over-confident, over-dispersed`."""
    return ", ".join(diagnosis.value for diagnosis in group.findings)


def losses_text(losses: Losses) -> str:
    """How many answers lack facts, with the right structure and without."""
    lost = losses.n_retrieval + losses.n_synthesis
    return (
        f"{format_count(lost)} of {count_noun(losses.n, 'answers', format_count)} lack facts: "
        f"{format_count(losses.n_synthesis)} with the right structure, {format_count(losses.n_retrieval)} without"
    )


def _sentence(found: Calibration, score: str) -> str:
    group = found.group
    counted = f"{format_count(group.right)} of {count_noun(group.n, 'answers', format_count)}"
    means = f"its mean is {format_value(group.mean_score)}, and {counted} are correct ({format_value(group.share)})"
    if group.diagnosis is Diagnosis.INSUFFICIENT_DATA:
        return f"These answers do not show whether {score} is calibrated: {means}. {_more_answers(found)}"
    meanings = " and ".join(_MEANING[diagnosis] for diagnosis in group.findings)
    return f"{score} {meanings}: {means}. {_next_step(found)}"


def _next_step(found: Calibration) -> str:
    """Next step by the last diagnosis, which includes the others; a reversed score is not shifted or stretched."""
    findings, evidence = found.group.findings, found.group.evidence
    if findings[-1] is Diagnosis.UNINFORMATIVE and found.group.right in (0, found.group.n):
        which = "right" if found.group.right else "wrong"
        return (
            f"All answers are {which}: to test whether it distinguishes right from wrong answers, add answers of "
            "the other kind."
        )
    if Diagnosis.REVERSED in findings:
        return _NEXT[Diagnosis.REVERSED]
    if Diagnosis.MISCALIBRATED in findings and evidence is not None and evidence.n_contradicted:
        return "Avoid scores of exactly 0 or 1, or write the score with more digits."
    if findings[-1] in (Diagnosis.OVER_DISPERSED, Diagnosis.UNDER_DISPERSED) and found.fit is None:
        return f"{_RECALIBRATE}; this needs more answers, because the slope has no finite estimate."
    return _NEXT[findings[-1]]


def _more_answers(found: Calibration) -> str:
    group, evidence = found.group, found.group.evidence
    if evidence is None:
        return f"Score at least {FEWEST} answers; showing calibration takes some hundred."
    if group.right in (0, group.n):
        return f"Score more answers: all of these are {'correct' if group.right else 'wrong'}, so there is no slope."
    if found.fit is None:
        return (
            "It separates right from wrong answers perfectly, so the slope has no upper limit: score more "
            "answers, with intermediate scores."
        )
    if evidence.n_needed is None or evidence.n_needed <= group.n:
        return (
            "This number of answers is enough for most calibrated scores, but this score is near a margin. Score "
            "more answers, or recalibrate it."
        )
    unit = 10 ** max(0, len(str(evidence.n_needed)) - 2)
    needed = -(-evidence.n_needed // unit) * unit
    return f"If it is, about {count_noun(needed, 'answers', format_count)} with such scores would be enough to show it."


def _reasons(found: Calibration) -> Iterator[str]:
    """The figures behind each diagnosis."""
    group, evidence = found.group, found.group.evidence
    if evidence is None:
        yield f"fewer than {FEWEST} answers"
        return
    bias = f"net bias {format_delta(evidence.bias.value)}, p {format_p(evidence.bias.p)}"
    slope = f"slope {'without finite estimate' if found.fit is None else format_delta(found.fit.slope)}, p {format_p(evidence.slope.p)}"
    order = f"AUROC {format_value(found.auroc)}, p {format_p(evidence.rank_p)}"
    z = f"Spiegelhalter's z {format_delta(evidence.spiegelhalter.value)}, p {format_p(evidence.spiegelhalter.p)}"
    ece = f"ECE in bins of equal mass {format_value(evidence.ece_mass.value)}, p {format_p(evidence.ece_mass.p)}"
    figures: dict[Diagnosis, str] = {
        Diagnosis.REVERSED: f"{order}; {slope}",
        Diagnosis.OVER_CONFIDENT: bias,
        Diagnosis.UNDER_CONFIDENT: bias,
        Diagnosis.UNINFORMATIVE: f"{order}; {slope}",
        Diagnosis.OVER_DISPERSED: slope,
        Diagnosis.UNDER_DISPERSED: slope,
        Diagnosis.MISCALIBRATED: f"{bias}; {slope}; {z}; {ece}",
    }
    yield from (f"{diagnosis.value}: {figures[diagnosis]}" for diagnosis in group.findings if diagnosis in figures)
    if group.diagnosis in (Diagnosis.WELL_CALIBRATED, Diagnosis.INSUFFICIENT_DATA):
        level = format_level(2 * ALPHA_SHOWN)
        bound = f"net bias within ±{MARGIN:g} ({level} CI {format_delta_interval(evidence.bias_shown)})"
        yield f"{SHOWN_OR_NOT[evidence.is_bias_shown]}: {bound}"
        yield f"{SHOWN_OR_NOT[evidence.is_slope_shown]}: {WITHIN} (p {format_p(evidence.slope_shown_p)})"
    if Diagnosis.UNINFORMATIVE in group.findings and evidence.attainable_skill < LEAST_SKILL:
        yield (
            "the scores hardly differ: even if they were calibrated, the expected Brier skill would be "
            f"{format_value(evidence.attainable_skill)}"
        )
    if found.brier_skill is not None and found.brier_skill < EDGE:
        constant = f"no better than always stating {format_value(group.share)}"
        yield f"Brier skill {format_value(found.brier_skill)}: as it is, {constant}"
    if evidence.n_contradicted:
        counted = count_noun(evidence.n_contradicted, "answers", format_count)
        yield f"{counted} with score 1 but wrong, or with score 0 but correct; a calibrated score has none"


def _facts(found: Calibration) -> Iterator[VerdictFact]:
    group, fit, evidence = found.group, found.fit, found.group.evidence
    yield VerdictFact("answers", format_count(group.n), f"correct: {found.rule}")
    if evidence is None:
        return
    bias = format_delta_interval(evidence.bias_interval)
    slope = "no finite estimate" if fit is None else f"95 % CI {format_delta_interval(fit.slope_interval)}"
    z, ece = evidence.spiegelhalter, evidence.ece
    yield VerdictFact("net bias", format_delta(evidence.bias.value), f"95 % CI {bias}, p {format_p(evidence.bias.p)}")
    yield VerdictFact(
        "slope", format_delta(None if fit is None else fit.slope), f"{slope}, p {format_p(evidence.slope.p)}"
    )
    yield VerdictFact("Spiegelhalter's z", format_delta(z.value), f"p {format_p(z.p)}")
    yield VerdictFact("ECE", format_value(ece.value), f"p {format_p(ece.p)}")
