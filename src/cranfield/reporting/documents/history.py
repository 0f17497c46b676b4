"""A measure over time, as a Document: what `cranfield history` prints."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cranfield.evaluation.history import Change, FirstBad, HistoryPoint, HistoryReport, Line, n_runs
from cranfield.evaluation.history_changes import MOST_CHANGES
from cranfield.evaluation.unseen import nearest
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.numbers import format_count, format_delta, format_interval, format_p, format_plain, format_value
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
    Link,
    Paragraph,
    Section,
    Table,
    Tone,
    TonedCell,
    tidy_table,
)
from cranfield.reporting.documents.history_data import TIDY, changes_of, history_payload, tidy_rows
from cranfield.reporting.documents.history_labels import COMMIT_SHOWN, commit_of, label_maker, time_of
from cranfield.reporting.documents.history_overlay import overlay_section
from cranfield.stats.table import TESTS
from cranfield.words import capitalised, n_of

DIGEST_SHOWN = 19
NOT_A_TEST = (
    "A bound, not a test: the best of many means is the best partly by chance. Without --drop, the paired test decides."
)
NEVER_JOINED = (
    "The line breaks where the test set, the convention, the config of the system or k changed. Runs on different test sets, "
    "or by different conventions, are not compared."
)
SHOWN_COMMITS = 5
Places = Callable[[HistoryPoint], str | None]
"""Where the kept report of a point is, relative to the page; None where there is none."""
SIGNIFICANT: Mapping[VerdictCode, Tone] = {VerdictCode.BETTER: "good", VerdictCode.WORSE: "bad"}


def no_report(_point: HistoryPoint) -> None:
    """No report is kept."""


def history_document(report: HistoryReport, places: Places = no_report) -> Document:
    """The first bad run where requested, then a line for each system and test set, latest run first."""
    sections = [_found(found, place) for place, found in enumerate(report.first_bad, start=1)]
    bad = {id(found.bad) for found in report.first_bad if found.bad is not None}
    parts = [
        _LineSection(line, changes, bad, places) for line, changes in zip(report.lines, changes_of(report), strict=True)
    ]
    overlaid: set[str] = set()
    for number, (testset, own) in enumerate(_by_testset(parts).items(), start=1):
        if len(own) > 1 and (section := _overlay(own, number)) is not None:
            sections.append(section)
            overlaid.add(testset)
    for place, part in enumerate(parts, start=1):
        sections.append(part.section(place, is_drawn=part.line.testset not in overlaid))
    notes = _notes(report)
    if notes:
        sections.append(Section("notes", "Notes", (Bullets(notes),)))
    return Document(
        title=f"History of {report.measure}",
        subtitle=(),
        sections=tuple(sections),
        tidy=lambda: tidy_table(TIDY, list(tidy_rows(report))),
        payload=lambda: history_payload(report),
    )


def _by_testset(parts: Sequence[_LineSection]) -> dict[str, list[_LineSection]]:
    """Test set to the lines of its systems."""
    found: dict[str, list[_LineSection]] = {}
    for part in parts:
        found.setdefault(part.line.testset, []).append(part)
    return found


def _overlay(parts: Sequence[_LineSection], number: int) -> Section | None:
    by_name = {part.line.name: part for part in parts}
    return overlay_section(
        [part.line for part in parts],
        number,
        lambda line, point, before: by_name[line.name].dot(point, before),
        label_maker([point for part in parts for point in part.line.points]),
        parts[0].places,
    )


@dataclass(frozen=True, slots=True)
class _LineSection:
    """The section of one line: its picture, and a row for each point."""

    line: Line
    changes: Mapping[int, Change]
    bad: Container[int]
    places: Places

    def section(self, place: int, *, is_drawn: bool) -> Section:
        """The section; without a picture where all systems of the test set have one together."""
        line, title = self.line, f"{self.line.name} on {self.line.testset}"
        rows = [self._row(point, before) for before, point in self._pairs()]
        if len(rows) == 1:
            table = Table(self._columns, rows, f"{line.measure} of {title}, one point", wrap=True)
            return Section(f"line-{place}", title, (table, *self._notes()))
        table = Table(self._columns, rows[::-1], f"{line.measure} of {title}, latest first", wrap=True)
        if not is_drawn:
            return Section(f"line-{place}", title, (table, *self._notes()))
        label = label_maker(self.line.points)
        dots = [replace(self.dot(point, before), label=label(point)) for before, point in self._pairs()]
        figure = Figure(
            name=f"history-{place}",
            title=f"{line.measure} over time",
            alt=f"{line.measure} of {len(rows)} runs in order of time, in {len(line.stretches)} stretches; see the table.",
            spec=over_time(dots, line.measure, SCREENS[0]),
            narrow_spec=over_time(dots, line.measure, SCREENS[1]),
            table=table,
            legend=(("good", "significantly better"), ("bad", "significantly worse")) if self._has_changes else (),
            table_follows=True,
        )
        return Section(f"line-{place}", title, (figure, table, *self._notes()))

    def _pairs(self) -> Iterator[tuple[HistoryPoint | None, HistoryPoint]]:
        """Each point with the one before it."""
        points = self.line.points
        return zip((None, *points[:-1]), points, strict=True)

    def _row(self, point: HistoryPoint, before: HistoryPoint | None) -> tuple[Cell, ...]:
        score, change = self.line.score(point), self.changes.get(id(point))
        delta: Cell = None
        if change is not None and change.verdict is not None:
            delta = TonedCell(change.delta, SIGNIFICANT.get(change.verdict, ""))
        path = self.places(point)
        failed: tuple[Cell, ...] = (point.n_failed,) if self._has_failures else ()
        return (
            time_of(point.time) if path is None else Link(time_of(point.time), path),
            *((commit_of(point),) if self._has_commits else ()),
            score.mean,
            (score.ci_low, score.ci_high),
            *((delta, None if change is None else change.p_adjusted) if self._has_changes else ()),
            score.n,
            *failed,
            point.p95_ms,
            "; ".join(self._point_notes(point, before)),
        )

    @property
    def _columns(self) -> tuple[Column, ...]:
        failed = (Column("failed", "count"),) if self._has_failures else ()
        commit = (Column("commit", "code"),) if self._has_commits else ()
        change = (Column("change", "delta"), Column("p Holm", "p")) if self._has_changes else ()
        return (
            *(Column("time (UTC)"), *commit, Column("mean", "value"), Column("CI", "interval")),
            *(*change, Column("n", "count"), *failed, Column("p95", "ms"), Column("note")),
        )

    @property
    def _has_changes(self) -> bool:
        return any(change.delta is not None for change in self.changes.values())

    @property
    def _has_commits(self) -> bool:
        return any(point.commit for point in self.line.points)

    @property
    def _has_failures(self) -> bool:
        return any(point.n_failed for point in self.line.points)

    def dot(self, point: HistoryPoint, before: HistoryPoint | None) -> Dot:
        """A point of the picture, which leads to its report."""
        path = self.places(point)
        at = f"{time_of(point.time)}, {commit_of(point)}" if point.commit else time_of(point.time)
        score, change = self.line.score(point), self.changes.get(id(point))
        verdict = None if change is None else change.verdict
        tone = "bad" if id(point) in self.bad else "" if verdict is None else SIGNIFICANT.get(verdict, "")
        return Dot(
            commit_of(point),
            score.mean or 0.0,
            score.ci_low,
            score.ci_high,
            next(
                number for number, stretch in enumerate(self.line.stretches) if any(point is drawn for drawn in stretch)
            ),
            tone=tone,
            stretch_label=", ".join(short for short, _ in _what_changed(before, point)),
            words=", ".join((at, *self._point_words(point))),
            href="" if path is None else Link("", path).href,
        )

    def _point_notes(self, point: HistoryPoint, before: HistoryPoint | None) -> Iterator[str]:
        yield from (full for _, full in _what_changed(before, point))
        yield from self._point_words(point)
        if point.pilot:
            yield "pilot"
        if point.unchanged:
            yield _unchanged(point)

    def _point_words(self, point: HistoryPoint) -> Iterator[str]:
        change = self.changes.get(id(point))
        if change is not None and change.verdict is not None and change.verdict in SIGNIFICANT:
            yield f"significantly {change.verdict.text}"
        if id(point) in self.bad:
            yield "first bad"

    def _notes(self) -> Iterator[Block]:
        if len(self.line.stretches) > 1:
            yield Paragraph(NEVER_JOINED, "note")
        tested = [change for change in self.changes.values() if change.p_adjusted is not None]
        if tested:
            yield Paragraph(_about_changes(tested, len(self.changes)), "note")
        unseen = nearest(change.unseen for change in tested if change.verdict in SIGNIFICANT)
        if unseen is not None:
            yield Paragraph(f"Of the significant changes, the one that turns first: {unseen.sentence}.", "note")
        missing = [point for point in self.line.points if point.values is None]
        if missing and len(self.line.points) > 1:
            n = n_of(len(missing), "runs", format_count)
            yield Paragraph(f"{n} without values by query: not tested.", "note")
        folders = {
            path.rpartition("/")[0] for point in self.line.points if point.report and (path := self.places(point))
        }
        if folders:
            yield Paragraph(f"Kept reports are in {', '.join(sorted(folders))}, named by their time.", "note")


def _about_changes(tested: Sequence[Change], n_all: int) -> str:
    """What the columns of the change are."""
    tests = ", ".join(dict.fromkeys(TESTS[change.test].title for change in tested))
    last = f"; the latest {MOST_CHANGES} are tested" if n_all == MOST_CHANGES else ""
    return (
        f"Change: against the run before it, over the queries of both ({tests}; p adjusted by Holm for "
        f"{n_of(len(tested), 'comparisons', format_count)}{last}). A dot in colour is a significant change."
    )


def _unchanged(point: HistoryPoint) -> str:
    """`same answers at 2 later runs: a1b2c3d4, e5f6a7b8*`."""
    commits = list(dict.fromkeys(commit_of(later) for later in point.unchanged if later.commit))
    shown = ", ".join(commits[:SHOWN_COMMITS]) + (
        f" and {len(commits) - SHOWN_COMMITS} more" if len(commits) > SHOWN_COMMITS else ""
    )
    return f"same answers in {n_of(len(point.unchanged), 'later runs', format_count)}" + (f": {shown}" if shown else "")


def _what_changed(before: HistoryPoint | None, point: HistoryPoint) -> Iterator[tuple[str, str]]:
    """What changed at the first point of a stretch: for the picture, and in full."""
    if before is None:
        return
    if before.digest != point.digest:
        version = point.version if point.version and point.version != before.version else ""
        full = f"new test set {version} {point.digest[:DIGEST_SHOWN]}".replace("  ", " ")
        judged = {before.guidelines, point.guidelines}
        by = ", judged by different guidelines" if None not in judged and len(judged) > 1 else ""
        yield f"test set {version or point.digest.partition(':')[2][:6]}", full + by
    if before.convention != point.convention:
        yield point.convention, f"convention {point.convention}"
    if before.config_digest != point.config_digest:
        if _is_other_config(before, point):
            yield "config", "config of the system changed"
        else:
            yield (
                "config unknown",
                f"config of the system not known {'here' if before.config_digest else 'before this run'}",
            )
    if before.k != point.k:
        yield f"k = {point.k}", f"k is {point.k}, was {before.k}"


def _is_other_config(before: HistoryPoint, point: HistoryPoint) -> bool:
    """Whether both configs are known, and differ: a run file has none."""
    return None not in (before.config_digest, point.config_digest) and before.config_digest != point.config_digest


def _found(found: FirstBad, place: int) -> Section:
    line, points = found.line, found.line.comparable[-1]
    title = f"First bad run: {line.name} on {line.testset}"
    digest = points[-1].digest[:DIGEST_SHOWN]
    among = f"the {format_count(found.n)} runs on {digest}"
    untested = (*_untested(found), *_not_looked_at(line))
    if found.bad is None:
        none = f"The only run on {digest} is not bad" if found.n == 1 else f"None of {among} is bad"
        return Section(f"first-bad-{place}", title, (Paragraph(f"{none}: {_rule(found)}."), *untested))
    items = [f"first bad: {_shown(line, found.bad)}"]
    items.append(f"last good before it: {_shown(line, found.good)}" if found.good else "there is no good run before it")
    if found.best is not None and found.best is not found.good:
        items.append(f"best before it: {_shown(line, found.best)}")
    if found.change is not None:
        items.append(_tested(found.change))
    if found.reason:
        items.append(f"rule of the gate: {found.reason}")
    if found.good is not None and _is_other_config(found.good, found.bad):
        items.append("the config of the system changed between the last good run and the first bad one")
    if found.n_after:
        now = {True: "is bad", False: "is good again", None: "could not be tested"}[found.latest_is_bad]
        items.append(f"{found.n_good_after} of {found.n_after} later runs are good again; the latest {now}")
    blocks: list[Block] = [
        Paragraph(f"Of {among}, {_rule(found)}:"),
        Bullets(tuple(items)),
        *_commits(found),
        *untested,
    ]
    if found.rule.drop is not None:
        blocks.append(Paragraph(NOT_A_TEST, "note"))
    return Section(f"first-bad-{place}", title, tuple(blocks))


def _tested(change: Change) -> str:
    """The comparison that found the first bad run."""
    return (
        f"difference to the best: {format_delta(change.delta)}, p {format_p(change.p_adjusted)} "
        f"({TESTS[change.test].title}, n = {format_count(change.n)}, {format_count(change.n_differ)} differ)"
    )


def _untested(found: FirstBad) -> tuple[Block, ...]:
    if not found.n_untested:
        return ()
    why = "values by query are not kept" + (", or are of another version of the test set" if found.rule.gate else "")
    what = f"{n_of(found.n_untested, 'runs', format_count)} could not be tested ({why})"
    return (Paragraph(f"{what}: --drop and --below use the means alone.", "warning"),)


def _not_looked_at(line: Line) -> tuple[Block, ...]:
    n = sum(map(n_runs, line.comparable[:-1]))
    if not n:
        return ()
    where = "on earlier versions of the test set or by another convention"
    return (
        Paragraph(
            f"{capitalised(n_of(n, 'runs', format_count))} {where} {'is' if n == 1 else 'are'} not compared.", "note"
        ),
    )


def _rule(found: FirstBad) -> str:
    rule = found.rule
    if rule.below is not None:
        return f"bad is a mean worse than {format_plain(rule.below)}"
    if rule.drop is not None:
        return f"bad is a mean worse than the best before it by more than {format_plain(rule.drop)}"
    if rule.gate:
        return "bad is a run that breaks a rule of the gate"
    times = ", p adjusted for the number of runs" if found.n_compared > 1 else ""
    return f"bad is a run significantly worse than the best before it (paired test, alpha {format_plain(found.alpha)}{times})"


def _shown(line: Line, point: HistoryPoint) -> str:
    score = line.score(point)
    at = f" at {commit_of(point)}" if point.commit else ""
    return f"{time_of(point.time)}{at}, {format_value(score.mean)} ({format_interval((score.ci_low, score.ci_high))})"


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
    if any(point.dirty for line in report.lines for first in line.points for point in (first, *first.unchanged)):
        notes.append("* after a commit: with uncommitted changes")
    return tuple(notes)
