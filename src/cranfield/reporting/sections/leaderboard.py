"""Many systems as a ranked list: a line each, with the groups that do not differ significantly; and the CSV of means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from cranfield.errors import UnknownNameError
from cranfield.evaluation.many_values import LeaderboardLine
from cranfield.evaluation.result import EvaluationResult, ManyResult
from cranfield.evaluation.values import Evaluation, Summary
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


def board_lines(many: ManyResult, sort: str) -> list[tuple[str, LeaderboardLine, Summary]]:
    """The systems in the order asked for: label, line, and the primary measure.

    Args:
        many: the comparison.
        sort: one of `SORTS`, or a measure.

    Raises:
        UnknownNameError: neither.
    """
    labels = dict(zip(many.names, lettered(many.names), strict=True))
    lines, found = {line.system: line for line in many.leaderboard}, many.means[many.primary]
    return [(labels[name], lines[name], found[name]) for name in order_of(many, sort)]


def order_of(many: ManyResult, sort: str) -> list[str]:
    """Names of the systems in the order asked for, as of `board_lines`."""
    if sort == "mean":
        return [line.system for line in many.leaderboard]
    if sort == "given":
        return list(many.names)
    if sort == "name":
        return sorted(many.names)
    if sort == "rank":
        ranks = many.ranks.means if many.ranks is not None else dict.fromkeys(many.names, 0.0)
        return sorted(many.names, key=lambda name: ranks[name])
    measure = _measure_of(sort, many.means, SORTS)
    means = many.means[measure]
    return sorted(many.names, key=lambda name: -(means[name].mean or 0.0) * sign_of(measure))


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


def _other_measures(many: ManyResult) -> list[Measure]:
    """The measures of the leaderboard after the primary one."""
    return [m for m in many.means if m != many.primary and not CATALOGUE[m.name].diagnostic][:SHOWN_MEASURES]


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


def _board(many: ManyResult, sort: str) -> Table:
    measures = _other_measures(many)
    others = [
        dict(zip(many.names, mean_cells([row.mean for row in many.means[measure].values()], measure), strict=True))
        for measure in measures
    ]
    rows: list[tuple[Cell, ...]] = []
    for label, line, summary in board_lines(many, sort):
        role = {"best": line.system in many.best, "baseline": line.system == many.baseline}
        rows.append(
            (
                *(line.rank, label, line.group or UNKNOWN),
                *(summary.mean, (summary.ci_low, summary.ci_high), line.better_than, line.worse_than),
                *(cells[line.system] for cells in others),
                ", ".join(word for word, holds in role.items() if holds),
            )
        )
    columns = (
        Column("#", "count"),
        Column("system"),
        Column("group"),
        Column(str(many.primary), "value"),
        Column(f"{format_level(many.alpha)} CI", "interval"),
        Column("better than", "count"),
        Column("worse than", "count"),
        *(Column(str(measure), "value") for measure in measures),
        Column("role"),
    )
    return Table(columns, rows, _caption(many, sort), shown=None)


def _means_figure(many: ManyResult, sort: str, board: Table) -> tuple[Figure, ...]:
    """A row for each system, its mean and interval, with the letters at its end; nothing where there are too many."""
    if len(many.names) > MOST_DRAWN or not many.n:
        return ()
    drawn = board_lines(many, sort)
    marks = [
        Whisker(label, *(about.mean, about.ci_low, about.ci_high), _tone(many, line.system), line.group)
        for label, line, about in drawn
    ]
    means = "; ".join(
        f"{label} {format_value(about.mean)} ({format_interval((about.ci_low, about.ci_high))}) {line.group}".rstrip()
        for label, line, about in drawn
    )
    spec, narrow = (whiskers(marks, str(many.primary), screen, of_means=True) for screen in SCREENS)
    title = f"Mean {many.primary} with {format_level(many.alpha)} CI"
    figure = Figure(
        "means",
        f"{title}; systems that share a letter do not differ significantly" if has_groups(many) else title,
        f"Means with CIs and letters: {means}.",
        spec,
        narrow,
        board,
        LEGEND if many.best else (),
        table_follows=True,
    )
    return (figure,)


def has_groups(many: ManyResult) -> bool:
    """Whether any difference could have been significant."""
    return any(line.group for line in many.leaderboard)


def _tone(many: ManyResult, name: str) -> Tone:
    return "good" if name in many.best else ""


def _caption(many: ManyResult, sort: str) -> str:
    queries = f"{format_count(many.n)} queries that every system has a value for"
    ordered = "" if sort == "mean" else f", by {sort}"
    groups = (
        "Two systems share a letter exactly where they do not differ significantly; better and worse than: number of systems, "
        "by the adjusted p; best: no system is significantly better. The CI is of each mean alone"
        if has_groups(many)
        else "No groups: no difference could have been significant"
    )
    return f"{many.primary} on the {queries}{ordered}. {groups}"


def _means(many: ManyResult) -> Table:
    """A row for each measure, a column for each system."""
    rows: list[tuple[Cell, ...]] = [
        (_starred(many, measure), *cells, next(iter(many.means[measure].values())).n)
        for measure, cells in _shaded(many).items()
    ]
    systems = (Column(label, "value") for label in lettered(many.names))
    columns = (Column("measure"), *systems, Column("n", "count"))
    return Table(
        columns,
        rows,
        "Means of every measure. * primary measure",
        shown=None,
    )


def _shaded(many: ManyResult) -> dict[Measure, tuple[Cell, ...]]:
    """The means of every measure, each coloured by its distance from the mean of all systems."""
    means = [[summary.mean for summary in row.values()] for row in many.means.values()]
    return dict(zip(many.means, shaded(means, list(many.means)), strict=True))


def _means_by_system(many: ManyResult, sort: str) -> Table:
    """A row for each system, a column for each measure."""
    cells = [dict(zip(many.names, row, strict=True)) for row in _shaded(many).values()]
    rows: list[tuple[Cell, ...]] = [
        (label, *(column[line.system] for column in cells)) for label, line, _ in board_lines(many, sort)
    ]
    columns = (Column("system"), *(Column(_starred(many, measure), "value") for measure in many.means))
    return Table(
        columns,
        rows,
        "Means of every measure. * primary measure",
        shown=None,
    )


def _starred(many: ManyResult, measure: Measure) -> str:
    return f"* {measure}" if measure == many.primary else str(measure)


def _spread(many: ManyResult, sort: str) -> Table:
    ranks = many.ranks.means if many.ranks is not None else None
    rows: list[tuple[Cell, ...]] = []
    for label, line, summary in board_lines(many, sort):
        rank = UNKNOWN if ranks is None else f"{ranks[line.system]:.2f}"
        rows.append((label, summary.median, summary.std, rank))
    columns = (
        Column("system"),
        Column("median", "value"),
        Column("std. dev.", "value"),
        Column("mean rank", "average"),
    )
    return Table(columns, rows, f"{many.primary} over the queries. Mean rank: 1 is best", shown=None)


def means_table(result: EvaluationResult, sort: str = "mean") -> Table:
    """A line for each system, for CSV: its rank and group where many were compared, and every mean with its interval.

    Raises:
        UnknownNameError: no such order.
    """
    if isinstance(result, ManyResult):
        return _compared_means(result, sort)
    measures = list(dict.fromkeys(measure for each in result.systems for measure in each.measures))
    rows: list[tuple[Cell, ...]] = []
    for each in result.systems:
        cells: list[Cell] = [each.name]
        for measure in measures:
            summary = each.measures.get(measure)
            cells += [None] * 3 if summary is None else [summary.mean, summary.ci_low, summary.ci_high]
        rows.append(tuple(cells))
    return tidy_table(("system", *_mean_headings(measures)), rows)


def _compared_means(many: ManyResult, sort: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for _, line, _ in board_lines(many, sort):
        cells: list[Cell] = [*astuple(line), int(line.system in many.best)]
        for row in many.means.values():
            found = row[line.system]
            cells += [found.mean, found.ci_low, found.ci_high]
        rows.append(tuple(cells))
    return tidy_table((*LeaderboardLine.__dataclass_fields__, "best", *_mean_headings(list(many.means))), rows)


def _mean_headings(measures: Sequence[Measure]) -> list[str]:
    return [heading for measure in measures for heading in (str(measure), f"{measure} ci_low", f"{measure} ci_high")]
