"""Holes: unjudged results of two systems, by the effect that their judgments can have, and the verdicts within reach.

Effect of a hole: the largest change of the mean difference that its judgment alone can make, with every other unjudged
document of the lowest grade. Expected effect, by which holes are ordered: the root mean square of that change over the grades,
each weighted by its share among the judged results at similar ranks (see `grade_shares` of `cranfield.evaluation.unjudged`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cranfield.base.errors import UsageError
from cranfield.base.words import and_list
from cranfield.evaluation.joint import METHODS, OpenLists, grades_of, joint_bounds, open_lists
from cranfield.evaluation.unjudged import Case, Verdicts, expected_effect, order_of_holes, verdicts_of
from cranfield.evaluation.values import Comparison
from cranfield.evaluation.verdict_table import VerdictCode

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
