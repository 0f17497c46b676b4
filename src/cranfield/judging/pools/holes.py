"""Holes: unjudged results of two systems, by the effect that their judgments can have, and the verdicts within reach.

Effect of a hole: the largest change of the mean difference that its judgment alone can make, with every other unjudged
document of the lowest grade. Expected effect, by which holes are ordered: the root mean square of that change over the grades,
each weighted by its share among the judged results at similar ranks (see `grade_shares` of `cranfield.evaluation.unjudged`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cranfield.base.errors import UsageError
from cranfield.base.words import and_list
from cranfield.books.pool_file import Pool, PooledItem, PooledRun
from cranfield.evaluation.joint import METHODS, OpenLists, grades_of, joint_bounds, open_lists
from cranfield.evaluation.testset.declared import scale_to_judge
from cranfield.evaluation.unjudged import Case, Verdicts, expected_effect, order_of_holes, verdicts_of
from cranfield.evaluation.values import Comparison
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.pools.build import pooled_query
from cranfield.judging.pools.results import SystemResults, union
from cranfield.judging.pools.rule_view import GradeDifference, Grades, RuleView
from cranfield.measures import Measure
from cranfield.model import TestSet
from cranfield.model.results import Record, TestSetRecord

MAX_TURNS = 50
"""Holes whose judgment alone is tested for turning the verdict."""


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


@dataclass(frozen=True)
class HoleAnalysis:
    """The holes of a comparison and what their judgments can make of its verdict."""

    comparison: Comparison
    """As things are; of a test set of targets, in the view of `rule_view`."""
    verdict: VerdictCode
    """Verdict on the mean over all queries, as things are."""
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


def find_holes(
    comparison: Comparison, *, n_turns: int = 20, progress: Callable[[int, int], None] | None = None
) -> HoleAnalysis:
    """The holes of a comparison, and the verdicts that their judgments can bring.

    Args:
        comparison: of two evaluations whose rankings keep their hits down to the cutoff of the primary measure.
        n_turns: first holes that are tested one by one for turning the verdict, `MAX_TURNS` at most.
        progress: called with the queries bounded and their number.

    Raises:
        UsageError: the measure or the convention has no joint bounds, or there is too much to compute.
    """
    sides = (comparison.baseline.ranking_for(comparison.primary), comparison.candidate.ranking_for(comparison.primary))
    if sides[0] is None or sides[1] is None:
        raise UsageError("the runs were not ranked on the scale of this measure", got=str(comparison.primary))
    pair = open_lists(comparison.primary, (sides[0], sides[1]), grades_of(comparison.baseline.testset))
    bounds = pair if isinstance(pair, str) else joint_bounds(pair, progress=progress)
    if isinstance(pair, str) or isinstance(bounds, str):
        raise UsageError(
            f"no best and worst case for {comparison.primary}: {bounds}",
            hint=f"supported measures: {and_list(list(METHODS))}",
        )
    if not pair.query_ids:
        raise UsageError(f"no query can get a value of {comparison.primary} on both sides, however it is judged")
    nothing = np.full(len(pair.query), np.nan)
    base, _, change = pair.effects(np.arange(len(pair.query_ids)), nothing)
    verdicts = Verdicts(comparison, pair)
    expected = expected_effect(pair, change)
    effect = np.abs(change).max(axis=1, initial=0.0) / len(base)
    order = order_of_holes(pair, change)
    n_tested = min(n_turns, MAX_TURNS)
    return HoleAnalysis(
        comparison,
        comparison.pooled_code,
        verdicts.case(base),
        pair.grades[0],
        verdicts.case(bounds.low),
        verdicts.case(bounds.high),
        exact=bool(bounds.exact.all()),
        n_queries=len(base),
        reachable=verdicts.reachable(bounds),
        excluded=verdicts.excluded(bounds),
        holes=tuple(
            _hole(pair, hole, effect[hole], expected[hole], verdicts.turns(base, hole, change) if n < n_tested else ())
            for n, hole in enumerate(order.tolist())
        ),
        fewest=verdicts.fewest(base, change),
    )


def _hole(pair: OpenLists, hole: int, effect: float, expected: float, turns: tuple[VerdictCode, ...]) -> Hole:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Holes(Record):
    """The holes of two systems, and the verdicts within reach."""

    testset: TestSetRecord
    baseline: str
    candidate: str
    measure: Measure
    convention: str
    test: str
    alpha: float
    margin: float | None
    verdict: VerdictCode
    """Verdict on the mean over all queries, as things are."""
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    closed: VerdictCode | None
    """The verdict where what no target matches is not relevant; None for graded ids."""
    delta_closed: float | None
    supposed: Case
    lowest: float
    worst: Case
    best: Case
    exact: bool
    n_queries: int
    """Queries of the cases; the other fields are those of `HoleAnalysis`."""
    reachable: tuple[VerdictCode, ...]
    excluded: tuple[VerdictCode, ...]
    unknown: tuple[VerdictCode, ...]
    is_final: bool
    fewest: Mapping[VerdictCode, int]
    holes: tuple[Hole, ...]
    differences: tuple[GradeDifference, ...]
    is_rule: bool
    """Whether any query is judged by targets."""
    by_class: bool
    """Whether the comparison has query classes, which these verdicts are not of."""
    invalid: tuple[str, ...]
    """Why the comparison does not count."""
    n_negative: int
    """Queries for which nothing should be found."""
    without_text: tuple[str, ...]
    """Queries with holes that no rater can judge."""
    n_by_persons: int | None
    """Grades by persons that were given; None without a book."""
    n_ignored: int
    """Those of queries that the test set does not have."""


@dataclass(frozen=True)
class FoundHoles:
    """The holes of two systems, and what they were found in."""

    analysis: HoleAnalysis
    testset: TestSet
    """As it was loaded."""
    view: RuleView
    systems: tuple[SystemResults, ...]
    """Their results under the names of documents that the view has."""
    closed: Comparison | None
    """Comparison in which what no target matches is not relevant, for a test set of targets; None for graded ids."""
    people: Grades | None = None
    """Grades of persons that were given, of queries of the test set and others."""

    def result(self) -> Holes:
        """The record of it."""
        analysis, comparison = self.analysis, self.analysis.comparison
        about, open_queries = comparison.measures[comparison.primary], {hole.query for hole in self.analysis.holes}
        is_void = comparison.verdict.code is VerdictCode.INVALID
        closed, people = self.closed, self.people or {}
        return Holes(
            testset=TestSetRecord.of(self.testset),
            baseline=comparison.baseline.name,
            candidate=comparison.candidate.name,
            measure=comparison.primary,
            convention=comparison.baseline.ranking.convention.name,
            test=comparison.options.test,
            alpha=comparison.options.alpha,
            margin=comparison.options.margin,
            verdict=analysis.verdict,
            delta=about.delta,
            ci_low=about.ci_low,
            ci_high=about.ci_high,
            n=about.n,
            closed=None if closed is None else closed.pooled_code,
            delta_closed=None if closed is None else closed.measures[closed.primary].delta,
            supposed=analysis.supposed,
            lowest=analysis.lowest,
            worst=analysis.worst,
            best=analysis.best,
            exact=analysis.exact,
            n_queries=analysis.n_queries,
            reachable=analysis.reachable,
            excluded=analysis.excluded,
            unknown=analysis.unknown,
            is_final=analysis.is_final,
            fewest=dict(analysis.fewest),
            holes=analysis.holes,
            differences=self.view.differences,
            is_rule=self.view.is_rule,
            by_class=comparison.by_class is not None,
            invalid=comparison.verdict.reasons if is_void else (),
            n_negative=int(comparison.baseline.ranking.is_negative.sum()),
            without_text=tuple(q.id for q in self.testset.queries if q.id in open_queries and not q.text.strip()),
            n_by_persons=None if self.people is None else sum(map(len, people.values())),
            n_ignored=sum(len(docs) for query_id, docs in people.items() if query_id not in self.testset.by_id),
        )

    def pool(self, top: int, name: str) -> Pool:
        """The first holes as a pool, and of their queries what a rule grades. Holes have the names that people see, and documents of a pool their ids."""
        shown = {
            (query_id, hit.id): hit.public_id
            for system in self.systems
            for query_id, hits in system.hits.items()
            for hit in hits
        }
        chosen = {(hole.query, hole.doc): hole for hole in self.analysis.holes[:top]}
        queries = [query for query in self.testset.queries if any(query.id == query_id for query_id, _ in chosen)]
        depth = max((rank or 0 for hole in chosen.values() for rank in (hole.rank_a, hole.rank_b)), default=1)
        prefilled = self.view.prefilled  # along with them, for what the book is frozen as
        last = max(depth, self.analysis.comparison.primary.depth or sys.maxsize) if prefilled else depth
        found = union(self.systems, [query.id for query in queries], last, self.testset.grades, prefilled)
        return Pool(
            name=name,
            method="holes",
            depth=depth,
            n_left_out=sum(each.judged is not None for each in found),
            testset=self.testset.name,
            testset_digest=self.testset.digest,
            n_earlier=self.testset.n_judgments,
            scale=scale_to_judge(self.testset),
            runs=tuple(PooledRun(name=system.name, digest=system.digest) for system in self.systems),
            queries=tuple(map(pooled_query, queries)),
            items=tuple(
                PooledItem(
                    query=each.query_id,
                    doc=each.doc_id,
                    fields=each.fields,
                    runs=each.ranks,
                    prefilled=each.prefilled,
                    effect=None if hole is None else hole.effect,
                )
                for each in found
                if (hole := chosen.get((each.query_id, shown[each.query_id, each.doc_id])))
                or each.prefilled is not None
            ),
        )
