"""Results of experiments over time, as a Document: each stratum for itself, never one line over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cranfield.benefit.history import BenefitHistory, PastResult, PastStratum
from cranfield.benefit.result import StratumKind
from cranfield.reporting.charts.history import Dot, over_time
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    Bullets,
    Cell,
    Column,
    Document,
    Figure,
    Link,
    Section,
    Table,
    TonedCell,
    tidy_table,
)
from cranfield.reporting.documents.benefit import TONES
from cranfield.words import n_of

TIDY = (
    *("name", "version", "time", "commit", "void", "kind", "stratum", "tasks", "verdict", "lift", "lift_low"),
    *("lift_high", "token_ratio", "ratio_low", "ratio_high", "plan_digest", "labels_digest", "file"),
)
COMMIT_SHOWN = 8
Place = Callable[[PastResult], str]
"""Address of the file of a result, relative to the page."""


@dataclass(frozen=True, slots=True)
class _Point:
    """A result in the line of a stratum."""

    result: PastResult
    row: PastStratum | None
    """None: the result has no such stratum."""
    stretch: int
    changed: str
    """What is other than in the result before; empty: nothing, or there is none."""


def benefit_history_document(history: BenefitHistory, place: Place = lambda past: past.file) -> Document:
    """A section for each experiment and stratum: lift of success by version, and all results, the latest first.

    A result that is invalid has no verdict, is not drawn, and ends the line before it.
    """
    sections: list[Section] = []
    for name in dict.fromkeys(past.name for past in history.results):
        results = [past for past in history.results if past.name == name]
        for stratum in _strata(results):
            sections.append(_section(f"line-{len(sections) + 1}", name, stratum, _points(results, stratum), place))
    if history.damaged:
        lines = tuple(f"line {number} of the history cannot be read: {why}" for number, why in history.damaged)
        sections.append(Section("damaged", "Notes", (Bullets(lines),)))
    return Document(
        title="History of benefit",
        subtitle=(n_of(len(history.results), "results"),),
        sections=tuple(sections),
        tidy=lambda: tidy_table(TIDY, list(_tidy(history))),
        payload=lambda: {
            "schema_version": 1,
            "results": [past.model_dump(mode="json") for past in history.results],
            "damaged_lines": [{"line": number, "why": why} for number, why in history.damaged],
        },
    )


def _strata(results: list[PastResult]) -> list[str]:
    """The strata of an experiment, in the order of its results: its cells; where it has none, all tasks."""
    rows = [row for past in results for row in past.strata]
    cells = [_label(row) for row in rows if row.kind is StratumKind.CELL]
    return list(dict.fromkeys(cells or (_label(row) for row in rows if row.kind is StratumKind.ALL))) or [""]


def _label(row: PastStratum) -> str:
    return ", ".join(row.stratum.values()) or "all"


def _points(results: list[PastResult], stratum: str) -> list[_Point]:
    points: list[_Point] = []
    before: PastResult | None = None
    stretch = 0
    for past in results:
        changed = "" if before is None else _changed(before, past)
        stretch += bool(changed) or (before is not None and before.is_void)
        rows = (row for row in past.strata if row.kind in {StratumKind.CELL, StratumKind.ALL})
        points.append(_Point(past, next((row for row in rows if _label(row) == stratum), None), stretch, changed))
        before = past
    return points


def _changed(before: PastResult, past: PastResult) -> str:
    """What makes two results no points of one line."""
    changes = {
        "another plan": before.plan_digest != past.plan_digest,
        "other labels": before.labels_digest != past.labels_digest,
    }
    return ", ".join(name for name, is_so in changes.items() if is_so)


def _section(name: str, experiment: str, stratum: str, points: list[_Point], place: Place) -> Section:
    title = f"{experiment}: {stratum}" if stratum else experiment
    columns = (
        *(Column("version"), Column("time (UTC)"), Column("commit", "code"), Column("tasks", "count")),
        *(Column("Δ success", "delta"), Column("CI of success", "delta interval"), Column("token ratio", "value")),
        *(Column("CI of the ratio", "interval"), Column("verdict"), Column("note")),
    )
    rows = [_row(point, place) for point in reversed(points)]
    table = Table(columns, rows, f"Results of {title}, the latest first", wrap=True, shown=None)
    dots = [_dot(point, point.row, place) for point in points if point.row is not None and _is_drawn(point)]
    if len(dots) < 2:
        return Section(name, title, (table,))
    figure = Figure(
        name=name,
        title="Success: treatment less control, by version",
        alt=f"Lift of success of {len(dots)} valid results in order of time; see the table.",
        spec=over_time(dots, "Δ success", SCREENS[0]),
        narrow_spec=over_time(dots, "Δ success", SCREENS[1]),
        table=table,
        legend=(("good", "pays off"), ("bad", "net cost")),
        table_follows=True,
    )
    return Section(name, title, (figure, table))


def _is_drawn(point: _Point) -> bool:
    return not point.result.is_void and point.row is not None and point.row.success_lift.value is not None


def _dot(point: _Point, row: PastStratum, place: Place) -> Dot:
    lift, tone = row.success_lift, TONES[row.verdict]
    return Dot(
        point.result.version,
        lift.value or 0.0,
        lift.low,
        lift.high,
        point.stretch,
        tone=tone if tone in {"good", "bad"} else "",
        stretch_label=point.changed or "after an invalid result",
        href=Link("", place(point.result)).href,
    )


def _row(point: _Point, place: Place) -> tuple[Cell, ...]:
    past, row = point.result, None if point.result.is_void else point.row
    about = (
        Link(past.version, place(past)),
        past.time[:16].replace("T", " "),
        past.commit[:COMMIT_SHOWN] + ("*" if past.uncommitted else ""),
    )
    if row is None:
        state = TonedCell("invalid", "bad") if past.is_void else "no such stratum"
        return (*about, None, None, None, None, None, state, past.sentence if past.is_void else point.changed)
    lift, ratio = row.success_lift, row.token_ratio
    return (
        *(*about, row.n_tasks, lift.value, (lift.low, lift.high), ratio.value, (ratio.low, ratio.high)),
        *(TonedCell(row.verdict.value, TONES[row.verdict]), point.changed),
    )


def _tidy(history: BenefitHistory) -> Iterator[tuple[Cell, ...]]:
    for past in history.results:
        for row in past.strata:
            lift, ratio = row.success_lift, row.token_ratio
            yield (
                *(past.name, past.version, past.time, past.commit, int(past.is_void), row.kind.value, _label(row)),
                *(row.n_tasks, None if past.is_void else row.verdict.value, lift.value, lift.low, lift.high),
                *(ratio.value, ratio.low, ratio.high, past.plan_digest, past.labels_digest, past.file),
            )
