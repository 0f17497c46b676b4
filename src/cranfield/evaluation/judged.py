"""The share of the results that are judged."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.measures import Measure, compute
from cranfield.ranking.transform import unjudged_results
from cranfield.ranking.value import Ranking, State

JUDGED_DEPTH = 10
"""Depth of the judged share where no measure has a depth."""


@dataclass(frozen=True, slots=True)
class JudgedShare:
    """Mean share of the results that are judged."""

    measure: Measure
    mean: float | None
    """None where the question has no meaning: see `why`."""
    n: int
    why: str = ""
    pooled: int | None = None
    """Results in the pool and not judged (a grade under 0), within the depth, over all queries."""
    never_pooled: int | None = None
    """Results without any grade: in no pool that the test set knows of."""


def judged_share(ranking: Ranking, depth: int | None) -> JudgedShare:
    """Mean share of the first `depth` results that are judged, over the queries where anything can be unjudged."""
    measure = Measure("Judged", (), depth or JUDGED_DEPTH)
    values, scored, reasons = compute(measure, ranking)
    if not scored.any():
        return JudgedShare(measure, None, 0, next(iter(reasons.values()), "no query"))
    pooled, never_pooled = unjudged_counts(ranking, depth or JUDGED_DEPTH)
    return JudgedShare(
        measure, float(values[scored].mean()), int(scored.sum()), pooled=pooled, never_pooled=never_pooled
    )


def unjudged_counts(ranking: Ranking, depth: int) -> tuple[int, int]:
    """Results within a depth that are in the pool and not judged, and results that were never pooled."""
    query, _ = unjudged_results(ranking, depth)
    within = (ranking.rank <= depth) & ~ranking.closed_world[ranking.query]
    pooled = int(((ranking.state == State.POOLED) & within).sum())
    return pooled, len(query) - pooled
