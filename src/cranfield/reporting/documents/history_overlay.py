"""The lines of a test set in one picture: a run of several systems is one place of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise

from cranfield.base.numbers import format_value
from cranfield.base.words import count_noun
from cranfield.evaluation.history import HistoryPoint, Line, LinePoint
from cranfield.reporting.charts.history import Begin, Dot
from cranfield.reporting.charts.overlay import SystemLine, systems_over_time
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import Block, Cell, Chart, Link, Paragraph, Section, Table
from cranfield.reporting.documents.history_labels import commit_of, time_of
from cranfield.reporting.table_spec import Col, TableSpec

MAX_SYSTEMS = 12
"""Systems in one picture: those with the latest runs."""
SAME_RUN = timedelta(minutes=10)
"""Points of different systems and of one commit that are closer are of one run; without a commit only those of one time."""
SHAPES_NOTE = "A triangle that points down is significantly worse than the point before it; one that points up is significantly better."
Draw = Callable[[Line, LinePoint, HistoryPoint | None], Dot]
"""The dot of a point of a line, given the point before it."""
Where = Callable[[HistoryPoint], str | None]


@dataclass(frozen=True, slots=True)
class _Run:
    """The points that were made together, by system."""

    points: Mapping[str, LinePoint]

    @property
    def first(self) -> LinePoint:
        return next(iter(self.points.values()))


def overlay_section(
    lines: Sequence[Line], number: int, draw: Draw, label: Callable[[HistoryPoint], str], where: Where
) -> Section | None:
    """The systems of one test set in one picture; None where there are no two runs of them.

    Args:
        lines: of the systems.
        number: of the section.
        draw: makes the dot of a point.
        label: what stands under a run: its commit, or its time.
        where: the report of a point.
    """
    shown = sorted(lines, key=lambda line: line.points[-1].time, reverse=True)[:MAX_SYSTEMS]
    shown = [line for line in lines if line in shown]
    runs = _runs(shown)
    if len(runs) < 2:
        return None
    title = f"{lines[0].measure} on {lines[0].testset}"
    drawn, labels = [_drawn(line, runs, draw) for line in shown], [label(run.first) for run in runs]
    begins = list(_begins(shown, runs, draw))
    specs = [systems_over_time(drawn, labels, begins, lines[0].measure, screen) for screen in SCREENS]
    figure = Chart(
        name=f"history-set-{number}",
        title=f"{lines[0].measure} of {count_noun(len(shown), 'systems')} over time",
        alt=f"{title}: {count_noun(len(shown), 'systems')} in {count_noun(len(runs), 'runs')} in order of time; see the table.",
        spec=specs[0],
        narrow_spec=specs[1],
        table=_table(shown, runs, title, where),
        table_follows=True,
    )
    notes: list[Block] = []
    if any(dot.tone for line in drawn for dot in line.dots.values()):
        notes.append(Paragraph(SHAPES_NOTE, "note"))
    if len(shown) < len(lines):
        notes.append(Paragraph(f"The {len(shown)} systems with the latest runs, of {len(lines)}.", "note"))
    return Section(f"set-{number}", title, (figure, *notes))


def _runs(lines: Sequence[Line]) -> list[_Run]:
    """Points of all systems in order of time, those that were made together in one run."""
    points = sorted(
        ((point.time, place, line.name, point) for place, line in enumerate(lines) for point in line.points),
        key=lambda entry: entry[:2],
    )
    runs: list[dict[str, LinePoint]] = []
    for _, _, system, point in points:
        if runs and system not in runs[-1] and _is_together(next(iter(runs[-1].values())), point):
            runs[-1][system] = point
        else:
            runs.append({system: point})
    return [_Run(run) for run in runs]


def _is_together(first: HistoryPoint, point: HistoryPoint) -> bool:
    if first.commit is None or point.commit is None:
        return first.time == point.time
    return (first.commit, first.dirty) == (point.commit, point.dirty) and abs(point.time - first.time) <= SAME_RUN


def _drawn(line: Line, runs: Sequence[_Run], draw: Draw) -> SystemLine:
    """The line of a system: its points, and the runs of others in which its answers were the same."""
    dots = {
        place: replace(dot, words=f"{line.name}, {dot.words or dot.label}") for place, dot in _placed(line, runs, draw)
    }
    kept: dict[int, int] = {}
    for place, run in enumerate(runs):
        point = run.points.get(line.name)
        for later, other in enumerate(runs[place + 1 :], start=place + 1) if point is not None else ():
            same = (again for again in point.unchanged if _is_together(other.first, again))  # type: ignore[union-attr]  # not None
            if line.name not in other.points and next(same, None) is not None:
                kept[later] = place
    return SystemLine(line.name, dots, kept)


def _placed(line: Line, runs: Sequence[_Run], draw: Draw) -> Iterator[tuple[int, Dot]]:
    before: HistoryPoint | None = None
    for place, run in enumerate(runs):
        point = run.points.get(line.name)
        if point is not None:
            yield place, draw(line, point, before)
            before = point


def _begins(lines: Sequence[Line], runs: Sequence[_Run], draw: Draw) -> Iterator[Begin]:
    """Where lines break, and why; of one system alone with its name."""
    found: dict[int, dict[str, list[str]]] = {}
    for line in lines:
        dots = list(_placed(line, runs, draw))
        for (_, before), (place, dot) in pairwise(dots):
            if dot.stretch != before.stretch:
                found.setdefault(place, {}).setdefault(dot.stretch_label, []).append(line.name)
    for place in sorted(found):
        for words, systems in found[place].items():
            n_here = sum(system in {line.name for line in lines} for system in runs[place].points)
            yield place, words if len(systems) == n_here else f"{systems[0]}: {words}"


def _table(lines: Sequence[Line], runs: Sequence[_Run], title: str, where: Where) -> Table:
    """A row for each run, the latest first, and a mean for each system that leads to its report."""
    columns: list[Col[_Run]] = [Col("time (UTC)", lambda run: time_of(run.first.time))]
    if any(run.first.commit for run in runs):
        columns.append(Col("commit", lambda run: commit_of(run.first), "code"))
    columns += [Col(line.name, partial(_mean, line, where), "value") for line in lines]
    return TableSpec(f"{title}, latest first", runs[::-1], tuple(columns)).table(shown=20, wrap=True)


def _mean(line: Line, where: Where, run: _Run) -> Cell:
    point = run.points.get(line.name)
    if point is None:
        return None
    mean, path = line.score(point).mean, where(point)
    return mean if path is None else Link(format_value(mean), path)
