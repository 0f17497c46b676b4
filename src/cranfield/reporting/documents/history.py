"""A measure over time, as a Document: what `cranfield history` prints."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from cranfield.evaluation.history import FirstBad, HistoryPoint, HistoryReport, Line, Score
from cranfield.numbers import format_count, format_interval, format_plain, format_value
from cranfield.record import Fields, record_of
from cranfield.reporting.charts.history import Dot, over_time
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Document,
    Figure,
    Paragraph,
    Section,
    Table,
    tidy_table,
)
from cranfield.words import n_of

COMMIT_SHOWN, DIGEST_SHOWN = 8, 19
TIDY = (
    *("testset", "version", "digest", "system", "measure", "stretch", "time", "commit", "dirty", "mean", "ci_low"),
    *("ci_high", "n", "failed", "convention", "k", "config_digest", "run_digest", "pilot"),
)
NOT_A_TEST = (
    "A hint, not a test: the CI is that of one mean, and the best of many is the best partly by chance. `cranfield compare` "
    "on the two runs decides."
)
NEVER_JOINED = "Scores on different test sets, or by different conventions, are not compared: the line breaks there."


def history_document(report: HistoryReport) -> Document:
    """The first bad run where requested, then a line for each system and test set, latest run first."""
    sections = [_found(found, place) for place, found in enumerate(report.first_bad, start=1)]
    bad = {id(found.bad) for found in report.first_bad if found.bad is not None}
    sections += [_line(line, place, bad) for place, line in enumerate(report.lines, start=1)]
    notes = _notes(report)
    if notes:
        sections.append(Section("notes", "Notes", (Bullets(notes),)))
    return Document(
        title=f"History of {report.measure}",
        subtitle=(),
        sections=tuple(sections),
        tidy=lambda: tidy_table(TIDY, list(_tidy(report))),
        payload=lambda: _payload(report),
    )


def _line(line: Line, place: int, bad: set[int]) -> Section:
    title = f"{line.system} on {line.testset}"
    dots, rows = [], []
    for number, stretch in enumerate(line.stretches):
        for point in stretch:
            score = line.score(point)
            begins = bool(number) and point is stretch[0]
            dots.append(
                Dot(
                    _commit(point) or f"{point.time:%m-%d}",
                    score.mean or 0.0,
                    score.ci_low,
                    score.ci_high,
                    number,
                    is_bad=id(point) in bad,
                    stretch_label=_mark(line.stretches[number - 1][-1], point) if begins else "",
                )
            )
            row: tuple[Cell, ...] = (
                _when(point.time),
                _commit(point),
                score.mean,
                (score.ci_low, score.ci_high),
                score.n,
                point.n_failed,
                point.p95_ms,
                "; ".join(_point_notes(line, number, point, begins=begins, is_bad=id(point) in bad)),
            )
            rows.append(row)
    n = len(rows)
    if n == 1:
        return Section(f"line-{place}", title, (Table(_COLUMNS, rows, f"{line.measure} of {title}, one evaluation"),))
    table = Table(_COLUMNS, rows[::-1], f"{line.measure} of {title}, latest first", wrap=True)
    figure = Figure(
        name=f"history-{place}",
        title=title,
        alt=f"{line.measure} of {n} evaluations in order of time, in {len(line.stretches)} stretches; the table says the same.",
        spec=over_time(dots, line.measure, SCREENS[0]),
        narrow_spec=over_time(dots, line.measure, SCREENS[1]),
        table=table,
        in_text=True,
    )
    broken: tuple[Block, ...] = (Paragraph(NEVER_JOINED, "note"),) if len(line.stretches) > 1 else ()
    return Section(f"line-{place}", title, (figure, *broken))


_COLUMNS = (
    *(Column("time (UTC)"), Column("commit", "code"), Column("mean", "value"), Column("CI", "interval")),
    *(Column("n", "count"), Column("failed", "count"), Column("p95", "ms"), Column("note")),
)


def _point_notes(line: Line, number: int, point: HistoryPoint, *, begins: bool, is_bad: bool) -> Iterator[str]:
    if begins:
        yield _changed(line.stretches[number - 1][-1], point)
    if is_bad:
        yield "first bad"
    if point.pilot:
        yield "pilot"


def _changed(before: HistoryPoint, point: HistoryPoint) -> str:
    """What changed at the first point of a stretch."""
    if before.digest == point.digest:
        return f"convention {point.convention}"
    version = f" {point.version}" if point.version and point.version != before.version else ""
    return f"new test set{version} {point.digest[:DIGEST_SHOWN]}"


def _mark(before: HistoryPoint, point: HistoryPoint) -> str:
    """The same in a few characters, for the picture."""
    if before.digest == point.digest:
        return point.convention
    new = point.version if point.version and point.version != before.version else point.digest.partition(":")[2][:6]
    return f"test set {new}"


def _found(found: FirstBad, place: int) -> Section:
    line = found.line
    where = f"{line.system} on {line.testset}"
    latest = line.stretches[-1][-1]
    digest = latest.digest[:DIGEST_SHOWN]
    among = f"the {format_count(found.n)} evaluations on {digest}"
    if found.bad is None:
        none = f"The only evaluation on {digest} is not bad" if found.n == 1 else f"None of {among} is bad"
        return Section(f"first-bad-{place}", f"First bad run: {where}", (Paragraph(f"{none}: {_rule(found)}."),))
    items = [f"first bad: {_shown(line, found.bad)}"]
    items.append(f"last good before it: {_shown(line, found.good)}" if found.good else "there is no good run before it")
    if found.best is not None and found.best is not found.good:
        items.append(f"best before it: {_shown(line, found.best)}")
    if found.n_after:
        now = "bad" if found.latest_is_bad else "good again"
        items.append(f"{found.n_good_after} of {found.n_after} later runs are good again; the latest is {now}")
    blocks: list[Block] = [Paragraph(f"Of {among}, {_rule(found)}:"), Bullets(tuple(items)), *_commits(found)]
    if found.best is not None:
        blocks.append(Paragraph(NOT_A_TEST, "note"))
    return Section(f"first-bad-{place}", f"First bad run: {where}", tuple(blocks))


def _rule(found: FirstBad) -> str:
    rule = found.rule
    if rule.below is not None:
        return f"bad is a mean worse than {format_plain(rule.below)}"
    if rule.drop is not None:
        return f"bad is a mean worse than the best before it by more than {format_plain(rule.drop)}"
    return "bad is a mean whose whole CI is worse than the best mean before it"


def _shown(line: Line, point: HistoryPoint) -> str:
    score = line.score(point)
    at = f" at {_commit(point)}" if point.commit else ""
    return f"{_when(point.time)}{at}, {format_value(score.mean)} ({format_interval((score.ci_low, score.ci_high))})"


def _commits(found: FirstBad) -> tuple[Block, ...]:
    good, bad = found.good, found.bad
    if good is None or bad is None:
        return ()
    if good.commit is None or bad.commit is None:
        return (Paragraph("One of the two was made outside of a repository: there are no commits to name."),)
    if good.commit == bad.commit:
        return (
            Paragraph("Both were made at one commit: what changed is not in the repository, or was not committed."),
        )
    if found.commits is None:
        return (Paragraph("git does not find both commits here: the commits between them cannot be listed."),)
    caption = f"Commits from {good.commit[:COMMIT_SHOWN]} to {bad.commit[:COMMIT_SHOWN]}"
    blocks: tuple[Block, ...] = (Code("\n".join(found.commits) or "none", caption, in_text=True),)
    if good.dirty or bad.dirty:
        blocks = (*blocks, Paragraph("* with uncommitted changes."))
    return blocks


def _notes(report: HistoryReport) -> tuple[str, ...]:
    notes = []
    if report.n_pilots:
        notes.append(f"{n_of(report.n_pilots, 'pilots', format_count)} left out")
    if report.n_without:
        notes.append(
            f"{n_of(report.n_without, 'evaluations', format_count)} without a mean of {report.measure} left out"
        )
    if report.damaged:
        lines = ", ".join(f"{number} ({why})" for number, why in report.damaged[:10])
        more = ", …" if len(report.damaged) > 10 else ""
        n = len(report.damaged)
        notes.append(
            f"{n_of(n, 'lines', format_count)} of the history cannot be read and {'is' if n == 1 else 'are'} left out: {lines}{more}"
        )
    if any(point.dirty for line in report.lines for point in line.points):
        notes.append("* after a commit: with uncommitted changes")
    return tuple(notes)


def _commit(point: HistoryPoint) -> str:
    return "" if point.commit is None else point.commit[:COMMIT_SHOWN] + ("*" if point.dirty else "")


def _when(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _tidy(report: HistoryReport) -> Iterator[tuple[Cell, ...]]:
    for line in report.lines:
        for number, stretch in enumerate(line.stretches, start=1):
            for point in stretch:
                score = line.score(point)
                yield (
                    *(line.testset, point.version, point.digest, line.system, line.measure, number),
                    *(point.time.isoformat(), point.commit, int(point.dirty), score.mean, score.ci_low, score.ci_high),
                    *(score.n, point.n_failed, point.convention, point.k, point.config_digest, point.run_digest),
                    int(point.pilot),
                )


def _payload(report: HistoryReport) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "measure": report.measure,
        "lines": [
            {
                "testset": line.testset,
                "system": line.system,
                "stretches": [
                    {
                        "digest": stretch[0].digest,
                        "convention": stretch[0].convention,
                        "points": [_point(line, point) for point in stretch],
                    }
                    for stretch in line.stretches
                ],
            }
            for line in report.lines
        ],
        "first_bad": [_first_bad(found) for found in report.first_bad],
        "n_pilots_left_out": report.n_pilots,
        "n_without_the_measure": report.n_without,
        "damaged_lines": [{"line": number, "why": why} for number, why in report.damaged],
    }


RUN: Fields = {HistoryPoint: "time=time.isoformat commit dirty version"}
REST: Fields = {
    HistoryPoint: (
        "queries=n_queries failed=n_failed judged latency_ms.p50=p50_ms latency_ms.p95=p95_ms k config_digest run_digest pilot"
    )
}
SCORE: Fields = {Score: "mean ci_low ci_high n"}
FIRST_BAD: Fields = {
    FirstBad: (
        "testset=line.testset system=line.system below=rule.below drop=rule.drop n bad good best n_after n_good_after "
        "latest_is_bad commits"
    )
}


def _point(line: Line, point: HistoryPoint) -> dict[str, Any]:
    return record_of(point, RUN) | record_of(line.score(point), SCORE) | record_of(point, REST)


def _first_bad(found: FirstBad) -> dict[str, Any]:
    points = {"bad": found.bad, "good": found.good, "best": found.best}
    return record_of(found, FIRST_BAD) | {
        name: None if point is None else _point(found.line, point) for name, point in points.items()
    }
