"""Means with their intervals: two systems against each other, or any number side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cranfield.evaluation.result import ComparisonResult, SystemResult
from cranfield.evaluation.values import MeasureComparison, Summary
from cranfield.measures import CATALOGUE, Measure
from cranfield.numbers import format_delta, format_delta_interval, format_level
from cranfield.reporting.charts.differences import Whisker, whiskers
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Details,
    Figure,
    Section,
    Swatch,
    Table,
    TonedCell,
)
from cranfield.reporting.sections.classes import has_classes
from cranfield.reporting.sections.labels import interval_tone, lettered, mean_cells
from cranfield.reporting.sections.subject import Subject
from cranfield.stats.table import TESTS

CLAIMS: tuple[tuple[Swatch, str], ...] = (("good", "better"), ("bad", "worse"))
HOW_TO_READ = (
    (
        "Difference: mean of B minus A, paired by query; with the tests wilcoxon and sign, whose CI is not of the mean, "
        "their own estimate is after it."
    ),
    "p: two-sided, of the declared test. p Holm: the same, adjusted for the number of other measures looked at.",
    "d_z: the mean difference over the standard deviation of the differences. 0.2 is small, 0.5 medium, 0.8 large.",
    "MDE: minimum detectable effect, the true difference found with 80 % power at this n and spread.",
)


def measures(subject: Subject) -> Section | None:
    """Every measure of every system, of a pair with differences.

    None for many systems, which have a leaderboard, and of systems side by side where classes have measures of their own.
    """
    if subject.pair is not None:
        return compared_measures(subject.pair)
    if subject.many is not None or has_classes(subject.record.systems[0]):
        return None
    return _side_by_side(subject.record.systems, subject.measures)


def compared_measures(comparison: ComparisonResult) -> Section:
    """Both sides of a pair: difference, interval, p-values, effect size and minimum detectable effect."""
    level = format_level(comparison.alpha)
    spec = TESTS[comparison.test]
    table = Table(
        (
            Column("measure"),
            Column("A", "value"),
            Column("B", "value"),
            *_estimate_columns(comparison.test),
            Column(f"{level} CI", "delta interval"),
            Column("p", "p"),
            Column("p Holm", "p"),
            Column("d_z", "effect"),
            Column("MDE", "value"),
            Column("n", "count"),
        ),
        [_compared_row(about, comparison) for about in comparison.comparisons.values()],
        f"B against A. * primary measure, decided by the {comparison.test} test. "
        f"CI of the {spec.estimates} ({spec.interval})" + why_mean_differs(comparison.test),
        shown=None,
    )
    blocks: list[Block] = []
    if figure := _interval_figure(comparison, level):
        blocks.append(figure)
    blocks += [
        table,
        Details("Each system separately", (_each_side(comparison, level),), in_text=True),
        Details("How to read this table", (Bullets((*HOW_TO_READ, *_sentences(comparison.comparisons))),)),
    ]
    return Section("measures", "Measures", tuple(blocks))


def _compared_row(about: MeasureComparison, comparison: ComparisonResult) -> tuple[Cell, ...]:
    declared = about.tests.get(comparison.test)
    return (
        f"* {about.measure}" if about.measure == comparison.primary else str(about.measure),
        about.baseline.mean,
        about.candidate.mean,
        *_estimate_cells(about, comparison.test),
        (about.ci_low, about.ci_high),
        declared.p_two_sided if declared else None,
        declared.p_adjusted if declared else None,
        about.effect_size,
        about.mde,
        about.n,
    )


def _estimate_columns(test: str) -> tuple[Column, ...]:
    """The mean difference, and after it the estimate that the interval is about, where that is another."""
    mean = Column("difference" if TESTS[test].is_of_mean else "mean diff.", "delta")
    return (mean,) if TESTS[test].is_of_mean else (mean, Column(TESTS[test].estimate, "delta"))


def _estimate_cells(about: MeasureComparison, test: str) -> tuple[Cell, ...]:
    tone = interval_tone(about, about.measure)
    if TESTS[test].is_of_mean:
        return (TonedCell(about.delta, tone),)
    return about.delta, TonedCell(about.estimate, tone)


def why_mean_differs(test: str) -> str:
    """Why a mean difference can lie outside the interval of a test; empty where the interval is of the mean."""
    if TESTS[test].is_of_mean:
        return ""
    return (
        ". The mean difference can lie outside it: the mean counts the queries that do not differ, and large differences "
        "in full"
    )


def _interval_figure(comparison: ComparisonResult, level: str) -> Figure | None:
    rows = [
        about
        for about in comparison.comparisons.values()
        if about.delta is not None and not CATALOGUE[about.measure.name].diagnostic
    ]
    if not rows:
        return None
    intervals = "; ".join(
        f"{about.measure} {format_delta(about.shown)} ({format_delta_interval((about.ci_low, about.ci_high))})"
        for about in rows
    )
    spec = TESTS[comparison.test]
    is_void = any(finding.is_void for finding in comparison.evidence)
    marks = [
        Whisker(
            str(about.measure),
            about.shown,
            *(about.ci_low, about.ci_high),
            "" if is_void else interval_tone(about, about.measure),
        )
        for about in rows
    ]
    table = Table(
        (Column("measure"), *_estimate_columns(comparison.test), Column(f"{level} CI", "delta interval")),
        [
            (str(about.measure), *_estimate_cells(about, comparison.test), (about.ci_low, about.ci_high))
            for about in rows
        ],
        "Differences and their CIs" + why_mean_differs(comparison.test),
    )
    return interval_figure(
        "intervals",
        f"{level} CIs of the {spec.estimates}" + why_mean_differs(comparison.test),
        marks,
        table,
        alt=f"Differences with CIs: {intervals}.",
        axis=f"{'difference' if spec.is_of_mean else spec.estimate}, B minus A",
        legend=(*CLAIMS, ("same", "the CI contains zero"), *margin_legend(comparison.margin)),
        margin=comparison.margin,
    )


def _each_side(comparison: ComparisonResult, level: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for about in comparison.comparisons.values():
        for label, summary in zip(lettered(comparison.names), (about.baseline, about.candidate), strict=True):
            rows.append((str(about.measure), label, *_summary_cells(summary)))
    return Table(
        (Column("measure"), Column("system"), *_summary_columns(level)),
        rows,
        "Mean, interval of the mean, median and spread over the queries both sides have a value for",
    )


def _summary_columns(level: str) -> tuple[Column, ...]:
    return (
        Column("mean", "value"),
        Column(f"{level} CI", "interval"),
        Column("median", "value"),
        Column("std. dev.", "value"),
        Column("n", "count"),
    )


def _summary_cells(summary: Summary) -> tuple[Cell, ...]:
    return (summary.mean, (summary.ci_low, summary.ci_high), summary.median, summary.std, summary.n)


def _side_by_side(systems: Sequence[SystemResult], measures: Sequence[Measure]) -> Section:
    """One system's measures as rows, several systems as rows over measures."""
    if not measures:
        return Section("measures", "Measures", (Bullets(("No measure has a value for any query.",)),))
    level = format_level(1 - next(summary.ci_level for each in systems for summary in each.measures.values()))
    blocks: list[Block] = []
    if len(systems) > 1:
        blocks.append(_matrix(systems, measures))
    several = (Column("system"),) if len(systems) > 1 else ()
    rows: list[tuple[Cell, ...]] = []
    for measure in measures:
        for system in systems:
            if measure in system.measures:
                name = (system.name,) if several else ()
                summary = system.measures[measure]
                spelled = str(measure) if summary.aggregate == "mean" else f"{measure} ({summary.aggregate})"
                rows.append((spelled, *name, *_summary_cells(summary)))
    blocks += [
        Table((Column("measure"), *several, *_summary_columns(level)), rows, f"Means, {level} t intervals", shown=None),
        Details("Other means and sums", (_other_means(systems, measures),)),
        Details("Definitions of the measures", (Bullets(_sentences(measures)),)),
    ]
    return Section("measures", "Measures", tuple(blocks))


def _other_means(systems: Sequence[SystemResult], measures: Sequence[Measure]) -> Table:
    """Geometric mean, sum, and the mean weighted by query frequency, where queries have weights."""
    found = [
        (measure, system.name, system.measures[measure])
        for measure in measures
        for system in systems
        if measure in system.measures
    ]
    weighted = any(summary.weighted_mean is not None for _, _, summary in found)
    rows: list[tuple[Cell, ...]] = []
    for measure, name, summary in found:
        cells: tuple[Cell, ...] = (summary.geometric_mean, summary.total)
        several = (name,) if len(systems) > 1 else ()
        rows.append((str(measure), *several, *cells, *((summary.weighted_mean,) if weighted else ())))
    columns = (
        Column("measure"),
        *((Column("system"),) if len(systems) > 1 else ()),
        Column("geometric mean", "value"),
        Column("sum", "value"),
        *((Column("weighted mean", "value"),) if weighted else ()),
    )
    note = "A value under 0.00001 counts as that much in the geometric mean"
    return Table(columns, rows, note + ("; weights are query frequencies" if weighted else ""))


def _matrix(systems: Sequence[SystemResult], measures: Sequence[Measure]) -> Table:
    """Systems by measures; the best mean of each measure is marked. n counts queries with a value of any measure."""
    columns = [Column("system"), *(Column(str(measure), "value") for measure in measures)]
    columns += [Column("n", "count"), Column("failed", "count"), Column("judged", "percent")]
    means = [mean_cells([_mean(each, measure) for each in systems], measure) for measure in measures]
    rows = []
    for system, cells in zip(systems, zip(*means, strict=True), strict=True):
        n = max((summary.n for summary in system.measures.values()), default=0)
        rows.append((system.name, *cells, n, system.n_failed, system.judged.mean))
    return Table(tuple(columns), rows, "Means of every system", shown=None)


def _mean(system: SystemResult, measure: Measure) -> float | None:
    summary = system.measures.get(measure)
    return summary.mean if summary is not None else None


def _sentences(measures: Iterable[Measure]) -> tuple[str, ...]:
    names = dict.fromkeys(measure.name for measure in measures)
    return tuple(f"{CATALOGUE[name].spelling}, {CATALOGUE[name].title}: {CATALOGUE[name].sentence}" for name in names)


def interval_figure(
    name: str,
    title: str,
    marks: Sequence[Whisker],
    table: Table,
    *,
    alt: str,
    axis: str,
    legend: Sequence[tuple[Swatch, str]],
    margin: float | None = None,
) -> Figure:
    """A row for each difference.

    Args:
        name: of the figure.
        title: over it.
        marks: a dot and an interval each.
        table: the same numbers.
        alt: what the figure says, for readers who cannot see it.
        axis: what is subtracted from what.
        legend: what the colours mean.
        margin: of equivalence, drawn as a band; None draws none.
    """
    spec, narrow = (whiskers(marks, axis, screen, margin) for screen in SCREENS)
    return Figure(name, title, alt, spec, narrow, table, tuple(legend), table_follows=True)


def margin_legend(margin: float | None) -> tuple[tuple[Swatch, str], ...]:
    """The band of a margin of equivalence; nothing without a margin."""
    return () if margin is None else (("band", f"margin of ±{margin:g}"),)
