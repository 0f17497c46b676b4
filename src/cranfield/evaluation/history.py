"""A measure over time: evaluations as points, stretches that a line may join, changes, and the first bad run.

Points are in one stretch while the test set, the convention, the config of the system and k stay the same. An evaluation
whose answers are those of the point before it is recorded with that point. Points of one test set and convention are
compared in `history_changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import groupby, pairwise
from typing import Literal

from cranfield.base.display import Displayed
from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.base.words import count_noun
from cranfield.evaluation.options.blocks import DEFAULT_TEST
from cranfield.evaluation.unseen import ObservedEffect, Unseen, unseen_queries
from cranfield.evaluation.verdict import verdict_of_p
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import parse, parse_all
from cranfield.measures.catalogue import sign_of
from cranfield.model.results import DamagedLine, Record
from cranfield.stats.result import holm

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
    """Digest of the test set."""
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
    """Digest of the system's configuration."""
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
    """Difference of the means over these queries: later minus earlier."""
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
    """Points that could not be tested, because per-query values are not kept."""
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
        return f"{count_noun(n, 'evaluations')} by {self.measure}, {count_noun(len(self.lines), 'lines')}"


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


ValuesOf = Callable[[HistoryPoint, str], Mapping[str, float] | None]
"""The values of a measure at a point by query id; None where they are not kept."""
Judge = Callable[[HistoryPoint, HistoryPoint | None], str | None]
"""The rule of the gate that a point breaks, given the last good point; empty where it breaks none, None where it cannot be
applied."""
DEFAULT_ALPHA = 0.05
MAX_CHANGES = 100
"""Neighbours of a line that are tested, the latest."""
LEAST_DRAWS, MAX_DRAWS = 10_000, 1_000_000
CLEAR = 20
"""A p-value of as many random draws, or more, is not computed again by more draws."""
DECIMALS = 12
"""Decimals to which a difference is rounded, against rounding error."""


def no_values(_point: HistoryPoint, _measure: str) -> None:
    """No value by query is kept."""


def history_report(
    points: Sequence[HistoryPoint],
    chosen: HistoryFilter,
    damaged: Sequence[DamagedLine] = (),
    *,
    values_of: ValuesOf = no_values,
    judge: Judge | None = None,
) -> HistoryReport:
    """Filter a history, arrange it as lines, and compare their points.

    Args:
        points: all evaluations of the history.
        chosen: the filter.
        damaged: lines of the file that could not be read.
        values_of: the kept values by query.
        judge: the rules of a gate, where the filter looks for the first bad point by them.

    Raises:
        UsageError: it names a system, test set or measure that is not there, or nothing is left.
    """
    kept, n_pilots = _filtered(points, chosen)
    measure = _measure(kept, chosen, n_pilots)
    found = tuple(with_changes(line, values_of) for line in lines(kept, measure))
    n_shown = sum(n_runs(line.points) for line in found)
    if (rule := chosen.rule) is not None:
        found = tuple(replace(line, first_bad=first_bad(line, rule, values_of, judge)) for line in found)
    return HistoryReport(
        measure=measure, lines=found, n_pilots=n_pilots, n_without=len(kept) - n_shown, damaged=tuple(damaged)
    )


def shown_measure(points: Sequence[HistoryPoint], chosen: HistoryFilter) -> str:
    """The measure that a report shows. Raises as `history_report`."""
    return _measure(_filtered(points, chosen)[0], chosen, 0)


def _filtered(points: Sequence[HistoryPoint], chosen: HistoryFilter) -> tuple[list[HistoryPoint], int]:
    """The points of a filter, and the number of pilots left out."""
    kept = list(points)
    for what, name in (("system", chosen.system), ("testset", chosen.testset)):
        known = list(dict.fromkeys(getattr(point, what) for point in kept))
        if name is not None and name not in known:
            raise UnknownNameError.among("test set" if what == "testset" else what, name, known)
        kept = [point for point in kept if name is None or getattr(point, what) == name]
    kept = [point for point in kept if chosen.since is None or point.time >= chosen.since]
    n_all = len(kept)
    kept = [point for point in kept if chosen.pilots or not point.pilot]
    return kept, n_all - len(kept)


def _measure(kept: Sequence[HistoryPoint], chosen: HistoryFilter, n_pilots: int) -> str:
    """The measure of a filter, or the default one, as the history spells it."""
    measure = chosen.measure or measure_of(kept)
    if measure is None:
        hint = "{pilots} shows those of pilots" if n_pilots else None
        raise UsageError("no evaluation to show", hint=hint, parameters=("pilots",))
    known = list(dict.fromkeys(name for point in kept for name in point.measures))
    if measure not in known:  # spelled in another way, perhaps
        measure = str(parse_all([measure])[0])
    if measure not in known:
        raise UnknownNameError.among("measure of this history", measure, known)
    return measure


def compare_points(
    before: HistoryPoint, point: HistoryPoint, measure: str, values_of: ValuesOf, *, n_tests: int
) -> Change:
    """Two points of one test set and convention, by the declared test of the later one.

    Args:
        before: the earlier one.
        point: the later one.
        measure: its spelling.
        values_of: the kept values.
        n_tests: comparisons in the family: the random draws suffice for a p-value that is adjusted for as many.
    """
    from cranfield.stats.describe import as_vector, differences
    from cranfield.stats.table import TESTS, Paired

    test = point.test if point.test is not None and point.test in TESTS else DEFAULT_TEST
    alpha = point.alpha or DEFAULT_ALPHA
    a, b = values_of(before, measure), values_of(point, measure)
    shared = [query_id for query_id in a if query_id in b] if a is not None and b is not None else []
    if a is None or b is None or not shared:
        return Change(test)
    difference = differences([a[query_id] for query_id in shared], [b[query_id] for query_id in shared])
    baseline, candidate = (as_vector([side[query_id] for query_id in shared], "values") for side in (a, b))
    draws = min(MAX_DRAWS, max(LEAST_DRAWS, round(10 * n_tests / alpha)))
    result = TESTS[test].run(Paired(baseline, candidate, difference, alpha, 0, draws))
    n_differ, delta = int((difference != 0).sum()), float(difference.mean())
    return Change(test, len(shared), n_differ, delta, result.ci_low, result.ci_high, result.p_two_sided)


def with_changes(line: Line, values_of: ValuesOf) -> Line:
    """The line with every point compared with the point before it, where both are of one test set and convention; Holm over those of
    the line.
    """
    pairs = [(a, b) for points in line.comparable for a, b in pairwise(points)][-MAX_CHANGES:]
    found = [compare_points(a, b, line.measure, values_of, n_tests=len(pairs)) for a, b in pairs]
    adjusted = holm([change.p for change in found])
    changes = {
        id(point): _decided(change, p, line.measure, point.alpha)
        for (_, point), change, p in zip(pairs, found, adjusted, strict=True)
    }
    return replace(
        line,
        stretches=tuple(
            tuple(replace(point, change=changes.get(id(point))) for point in stretch) for stretch in line.stretches
        ),
    )


def _decided(change: Change, p: float | None, measure: str, alpha: float | None) -> Change:
    from cranfield.stats.table import TESTS

    if change.delta is None:
        return change
    sign = sign_of(parse(measure))
    alpha = alpha or DEFAULT_ALPHA
    verdict = verdict_of_p(p, sign * change.delta, alpha)
    ends = (change.ci_low, change.ci_high) if TESTS[change.test].is_of_mean else (None, None)
    unseen = unseen_queries(verdict, ObservedEffect(change.n, change.delta, *ends, sign), alpha)
    return replace(change, p_adjusted=p, verdict=verdict, unseen=unseen)


def first_bad(line: Line, rule: Rule, values_of: ValuesOf = no_values, judge: Judge | None = None) -> FirstBad:
    """Find the first bad point of the latest test set and convention.

    Without a bound, a point is bad where the paired test says that it is worse than the best of the good points before it.
    The best of many is the best partly by chance: p is multiplied by the number of good points before it, and by the number
    of points that are tested. In 400 simulated histories each of 3, 10 and 30 points without a change (50 queries), the
    share with a bad point is at most 0.05; a drop of 0.15 at a standard deviation of 0.28 of the differences is found in
    more than 9 of 10.
    """
    points = line.comparable[-1]
    finder = _Finder(line, rule, values_of, judge, len(points) - 1, FirstBad(rule, n_runs(points)))
    is_bad = [finder.is_bad(point) for point in points]
    found = replace(
        finder.found,
        alpha=points[-1].alpha or DEFAULT_ALPHA,
        n_compared=finder.n_tests,
        n_untested=finder.n_untested,
    )
    if found.bad is None:
        return found
    first = is_bad.index(True)
    good_after = [point for point, bad in zip(points[first + 1 :], is_bad[first + 1 :], strict=True) if bad is False]
    return replace(
        found,
        n_after=n_runs(points[first:]) - 1,
        n_good_after=n_runs(good_after),
        latest_is_bad=is_bad[-1],
    )


@dataclass
class _Finder:
    """Points in order of time: which are bad, and the first of them."""

    line: Line
    rule: Rule
    values_of: ValuesOf
    judge: Judge | None
    n_tests: int
    found: FirstBad
    best: HistoryPoint | None = None
    good: HistoryPoint | None = None
    n_untested: int = 0
    n_good: int = 0

    def is_bad(self, point: LinePoint) -> bool | None:
        """Whether a point is bad, None where it could not be tested; the first that is bad becomes `found`."""
        change, reason, bad = None, "", None
        if self.rule.gate:
            broken = self.judge(point, self.good) if self.judge is not None else None
            bad, reason = None if broken is None else bool(broken), broken or ""
        elif self.rule.below is not None or self.rule.drop is not None:
            bad = self._is_beyond(self.line.score(point))
        else:
            change = self._change(point)
            is_tested = change is not None and change.delta is not None
            is_first = self.best is None and self.values_of(point, self.line.measure) is not None
            bad = change is not None and change.verdict is VerdictCode.WORSE if is_tested or is_first else None
        self.n_untested += n_runs([point]) if bad is None else 0
        if bad and self.found.bad is None:
            against = None if self.rule.below is not None else self.good if self.rule.gate else self.best
            self.found = replace(self.found, bad=point, good=self.good, best=against, change=change, reason=reason)
        if bad is False:
            self.good = (point, *point.unchanged)[-1]  # the last run with these answers: what broke them came after it
            self.n_good += 1
            if self.best is None or self._sign * self._mean(point) > self._sign * self._mean(self.best):
                self.best = self.good
        return bad

    def _change(self, point: HistoryPoint) -> Change | None:
        """The point against the best before it."""
        if self.best is None:
            return None
        n_tests = self.n_tests * self.n_good
        change = compare_points(self.best, point, self.line.measure, self.values_of, n_tests=1)
        if change.p is not None and change.p < CLEAR / LEAST_DRAWS:  # random draws do not resolve it
            change = compare_points(self.best, point, self.line.measure, self.values_of, n_tests=n_tests)
        p = None if change.p is None else min(1.0, change.p * n_tests)
        return _decided(change, p, self.line.measure, point.alpha)

    @property
    def _sign(self) -> int:
        return sign_of(parse(self.line.measure))

    def _mean(self, point: HistoryPoint) -> float:
        return self.line.score(point).mean or 0.0

    def _is_beyond(self, score: Score) -> bool:
        """Whether a mean is beyond the bound."""
        if score.mean is None:
            return False
        if self.rule.below is not None:
            return round(self._sign * (self.rule.below - score.mean), DECIMALS) > 0
        if self.best is None or self.rule.drop is None:
            return False
        return round(self._sign * (self._mean(self.best) - score.mean), DECIMALS) > self.rule.drop
