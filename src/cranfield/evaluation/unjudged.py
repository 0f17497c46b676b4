"""What the unjudged results of two systems can make of the verdict on them: nothing, or how many judgments could turn it.

Every document that a list shows within the cutoff and that has no judgment may have any grade. The verdict under supposed
grades is that of the declared test on the differences that they give. It can be turned where some grades bring another
verdict; that none do is proved by the joint bounds, for the permutation test. `unjudged_of_pair` is what stands beside a
verdict; `cranfield holes` shows the same numbers with the documents behind them.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cranfield.base.numbers import format_percent
from cranfield.evaluation.absence import judged_share
from cranfield.evaluation.evidence.inspection import threshold_of
from cranfield.evaluation.joint import (
    FEW_LISTS,
    FloatN,
    JointBounds,
    OpenLists,
    Places,
    grades_of,
    joint_bounds,
    open_lists,
)
from cranfield.evaluation.options.blocks import PAIR_OPTIONS, CompareOptions
from cranfield.evaluation.options.declaration import command_words
from cranfield.evaluation.values import NOT_ON_ITS_SCALE, Comparison, Unjudged, UnjudgedKind
from cranfield.evaluation.verdict import verdict_of_interval, verdict_of_p
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure
from cranfield.measures.catalogue import sign_of
from cranfield.model import DEFAULT_CONVENTION
from cranfield.ranking.value import ResultState, unjudged_results
from cranfield.stats.permutation import is_enumerated, permutation_p_values
from cranfield.stats.result import DEFAULT_DRAWS
from cranfield.stats.table import MEAN_DIFFERENCE, TESTS, Paired

PRIOR_WEIGHT = 4.0
"""Judged results that the shares over all ranks count as, in a band of ranks."""
MONOTONE_TEST = "permutation"
"""The test whose interval never falls when a difference rises, so that the extreme cases bound every other."""
CASES_AT_ONCE = 6
"""Supposed cases that share the random sign patterns, which take most of the time."""
MOSTLY_UNJUDGED = "unjudged-results"
"""The evidence check whose threshold is the smallest judged share without a caveat."""
POOL = "holes.pool.json"


@dataclass(frozen=True, slots=True)
class Case:
    """The comparison under some grades of all unjudged results."""

    delta: float
    ci_low: float | None
    ci_high: float | None
    verdict: VerdictCode


def unjudged_of_pair(comparison: Comparison) -> Unjudged | None:
    """What stands beside the verdict on two systems; None where it does not count, and where nothing is unjudged."""
    primary, (baseline, candidate) = comparison.primary, comparison.evaluations
    if VerdictCode.INVALID in {comparison.pooled_code, comparison.verdict.code}:
        return None
    first, second = baseline.ranking_for(primary), candidate.ranking_for(primary)
    if first is None or second is None:
        return _without_bounds(comparison, NOT_ON_ITS_SCALE)
    if not any(len(unjudged_results(side, primary.depth)[0]) for side in (first, second)):
        return None
    pair = open_lists(primary, (first, second), grades_of(baseline.testset))
    if isinstance(pair, str):
        return _without_bounds(comparison, pair)
    return _of_open_lists(comparison, pair) if len(pair.query) else None


def _of_open_lists(comparison: Comparison, pair: OpenLists) -> Unjudged:
    base, _, change = pair.effects(np.arange(len(pair.query_ids)), np.full(len(pair.query), np.nan))
    verdicts, code = Verdicts(comparison, pair), comparison.pooled_code
    n, of = len(pair.query), "" if comparison.by_class is None else "over all queries"

    def found(
        kind: UnjudgedKind, turned: VerdictCode | None = None, n_judgments: int | None = None, top: int = n
    ) -> Unjudged:
        command = "" if kind is UnjudgedKind.HOLDS else _command(comparison, top)
        return Unjudged(kind, n, int((pair.n_open > 0).sum()), n_judgments, turned, of=of, command=command)

    supposed = verdicts.code(base)
    if supposed is not code:  # all of them judged of the lowest grade bring it
        return found(UnjudgedKind.CAN_TURN, supposed, n)
    turning = sorted(verdicts.turning(base, change, supposed), key=lambda each: len(each[1]))
    if turning:
        turned, holes = turning[0]
        place = np.argsort(order_of_holes(pair, change))
        return found(UnjudgedKind.CAN_TURN, turned, len(holes), int(place[holes].max()) + 1)
    bounds = joint_bounds(pair, most_lists=FEW_LISTS)
    if not isinstance(bounds, str):
        if set(verdicts_of(comparison)) - set(verdicts.excluded(bounds)) == {code}:
            return found(UnjudgedKind.HOLDS)
        others = [each for each in verdicts.reachable(bounds) if each is not code]
        if others:  # some grades of all of them together
            return found(UnjudgedKind.CAN_TURN, others[0], n)
    return found(UnjudgedKind.UNKNOWN)


def _without_bounds(comparison: Comparison, why: str) -> Unjudged:
    """The judged shares below the limit, of a measure without bounds."""
    limit, low = threshold_of(MOSTLY_UNJUDGED, comparison.options.limits.evidence), []
    for side in comparison.evaluations:
        share = judged_share(side.ranking, comparison.primary.depth)
        if limit is not None and share.mean is not None and share.mean < limit:
            low.append(f"{side.name}: {share.measure} {format_percent(share.mean)}")
    return Unjudged(UnjudgedKind.NO_BOUND, None, None, why=why, low_shares=tuple(low), limit=limit)


def _command(comparison: Comparison, top: int) -> str:
    baseline, candidate = comparison.evaluations
    return holes_command(
        comparison.inputs or (baseline.testset.name, baseline.name, candidate.name),
        comparison.primary,
        comparison.options,
        convention=baseline.ranking.convention.name,
        top=top,
    )


def holes_command(
    inputs: Sequence[str], measure: Measure, options: CompareOptions, *, convention: str, top: int
) -> str:
    """The command that makes a pool of the first results in the order of `cranfield holes`.

    Args:
        inputs: the test set, the baseline and the candidate.
        measure: the primary one.
        options: what was declared.
        convention: by name.
        top: results in the pool.
    """
    testset, *runs = inputs
    words = ["cranfield", "holes", *runs, "--testset", testset, "-m", str(measure)]
    for pair in command_words(options, PAIR_OPTIONS):
        words += pair
    if convention != DEFAULT_CONVENTION:
        words += ["--convention", convention]
    return shlex.join([*words, "--top", str(top), "--out", POOL])


def verdicts_of(comparison: Comparison) -> tuple[VerdictCode, ...]:
    """Verdicts of the mean over all queries that the declared settings have."""
    codes = (VerdictCode.BETTER, VerdictCode.WORSE, VerdictCode.NOT_SIGNIFICANT)
    return codes if comparison.options.margin is None else (*codes, VerdictCode.EQUIVALENT)


@dataclass(frozen=True)
class Verdicts:
    """Verdicts of the declared test under supposed differences."""

    comparison: Comparison
    pair: OpenLists
    known: dict[bytes, Case] = field(default_factory=dict)
    """Cases by their differences: a test of thousands of queries takes a fifth of a second."""

    def case(self, difference: FloatN) -> Case:
        """The declared test on these differences."""
        key = difference.tobytes()
        if key not in self.known:
            self.known[key] = self._case(difference)
        return self.known[key]

    def _case(self, difference: FloatN, test: str = "") -> Case:
        declared = self.comparison
        test = test or declared.options.test
        nothing = np.zeros(len(difference))
        given = Paired(
            nothing,
            difference,
            difference,
            declared.options.alpha,
            declared.options.seed,
            declared.n_draws or DEFAULT_DRAWS,
        )
        result = TESTS[test].run(given)
        margin = declared.options.margin if TESTS[test].estimates == MEAN_DIFFERENCE else None
        code = verdict_of_interval(result.ci_low, result.ci_high, sign=sign_of(declared.primary), margin=margin)
        return Case(float(difference.mean()), result.ci_low, result.ci_high, code)

    def reachable(self, bounds: JointBounds) -> tuple[VerdictCode, ...]:
        """The verdicts of some assignments: nothing relevant, both extremes, and between them."""
        lowest = self._judged(np.full(len(self.pair.query), self.pair.grades[0]))
        ends = [self._judged(self._grades(bounds, end)) for end in (0, 1)]
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

    def excluded(self, bounds: JointBounds) -> tuple[VerdictCode, ...]:
        """The verdicts that no grades give, where that is proved.

        The ends of the interval of the permutation test are order statistics of means over subsets of the queries, each of
        which rises with every difference. So the ends lie between those at the lowest and those at the highest differences,
        as long as all assignments have their subsets from the same patterns.
        """
        low, high, n = bounds.low, bounds.high, len(bounds.low)
        differ, may_differ = int(((low > 0) | (high < 0)).sum()), int(((low != 0) | (high != 0)).sum())
        same_patterns = is_enumerated(n, may_differ) or not is_enumerated(n, differ)
        if self.comparison.options.test != MONOTONE_TEST or not same_patterns:
            return ()
        worst, best, margin = self.case(low), self.case(high), self.comparison.options.margin
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

    def code(self, difference: FloatN) -> VerdictCode:
        """The verdict alone."""
        return self.codes([difference])[0]

    def codes(self, differences: Sequence[FloatN]) -> list[VerdictCode]:
        """The verdicts of several cases; of the permutation test without a margin by p, which needs no interval."""
        declared = self.comparison
        if declared.options.test != MONOTONE_TEST or declared.options.margin is not None:
            return [self.case(difference).verdict for difference in differences]
        drawn = declared.n_draws or DEFAULT_DRAWS
        p_values = permutation_p_values(np.column_stack(differences), seed=declared.options.seed, n_draws=drawn)
        sign = sign_of(declared.primary)
        gains = [sign * float(difference.sum()) for difference in differences]
        return [verdict_of_p(p, gain, declared.options.alpha) for p, gain in zip(p_values.tolist(), gains, strict=True)]

    def fewest(self, base: FloatN, change: FloatN) -> tuple[tuple[VerdictCode, int], ...]:
        """Holes, those with the largest effect one way first, that bring each other verdict if all go that way."""
        found: dict[VerdictCode, int] = {}
        for code, holes in self.turning(base, change, self.code(base)):
            found[code] = min(len(holes), found.get(code, len(holes)))
        return tuple(sorted(found.items(), key=lambda each: each[1]))

    def turning(self, base: FloatN, change: FloatN, before: VerdictCode) -> list[tuple[VerdictCode, Places]]:
        """For either way the verdict that it brings, and the fewest holes that do, those with the largest effect first."""
        grades = np.array(self.pair.grades)
        found = []
        for way in (1, -1):
            effect = (way * change).max(axis=1, initial=0.0)
            order = np.argsort(-effect, kind="stable")[: int((effect > 0).sum())].astype(np.intp)
            if not len(order):
                continue
            chosen = grades[(way * change).argmax(axis=1)]
            known: dict[int, VerdictCode] = {}
            guess = self._guess(base, way * effect, order, before)
            low, high = 0, len(order) + 1
            points = {1, guess - 1, guess, guess + 1} & set(range(1, high))
            while points:
                given = sorted(points)
                fixed = [np.full(len(change), np.nan) for _ in given]
                for k, each in zip(given, fixed, strict=True):
                    each[order[:k]] = chosen[order[:k]]
                known |= zip(given, self.codes([self._judged(each, base) for each in fixed]), strict=True)
                turned = [k for k in given if known[k] is not before]
                high = min([high, *turned])
                low = max([low, *(k for k in given if k < high)])
                points = set(np.linspace(low, high, CASES_AT_ONCE + 2).astype(int)[1:-1].tolist()) - {low, high}
            if high <= len(order):
                found.append((known[high], order[:high]))
        return found

    def _guess(self, base: FloatN, effect: FloatN, order: Places, before: VerdictCode) -> int:
        """Where the verdict turns by Student's t, if effects add up."""
        low, high = 0, len(order)
        while high - low > 1:
            middle = (low + high) // 2
            supposed = base.copy()
            np.add.at(supposed, self.pair.query[order[:middle]], effect[order[:middle]])
            code = self._case(supposed, "t").verdict
            low, high = (middle, high) if code is before else (low, middle)
        return high

    def _judged(self, fixed: FloatN, base: FloatN | None = None) -> FloatN:
        """The differences with some documents judged; of the queries without them those of `base`, where it is known."""
        pair = self.pair
        if base is None:
            values = pair.judged(fixed)
            difference: FloatN = values[:, 1] - values[:, 0]
            return difference
        judged = np.zeros(len(pair.query_ids), dtype=np.bool_)
        judged[pair.query[~np.isnan(fixed)]] = True
        queries, found = np.flatnonzero(judged), base.copy()
        grade = np.where(np.isnan(fixed), pair.grades[0], fixed)[judged[pair.query]]
        found[queries] = np.diff(pair.values(queries, grade), axis=1)[:, 0]
        return found

    def _grades(self, bounds: JointBounds, end: int) -> FloatN:
        """Grades of one extreme; where they are not known, the lowest."""
        grades = (bounds.low_grades, bounds.high_grades)[end]
        return np.where(np.isnan(grades), self.pair.grades[0], grades)


def _or_infinite(value: float | None, way: int = 1) -> float:
    return way * np.inf if value is None else value


def grade_shares(pair: OpenLists) -> NDArray[np.float64]:
    """float64[B, L]: how likely each grade is, by band of ranks: 1, 2-3, 4-7, 8-15 and so on, of the better of both ranks.

    The shares of the judged results of both lists within the cutoff; in each band as if `PRIOR_WEIGHT` more were judged
    with the shares over all bands, and over all bands as if one more were judged with each grade. What is judged was
    often chosen because it seemed relevant: then the shares are too high, in all bands alike.
    """
    n_bands, n_grades = 1 + _band(np.array([2**31 - 1]))[0], len(pair.grades)
    counts = np.zeros((n_bands, n_grades))
    for query_id in pair.query_ids:
        best: dict[str, tuple[int, int]] = {}
        for side, known in zip(pair.sides, pair.hits, strict=True):
            hits = known[query_id] if query_id in known else side.top.get(query_id, ())
            for hit in hits[: pair.measure.depth]:
                if hit.state is ResultState.JUDGED:
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


def shares_of_holes(pair: OpenLists) -> NDArray[np.float64]:
    """float64[N, L]: how likely each grade of each unjudged document is."""
    shown = np.where(pair.rank > 0, pair.rank, np.iinfo(np.int32).max)
    shares: NDArray[np.float64] = grade_shares(pair)[_band(shown.min(axis=1, initial=np.iinfo(np.int32).max))]
    return shares


def expected_effect(pair: OpenLists, change: FloatN) -> FloatN:
    """float64[N]: root mean square of the change of the mean difference, the grades weighted by their shares."""
    effect: FloatN = np.sqrt((shares_of_holes(pair) * change**2).sum(axis=1)) / len(pair.query_ids)
    return effect


def order_of_holes(pair: OpenLists, change: FloatN) -> Places:
    """intp[N]: the unjudged documents, the largest expected effect first."""
    effect = np.abs(change).max(axis=1, initial=0.0)
    order: Places = np.lexsort((np.arange(len(change)), -effect, -expected_effect(pair, change)))
    return order
