"""Points of a history compared: neighbours by the paired test, and the first bad point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cranfield.errors import UnknownNameError, UsageError
from cranfield.evaluation.history import (
    Change,
    DamagedLine,
    FirstBad,
    HistoryFilter,
    HistoryPoint,
    HistoryReport,
    Line,
    LinePoint,
    Rule,
    Score,
    lines,
    measure_of,
    n_runs,
)
from cranfield.evaluation.unseen import Found, unseen_queries
from cranfield.evaluation.verdict import sign_of, verdict_of_p
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import parse, parse_all
from cranfield.options.compare import DEFAULT_TEST
from cranfield.stats.result import holm

ValuesOf = Callable[[HistoryPoint, str], Mapping[str, float] | None]
"""The values of a measure at a point by query id; None where they are not kept."""
Judge = Callable[[HistoryPoint, HistoryPoint | None], str | None]
"""The rule of the gate that a point breaks, given the last good point; empty where it breaks none, None where it cannot be
applied."""
DEFAULT_ALPHA = 0.05
MOST_CHANGES = 100
"""Neighbours of a line that are tested, the latest."""
LEAST_DRAWS, MOST_DRAWS = 10_000, 1_000_000
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
        raise UsageError("there is no evaluation to show", hint=hint, parameters=("pilots",))
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
    from cranfield.stats.table import TESTS, Paired
    from cranfield.stats.vectors import as_vector, differences

    test = point.test if point.test is not None and point.test in TESTS else DEFAULT_TEST
    alpha = point.alpha or DEFAULT_ALPHA
    a, b = values_of(before, measure), values_of(point, measure)
    shared = [query_id for query_id in a if query_id in b] if a is not None and b is not None else []
    if a is None or b is None or not shared:
        return Change(test)
    difference = differences([a[query_id] for query_id in shared], [b[query_id] for query_id in shared])
    baseline, candidate = (as_vector([side[query_id] for query_id in shared], "values") for side in (a, b))
    draws = min(MOST_DRAWS, max(LEAST_DRAWS, round(10 * n_tests / alpha)))
    result = TESTS[test].run(Paired(baseline, candidate, difference, alpha, 0, draws))
    n_differ, delta = int((difference != 0).sum()), float(difference.mean())
    return Change(test, len(shared), n_differ, delta, result.ci_low, result.ci_high, result.p_two_sided)


def with_changes(line: Line, values_of: ValuesOf) -> Line:
    """The line with every point compared with the point before it, where both are of one test set and convention; Holm over those of
    the line.
    """
    pairs = [(a, b) for points in line.comparable for a, b in pairwise(points)][-MOST_CHANGES:]
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
    unseen = unseen_queries(verdict, Found(change.n, change.delta, *ends, sign), alpha)
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
