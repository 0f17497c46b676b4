"""The share of the results that are judged."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.measures import Measure, compute
from cranfield.ranking.value import Ranking

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


def judged_share(ranking: Ranking, depth: int | None) -> JudgedShare:
    """Mean share of the first `depth` results that are judged, over the queries where anything can be unjudged."""
    measure = Measure("Judged", (), depth or JUDGED_DEPTH)
    values, scored, reasons = compute(measure, ranking)
    if not scored.any():
        return JudgedShare(measure, None, 0, next(iter(reasons.values()), "no query"))
    return JudgedShare(measure, float(values[scored].mean()), int(scored.sum()))
