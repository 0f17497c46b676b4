"""Holes: unjudged results of two systems, by the effect that their judgments can have, and the verdicts within reach.

Effect of a hole: the largest change of the mean difference that its judgment alone can make, with every other unjudged
document of the lowest grade. Expected effect, by which holes are ordered: the root mean square of that change over the grades,
each weighted by its share among the judged results at similar ranks (see `grade_shares`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import UsageError
from cranfield.evaluation.joint import METHODS, FloatN, OpenPair, Places, grades_of, open_pair
from cranfield.evaluation.joint_bounds import JointBounds, joint_bounds
from cranfield.evaluation.values import Comparison
from cranfield.evaluation.verdict import sign_of, verdict_of_interval
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.ranking.value import State
from cranfield.stats.permutation import is_enumerated
from cranfield.stats.result import DEFAULT_DRAWS
from cranfield.stats.table import MEAN_DIFFERENCE, TESTS, Paired
from cranfield.words import and_list

PRIOR_WEIGHT = 4.0
"""Judged results that the shares over all ranks count as, in a band of ranks."""
MOST_TURNS = 50
"""Holes whose judgment alone is tested for turning the verdict."""
MONOTONE_TEST = "permutation"
"""The test whose interval never falls when a difference rises, so that the extreme cases bound every other."""


@dataclass(frozen=True, slots=True)
class Hole:
    """An unjudged result within the cutoff of either system."""

    query: str
    doc: str
    rank_a: int | None
    rank_b: int | None
    effect: float
    expected_effect: float
    turns: tuple[VerdictCode, ...] = ()
    """Verdicts that its judgment alone brings."""


@dataclass(frozen=True, slots=True)
class Case:
    """The comparison under some grades of all unjudged results."""

    delta: float
    ci_low: float | None
    ci_high: float | None
    verdict: VerdictCode


@dataclass(frozen=True)
class HoleAnalysis:
    """The holes of a comparison and what their judgments can make of its verdict."""

    comparison: Comparison
    """As things are; of a test set of targets, in the view of `rule_view`."""
    verdict: VerdictCode
    """Of the mean over all queries, as things are."""
    supposed: Case
    """With every unjudged result of the lowest grade, which effects and `fewest` start from. As things are may be another
    case: a query without any judgment has no value yet, a condensed list leaves out what is unjudged, and on a scale from 1
    a judgment gives more than nothing."""
    lowest: float
    """The lowest grade that a judgment may have."""
    worst: Case
    """At the lowest difference of each query."""
    best: Case
    exact: bool
    """Whether grades exist that give the worst, and some that give the best case; else they are bounds."""
    n_queries: int
    reachable: tuple[VerdictCode, ...]
    """Verdicts that some grades give."""
    excluded: tuple[VerdictCode, ...]
    """Verdicts that no grades give."""
    holes: tuple[Hole, ...]
    """All of them, the largest expected effect first."""
    fewest: tuple[tuple[VerdictCode, int], ...]
    """Other verdicts, and the fewest judgments found that bring them if they all turn out that way."""

    @property
    def unknown(self) -> tuple[VerdictCode, ...]:
        """Verdicts that are neither shown to be within reach nor excluded."""
        known = {*self.reachable, *self.excluded}
        return tuple(code for code in verdicts_of(self.comparison) if code not in known)

    @property
    def is_final(self) -> bool:
        """Whether no judgment can change the verdict."""
        return set(verdicts_of(self.comparison)) - set(self.excluded) == {self.verdict}


def verdicts_of(comparison: Comparison) -> tuple[VerdictCode, ...]:
    """Verdicts of the mean over all queries that the declared settings have."""
    codes = (VerdictCode.BETTER, VerdictCode.WORSE, VerdictCode.NOT_SIGNIFICANT)
    return codes if comparison.margin is None else (*codes, VerdictCode.EQUIVALENT)


def find_holes(
    comparison: Comparison, *, n_turns: int = 20, progress: Callable[[int, int], None] | None = None
) -> HoleAnalysis:
    """The holes of a comparison, and the verdicts that their judgments can bring.

    Args:
        comparison: of two evaluations whose rankings keep their hits down to the cutoff of the primary measure.
        n_turns: first holes that are tested one by one for turning the verdict, `MOST_TURNS` at most.
        progress: called with the queries bounded and their number.

    Raises:
        UsageError: the measure or the convention has no joint bounds, or there is too much to compute.
    """
    sides = (comparison.baseline.ranking_for(comparison.primary), comparison.candidate.ranking_for(comparison.primary))
    if sides[0] is None or sides[1] is None:
        raise UsageError("the runs were not ranked on the scale of this measure", got=str(comparison.primary))
    pair = open_pair(comparison.primary, (sides[0], sides[1]), grades_of(comparison.baseline.testset))
    bounds = pair if isinstance(pair, str) else joint_bounds(pair, progress=progress)
    if isinstance(pair, str) or isinstance(bounds, str):
        raise UsageError(
            f"no best and worst case of {comparison.primary}: {bounds}",
            hint=f"measures that have them: {and_list(list(METHODS))}",
        )
    if not pair.query_ids:
        raise UsageError(f"no query has a value of {comparison.primary} on both sides, whatever is judged")
    nothing = np.full(len(pair.query), np.nan)
    base, holes, change = pair.effects(np.arange(len(pair.query_ids)), nothing)
    verdicts = _Verdicts(comparison, pair, bounds)
    expected = expected_effect(pair, change)
    effect = np.abs(change).max(axis=1, initial=0.0) / len(base)
    order = np.lexsort((holes, -effect, -expected))
    n_tested = min(n_turns, MOST_TURNS)
    return HoleAnalysis(
        comparison,
        comparison.pooled_code,
        verdicts.case(base),
        pair.grades[0],
        verdicts.case(bounds.low),
        verdicts.case(bounds.high),
        exact=bool(bounds.exact.all()),
        n_queries=len(base),
        reachable=verdicts.reachable(),
        excluded=verdicts.excluded(),
        holes=tuple(
            _hole(pair, hole, effect[hole], expected[hole], verdicts.turns(base, hole, change) if n < n_tested else ())
            for n, hole in enumerate(order.tolist())
        ),
        fewest=verdicts.fewest(change),
    )


def _hole(pair: OpenPair, hole: int, effect: float, expected: float, turns: tuple[VerdictCode, ...]) -> Hole:
    a, b = pair.rank[hole].tolist()
    return Hole(
        pair.query_ids[pair.query[hole]],
        pair.doc_ids[hole],
        a or None,
        b or None,
        float(effect),
        float(expected),
        turns,
    )


@dataclass(frozen=True)
class _Verdicts:
    """Verdicts of the declared test under supposed differences."""

    comparison: Comparison
    pair: OpenPair
    bounds: JointBounds
    known: dict[bytes, Case] = field(default_factory=dict)
    """Cases by their differences: a test of thousands of queries takes a fifth of a second."""

    def case(self, difference: FloatN) -> Case:
        key = difference.tobytes()
        if key not in self.known:
            self.known[key] = self._case(difference)
        return self.known[key]

    def _case(self, difference: FloatN) -> Case:
        declared = self.comparison
        nothing = np.zeros(len(difference))
        given = Paired(
            nothing, difference, difference, declared.alpha, declared.seed, declared.n_draws or DEFAULT_DRAWS
        )
        result = TESTS[declared.test].run(given)
        margin = declared.margin if TESTS[declared.test].estimates == MEAN_DIFFERENCE else None
        code = verdict_of_interval(result.ci_low, result.ci_high, sign=sign_of(declared.primary), margin=margin)
        return Case(float(difference.mean()), result.ci_low, result.ci_high, code)

    def reachable(self) -> tuple[VerdictCode, ...]:
        """The verdicts of some assignments: nothing relevant, both extremes, and between them."""
        lowest = self._judged(np.full(len(self.pair.query), self.pair.grades[0]))
        ends = [self._judged(self._grades(end)) for end in (0, 1)]
        found = {self.case(values).verdict for values in (lowest, *ends)}
        first, last = (self.case(values).verdict for values in ends)
        # Between the extremes, query by query: the verdict changes somewhere.
        low, high = 0, len(lowest)
        while first is not last and high - low > 1:
            middle = (low + high) // 2
            code = self.case(np.concatenate([ends[1][:middle], ends[0][middle:]])).verdict
            found.add(code)
            low, high = (middle, high) if code is first else (low, middle)
        return tuple(code for code in verdicts_of(self.comparison) if code in found)

    def excluded(self) -> tuple[VerdictCode, ...]:
        """The verdicts that no grades give, where that is proved.

        The ends of the interval of the permutation test are order statistics of means over subsets of the queries, each of
        which rises with every difference. So the ends lie between those at the lowest and those at the highest differences,
        as long as all assignments have their subsets from the same patterns.
        """
        low, high, n = self.bounds.low, self.bounds.high, len(self.bounds.low)
        differ, may_differ = int(((low > 0) | (high < 0)).sum()), int(((low != 0) | (high != 0)).sum())
        same_patterns = is_enumerated(n, may_differ) or not is_enumerated(n, differ)
        if self.comparison.test != MONOTONE_TEST or not same_patterns:
            return ()
        worst, best, margin = self.case(low), self.case(high), self.comparison.margin
        lowest, highest = (-np.inf if worst.ci_low is None else worst.ci_low), _or_infinite(best.ci_high)
        never = []
        if best.ci_low is None or best.ci_low <= 0:
            never.append(VerdictCode.BETTER)
        if worst.ci_high is None or worst.ci_high >= 0:
            never.append(VerdictCode.WORSE)
        if lowest > 0 or highest < 0:
            never.append(VerdictCode.NOT_SIGNIFICANT)
        if margin is not None and (_or_infinite(worst.ci_high) >= margin or _or_infinite(best.ci_low, -1) <= -margin):
            never.append(VerdictCode.EQUIVALENT)
        return tuple(never)

    def turns(self, base: FloatN, hole: int, change: FloatN) -> tuple[VerdictCode, ...]:
        """The other verdicts that one judgment alone brings."""
        found = set()
        query = self.pair.query[hole]
        for effect in {float(change[hole].min()), float(change[hole].max())} - {0.0}:
            supposed = base.copy()
            supposed[query] += effect
            found.add(self.case(supposed).verdict)
        before = self.case(base).verdict if found else None
        return tuple(code for code in verdicts_of(self.comparison) if code in found and code is not before)

    def fewest(self, change: FloatN) -> tuple[tuple[VerdictCode, int], ...]:
        """Holes, those with the largest effect one way first, that bring each other verdict if all go that way."""
        grades = np.array(self.pair.grades)
        nothing = np.full(len(change), np.nan)
        before = self.case(self._judged(nothing)).verdict
        found: dict[VerdictCode, int] = {}
        for way in (1, -1):
            effect = (way * change).max(axis=1, initial=0.0)
            order = np.argsort(-effect, kind="stable")[: int((effect > 0).sum())]
            chosen = grades[(way * change).argmax(axis=1)] if len(change) else nothing

            def after(k: int, order: Places = order, chosen: FloatN = chosen) -> VerdictCode:
                fixed = nothing.copy()
                fixed[order[:k]] = chosen[order[:k]]
                return self.case(self._judged(fixed)).verdict

            low, high = 0, len(order)
            if not high or after(high) is before:
                continue
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if after(middle) is before else (low, middle)
            found[after(high)] = min(high, found.get(after(high), high))
        return tuple(sorted(found.items(), key=lambda each: each[1]))

    def _judged(self, fixed: FloatN) -> FloatN:
        values = self.pair.judged(fixed)
        difference: FloatN = values[:, 1] - values[:, 0]
        return difference

    def _grades(self, end: int) -> FloatN:
        """Grades of one extreme; where they are not known, the lowest."""
        grades = (self.bounds.low_grades, self.bounds.high_grades)[end]
        return np.where(np.isnan(grades), self.pair.grades[0], grades)


def _or_infinite(value: float | None, way: int = 1) -> float:
    return way * np.inf if value is None else value


def grade_shares(pair: OpenPair) -> NDArray[np.float64]:
    """float64[B, L]: how likely each grade is, by band of ranks: 1, 2-3, 4-7, 8-15 and so on, of the better of both ranks.

    The shares of the judged results of both lists within the cutoff; in each band as if `PRIOR_WEIGHT` more were judged
    with the shares over all bands, and over all bands as if one more were judged with each grade. What is judged was
    often chosen because it seemed relevant: then the shares are too high, in all bands alike.
    """
    n_bands, n_grades = 1 + _band(np.array([2**31 - 1]))[0], len(pair.grades)
    counts = np.zeros((n_bands, n_grades))
    for query_id in pair.query_ids:
        best: dict[str, tuple[int, int]] = {}
        for side in pair.sides:
            for hit in side.top.get(query_id, ())[: pair.measure.depth]:
                if hit.state is State.JUDGED:
                    rank = min(hit.rank, best.get(hit.id, (hit.rank, 0))[0])
                    best[hit.id] = (rank, hit.level)
        for rank, level in best.values():
            place = int(np.searchsorted(pair.grades, level, side="right")) - 1
            counts[_band(np.array([rank]))[0], max(place, 0)] += 1
    overall = counts.sum(axis=0) + 1.0
    counts += PRIOR_WEIGHT * overall / overall.sum()
    shares: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
    return shares


def _band(rank: NDArray[np.int32]) -> Places:
    bands: Places = np.floor(np.log2(np.maximum(rank, 1))).astype(np.intp)
    return bands


def shares_of_holes(pair: OpenPair) -> NDArray[np.float64]:
    """float64[N, L]: how likely each grade of each unjudged document is."""
    shown = np.where(pair.rank > 0, pair.rank, np.iinfo(np.int32).max)
    shares: NDArray[np.float64] = grade_shares(pair)[_band(shown.min(axis=1, initial=np.iinfo(np.int32).max))]
    return shares


def expected_effect(pair: OpenPair, change: FloatN) -> FloatN:
    """float64[N]: root mean square of the change of the mean difference, the grades weighted by their shares."""
    effect: FloatN = np.sqrt((shares_of_holes(pair) * change**2).sum(axis=1)) / len(pair.query_ids)
    return effect
