"""A measure over time: evaluations as points, and stretches of points that a line may join.

Points are in one stretch while the test set, the convention, the config of the system and k stay the same. An evaluation
whose answers are those of the point before it is recorded with that point. Points of one test set and convention are
compared in `history_changes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import groupby
from typing import Literal

from cranfield.display import Displayed
from cranfield.evaluation.unseen import Unseen
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.results import Record
from cranfield.words import n_of

STRICT = {"allow_inf_nan": False, "strict": True}
"""How pydantic reads a line."""


@dataclass(frozen=True, slots=True)
class Score:
    """One measure of one evaluation."""

    __pydantic_config__ = STRICT
    mean: float | None
    n: int
    ci_low: float | None = None
    ci_high: float | None = None


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A recorded evaluation; a line of the history is this record."""

    __pydantic_config__ = STRICT
    cranfield_history: Literal[1] = field(default=1, kw_only=True)
    time: datetime
    """With its time zone, which is UTC."""
    testset: str
    version: str
    digest: str
    """Of the test set."""
    system: str
    convention: str
    measures: Mapping[str, Score]
    guidelines: str | None = None
    """Digests of the guidelines by which the test set was judged; None where they are not known."""
    commit: str | None = None
    """Full id; None outside of a repository."""
    dirty: bool = False
    """The working tree had changes beyond the commit."""
    primary: str | None = None
    """Measure that decides."""
    config_digest: str | None = None
    """Of the system's configuration."""
    run_digest: str | None = None
    k: int | None = None
    n_queries: int = 0
    n_failed: int = 0
    judged: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    pilot: bool = False
    test: str | None = None
    """Declared test."""
    alpha: float | None = None
    """Significance level."""
    values: str | None = None
    """File with the values by query, in the folder of the history; None where they could not be kept."""
    report: str | None = None
    """File of its report, in the folder of the history."""


@dataclass(frozen=True, slots=True)
class Change:
    """A point against an earlier one of the same test set and convention, paired by query."""

    test: str
    n: int = 0
    """Queries with a value at both."""
    n_differ: int = 0
    delta: float | None = None
    """Of the means over these queries: later minus earlier."""
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    """For the number of comparisons."""
    verdict: VerdictCode | None = None
    """By the adjusted p: better, worse, no significant difference; None where it was not tested."""
    unseen: Unseen | None = None
    """Queries of a kind that is not among these, and what would turn the verdict; None from 50 queries on."""


@dataclass(frozen=True, slots=True)
class LinePoint(HistoryPoint):
    """A point of a line."""

    unchanged: tuple[HistoryPoint, ...] = ()
    """Later evaluations with the same answers: of other commits, say."""
    change: Change | None = None
    """Against the point before it, where the two can be compared."""


def n_runs(points: Iterable[LinePoint]) -> int:
    """Runs recorded at points: those with unchanged answers too."""
    return sum(1 + len(point.unchanged) for point in points)


@dataclass(frozen=True, slots=True)
class Rule:
    """What makes a point bad. Without a bound: the paired test against the best point before it says that it is worse."""

    below: float | None = None
    """A mean beyond this, on the worse side."""
    drop: float | None = None
    """A mean further than this from the best before it."""
    gate: bool = False
    """A rule of the gate is broken; drops are from the last good point."""


@dataclass(frozen=True, slots=True)
class FirstBad:
    """The first bad point of the latest test set and convention of a line."""

    rule: Rule
    n: int
    """Runs of that test set and convention, those with unchanged answers too."""
    bad: LinePoint | None = None
    """None where no point is bad."""
    good: HistoryPoint | None = None
    """The point just before it; None where the first point is bad already."""
    best: HistoryPoint | None = None
    """The point it was compared with: the best before it, for a gate the last good one; None with `below`."""
    change: Change | None = None
    """The comparison that found it; None where the rule is a bound."""
    reason: str = ""
    """The rule of the gate that is broken."""
    alpha: float = 0.05
    n_compared: int = 0
    """Comparisons for which p is adjusted."""
    n_untested: int = 0
    """Points that could not be tested, because values by query are not kept."""
    n_after: int = 0
    """Later runs."""
    n_good_after: int = 0
    """How many of these are good again."""
    latest_is_bad: bool | None = False
    """None where it could not be tested."""
    commits: tuple[str, ...] | None = None
    """Between good and bad, as git lists them; None where it cannot."""


@dataclass(frozen=True, slots=True)
class Line:
    """One measure of one system on the test set of one name, in order of time; its pilots are a line of their own."""

    testset: str
    system: str
    measure: str
    stretches: tuple[tuple[LinePoint, ...], ...]
    """Points of one test set, convention, config and k each; consecutive ones differ in one of these."""
    first_bad: FirstBad | None = None
    """If requested."""

    @property
    def name(self) -> str:
        """`bm25`, `bm25 (pilots)`."""
        return self.system + (" (pilots)" if self.points[0].pilot else "")

    @property
    def points(self) -> tuple[LinePoint, ...]:
        """All of them, first to last; evaluations with unchanged answers are with their points."""
        return tuple(point for stretch in self.stretches for point in stretch)

    @property
    def comparable(self) -> tuple[tuple[LinePoint, ...], ...]:
        """Points of one test set and convention each, which can be compared by query, whatever changed in the config."""
        return tuple(tuple(points) for _, points in groupby(self.points, key=scored_by))

    def score(self, point: HistoryPoint) -> Score:
        """The measure at one of its points."""
        return point.measures[self.measure]


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line of the file that could not be read."""

    line: int
    """Its number."""
    why: str


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class HistoryReport(Displayed, Record):
    """The part of a history that is shown, and counts of what is not."""

    measure: str
    lines: tuple[Line, ...]
    n_pilots: int = 0
    """Pilots left out."""
    n_without: int = 0
    """Evaluations left out because they have no mean of the measure."""
    damaged: tuple[DamagedLine, ...] = ()

    def _summary(self) -> str:
        n = sum(len(line.points) for line in self.lines)
        return f"{n_of(n, 'evaluations')} by {self.measure}, {n_of(len(self.lines), 'lines')}"


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """A filter of the history; the default is all of it without pilots."""

    measure: str | None = None
    system: str | None = None
    testset: str | None = None
    since: datetime | None = None
    pilots: bool = False
    rule: Rule | None = None
    """Look for the first bad point by this rule."""


def measure_of(points: Sequence[HistoryPoint]) -> str | None:
    """The default measure: the primary one of the latest point that has one, or its first; of pilots where there is no other."""
    latest_first = points[::-1]
    for point in sorted(latest_first, key=lambda point: point.pilot):
        if point.primary in point.measures:
            return point.primary
        if point.measures:
            return next(iter(point.measures))
    return None


def lines(points: Iterable[HistoryPoint], measure: str) -> tuple[Line, ...]:
    """The points that have this measure with a mean, as lines by test set and system, in the order of their first point."""
    found: dict[tuple[str, str, bool], list[HistoryPoint]] = {}
    for point in sorted(points, key=lambda point: point.time):
        if measure in point.measures and point.measures[measure].mean is not None:
            found.setdefault((point.testset, point.system, point.pilot), []).append(point)
    return tuple(
        Line(
            testset,
            system,
            measure,
            tuple(_drawn(stretch) for _, stretch in groupby(own, key=_joined_by)),
        )
        for (testset, system, _), own in found.items()
    )


def scored_by(point: HistoryPoint) -> tuple[str, str]:
    """What two points share that can be compared."""
    return point.digest, point.convention


def _joined_by(point: HistoryPoint) -> tuple[str, str, str | None, int | None]:
    """What two points share that a line joins."""
    return point.digest, point.convention, point.config_digest, point.k


def _drawn(stretch: Iterable[HistoryPoint]) -> tuple[LinePoint, ...]:
    """The points of a stretch at which answers changed, each with the later evaluations of the same answers."""
    drawn: list[list[HistoryPoint]] = []
    for point in stretch:
        if drawn and point.run_digest is not None and point.run_digest == drawn[-1][0].run_digest:
            drawn[-1].append(point)
        else:
            drawn.append([point])
    names = [field.name for field in fields(HistoryPoint)]
    return tuple(
        LinePoint(**{name: getattr(first, name) for name in names}, unchanged=tuple(same)) for first, *same in drawn
    )
