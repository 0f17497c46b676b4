"""The primary measure within each stratum: a table for each key, and a picture where systems are compared.

And two strata against each other, with a warning where one of them cannot show an improvement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from cranfield.evaluation.many_values import StratumRow
from cranfield.evaluation.result import ComparisonResult, ManyResult, SystemResult
from cranfield.evaluation.strata import (
    ContrastSpec,
    StrataContrast,
    contrast_gain,
    contrast_strata,
)
from cranfield.evaluation.values import Comparison, Evaluation, StratumComparison
from cranfield.evaluation.verdict import sign_of
from cranfield.measures import Measure
from cranfield.numbers import format_delta, format_level, format_value
from cranfield.reporting.charts.differences import Whisker
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.charts.systems import HeatRow, heat_map
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Details,
    Figure,
    Paragraph,
    Section,
    Table,
    TonedCell,
)
from cranfield.reporting.sections.labels import best_places, interval_tone, letters, mean_cells
from cranfield.reporting.sections.measures import CLAIMS, interval_figure
from cranfield.reporting.sections.subject import Subject
from cranfield.words import and_list

MOST_ROWS_DRAWN = 30
OTHERS = "Other measures by stratum"
MOST_COLUMNS = 12
"""Systems that have a column each; of more each has a row."""
CONTRASTS = "The queries of two strata are not paired: Welch's interval, and p of a permutation test over labellings."

R = TypeVar("R", StratumComparison, StratumRow)


def breakdown(subject: Subject) -> Section | None:
    """The primary measure by stratum; None where the test set knows no strata."""
    if (pair := subject.pair) is not None:
        note = (
            f"{pair.primary} within each group. t intervals of the difference, not adjusted for multiple "
            "comparisons: exploratory, not part of the verdict."
        )
        decided = _decided(pair)
        strata = [row.measures[pair.primary] for row in pair.by_stratum if pair.primary in row.measures]
        strata = [row for row in strata if row.key not in decided]
        tables = _folded_measures(pair, decided)
        section = _section(note, strata, partial(_pair_blocks, pair))
        if section is None and tables:
            section = Section("breakdown", "Breakdown", (Paragraph(note),), f"by {and_list(sorted(decided))}")
        return _with_details(section, tables)
    if (many := subject.many) is not None:
        note = (
            f"{many.primary} of every system within each group of queries. Not tested: exploratory, not part of the "
            "verdict."
        )
        return _section(note, many.strata, partial(_many_blocks, many, subject.labels))
    return _means_by_stratum(subject.record.systems)


def _decided(pair: ComparisonResult) -> set[str]:
    """Keys that part the queries as the classes of the verdict do: these have their table, on measures of their own."""
    if pair.verdict_by_class is None:
        return set()
    class_of = {query_id: row.label for row in pair.verdict_by_class.rows for query_id in row.query_ids}
    parts: dict[str, set[tuple[str, str]]] = {}
    for query_id, query in (pair.queries or {}).items():
        for key, value in query.strata.items() if query_id in class_of else ():
            parts.setdefault(key, set()).add((class_of[query_id], value))
    return {
        key
        for key, found in parts.items()
        if len(found) == len({label for label, _ in found}) == len({value for _, value in found})
    }


def _with_details(section: Section | None, tables: Sequence[Table]) -> Section | None:
    """The section with the other measures folded at its end."""
    if section is None or not tables:
        return section
    return replace(section, blocks=(*section.blocks, Details(OTHERS, tuple(tables), in_text=True)))


def _folded_measures(pair: ComparisonResult, decided: set[str]) -> list[Table]:
    """A table for each measure, with a row for each stratum; of the primary one those that have no table above."""
    columns = (
        *(Column("stratum"), Column("n", "count"), Column("A", "value"), Column("B", "value")),
        Column("difference", "delta"),
        Column(f"{format_level(pair.alpha)} CI", "delta interval"),
    )
    tables = []
    for measure in dict.fromkeys(measure for row in pair.by_stratum for measure in row.measures):
        strata = [row.measures[measure] for row in pair.by_stratum if measure in row.measures]
        rows: list[tuple[Cell, ...]] = [
            (
                *(f"{row.key}: {row.value}", row.n, row.baseline_mean, row.candidate_mean),
                TonedCell(row.delta, interval_tone(row, measure)),
                (row.ci_low, row.ci_high),
            )
            for row in strata
            if measure != pair.primary or row.key in decided
        ]
        if rows:
            tables.append(Table(columns, rows, f"{measure} by stratum", shown=None))
    return tables


def _section(
    note: str, strata: Sequence[R], blocks_of: Callable[[int, str, Sequence[R]], Sequence[Block]]
) -> Section | None:
    keys = dict.fromkeys(row.key for row in strata)
    if not keys:
        return None
    blocks: list[Block] = [Paragraph(note)]
    for place, key in enumerate(keys, start=1):
        blocks += blocks_of(place, key, [row for row in strata if row.key == key])
    return Section("breakdown", "Breakdown", tuple(blocks), f"by {and_list(list(keys))}")


def _pair_blocks(pair: ComparisonResult, place: int, key: str, strata: Sequence[StratumComparison]) -> Sequence[Block]:
    """The differences of a stratum key as a table, behind a figure where they are few enough to be drawn."""
    rows: list[tuple[Cell, ...]] = [
        (
            *(stratum.value, stratum.n, stratum.baseline_mean, stratum.candidate_mean),
            TonedCell(stratum.delta, interval_tone(stratum, pair.primary)),
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
        Column(f"{format_level(pair.alpha)} CI", "delta interval"),
    )
    table = Table(columns, rows, f"{pair.primary} by {key}")
    drawn = [stratum for stratum in strata if stratum.delta is not None]
    if not 2 <= len(drawn) <= MOST_ROWS_DRAWN:
        return (table,)
    marks = [
        Whisker(
            f"{stratum.value} ({stratum.n})",
            *(stratum.delta, stratum.ci_low, stratum.ci_high, interval_tone(stratum, pair.primary)),
        )
        for stratum in drawn
    ]
    differences = "; ".join(f"{stratum.value} {format_delta(stratum.delta)}, n = {stratum.n}" for stratum in drawn)
    figure = interval_figure(
        f"stratum-{place}",
        f"Difference by {key}, with {format_level(pair.alpha)} CIs",
        marks,
        table,
        alt=f"Differences with CIs: {differences}.",
        axis=f"{pair.primary}, B minus A",
        legend=(*CLAIMS, ("same", "the CI contains zero")),
        margin=pair.margin,
    )
    return figure, table


def _many_blocks(
    many: ManyResult, labels: Sequence[str], place: int, key: str, strata: Sequence[StratumRow]
) -> Sequence[Block]:
    """The means of a stratum key as a table, behind a heat map where they are few enough to be drawn."""
    if len(labels) > MOST_COLUMNS:
        return (Details(f"By {key}", (_systems_by_stratum(many, labels, key, strata),)),)
    columns = (Column(key), Column("n", "count"), *(Column(label, "value") for label in labels))
    rows: list[tuple[Cell, ...]] = [(row.value, row.n, *mean_cells(_means(row), many.primary)) for row in strata]
    table = Table(columns, rows, f"Mean {many.primary} by {key}")
    if not 2 <= len(strata) <= MOST_ROWS_DRAWN:
        return (table,)
    drawn = [HeatRow(f"{row.value} ({row.n})", _means(row), best_places(_means(row), many.primary)) for row in strata]
    sign = int(sign_of(many.primary))
    spec, narrow = (heat_map(drawn, labels, letters(len(labels)), screen, sign) for screen in SCREENS)
    means = "; ".join(
        f"{row.value}: "
        + ", ".join(f"{label} {format_value(mean)}" for label, mean in zip(labels, _means(row), strict=True))
        for row in strata
    )
    figure = Figure(
        f"heat-{place}",
        f"Mean {many.primary} by {key}",
        f"Means by group and system: {means}.",
        spec,
        narrow,
        table,
        (
            ("good", "better than the mean of the row"),
            ("bad", "worse; the stronger, the farther. The best of a row is bold"),
        ),
        table_follows=True,
    )
    return figure, table


def _systems_by_stratum(many: ManyResult, labels: Sequence[str], key: str, strata: Sequence[StratumRow]) -> Table:
    """A row for each system, the best first, and a column for each stratum."""
    cells = [mean_cells(_means(row), many.primary) for row in strata]
    order = [many.names.index(line.system) for line in many.leaderboard]
    rows: list[tuple[Cell, ...]] = [(labels[place], *(column[place] for column in cells)) for place in order]
    columns = (Column("system"), *(Column(f"{row.value} ({row.n})", "value") for row in strata))
    return Table(columns, rows, f"Mean {many.primary} by {key}", shown=None)


def _means(row: StratumRow) -> tuple[float | None, ...]:
    return tuple(summary.mean for summary in row.summaries.values())


def _means_by_stratum(systems: Sequence[SystemResult]) -> Section | None:
    """The first measure of every system within each stratum; the others folded."""
    if not systems[0].measures:
        return None
    first, *others = systems[0].measures
    tables = _means_tables(systems, first)
    if not tables:
        return None
    keys = dict.fromkeys(table.columns[0].title for table in tables)
    section = Section("breakdown", "Breakdown", tuple(tables), f"{first} by {and_list(list(keys))}")
    return _with_details(section, [table for measure in others for table in _means_tables(systems, measure)])


def _means_tables(systems: Sequence[SystemResult], measure: Measure) -> list[Table]:
    """One measure of every system: a table for each key of strata."""
    found = [
        (system.name, stratum, stratum.measures[measure])
        for system in systems
        for stratum in system.by_stratum
        if measure in stratum.measures
    ]
    several = len(systems) > 1
    level = format_level(1 - systems[0].measures[measure].ci_level)
    tables = []
    for key in dict.fromkeys(stratum.key for _, stratum, _ in found):
        rows = [
            (
                stratum.value,
                *((name,) if several else ()),
                *(summary.mean, (summary.ci_low, summary.ci_high)),
                *(summary.median, summary.n),
            )
            for name, stratum, summary in found
            if stratum.key == key
        ]
        columns = (
            Column(key),
            *((Column("system"),) if several else ()),
            *(Column("mean", "value"), Column(f"{level} CI", "interval")),
            *(Column("median", "value"), Column("n", "count")),
        )
        tables.append(Table(columns, sorted(rows, key=lambda row: str(row[0])), f"{measure} by {key}"))
    return tables


def find_contrasts(
    result: Sequence[Evaluation] | Comparison, requested: Sequence[ContrastSpec]
) -> tuple[StrataContrast, ...]:
    """Every requested contrast within each system; of a comparison, of the difference between its sides too."""
    if not isinstance(result, Comparison):
        return tuple(contrast_strata(evaluation, *spec) for spec in requested for evaluation in result)
    found = []
    for spec in requested:
        found += [
            contrast_strata(side, *spec, result.primary, alpha=result.alpha, seed=result.seed)
            for side in result.evaluations
        ]
        found.append(contrast_gain(result, *spec))
    return tuple(found)


def strata_contrasts(subject: Subject) -> Section | None:
    """A table for each pair of strata; None where no contrast was requested."""
    contrasts = subject.record.contrasts
    if not contrasts:
        return None
    pairs: dict[tuple[str, str, str, Measure], list[StrataContrast]] = {}
    for contrast in contrasts:
        pairs.setdefault((contrast.key, contrast.a, contrast.b, contrast.measure), []).append(contrast)
    blocks: list[Block] = [Paragraph(CONTRASTS)]
    for chosen in pairs.values():
        blocks.append(_table(chosen))
        notes = [f"{contrast.what}: {contrast.groups.note}." for contrast in chosen if contrast.groups.note]
        notes += [f"{ceiling}." for contrast in chosen for ceiling in contrast.ceilings]
        if notes:
            blocks.append(Bullets(tuple(notes), "warning"))
    return Section("contrasts", "Contrasts of strata", tuple(blocks))


def _table(contrasts: Sequence[StrataContrast]) -> Table:
    first = contrasts[0]
    level = format_level(first.groups.alpha)
    columns = (
        Column("system"),
        Column(first.a, "value"),
        Column("n", "count"),
        Column(first.b, "value"),
        Column("n", "count"),
        Column("difference", "delta"),
        Column(f"{level} CI", "delta interval"),
        Column("p", "p"),
        Column("g", "effect"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            "B minus A" if contrast.what == "difference" else contrast.what,
            *(contrast.groups.a.mean, contrast.groups.a.n, contrast.groups.b.mean, contrast.groups.b.n),
            contrast.groups.difference,
            (contrast.groups.ci_low, contrast.groups.ci_high),
            contrast.groups.p_permutation,
            contrast.groups.hedges_g,
        )
        for contrast in contrasts
    ]
    return Table(columns, rows, f"{first.measure} by {first.key}: {first.a} minus {first.b}", shown=None)
