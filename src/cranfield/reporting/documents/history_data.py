"""A history as rows of CSV and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cranfield.evaluation.history import Change, FirstBad, HistoryPoint, HistoryReport, Line, Score
from cranfield.record import Fields, record_of
from cranfield.reporting.document import Cell

TIDY = (
    *("testset", "version", "digest", "system", "measure", "stretch", "time", "commit", "dirty", "mean", "ci_low"),
    *("ci_high", "n", "failed", "convention", "k", "config_digest", "run_digest", "pilot", "unchanged"),
    *("delta", "p", "p_adjusted", "verdict", "report"),
)


def changes_of(report: HistoryReport) -> list[dict[int, Change]]:
    """Of each line: identity of a point to its change from the point before it."""
    found = report.changes or ((),) * len(report.lines)
    return [{id(change.point): change for change in changes} for changes in found]


def tidy_rows(report: HistoryReport) -> Iterator[tuple[Cell, ...]]:
    """A row for every evaluation, those with unchanged answers too."""
    for line, changes in zip(report.lines, changes_of(report), strict=True):
        for number, stretch in enumerate(line.stretches, start=1):
            for first in stretch:
                for point in (first, *first.unchanged):
                    yield _tidy_row(line, number, point, changes.get(id(point)), is_unchanged=point is not first)


def _tidy_row(
    line: Line, number: int, point: HistoryPoint, change: Change | None, *, is_unchanged: bool
) -> tuple[Cell, ...]:
    score = line.score(point)
    tested: tuple[Cell, ...] = (None, None, None, None)
    if change is not None:
        verdict = None if change.verdict is None else change.verdict.value
        tested = (change.delta, change.p, change.p_adjusted, verdict)
    return (
        *(line.testset, point.version, point.digest, line.system, line.measure, number),
        *(point.time.isoformat(), point.commit, int(point.dirty), score.mean, score.ci_low, score.ci_high),
        *(score.n, point.n_failed, point.convention, point.k, point.config_digest, point.run_digest),
        *(int(point.pilot), int(is_unchanged), *tested, point.report),
    )


def history_payload(report: HistoryReport) -> dict[str, Any]:
    """The report as JSON."""
    return {
        "schema_version": 1,
        "measure": report.measure,
        "lines": [_line_payload(line, changes) for line, changes in zip(report.lines, changes_of(report), strict=True)],
        "first_bad": [_first_bad(found) for found in report.first_bad],
        "n_pilots_left_out": report.n_pilots,
        "n_without_the_measure": report.n_without,
        "damaged_lines": [{"line": number, "why": why} for number, why in report.damaged],
    }


def _line_payload(line: Line, changes: Mapping[int, Change]) -> dict[str, Any]:
    return {
        "testset": line.testset,
        "system": line.system,
        "stretches": [
            {
                **record_of(stretch[0], STRETCH),
                "points": [_point_payload(line, point, changes.get(id(point))) for point in stretch],
            }
            for stretch in line.stretches
        ],
    }


def _point_payload(line: Line, point: HistoryPoint, change: Change | None) -> dict[str, Any]:
    return _point(line, point) | {
        "change": None if change is None else record_of(change, CHANGE),
        "unchanged": [record_of(later, RUN) for later in point.unchanged],
    }


STRETCH: Fields = {HistoryPoint: "digest convention config_digest k"}
CHANGE: Fields = {Change: "test n n_differ delta ci_low ci_high p p_adjusted verdict unseen?"}
RUN: Fields = {HistoryPoint: "time=time.isoformat commit dirty version"}
REST: Fields = {
    HistoryPoint: (
        "queries=n_queries failed=n_failed judged latency_ms.p50=p50_ms latency_ms.p95=p95_ms k config_digest run_digest pilot report"
    )
}
SCORE: Fields = {Score: "mean ci_low ci_high n"}
FIRST_BAD: Fields = {
    FirstBad: (
        "testset=line.testset system=line.system below=rule.below drop=rule.drop gate=rule.gate reason alpha n_compared n_untested n bad good best n_after n_good_after "
        "latest_is_bad commits"
    )
}


def _point(line: Line, point: HistoryPoint) -> dict[str, Any]:
    return record_of(point, RUN) | record_of(line.score(point), SCORE) | record_of(point, REST)


def _first_bad(found: FirstBad) -> dict[str, Any]:
    points = {"bad": found.bad, "good": found.good, "best": found.best}
    return record_of(found, FIRST_BAD) | {
        "change": None if found.change is None else record_of(found.change, CHANGE),
        **{name: None if point is None else _point(found.line, point) for name, point in points.items()},
    }
