"""A measure over time: evaluations as points, stretches of comparable points, and the first bad point.

Points are in one stretch while the digest of the test set and the convention stay the same; points of different stretches are
never compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from cranfield.errors import UnknownNameError, UsageError
from cranfield.measures import CATALOGUE, parse_all

DECIMALS = 12
"""Decimals to which a difference is rounded, against rounding error."""


@dataclass(frozen=True, slots=True)
class Score:
    """One measure of one evaluation."""

    mean: float | None
    n: int
    ci_low: float | None = None
    ci_high: float | None = None


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A recorded evaluation."""

    time: datetime
    """With its time zone, which is UTC."""
    testset: str
    version: str
    digest: str
    """Of the test set."""
    system: str
    convention: str
    measures: Mapping[str, Score]
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


@dataclass(frozen=True, slots=True)
class Line:
    """One measure of one system on the test set of one name, in order of time."""

    testset: str
    system: str
    measure: str
    stretches: tuple[tuple[HistoryPoint, ...], ...]
    """Points of one digest and convention each; consecutive ones differ in one of the two."""

    @property
    def points(self) -> tuple[HistoryPoint, ...]:
        """All of them, first to last."""
        return tuple(point for stretch in self.stretches for point in stretch)

    def score(self, point: HistoryPoint) -> Score:
        """The measure at one of its points."""
        return point.measures[self.measure]


@dataclass(frozen=True, slots=True)
class Rule:
    """What makes a point bad. Neither bound: its whole interval is worse than the best mean before it."""

    below: float | None = None
    """A mean beyond this, on the worse side."""
    drop: float | None = None
    """A mean further than this from the best before it."""


@dataclass(frozen=True, slots=True)
class FirstBad:
    """The first bad point of the latest stretch."""

    line: Line
    rule: Rule
    n: int
    """Points of the stretch that have a mean."""
    bad: HistoryPoint | None = None
    """None where no point is bad."""
    good: HistoryPoint | None = None
    """The point just before it; None where the first point is bad already."""
    best: HistoryPoint | None = None
    """The point it was compared with: the best before it; None with `below`."""
    n_after: int = 0
    """Later points of the stretch."""
    n_good_after: int = 0
    """How many of these are good again."""
    latest_is_bad: bool = False
    commits: tuple[str, ...] | None = None
    """Between good and bad, as git lists them; None where it cannot."""


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """The part of a history that is shown, and counts of what is not."""

    measure: str
    lines: tuple[Line, ...]
    first_bad: tuple[FirstBad, ...] = ()
    """One per line, if requested."""
    n_pilots: int = 0
    """Pilots left out."""
    n_without: int = 0
    """Evaluations left out because they have no mean of the measure."""
    damaged: tuple[tuple[int, str], ...] = ()
    """Number of each line of the file that could not be read, and why."""


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


def history_report(
    points: Sequence[HistoryPoint], chosen: HistoryFilter, damaged: Sequence[tuple[int, str]] = ()
) -> HistoryReport:
    """Filter a history and arrange it as lines.

    Raises:
        UsageError: it names a system, test set or measure that is not there, or nothing is left.
    """
    kept = list(points)
    for what, name in (("system", chosen.system), ("testset", chosen.testset)):
        known = list(dict.fromkeys(getattr(point, what) for point in kept))
        if name is not None and name not in known:
            raise UnknownNameError.among("test set" if what == "testset" else what, name, known)
        kept = [point for point in kept if name is None or getattr(point, what) == name]
    kept = [point for point in kept if chosen.since is None or point.time >= chosen.since]
    n_all = len(kept)
    kept = [point for point in kept if chosen.pilots or not point.pilot]
    n_pilots = n_all - len(kept)
    measure = chosen.measure or measure_of(kept)
    if measure is None:
        hint = "{pilots} shows those of pilots" if n_pilots else None
        raise UsageError("there is no evaluation to show", hint=hint, parameters=("pilots",))
    known = list(dict.fromkeys(name for point in kept for name in point.measures))
    if measure not in known:  # spelled in another way, perhaps
        measure = str(parse_all([measure])[0])
    if measure not in known:
        raise UnknownNameError.among("measure of this history", measure, known)
    found = lines(kept, measure)
    firsts = tuple(first_bad(line, chosen.rule) for line in found) if chosen.rule is not None else ()
    n_shown = sum(len(line.points) for line in found)
    return HistoryReport(measure, found, firsts, n_pilots, len(kept) - n_shown, tuple(damaged))


def measure_of(points: Sequence[HistoryPoint]) -> str | None:
    """The default measure: the primary one of the latest point that has one, or its first."""
    for point in reversed(points):
        if point.primary in point.measures:
            return point.primary
        if point.measures:
            return next(iter(point.measures))
    return None


def lines(points: Iterable[HistoryPoint], measure: str) -> tuple[Line, ...]:
    """The points that have this measure with a mean, as lines by test set and system, in the order of their first point."""
    found: dict[tuple[str, str], list[HistoryPoint]] = {}
    for point in sorted(points, key=lambda point: point.time):
        if measure in point.measures and point.measures[measure].mean is not None:
            found.setdefault((point.testset, point.system), []).append(point)
    return tuple(
        Line(
            testset,
            system,
            measure,
            tuple(tuple(stretch) for _, stretch in groupby(own, key=lambda point: (point.digest, point.convention))),
        )
        for (testset, system), own in found.items()
    )


def first_bad(line: Line, rule: Rule) -> FirstBad:
    """Find the first bad point of the latest stretch.

    A point is compared with the best of the good points before it. That maximum is biased upward, and the interval is of
    one mean and not of a difference: use the result to find the place, and a comparison of the two runs to decide.
    """
    stretch = line.stretches[-1]
    sign = 1 if higher_is_better(line.measure) else -1
    best: HistoryPoint | None = None
    good: HistoryPoint | None = None
    is_bad: list[bool] = []
    found: tuple[int, HistoryPoint | None, HistoryPoint | None] | None = None
    for place, point in enumerate(stretch):
        bad = _is_bad(line.score(point), None if best is None else line.score(best), rule, sign)
        is_bad.append(bad)
        if bad and found is None:
            found = (place, good, best)
        if not bad:
            good = point
            if best is None or sign * _mean(line, point) > sign * _mean(line, best):
                best = point
    if found is None:
        return FirstBad(line, rule, len(stretch))
    place, before, against = found
    after = is_bad[place + 1 :]
    return FirstBad(
        line,
        rule,
        len(stretch),
        bad=stretch[place],
        good=before,
        best=None if rule.below is not None else against,
        n_after=len(after),
        n_good_after=after.count(False),
        latest_is_bad=is_bad[-1],
    )


def higher_is_better(measure: str) -> bool:
    """The direction of a measure by its spelling."""
    (parsed,) = parse_all([measure])
    return CATALOGUE[parsed.name].higher_is_better


def _mean(line: Line, point: HistoryPoint) -> float:
    return line.score(point).mean or 0.0


def _is_bad(score: Score, best: Score | None, rule: Rule, sign: int) -> bool:
    if score.mean is None:
        return False
    if rule.below is not None:
        return round(sign * (rule.below - score.mean), DECIMALS) > 0
    if best is None or best.mean is None:
        return False
    if rule.drop is not None:
        return round(sign * (best.mean - score.mean), DECIMALS) > rule.drop
    nearer = score.ci_high if sign > 0 else score.ci_low
    return nearer is not None and sign * nearer < sign * best.mean
