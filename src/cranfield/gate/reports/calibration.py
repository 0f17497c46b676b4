"""Calibration of a confidence, as a Document: what `cranfield calibrate` prints."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.base.numbers import (
    format_count,
    format_delta,
    format_delta_interval,
    format_interval,
    format_level,
    format_p,
    format_plain,
    format_value,
)
from cranfield.base.words import capitalised, count_noun, join_first
from cranfield.gate.calibration.diagnosis import (
    ALPHA,
    ALPHA_BIAS,
    ALPHA_ECE,
    ALPHA_FAMILY,
    ALPHA_SHOWN,
    ALPHA_SLOPE,
    ALPHA_SPIEGELHALTER,
    FEWEST,
    RULES,
    CalibrationEvidence,
    Diagnosis,
)
from cranfield.gate.calibration.report import Advice, Calibration, CalibrationReport, CalibrationStratum
from cranfield.gate.calibration.table import Exclusion, ScoredAnswer
from cranfield.gate.reports.calibration_verdict import (
    SHOWN_OR_NOT,
    WITHIN,
    findings_text,
    losses_text,
    verdict_of,
)
from cranfield.model.results import to_jsonable
from cranfield.reporting.charts.spec import BETTER, SAME, SCREENS, WORSE, Rule, Screen, Spec, frame_of, spec_of, tip_of
from cranfield.reporting.document import (
    Block,
    Brief,
    Bullets,
    Chart,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
)
from cranfield.reporting.table_spec import Col, TableSpec
from cranfield.stats.calibration import EQUAL_WIDTH_BINS, LOGIT_MARGIN, Bin, CoveragePoint, LogisticFit, NullTest

HEIGHT, WIDEST = 300, 520
LEFT, RIGHT, TOP = 60, 24, 12
SMALLEST, LARGEST = 40, 260
"""Area of a dot, by the share of the answers in its bin."""
_YES_OR_NO = {True: "true", False: "false", None: None}
TOO_FEW = f"fewer than {FEWEST} answers"
SHOWN = 5
"""Ids that a line about queries that are not counted names."""
CLIPPED = f"{LOGIT_MARGIN:g} and {1 - LOGIT_MARGIN:g}"
NOT_IN_BRIEF = ("correct", "mean score", "log loss", WITHIN, "calibration intercept", "AURC", "diagnosis")
"""Figures that the short form does not repeat, or leaves to the report."""
METHOD = (
    (
        "p-values: outcomes are simulated with the probabilities given by the scores, which yields the "
        "distribution of net bias, slope, Spiegelhalter's z and ECE of a calibrated score at this n. With few answers, this ECE is far above 0."
    ),
    "95 % CIs: Wilson for shares, Student's t for the net bias, Wald for slope and intercept.",
    (
        "Slope and intercept: logistic regression of the outcome on the logit of the score (clipped to "
        f"{CLIPPED}). A calibrated score has slope 1 and intercept 0; a slope below 1 means that the scores are too extreme."
    ),
    (
        "Spiegelhalter's z: Brier score minus the expected Brier score of a calibrated score, in standard "
        "errors. Above 0, errors are larger than the scores imply."
    ),
    (
        f"A score is reported as not calibrated if the net bias is significant at {format_plain(ALPHA_BIAS)}, "
        "the slope at "
        f"{format_plain(ALPHA_SLOPE)}, Spiegelhalter's z at {format_plain(ALPHA_SPIEGELHALTER)} or the ECE in bins of equal mass at "
        f"{format_plain(ALPHA_ECE)}, or if an answer with score 1 is wrong or one with score 0 is correct. "
        f"This rejects a calibrated score in at most {format_level(1 - ALPHA_FAMILY)} of samples."
    ),
    (
        "For a score that is not calibrated, a direction is reported if it is significant at "
        f"{format_plain(ALPHA)} both by simulation and by the interval of the net bias or the score test of slope 1 with a fitted intercept. The AUROC is tested with Wilcoxon's rank sum test, corrected for ties."
    ),
    (
        "Equivalence of net bias and slope is shown by two one-sided tests each, at "
        f"{format_plain(ALPHA_SHOWN)}: Student's t for the net bias, and score tests of both limits with a fitted intercept for the slope."
    ),
    (
        "Recommended threshold: the lowest of 0.0, 0.1, ... 0.9 at which the exact one-sided lower bound of "
        "the share of correct answers, at .05 divided by the number of candidates, reaches the target."
    ),
    "No multiple-comparison correction for strata.",
)


def calibration_document(report: CalibrationReport, answers: Sequence[ScoredAnswer]) -> Document:
    """The diagnosis, and for each kind of correctness its figures, its bins, and its strata; CSV has the answers."""
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
            f"{source.name}, {count_noun(source.n_queries, 'queries', format_count)}",
            *([f"test set {source.testset}"] if source.testset else ()),
            f"correctness: {counted}",
        ),
        sections=tuple(sections),
        tidy=lambda: _tidy(report, answers),
        payload=lambda: to_jsonable(report),
        verdict=(verdict := verdict_of(report)),
        brief=lambda: _brief(report, verdict.reasons),
    )


def _brief(report: CalibrationReport, reasons: Sequence[str]) -> Brief:
    """The figures of the first kind of correctness; the diagnosis against another kind; and what is not counted."""
    first, *others = report.calibrations
    shown = [row for row in _figures(first) if row[0] not in NOT_IN_BRIEF]
    table = TableSpec(
        f"Against correctness, {first.kind.value}",
        shown,
        (Col("figure", lambda row: row[0]), Col("value", lambda row: row[1])),
    ).table(shown=20)
    lines = [f"Against correctness, {each.kind.value}: {findings_text(each.group)}" for each in others]
    if report.losses is not None and report.diagnosis is not Diagnosis.SYNTHESIS_BOTTLENECK:
        lines.append(losses_text(report.losses))
    excluded = [_excluded_text(why, queries) for why, queries in first.excluded.items()]
    return Brief(table, tuple(lines), (*excluded, *reasons))


def _excluded_text(why: Exclusion, queries: Sequence[str]) -> str:
    ids = join_first(list(queries), SHOWN)
    return f"left out, {why.value}: {count_noun(len(queries), 'queries', format_count)} ({ids})"


def _sections(found: Calibration, report: CalibrationReport) -> list[Section]:
    name, kind = found.kind.name.lower(), found.kind.value
    blocks: list[Block] = [KeyValues(_figures(found))]
    for why, queries in found.excluded.items():
        blocks.append(Paragraph(f"{capitalised(_excluded_text(why, queries))}.", "note"))
    if report.losses is not None and found is report.calibrations[0]:
        blocks.append(Paragraph(f"{losses_text(report.losses)}.", "note"))
    sections = [Section(f"figures-{name}", f"Against correctness, {kind}", tuple(blocks))]
    sections.append(Section(f"bins-{name}", f"Reliability, {kind}", _reliability(found, name)))
    sections.append(Section(f"risk-{name}", f"Risk and coverage, {kind}", _risk(found, name)))
    if found.strata:
        sections.append(Section(f"strata-{name}", f"Strata, {kind}", _strata(found)))
    return sections


def _figures(found: Calibration) -> tuple[tuple[str, str], ...]:
    group, routed, evidence = found.group, found.routed, found.group.evidence
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
        ("net bias", _bias_text(evidence)),
        (f"ECE, {EQUAL_WIDTH_BINS} bins of equal width", _test_text(None if evidence is None else evidence.ece)),
        (
            f"ECE, {len(found.bins_mass)} bins of equal mass",
            _test_text(None if evidence is None else evidence.ece_mass),
        ),
        ("Brier score", f"{format_value(found.brier)}, skill {format_value(found.brier_skill)}"),
        (
            "log loss",
            "infinite: an answer with score 0 or 1 was misclassified"
            if found.log_loss is None
            else format_value(found.log_loss),
        ),
        *_slope_rows(found.fit, evidence),
        ("AUROC", format_value(found.auroc) + ("" if evidence is None else f" (p {format_p(evidence.rank_p)})")),
        ("AURC", f"{format_value(found.aurc)}; {format_value(1 - group.share)} for an uninformative score"),
        (at, reached),
        ("threshold advice", _advice_text(found.advice)),
        ("diagnosis", findings_text(group)),
    )


def _slope_rows(fit: LogisticFit | None, evidence: CalibrationEvidence | None) -> tuple[tuple[str, str], ...]:
    p = "" if evidence is None else f"p {format_p(evidence.slope.p)}"
    slope, intercept = f"no finite estimate{p and f' ({p})'}", "no finite estimate"
    if fit is not None:
        slope = f"{format_delta(fit.slope)} (95 % CI {format_delta_interval(fit.slope_interval)}{p and f', {p}'})"
        intercept = f"{format_delta(fit.intercept)} (95 % CI {format_delta_interval(fit.intercept_interval)})"
        if fit.n_clipped:
            intercept += f"; {count_noun(fit.n_clipped, 'scores', format_count)} clipped to {CLIPPED}"
    within = z = TOO_FEW
    if evidence is not None:
        within = f"{SHOWN_OR_NOT[evidence.is_slope_shown]} (p {format_p(evidence.slope_shown_p)})"
        z = f"{format_delta(evidence.spiegelhalter.value)} (p {format_p(evidence.spiegelhalter.p)})"
    return (
        ("calibration slope", slope),
        (WITHIN, within),
        ("calibration intercept", intercept),
        ("Spiegelhalter's z", z),
    )


def _advice_text(advice: Advice | None) -> str:
    if advice is None:
        return "no threshold supportable"
    counted = f"{format_count(advice.right)} of {format_count(advice.n)} correct"
    return f"{advice.threshold:.1f}: {counted}, lower bound {format_value(advice.lower)}"


def _bias_text(evidence: CalibrationEvidence | None) -> str:
    if evidence is None:
        return TOO_FEW
    interval = format_delta_interval(evidence.bias_interval)
    return f"{format_delta(evidence.bias.value)} (95 % CI {interval}, p {format_p(evidence.bias.p)})"


def _test_text(test: NullTest | None) -> str:
    if test is None:
        return TOO_FEW
    return f"{format_value(test.value)} (a calibrated score: {format_value(test.null_mean)}, p {format_p(test.p)})"


def _reliability(found: Calibration, name: str) -> tuple[Block, ...]:
    width = _bins(
        found.bins, f"Answers in {EQUAL_WIDTH_BINS} bins of equal width; a bin without answers has no row", "up to"
    )
    mass = _bins(found.bins_mass, "Answers in bins of equal mass", "to")
    figure = Chart(
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
    return TableSpec(
        caption,
        bins,
        (
            Col("score from", lambda row: f"{row.low:g}"),
            Col(upper, lambda row: f"{row.high:g}"),
            Col("n", lambda row: row.n, "count"),
            Col("correct", lambda row: row.right, "count"),
            Col("mean score", lambda row: row.mean_score, "value"),
            Col("share correct", lambda row: row.share, "value"),
            Col("95 % CI", lambda row: row.interval, "interval"),
            Col("gap", lambda row: row.mean_score - row.share, "delta"),
        ),
    ).table()


def _risk(found: Calibration, name: str) -> tuple[Block, ...]:
    table = TableSpec(
        "Answers with at least this score, for each distinct score",
        found.risk,
        (
            Col("score from", lambda row: row.threshold, "value"),
            Col("answers", lambda row: row.n, "count"),
            Col("correct", lambda row: row.right, "count"),
            Col("coverage", lambda row: row.coverage, "percent"),
            Col("share wrong", lambda row: row.risk, "value"),
        ),
    ).table(shown=20)
    figure = Chart(
        name=f"risk-{name}",
        title="Share of wrong answers by coverage",
        alt="Risk-coverage curve: share of wrong answers among those with the highest scores; see the table.",
        spec=risk_coverage_curve(found.risk, SCREENS[0]),
        narrow_spec=risk_coverage_curve(found.risk, SCREENS[1]),
        table=table,
        table_follows=True,
    )
    return figure, table


def _strata(found: Calibration) -> tuple[Block, ...]:
    def name(row: CalibrationStratum) -> str:
        return f"{row.stratum}: {row.value}"

    figures = TableSpec(
        f"Each stratum by itself; n is too small under {FEWEST}",
        [(row, row.group, row.group.evidence) for row in found.strata],
        (
            Col("stratum", lambda row: name(row[0])),
            Col("n", lambda row: row[1].n, "count"),
            Col("share correct", lambda row: row[1].share, "value"),
            Col("95 % CI", lambda row: row[1].interval, "interval"),
            Col("mean score", lambda row: row[1].mean_score, "value"),
            Col("net bias", lambda row: row[2].bias.value if row[2] else None, "delta"),
            Col("p", lambda row: row[2].bias.p if row[2] else None, "p"),
            Col("slope: p", lambda row: row[2].slope.p if row[2] else None, "p"),
            Col("ECE", lambda row: row[2].ece.value if row[2] else None, "value"),
        ),
    )
    diagnoses = TableSpec(
        "Diagnosis of each stratum",
        found.strata,
        (
            Col("stratum", name),
            Col("diagnosis", lambda row: findings_text(row.group) if row.group.evidence else "n too small"),
        ),
    )
    return figures.table(), diagnoses.table()


def _tidy(report: CalibrationReport, answers: Sequence[ScoredAnswer]) -> Table:
    spec = TableSpec(
        "",
        [(found.kind, answer) for found in report.calibrations for answer in answers],
        (
            Col("correctness", lambda row: row[0].value),
            Col("query", lambda row: row[1].query_id),
            Col("score", lambda row: row[1].score),
            Col("correct", lambda row: _YES_OR_NO[row[1].correct.get(row[0])]),
            Col("reason not counted", lambda row: row[1].excluded(row[0]) or ""),
        ),
    )
    return spec.tidy()


def reliability_diagram(bins: Sequence[Bin], screen: Screen) -> Spec:
    """Share of correct answers against mean score; a calibrated score lies on the diagonal. Dots grow with their answers."""
    most = max(each.n for each in bins)
    values = [
        {
            "score": each.mean_score,
            "share": each.share,
            "low": each.interval[0],
            "high": each.interval[1],
            "size": SMALLEST + (LARGEST - SMALLEST) * each.n / most,
            "tip": tip_of(
                f"mean score {format_value(each.mean_score)}: {each.right} of {count_noun(each.n, 'answers')} correct, "
                f"{format_value(each.share)} ({format_interval(each.interval)})"
            ),
        }
        for each in bins
    ]
    x, y = _axis("score", "mean score", screen), _axis("share", "share correct", screen)
    diagonal: Rule = {
        "data": {"values": [{"score": 0, "share": 0}, {"score": 1, "share": 1}]},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": SAME, "strokeWidth": 1.5},
        "encoding": {"x": x, "y": y},
    }
    interval: Rule = {
        "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.45, "color": BETTER},
        "encoding": {"x": x, "y": _axis("low", "share correct", screen), "y2": {"field": "high"}},
    }
    point: Rule = {
        "mark": {"type": "point", "filled": True, "opacity": 1, "color": BETTER},
        "encoding": {"x": x, "y": y, "size": {"field": "size", "type": "quantitative", "scale": None, "legend": None}},
    }
    return spec_of(values, [diagonal, interval, point], _frame(screen))


def risk_coverage_curve(points: Sequence[CoveragePoint], screen: Screen) -> Spec:
    """Share of wrong answers against the share of answers that are given, from the highest score on."""
    values = [
        {
            "coverage": point.coverage,
            "risk": point.risk,
            "tip": tip_of(f"score from {format_value(point.threshold)}: {point.n - point.right} of {point.n} wrong"),
        }
        for point in points
    ]
    x, y = _axis("coverage", "coverage", screen), _axis("risk", "share wrong", screen)
    line: Rule = {"mark": {"type": "line", "color": WORSE, "strokeWidth": 2}, "encoding": {"x": x, "y": y}}
    dots: Rule = {
        "mark": {"type": "point", "filled": True, "size": 24, "opacity": 1, "color": WORSE},
        "encoding": {"x": x, "y": y},
    }
    return spec_of(values, [line, dots], _frame(screen))


def _axis(field: str, title: str, screen: Screen) -> Rule:
    axis = {"title": title, "tickCount": min(screen.ticks, 5)}
    return {"field": field, "type": "quantitative", "axis": axis, "scale": {"domain": [0, 1], "nice": False}}


def _frame(screen: Screen) -> Spec:
    return frame_of(min(screen.width, WIDEST), HEIGHT, LEFT, right=RIGHT, top=TOP)
