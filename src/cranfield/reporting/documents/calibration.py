"""Calibration of a confidence, as a Document: what `cranfield calibrate` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cranfield.calibration.answers import Exclusion, ScoredAnswers
from cranfield.calibration.diagnosis import FEWEST, RULES, Diagnosis, Losses
from cranfield.calibration.report import Advice, Calibration, CalibrationReport, Group, Routed
from cranfield.numbers import format_count, format_delta, format_delta_interval, format_interval, format_p, format_value
from cranfield.record import Fields, record_of
from cranfield.reporting.charts.calibration import reliability_diagram, risk_coverage_curve
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    Block,
    Brief,
    Bullets,
    Cell,
    Column,
    Document,
    Fact,
    Figure,
    KeyValues,
    Paragraph,
    Section,
    Table,
    Tone,
    VerdictBlock,
    tidy_table,
)
from cranfield.stats.calibration import EQUAL_WIDTH_BINS, Bin, LogisticFit, NullTest
from cranfield.words import capitalised, first_of, n_of

TIDY = ("correctness", "query", "score", "correct", "reason not counted")
SHOWN = 5
"""Ids that a line about queries that are not counted names."""
NOT_IN_BRIEF = ("correct", "mean score", "log loss", "AURC", "diagnosis")
"""Figures that the short form does not repeat, or leaves to the report."""
TONES: dict[Diagnosis, Tone] = {
    Diagnosis.WELL_CALIBRATED: "good",
    Diagnosis.OVER_CONFIDENT: "bad",
    Diagnosis.UNDER_CONFIDENT: "bad",
    Diagnosis.MISCALIBRATED: "bad",
    Diagnosis.SYNTHESIS_BOTTLENECK: "bad",
    Diagnosis.INSUFFICIENT_DATA: "open",
}
METHOD = (
    (
        "p-values: each answer is drawn as correct with the probability that its score states, which gives the distribution of net "
        "bias and ECE of a calibrated score at this n. With few answers that ECE is far above 0."
    ),
    "Intervals of shares are Wilson's; of the net bias, Student's t; of slope and intercept, Wald's. Level: 95 %.",
    (
        "Slope and intercept are of a logistic regression of the outcome on the logit of the score: 1 and 0 for a calibrated score. "
        "A slope under 1 is of scores that are too extreme."
    ),
    (
        "Threshold advice: the lowest of 0.0, 0.1, ... 0.9 from which on the exact one-sided lower bound of the share of correct "
        "answers, at .05 divided by the number of candidates, is at least the target."
    ),
    "Strata are not corrected for being several.",
)


def calibration_document(report: CalibrationReport) -> Document:
    """The diagnosis, and for each kind of correctness its figures, its bins, and its strata."""
    source = report.source
    sections: list[Section] = []
    for found in report.calibrations:
        sections += _sections(found, report)
    rules = tuple(f"{diagnosis.value}: {rule}." for diagnosis, rule in RULES.items())
    sections.append(Section("about", "Method", (Bullets((*METHOD, *rules)),), "how the figures are computed"))
    counted = "; ".join(
        f"{each.kind.value} ({each.rule}): n = {format_count(each.group.n)}" for each in report.calibrations
    )
    return Document(
        title=f"Calibration: {source.score}",
        subtitle=(
            f"{source.name}, {n_of(len(source.answers), 'queries', format_count)}",
            *([f"test set {source.testset}"] if source.testset else ()),
            f"correctness: {counted}",
        ),
        sections=tuple(sections),
        tidy=lambda: tidy_table(TIDY, _tidy(report)),
        payload=lambda: _payload(report),
        verdict=_verdict(report),
        brief=lambda: _brief(report),
    )


def _brief(report: CalibrationReport) -> Brief:
    """The figures of the first kind of correctness; the diagnosis against another kind; and what is not counted."""
    first, *others = report.calibrations
    shown = [row for row in _figures(first) if row[0] not in NOT_IN_BRIEF]
    table = Table((Column("figure"), Column("value")), shown, f"Against correctness, {first.kind.value}")
    lines = [f"Against correctness, {each.kind.value}: {each.group.diagnosis.value}" for each in others]
    if report.losses is not None and report.diagnosis is not Diagnosis.SYNTHESIS_BOTTLENECK:
        lines.append(_losses(report.losses))
    excluded = [_excluded_text(why, queries) for why, queries in first.excluded.items()]
    return Brief(table, tuple(lines), (*_verdict(report).reasons, *excluded))


def _excluded_text(why: Exclusion, queries: Sequence[str]) -> str:
    ids = first_of(list(queries), SHOWN)
    return f"not counted, {why.value}: {n_of(len(queries), 'queries', format_count)} ({ids})"


def _verdict(report: CalibrationReport) -> VerdictBlock:
    first, diagnosis = report.calibrations[0], report.diagnosis
    group = first.group
    facts = [Fact("answers", format_count(group.n), f"correct: {first.rule}")]
    if group.bias is not None and group.ece is not None:
        interval = format_delta_interval(group.bias_interval)
        facts += [
            Fact("net bias", format_delta(group.bias.value), f"95 % CI {interval}, p = {format_p(group.bias.p)}"),
            Fact("ECE", format_value(group.ece.value), f"p = {format_p(group.ece.p)}"),
        ]
    reasons = [f"{diagnosis.value}: {RULES[diagnosis]}"]
    if diagnosis is Diagnosis.SYNTHESIS_BOTTLENECK and report.losses is not None:
        reasons = [_losses(report.losses), f"The score against {first.kind.value}: {group.diagnosis.value}"]
    return VerdictBlock(diagnosis.value, _sentence(report), TONES[diagnosis], tuple(facts), tuple(reasons))


def _sentence(report: CalibrationReport) -> str:
    first, score = report.calibrations[0], report.source.score
    group = first.group
    counted = f"{format_count(group.right)} of {n_of(group.n, 'answers', format_count)}"
    means = f"its mean is {format_value(group.mean_score)}, and {counted} are correct ({format_value(group.share)})"
    sentences = {
        Diagnosis.WELL_CALIBRATED: f"{score} can be read as a probability: {means}.",
        Diagnosis.OVER_CONFIDENT: f"{score} is too high: {means}.",
        Diagnosis.UNDER_CONFIDENT: f"{score} is too low: {means}.",
        Diagnosis.MISCALIBRATED: f"{score} is too high for some answers and too low for others: {means}.",
        Diagnosis.SYNTHESIS_BOTTLENECK: "What was retrieved is right more often than the answers made of it.",
        Diagnosis.INSUFFICIENT_DATA: f"These answers do not show whether {score} is calibrated: {means}.",
    }
    return sentences[report.diagnosis]


def _losses(losses: Losses) -> str:
    lost = losses.n_retrieval + losses.n_synthesis
    return (
        f"{format_count(lost)} of {n_of(losses.n, 'answers', format_count)} lack facts: "
        f"{format_count(losses.n_synthesis)} with the right structure, {format_count(losses.n_retrieval)} without"
    )


def _sections(found: Calibration, report: CalibrationReport) -> list[Section]:
    name, kind, group = found.kind.name.lower(), found.kind.value, found.group
    blocks: list[Block] = [KeyValues(_figures(found))]
    for why, queries in found.excluded.items():
        blocks.append(Paragraph(f"{capitalised(_excluded_text(why, queries))}.", "note"))
    if report.losses is not None and found is report.calibrations[0]:
        blocks.append(Paragraph(f"{_losses(report.losses)}.", "note"))
    sections = [Section(f"figures-{name}", f"Against correctness, {kind}", tuple(blocks))]
    if group.n:
        sections.append(Section(f"bins-{name}", f"Reliability, {kind}", _reliability(found, name)))
        sections.append(Section(f"risk-{name}", f"Risk and coverage, {kind}", _risk(found, name)))
    if found.strata:
        sections.append(Section(f"strata-{name}", f"Strata, {kind}", (_strata(found),)))
    return sections


def _figures(found: Calibration) -> tuple[tuple[str, str], ...]:
    group, routed, fit = found.group, found.routed, found.fit
    at = f"answer_correctness@{routed.threshold:g}"
    reached = "no answer reaches it"
    if routed.n:
        of = f"{format_count(routed.right)} of {format_count(routed.n)}"
        reached = f"{format_value(routed.share)} ({of}, 95 % CI {format_interval(routed.interval)})"
    return (
        (
            "correct",
            f"{found.rule}: {format_count(group.right)} of {format_count(group.n)}, {format_value(group.share)}",
        ),
        ("mean score", format_value(group.mean_score)),
        ("net bias", _bias_text(group)),
        (f"ECE, {EQUAL_WIDTH_BINS} bins of equal width", _test_text(group.ece)),
        (f"ECE, {len(found.bins_mass)} bins of equal mass", _test_text(group.ece_mass)),
        ("Brier score", f"{format_value(found.brier)}, skill {format_value(found.brier_skill)}"),
        (
            "log loss",
            "infinite: a score of 0 or 1 was wrong" if found.log_loss is None else format_value(found.log_loss),
        ),
        *_fit_rows(fit),
        ("AUROC", format_value(found.auroc)),
        ("AURC", f"{format_value(found.aurc)}; {_wrong_share(group)} for a score without information"),
        (at, reached),
        ("threshold advice", _advice_text(found.advice)),
        ("diagnosis", group.diagnosis.value),
    )


def _fit_rows(fit: LogisticFit | None) -> tuple[tuple[str, str], ...]:
    if fit is None:
        return (("slope and intercept", "no finite estimate"),)
    slope = f"{format_delta(fit.slope)} (95 % CI {format_delta_interval(fit.slope_interval)})"
    intercept = f"{format_delta(fit.intercept)} (95 % CI {format_delta_interval(fit.intercept_interval)})"
    clipped = f"; {n_of(fit.n_clipped, 'scores')} near 0 or 1 clipped" if fit.n_clipped else ""
    return (("calibration slope", slope + clipped), ("calibration intercept", intercept))


def _wrong_share(group: Group) -> str:
    return format_value(None if group.share is None else 1 - group.share)


def _advice_text(advice: Advice | None) -> str:
    if advice is None:
        return "no threshold supportable"
    counted = f"{format_count(advice.right)} of {format_count(advice.n)} correct"
    return f"{advice.threshold:.1f}: {counted}, lower bound {format_value(advice.lower)}"


def _bias_text(group: Group) -> str:
    if group.bias is None:
        return f"fewer than {FEWEST} answers"
    interval = format_delta_interval(group.bias_interval)
    return f"{format_delta(group.bias.value)} (95 % CI {interval}, p = {format_p(group.bias.p)})"


def _test_text(test: NullTest | None) -> str:
    if test is None:
        return f"fewer than {FEWEST} answers"
    return f"{format_value(test.value)} (a calibrated score: {format_value(test.null_mean)}, p = {format_p(test.p)})"


def _reliability(found: Calibration, name: str) -> tuple[Block, ...]:
    width = _bins(
        found.bins, f"Answers in {EQUAL_WIDTH_BINS} bins of equal width; a bin without answers has no row", "up to"
    )
    mass = _bins(found.bins_mass, "Answers in bins of equal mass", "to")
    figure = Figure(
        name=f"reliability-{name}",
        title=f"Share of correct answers by {EQUAL_WIDTH_BINS} bins of the score",
        alt="Reliability diagram: share of correct answers against mean score, with intervals; see the table.",
        spec=reliability_diagram(found.bins, SCREENS[0]),
        narrow_spec=reliability_diagram(found.bins, SCREENS[1]),
        table=width,
        table_follows=True,
    )
    return figure, width, mass


def _bins(bins: Sequence[Bin], caption: str, upper: str) -> Table:
    columns = (
        *(Column("score from"), Column(upper), Column("n", "count"), Column("correct", "count")),
        *(Column("mean score", "value"), Column("share correct", "value"), Column("95 % CI", "interval")),
        Column("gap", "delta"),
    )
    rows: list[tuple[Cell, ...]] = [
        (f"{b.low:g}", f"{b.high:g}", b.n, b.right, b.mean_score, b.share, b.interval, b.mean_score - b.share)
        for b in bins
    ]
    return Table(columns, rows, caption, shown=None)


def _risk(found: Calibration, name: str) -> tuple[Block, ...]:
    columns = (
        *(Column("score from", "value"), Column("answers", "count"), Column("correct", "count")),
        *(Column("coverage", "percent"), Column("share wrong", "value")),
    )
    rows: list[tuple[Cell, ...]] = [(p.threshold, p.n, p.right, p.coverage, p.risk) for p in found.risk]
    table = Table(columns, rows, "Answers with at least a score, at each score that occurs")
    figure = Figure(
        name=f"risk-{name}",
        title="Share of wrong answers by coverage",
        alt="Risk-coverage curve: share of wrong answers among those with the highest scores; see the table.",
        spec=risk_coverage_curve(found.risk, SCREENS[0]),
        narrow_spec=risk_coverage_curve(found.risk, SCREENS[1]),
        table=table,
        table_follows=True,
    )
    return figure, table


def _strata(found: Calibration) -> Table:
    columns = (
        *(Column("stratum"), Column("n", "count"), Column("share correct", "value"), Column("95 % CI", "interval")),
        *(Column("mean score", "value"), Column("net bias", "delta"), Column("p", "p"), Column("ECE", "value")),
        Column("diagnosis"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            *(f"{key}: {value}", group.n, group.share, group.interval, group.mean_score),
            *((group.bias.value, group.bias.p) if group.bias else (None, None)),
            group.ece.value if group.ece else None,
            "n too small" if group.bias is None else group.diagnosis.value,
        )
        for key, value, group in found.strata
    ]
    return Table(columns, rows, f"Each stratum by itself; n is too small under {FEWEST}", shown=None)


def _tidy(report: CalibrationReport) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for found in report.calibrations:
        for answer in report.source.answers:
            why, right = answer.excluded(found.kind), answer.correct.get(found.kind)
            outcome = None if right is None else str(right).lower()
            rows.append((found.kind.value, answer.query_id, answer.score, outcome, why.value if why else ""))
    return rows


FIELDS: Fields = {
    CalibrationReport: "source diagnosis losses calibrations options",
    ScoredAnswers: "name score testset? n_queries=answers.__len__ queries_digest",
    Losses: "n n_retrieval n_synthesis is_synthesis",
    Calibration: (
        "correctness=kind rule group excluded bins bins_mass brier brier_skill log_loss fit auroc risk aurc routed advice"
    ),
    Group: "n right share interval mean_score bias bias_interval ece ece_mass diagnosis",
    Routed: "threshold n right share interval",
    Bin: "low high n right share interval mean_score",
}
"""What is written of each class; see `cranfield.record`."""


def _payload(report: CalibrationReport) -> dict[str, Any]:
    record = {"schema_version": 1, **record_of(report, FIELDS)}
    for written, found in zip(record["calibrations"], report.calibrations, strict=True):
        written["excluded"] = {why.value: list(ids) for why, ids in found.excluded.items()}
        written["strata"] = [
            {"stratum": key, "value": value, **record_of(group, FIELDS)} for key, value, group in found.strata
        ]
    return record
