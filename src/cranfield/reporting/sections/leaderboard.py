"""Many systems as a ranked list: a line each, with the groups that do not differ significantly; and the CSV of means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from cranfield.errors import UnknownNameError
from cranfield.evaluation.many_values import LeaderboardLine, ManyComparison
from cranfield.evaluation.values import Evaluation
from cranfield.evaluation.verdict import sign_of
from cranfield.measures import CATALOGUE, Measure
from cranfield.numbers import UNKNOWN, format_count, format_interval, format_level, format_value
from cranfield.reporting.charts.differences import Whisker, whiskers
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import Block, Cell, Column, Details, Figure, Section, Swatch, Table, Tone, tidy_table
from cranfield.reporting.sections.labels import lettered, mean_cells, shaded
from cranfield.reporting.sections.subject import Subject

SORTS = ("mean", "name", "given", "rank")
"""Orders of a leaderboard, besides every measure: `rank` is the mean rank."""
SHOWN_MEASURES = 3
"""Measures beside the primary one in the leaderboard; all are in the table below it and in the CSV of means."""
MOST_DRAWN = 40
"""Systems in the picture of means."""
LEGEND: tuple[tuple[Swatch, str], ...] = (
    ("good", "best: no system is significantly better"),
    ("same", "not among the best"),
)
FEW_SYSTEMS = 8
"""Up to so many systems the means of every measure have a column for each system, and are in plain text too."""


def leaderboard(subject: Subject) -> Section | None:
    """Every system with its mean, interval and group, the best first; then all measures. None without many systems."""
    many = subject.many
    if many is None:
        return None
    board = _board(many, subject.sort)
    blocks: list[Block] = [*_means_figure(many, subject.sort, board), board]
    few = len(many.names) <= FEW_SYSTEMS
    blocks.append(_means(many) if few else Details("Means of every measure", (_means_by_system(many, subject.sort),)))
    blocks.append(Details("Median, standard deviation and mean rank", (_spread(many, subject.sort),), in_text=few))
    return Section("systems", "Systems", tuple(blocks))


def lines_by_place(many: ManyComparison) -> dict[int, LeaderboardLine]:
    """Place of each system to its line, the best first."""
    return dict(zip(many.best_first, many.leaderboard, strict=True))


def order_of(many: ManyComparison, sort: str) -> tuple[int, ...]:
    """Places of the systems in the order asked for.

    Args:
        many: the comparison.
        sort: one of `SORTS`, or a measure.

    Raises:
        UnknownNameError: neither.
    """
    places = range(len(many.names))
    if sort == "mean":
        return many.best_first
    if sort == "given":
        return tuple(places)
    if sort == "name":
        return tuple(sorted(places, key=lambda place: many.names[place]))
    if sort == "rank":
        means = many.ranks.means if many.ranks is not None else dict.fromkeys(many.names, 0.0)
        return tuple(sorted(places, key=lambda place: (means[many.names[place]], place)))
    measure = _measure_of(sort, many.summaries, SORTS)
    values = [(row.mean or 0.0) * sign_of(measure) for row in many.summaries[measure]]
    return tuple(sorted(places, key=lambda place: (-values[place], place)))


def _measure_of(sort: str, measures: Iterable[Measure], others: Sequence[str]) -> Measure:
    """The measure of an order, spelled in any case; `others` are the orders by something else."""
    known = {str(measure).lower(): measure for measure in measures}
    if sort.lower() not in known:
        raise UnknownNameError.among("order", sort, (*others, *map(str, known.values())))
    return known[sort.lower()]


def check_order(sort: str, measures: Iterable[Measure]) -> None:
    """Refuse an order that is neither one of `SORTS` nor a measure.

    Raises:
        UnknownNameError: neither.
    """
    if sort not in SORTS:
        _measure_named(sort, measures, SORTS)


def _measure_named(sort: str, measures: Iterable[Measure], others: Sequence[str]) -> Measure:
    """The measure of that spelling, in any case."""
    by_spelling = {str(measure): measure for measure in measures}
    found = next((measure for text, measure in by_spelling.items() if text.lower() == sort.lower()), None)
    if found is None:
        raise UnknownNameError.among("order", sort, (*others, *by_spelling))
    return found


def _other_measures(many: ManyComparison) -> list[Measure]:
    """The measures of the leaderboard after the primary one."""
    return [m for m in many.summaries if m != many.primary and not CATALOGUE[m.name].diagnostic][:SHOWN_MEASURES]


def sorted_evaluations(evaluations: Sequence[Evaluation], sort: str) -> list[Evaluation]:
    """Systems that are not compared, by name or by the mean of a measure, the best first; without a mean last.

    Raises:
        UnknownNameError: neither.
    """
    if sort == "name":
        return sorted(evaluations, key=lambda each: each.name)
    measures = list(dict.fromkeys(measure for each in evaluations for measure in each.measures))
    measure = _measure_of(sort, measures, ("given", "name"))

    def badness(each: Evaluation) -> tuple[bool, float]:
        mean = each.summaries[measure].mean if measure in each.summaries else None
        return mean is None, -sign_of(measure) * (mean or 0.0)

    return sorted(evaluations, key=badness)


def _board(many: ManyComparison, sort: str) -> Table:
    labels, lines, measures = lettered(many.evaluations), lines_by_place(many), _other_measures(many)
    others = [mean_cells([row.mean for row in many.summaries[measure]], measure) for measure in measures]
    rows: list[tuple[Cell, ...]] = []
    for place in order_of(many, sort):
        line, summary = lines[place], many.summaries[many.primary][place]
        role = {"best": line.system in many.verdict.best, "baseline": line.system == many.baseline}
        rows.append(
            (
                *(line.rank, labels[place], line.group or UNKNOWN),
                *(summary.mean, (summary.ci_low, summary.ci_high), line.better_than, line.worse_than),
                *(cells[place] for cells in others),
                ", ".join(word for word, holds in role.items() if holds),
            )
        )
    columns = (
        Column("#", "count"),
        Column("system"),
        Column("group"),
        Column(str(many.primary), "value"),
        Column(f"{format_level(many.options.alpha)} CI", "interval"),
        Column("better than", "count"),
        Column("worse than", "count"),
        *(Column(str(measure), "value") for measure in measures),
        Column("role"),
    )
    return Table(columns, rows, _caption(many, sort), shown=None)


def _means_figure(many: ManyComparison, sort: str, board: Table) -> tuple[Figure, ...]:
    """A row for each system, its mean and interval, with the letters at its end; nothing where there are too many."""
    if len(many.names) > MOST_DRAWN or not many.query_ids:
        return ()
    labels, lines = lettered(many.evaluations), lines_by_place(many)
    drawn = [(labels[place], lines[place], many.summaries[many.primary][place]) for place in order_of(many, sort)]
    marks = [
        Whisker(label, *(about.mean, about.ci_low, about.ci_high), _tone(many, line.system), line.group)
        for label, line, about in drawn
    ]
    means = "; ".join(
        f"{label} {format_value(about.mean)} ({format_interval((about.ci_low, about.ci_high))}) {line.group}".rstrip()
        for label, line, about in drawn
    )
    spec, narrow = (whiskers(marks, str(many.primary), screen, of_means=True) for screen in SCREENS)
    title = f"Mean {many.primary} with {format_level(many.options.alpha)} CI"
    figure = Figure(
        "means",
        f"{title}; systems that share a letter do not differ significantly" if many.groups else title,
        f"Means with CIs and letters: {means}.",
        spec,
        narrow,
        board,
        LEGEND if many.verdict.best else (),
        table_follows=True,
    )
    return (figure,)


def _tone(many: ManyComparison, name: str) -> Tone:
    return "good" if name in many.verdict.best else ""


def _caption(many: ManyComparison, sort: str) -> str:
    queries = f"{format_count(len(many.query_ids))} queries that every system has a value for"
    ordered = "" if sort == "mean" else f", by {sort}"
    groups = (
        "Two systems share a letter exactly where they do not differ significantly; better and worse than: number of systems, "
        "by the adjusted p; best: no system is significantly better. The CI is of each mean alone"
        if many.groups
        else "No groups: no difference could have been significant"
    )
    return f"{many.primary} on the {queries}{ordered}. {groups}"


def _means(many: ManyComparison) -> Table:
    """A row for each measure, a column for each system."""
    rows: list[tuple[Cell, ...]] = [
        (_starred(many, measure), *cells, many.summaries[measure][0].n) for measure, cells in _shaded(many).items()
    ]
    systems = (Column(label, "value") for label in lettered(many.evaluations))
    columns = (Column("measure"), *systems, Column("n", "count"))
    return Table(
        columns,
        rows,
        "Means of every measure. * primary measure",
        shown=None,
    )


def _shaded(many: ManyComparison) -> dict[Measure, tuple[Cell, ...]]:
    """The means of every measure, each coloured by its distance from the mean of all systems."""
    means = [[summary.mean for summary in row] for row in many.summaries.values()]
    return dict(zip(many.summaries, shaded(means, list(many.summaries)), strict=True))


def _means_by_system(many: ManyComparison, sort: str) -> Table:
    """A row for each system, a column for each measure."""
    labels = lettered(many.evaluations)
    cells = list(_shaded(many).values())
    rows: list[tuple[Cell, ...]] = [
        (labels[place], *(column[place] for column in cells)) for place in order_of(many, sort)
    ]
    columns = (Column("system"), *(Column(_starred(many, measure), "value") for measure in many.summaries))
    return Table(
        columns,
        rows,
        "Means of every measure. * primary measure",
        shown=None,
    )


def _starred(many: ManyComparison, measure: Measure) -> str:
    return f"* {measure}" if measure == many.primary else str(measure)


def _spread(many: ManyComparison, sort: str) -> Table:
    labels = lettered(many.evaluations)
    ranks = many.ranks.means if many.ranks is not None else None
    rows: list[tuple[Cell, ...]] = []
    for place in order_of(many, sort):
        summary = many.summaries[many.primary][place]
        rank = UNKNOWN if ranks is None else f"{ranks[many.names[place]]:.2f}"
        rows.append((labels[place], summary.median, summary.std, rank))
    columns = (
        Column("system"),
        Column("median", "value"),
        Column("std. dev.", "value"),
        Column("mean rank", "average"),
    )
    return Table(columns, rows, f"{many.primary} over the queries. Mean rank: 1 is best", shown=None)


def means_table(result: ManyComparison | Sequence[Evaluation], sort: str = "mean") -> Table:
    """A line for each system, for CSV: its rank and group where many were compared, and every mean with its interval.

    Raises:
        UnknownNameError: no such order.
    """
    if isinstance(result, ManyComparison):
        return _compared_means(result, sort)
    measures = list(dict.fromkeys(measure for each in result for measure in each.measures))
    rows: list[tuple[Cell, ...]] = []
    for each in result:
        cells: list[Cell] = [each.name]
        for measure in measures:
            summary = each.summaries.get(measure)
            cells += [None] * 3 if summary is None else [summary.mean, summary.ci_low, summary.ci_high]
        rows.append(tuple(cells))
    return tidy_table(("system", *_mean_headings(measures)), rows)


def _compared_means(many: ManyComparison, sort: str) -> Table:
    lines = lines_by_place(many)
    rows: list[tuple[Cell, ...]] = []
    for place in order_of(many, sort):
        cells: list[Cell] = [*astuple(lines[place]), int(lines[place].system in many.verdict.best)]
        for row in many.summaries.values():
            cells += [row[place].mean, row[place].ci_low, row[place].ci_high]
        rows.append(tuple(cells))
    return tidy_table((*LeaderboardLine.__dataclass_fields__, "best", *_mean_headings(list(many.summaries))), rows)


def _mean_headings(measures: Sequence[Measure]) -> list[str]:
    return [heading for measure in measures for heading in (str(measure), f"{measure} ci_low", f"{measure} ci_high")]
