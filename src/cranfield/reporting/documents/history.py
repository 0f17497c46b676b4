"""A measure over time, as a Document: what `cranfield history` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from operator import attrgetter

from cranfield.base.numbers import format_count, format_delta, format_interval, format_p, format_plain, format_value
from cranfield.base.words import capitalised, count_noun
from cranfield.evaluation.history import (
    MAX_CHANGES,
    Change,
    FirstBad,
    HistoryPoint,
    HistoryReport,
    Line,
    LinePoint,
    Score,
    n_runs,
)
from cranfield.evaluation.unseen import nearest
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.model.results import to_jsonable
from cranfield.reporting.charts.history import Begin, Dot, SystemLine, over_time, systems_over_time
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Code,
    Document,
    Link,
    Paragraph,
    Section,
    Table,
    Tone,
    TonedCell,
)
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec
from cranfield.stats.table import TESTS

COMMIT_SHOWN = 8
DAY, YEAR = "%m-%d", "%Y-%m-%d"
TIMES = ("", " %H:%M", " %H:%M:%S")


def commit_of(point: HistoryPoint) -> str:
    """`5e3739da`, with `*` for uncommitted changes; empty outside of a repository."""
    return "" if point.commit is None else point.commit[:COMMIT_SHOWN] + ("*" if point.dirty else "")


def time_of(time: datetime) -> str:
    """`2026-11-21 20:51`."""
    return f"{time:%Y-%m-%d %H:%M}"


def label_maker(points: Iterable[HistoryPoint]) -> Callable[[HistoryPoint], str]:
    """What stands under a point: its commit, else its day, with the year and the time as far as they tell days and points apart."""
    times = {point.time.replace(microsecond=0) for point in points}
    day = DAY if len({time.year for time in times}) <= 1 else YEAR
    forms = [day + time for time in TIMES]
    form = next((form for form in forms if len({time.strftime(form) for time in times}) == len(times)), forms[-1])
    return lambda point: commit_of(point) or point.time.strftime(form)


MAX_SYSTEMS = 12
"""Systems in one picture: those with the latest runs."""
SAME_RUN = timedelta(minutes=10)
"""Points of different systems and of one commit that are closer are of one run; without a commit only those of one time."""
SHAPES_NOTE = "A triangle that points down is significantly worse than the point before it; one that points up is significantly better."
Draw = Callable[[Line, LinePoint, HistoryPoint | None], Dot]
"""The dot of a point of a line, given the point before it."""
Where = Callable[[HistoryPoint], str | None]


@dataclass(frozen=True, slots=True)
class _OverlayRun:
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


def _runs(lines: Sequence[Line]) -> list[_OverlayRun]:
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
    return [_OverlayRun(run) for run in runs]


def _is_together(first: HistoryPoint, point: HistoryPoint) -> bool:
    if first.commit is None or point.commit is None:
        return first.time == point.time
    return (first.commit, first.dirty) == (point.commit, point.dirty) and abs(point.time - first.time) <= SAME_RUN


def _drawn(line: Line, runs: Sequence[_OverlayRun], draw: Draw) -> SystemLine:
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


def _placed(line: Line, runs: Sequence[_OverlayRun], draw: Draw) -> Iterator[tuple[int, Dot]]:
    before: HistoryPoint | None = None
    for place, run in enumerate(runs):
        point = run.points.get(line.name)
        if point is not None:
            yield place, draw(line, point, before)
            before = point


def _begins(lines: Sequence[Line], runs: Sequence[_OverlayRun], draw: Draw) -> Iterator[Begin]:
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


def _table(lines: Sequence[Line], runs: Sequence[_OverlayRun], title: str, where: Where) -> Table:
    """A row for each run, the latest first, and a mean for each system that leads to its report."""

    def mean(run: _OverlayRun, line: Line) -> Cell:
        if (point := run.points.get(line.name)) is None:
            return None
        found, path = line.score(point).mean, where(point)
        return found if path is None else Link(format_value(found), path)

    columns: Columns[_OverlayRun] = (
        Col("time (UTC)", lambda run: time_of(run.first.time)),
        Col("commit", lambda run: commit_of(run.first), "code", when=any(run.first.commit for run in runs)),
        Cols(lines, mean, "value", attrgetter("name")),
    )
    return TableSpec(f"{title}, latest first", runs[::-1], columns).table(shown=20, wrap=True)


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
    sections = [
        _found(line, line.first_bad, place)
        for place, line in enumerate(report.lines, start=1)
        if line.first_bad is not None
    ]
    parts = [_LineSection(line, places) for line in report.lines]
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
        tidy=_tidy(report).tidy,
        payload=lambda: to_jsonable(report),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """A row of CSV: an evaluation, those with unchanged answers too."""

    line: Line
    stretch: int
    first: LinePoint
    point: HistoryPoint

    @property
    def change(self) -> Change | None:
        return self.first.change if self.point is self.first else None

    @property
    def score(self) -> Score:
        return self.line.score(self.point)


def _tidy(report: HistoryReport) -> TableSpec[_Run]:
    rows = [
        _Run(line, number, first, point)
        for line in report.lines
        for number, stretch in enumerate(line.stretches, start=1)
        for first in stretch
        for point in (first, *first.unchanged)
    ]
    columns: Columns[_Run] = (
        Col("testset", lambda run: run.line.testset),
        Col("version", lambda run: run.point.version),
        Col("digest", lambda run: run.point.digest),
        Col("system", lambda run: run.line.system),
        Col("measure", lambda run: run.line.measure),
        Col("stretch", lambda run: run.stretch),
        Col("time", lambda run: run.point.time.isoformat()),
        Col("commit", lambda run: run.point.commit),
        Col("dirty", lambda run: int(run.point.dirty)),
        Col("mean", lambda run: run.score.mean),
        Col("ci_low", lambda run: run.score.ci_low),
        Col("ci_high", lambda run: run.score.ci_high),
        Col("n", lambda run: run.score.n),
        Col("failed", lambda run: run.point.n_failed),
        Col("convention", lambda run: run.point.convention),
        Col("k", lambda run: run.point.k),
        Col("config_digest", lambda run: run.point.config_digest),
        Col("run_digest", lambda run: run.point.run_digest),
        Col("pilot", lambda run: int(run.point.pilot)),
        Col("unchanged", lambda run: int(run.point is not run.first)),
        Col("delta", lambda run: run.change.delta if run.change else None),
        Col("p", lambda run: run.change.p if run.change else None),
        Col("p_adjusted", lambda run: run.change.p_adjusted if run.change else None),
        Col("verdict", lambda run: run.change.verdict.value if run.change and run.change.verdict else None),
        Col("report", lambda run: run.point.report),
    )
    return TableSpec("", rows, columns)


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
    places: Places

    def section(self, place: int, *, is_drawn: bool) -> Section:
        """The section; without a picture where all systems of the test set have one together."""
        line, title = self.line, f"{self.line.name} on {self.line.testset}"
        pairs = list(self._pairs())
        order = "one point" if len(pairs) == 1 else "latest first"
        table = self._spec(f"{line.measure} of {title}, {order}", pairs[::-1]).table(shown=20, wrap=True)
        if len(pairs) == 1 or not is_drawn:
            return Section(f"line-{place}", title, (table, *self._notes()))
        label = label_maker(self.line.points)
        dots = [replace(self.dot(point, before), label=label(point)) for before, point in pairs]
        figure = Chart(
            name=f"history-{place}",
            title=f"{line.measure} over time",
            alt=f"{line.measure} of {len(pairs)} runs in order of time, in {len(line.stretches)} stretches; see the table.",
            spec=over_time(dots, line.measure, SCREENS[0]),
            narrow_spec=over_time(dots, line.measure, SCREENS[1]),
            table=table,
            legend=(("good", "significantly better"), ("bad", "significantly worse")) if self._has_changes else (),
            table_follows=True,
        )
        return Section(f"line-{place}", title, (figure, table, *self._notes()))

    def _pairs(self) -> Iterator[tuple[LinePoint | None, LinePoint]]:
        """Each point with the one before it."""
        points = self.line.points
        return zip((None, *points[:-1]), points, strict=True)

    def _spec(
        self, caption: str, rows: Sequence[tuple[LinePoint | None, LinePoint]]
    ) -> TableSpec[tuple[LinePoint | None, LinePoint]]:
        """The row of a point: it and the one before it."""
        score = self.line.score
        columns: list[Col[tuple[LinePoint | None, LinePoint]]] = [
            Col("time (UTC)", lambda row: self._time(row[1])),
            Col("commit", lambda row: commit_of(row[1]), "code"),
            Col("mean", lambda row: score(row[1]).mean, "value"),
            Col("CI", lambda row: (score(row[1]).ci_low, score(row[1]).ci_high), "interval"),
            Col("change", lambda row: _delta(row[1].change), "delta"),
            Col("p Holm", lambda row: row[1].change.p_adjusted if row[1].change else None, "p"),
            Col("n", lambda row: score(row[1]).n, "count"),
            Col("failed", lambda row: row[1].n_failed, "count"),
            Col("p95", lambda row: row[1].p95_ms, "ms"),
            Col("note", lambda row: "; ".join(self._point_notes(row[1], row[0]))),
        ]
        left_out = {
            "commit": not any(point.commit for point in self.line.points),
            "change": not self._has_changes,
            "p Holm": not self._has_changes,
            "failed": not any(point.n_failed for point in self.line.points),
        }
        return TableSpec(caption, rows, tuple(column for column in columns if not left_out.get(column.title)))

    def _time(self, point: HistoryPoint) -> Cell:
        path = self.places(point)
        return time_of(point.time) if path is None else Link(time_of(point.time), path)

    @property
    def _changes(self) -> list[Change]:
        return [point.change for point in self.line.points if point.change is not None]

    @property
    def _has_changes(self) -> bool:
        return any(change.delta is not None for change in self._changes)

    def _is_first_bad(self, point: HistoryPoint) -> bool:
        return self.line.first_bad is not None and self.line.first_bad.bad is point

    def dot(self, point: LinePoint, before: HistoryPoint | None) -> Dot:
        """A point of the picture, which leads to its report."""
        path = self.places(point)
        at = f"{time_of(point.time)}, {commit_of(point)}" if point.commit else time_of(point.time)
        score = self.line.score(point)
        verdict = None if point.change is None else point.change.verdict
        tone = "bad" if self._is_first_bad(point) else "" if verdict is None else SIGNIFICANT.get(verdict, "")
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

    def _point_notes(self, point: LinePoint, before: HistoryPoint | None) -> Iterator[str]:
        yield from (full for _, full in _what_changed(before, point))
        yield from self._point_words(point)
        if point.pilot:
            yield "pilot"
        if point.unchanged:
            # `same answers at 2 later runs: a1b2c3d4, e5f6a7b8*`.
            commits = list(dict.fromkeys(commit_of(later) for later in point.unchanged if later.commit))
            shown = ", ".join(commits[:SHOWN_COMMITS]) + (
                f" and {len(commits) - SHOWN_COMMITS} more" if len(commits) > SHOWN_COMMITS else ""
            )
            unchanged = f"same answers in {count_noun(len(point.unchanged), 'later runs', format_count)}" + (
                f": {shown}" if shown else ""
            )
            yield unchanged

    def _point_words(self, point: LinePoint) -> Iterator[str]:
        verdict = None if point.change is None else point.change.verdict
        if verdict is not None and verdict in SIGNIFICANT:
            yield f"significantly {verdict.text}"
        if self._is_first_bad(point):
            yield "first bad"

    def _notes(self) -> Iterator[Block]:
        if len(self.line.stretches) > 1:
            yield Paragraph(NEVER_JOINED, "note")
        tested = [change for change in self._changes if change.p_adjusted is not None]
        if tested:
            yield Paragraph(_about_changes(tested, len(self._changes)), "note")
        unseen = nearest(change.unseen for change in tested if change.verdict in SIGNIFICANT)
        if unseen is not None:
            yield Paragraph(f"Of the significant changes, the least robust one: {unseen.sentence}.", "note")
        missing = [point for point in self.line.points if point.values is None]
        if missing and len(self.line.points) > 1:
            n = count_noun(len(missing), "runs", format_count)
            yield Paragraph(f"{n} without per-query values: not tested.", "note")
        folders = {
            path.rpartition("/")[0] for point in self.line.points if point.report and (path := self.places(point))
        }
        if folders:
            yield Paragraph(f"Kept reports are in {', '.join(sorted(folders))}, named by their time.", "note")


def _delta(change: Change | None) -> Cell:
    if change is None or change.verdict is None:
        return None
    return TonedCell(change.delta, SIGNIFICANT.get(change.verdict, ""))


def _about_changes(tested: Sequence[Change], n_all: int) -> str:
    """What the columns of the change are."""
    tests = ", ".join(dict.fromkeys(TESTS[change.test].title for change in tested))
    last = f"; the latest {MAX_CHANGES} are tested" if n_all == MAX_CHANGES else ""
    return (
        f"Change: against the run before it, over the queries of both ({tests}; p adjusted by Holm for "
        f"{count_noun(len(tested), 'comparisons', format_count)}{last}). A dot in colour is a significant change."
    )


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


def _found(line: Line, found: FirstBad, place: int) -> Section:
    points = line.comparable[-1]
    title = f"First bad run: {line.name} on {line.testset}"
    digest = points[-1].digest[:DIGEST_SHOWN]
    among = f"the {format_count(found.n)} runs on {digest}"
    untested = (*_untested(found), *_not_looked_at(line))
    if found.bad is None:
        none = f"The only run on {digest} is not bad" if found.n == 1 else f"None of {among} is bad"
        return Section(f"first-bad-{place}", title, (Paragraph(f"{none}: {_rule(found)}."), *untested))
    items = [f"first bad: {_shown(line, found.bad)}"]
    items.append(f"last good before it: {_shown(line, found.good)}" if found.good else "no good run before it")
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
    why = "per-query values are not kept" + (", or are of another version of the test set" if found.rule.gate else "")
    what = f"{count_noun(found.n_untested, 'runs', format_count)} could not be tested ({why})"
    return (Paragraph(f"{what}: --drop and --below use only the means.", "warning"),)


def _not_looked_at(line: Line) -> tuple[Block, ...]:
    n = sum(map(n_runs, line.comparable[:-1]))
    if not n:
        return ()
    where = "on earlier versions of the test set or by another convention"
    return (
        Paragraph(
            f"{capitalised(count_noun(n, 'runs', format_count))} {where} {'is' if n == 1 else 'are'} not compared.",
            "note",
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
        return (Paragraph("One of the two was made outside of a repository: no commits can be listed."),)
    if good.commit == bad.commit:
        return (
            Paragraph("Both were made at one commit: what changed is not in the repository, or was not committed."),
        )
    if found.commits is None:
        return (
            Paragraph("git cannot find both commits in this repository: the commits between them cannot be listed."),
        )
    caption = f"Commits from {good.commit[:COMMIT_SHOWN]} to {bad.commit[:COMMIT_SHOWN]}"
    blocks: tuple[Block, ...] = (Code("\n".join(found.commits) or "none", caption, in_text=True),)
    if good.dirty or bad.dirty:
        blocks = (*blocks, Paragraph("* with uncommitted changes."))
    return blocks


def _notes(report: HistoryReport) -> tuple[str, ...]:
    notes = []
    if report.n_pilots:
        notes.append(f"{count_noun(report.n_pilots, 'pilots', format_count)} left out")
    if report.n_without:
        notes.append(
            f"{count_noun(report.n_without, 'evaluations', format_count)} without a mean of {report.measure} left out"
        )
    if report.damaged:
        lines = ", ".join(f"{each.line} ({each.why})" for each in report.damaged[:10])
        more = ", …" if len(report.damaged) > 10 else ""
        n = len(report.damaged)
        notes.append(
            f"{count_noun(n, 'lines', format_count)} of the history cannot be read and {'is' if n == 1 else 'are'} left out: {lines}{more}"
        )
    if any(point.dirty for line in report.lines for first in line.points for point in (first, *first.unchanged)):
        notes.append("* after a commit: with uncommitted changes")
    return tuple(notes)
