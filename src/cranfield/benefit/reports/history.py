"""Results of experiments over time, as a Document: each stratum for itself, never one line over all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cranfield.base.words import count_noun
from cranfield.benefit.reports.benefit import TONES
from cranfield.benefit.result import StratumKind
from cranfield.benefit.status import BenefitHistory, PastResult, PastStratum
from cranfield.model.results import to_jsonable
from cranfield.reporting.charts.history import Dot, over_time
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import Bullets, Cell, Chart, Document, Link, Section, Table, TonedCell
from cranfield.reporting.table_spec import Col, TableSpec

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
        lines = tuple(f"line {each.line} of the history cannot be read: {each.why}" for each in history.damaged)
        sections.append(Section("damaged", "Notes", (Bullets(lines),)))
    return Document(
        title="History of benefit",
        subtitle=(count_noun(len(history.results), "results"),),
        sections=tuple(sections),
        tidy=_all_results(history).tidy,
        payload=lambda: to_jsonable(history),
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
    table = _results(title, points, place)
    dots = [
        _dot(point, row, place)
        for point in points
        if (row := point.row) is not None and not point.result.is_void and row.success_lift.value is not None
    ]
    if len(dots) < 2:
        return Section(name, title, (table,))
    figure = Chart(
        name=name,
        title="Success: treatment minus control, by version",
        alt=f"Lift of success of {len(dots)} valid results over time; see the table.",
        spec=over_time(dots, "Δ success", SCREENS[0]),
        narrow_spec=over_time(dots, "Δ success", SCREENS[1]),
        table=table,
        legend=(("good", "pays off"), ("bad", "net cost")),
        table_follows=True,
    )
    return Section(name, title, (figure, table))


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


def _results(title: str, points: list[_Point], place: Place) -> Table:
    def shown(value: Callable[[PastStratum], Cell]) -> Callable[[_Point], Cell]:
        """A cell of the stratum; empty where the result is invalid, or has no such stratum."""
        return lambda point: None if point.result.is_void or point.row is None else value(point.row)

    return TableSpec(
        f"Results of {title}, the latest first",
        points[::-1],
        (
            Col("version", lambda point: Link(point.result.version, place(point.result))),
            Col("time (UTC)", lambda point: point.result.time[:16].replace("T", " ")),
            Col(
                "commit",
                lambda point: point.result.commit[:COMMIT_SHOWN] + "*" * bool(point.result.uncommitted),
                "code",
            ),
            Col("tasks", shown(lambda row: row.n_tasks), "count"),
            Col("Δ success", shown(lambda row: row.success_lift.value), "delta"),
            Col("CI of success", shown(lambda row: (row.success_lift.low, row.success_lift.high)), "delta interval"),
            Col("token ratio", shown(lambda row: row.token_ratio.value), "value"),
            Col("CI of the ratio", shown(lambda row: (row.token_ratio.low, row.token_ratio.high)), "interval"),
            Col("verdict", _verdict),
            Col("note", lambda point: point.result.sentence if point.result.is_void else point.changed),
        ),
    ).table(wrap=True)


def _verdict(point: _Point) -> Cell:
    if point.result.is_void:
        return TonedCell("invalid", "bad")
    row = point.row
    return "no such stratum" if row is None else TonedCell(row.verdict.value, TONES[row.verdict])


def _all_results(history: BenefitHistory) -> TableSpec[tuple[PastResult, PastStratum]]:
    return TableSpec(
        "",
        [(past, row) for past in history.results for row in past.strata],
        (
            Col("name", lambda each: each[0].name),
            Col("version", lambda each: each[0].version),
            Col("time", lambda each: each[0].time),
            Col("commit", lambda each: each[0].commit),
            Col("void", lambda each: int(each[0].is_void)),
            Col("kind", lambda each: each[1].kind.value),
            Col("stratum", lambda each: _label(each[1])),
            Col("tasks", lambda each: each[1].n_tasks),
            Col("verdict", lambda each: None if each[0].is_void else each[1].verdict.value),
            Col("lift", lambda each: each[1].success_lift.value),
            Col("lift_low", lambda each: each[1].success_lift.low),
            Col("lift_high", lambda each: each[1].success_lift.high),
            Col("token_ratio", lambda each: each[1].token_ratio.value),
            Col("ratio_low", lambda each: each[1].token_ratio.low),
            Col("ratio_high", lambda each: each[1].token_ratio.high),
            Col("plan_digest", lambda each: each[0].plan_digest),
            Col("labels_digest", lambda each: each[0].labels_digest),
            Col("file", lambda each: each[0].file),
        ),
    )
