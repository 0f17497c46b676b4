"""The primary measure within each stratum: where the difference comes from."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.strata import summaries_by_stratum
from cranfield.evaluation.values import Comparison, Evaluation, StratumComparison
from cranfield.numbers import format_delta, format_level
from cranfield.reporting.charts import single as charts
from cranfield.reporting.document import Block, Cell, Column, Figure, Paragraph, Section, Table, Tone, Toned
from cranfield.reporting.sections.naming import colour_of, interval_tone

MOST_ROWS_DRAWN = 30


def breakdown(comparison: Comparison) -> Section | None:
    """A picture and a table for each key; None where the test set knows no strata."""
    keys = dict.fromkeys(stratum.key for stratum in comparison.strata)
    if not keys:
        return None
    level = format_level(comparison.alpha)
    blocks: list[Block] = [
        Paragraph(
            f"{comparison.primary} within each group. The intervals are t intervals of the difference and are not adjusted: "
            "they say where to look next, and decide nothing.",
        )
    ]
    for place, key in enumerate(keys, start=1):
        rows = [stratum for stratum in comparison.strata if stratum.key == key]
        table = _table(key, rows, comparison, level)
        figure = _figure(place, key, rows, comparison, level)
        blocks += [figure, table] if figure is not None else [table]
    return Section("breakdown", "Breakdown", tuple(blocks))


def means_by_stratum(evaluations: Sequence[Evaluation]) -> Section | None:
    """The first measure of every system within each stratum; None where the test set knows no strata."""
    if not evaluations[0].measures:
        return None
    measure = evaluations[0].measures[0]
    found = [
        (evaluation.name, summaries_by_stratum(evaluation, measure))
        for evaluation in evaluations
        if measure in evaluation.summaries
    ]
    keys = dict.fromkeys(stratum.key for _, strata in found for stratum in strata)
    if not keys:
        return None
    several = len(evaluations) > 1
    tables = []
    for key in keys:
        rows: list[tuple[Cell, ...]] = [
            (
                stratum.value,
                *((name,) if several else ()),
                stratum.summary.mean,
                (stratum.summary.ci_low, stratum.summary.ci_high),
                stratum.summary.median,
                stratum.summary.n,
            )
            for name, strata in found
            for stratum in strata
            if stratum.key == key
        ]
        columns = (
            Column(key),
            *((Column("system"),) if several else ()),
            Column("mean", "value"),
            Column(f"{format_level(1 - evaluations[0].summaries[measure].ci_level)} CI", "interval"),
            Column("median", "value"),
            Column("n", "count"),
        )
        tables.append(Table(columns, sorted(rows, key=lambda row: str(row[0])), f"{measure} by {key}"))
    return Section("breakdown", "Breakdown", tuple(tables))


def _table(key: str, strata: list[StratumComparison], comparison: Comparison, level: str) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            stratum.value,
            stratum.n,
            stratum.baseline_mean,
            stratum.candidate_mean,
            Toned(stratum.delta, _tone(stratum, comparison)),
            (stratum.ci_low, stratum.ci_high),
        )
        for stratum in strata
    ]
    columns = (
        Column(key),
        Column("n", "count"),
        Column("A", "value"),
        Column("B", "value"),
        Column("difference", "delta"),
        Column(f"{level} CI", "delta interval"),
    )
    return Table(columns, rows, f"{comparison.primary} by {key}")


def _figure(place: int, key: str, strata: list[StratumComparison], comparison: Comparison, level: str) -> Figure | None:
    drawn = [stratum for stratum in strata if stratum.delta is not None]
    if not 2 <= len(drawn) <= MOST_ROWS_DRAWN:
        return None
    marks = [
        charts.Whisker(
            f"{stratum.value} ({stratum.n})",
            stratum.delta or 0.0,
            stratum.ci_low,
            stratum.ci_high,
            colour_of(_tone(stratum, comparison)),
        )
        for stratum in drawn
    ]
    axis = f"{comparison.primary}, B minus A"
    spec, narrow = (charts.whiskers(marks, axis, screen, comparison.margin) for screen in charts.SCREENS)
    said = "; ".join(f"{stratum.value} {format_delta(stratum.delta)}, n = {stratum.n}" for stratum in drawn)
    return Figure(
        f"stratum-{place}",
        f"Difference by {key}, with {level} CIs",
        f"Differences with their intervals: {said}.",
        spec,
        narrow,
        _table(key, strata, comparison, level),
        (("good", "better"), ("bad", "worse"), ("same", "the interval holds zero")),
        told_beside=True,
    )


def _tone(stratum: StratumComparison, comparison: Comparison) -> Tone:
    return interval_tone(stratum.delta, stratum.ci_low, stratum.ci_high, comparison.primary)
