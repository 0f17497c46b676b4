"""Bounds of a system's means: over the orders of tied scores, and over the judgments of unjudged results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cranfield.measures import Measure, compute
from cranfield.measures.bounds import bounds, tie_bounds, why_unbounded, why_untied
from cranfield.ranking.transform import n_judged_tied, unjudged_results
from cranfield.ranking.value import FloatQ, Ranking

TOO_MANY = "too much is unjudged in {n} of {total} queries: give the measure a cutoff"


@dataclass(frozen=True)
class Margin:
    """Lowest and highest values under some assumption, per query and on average."""

    low: FloatQ
    """float64[Q]; NaN where unknown."""
    high: FloatQ
    n_results: int
    """Results the assumption is about."""
    n_queries: int
    """Queries that have such results."""
    why: str = ""
    """Why the means are not known; empty where they are."""

    @property
    def mean_low(self) -> float | None:
        """Mean of the lowest values."""
        return None if self.why else _mean(self.low)

    @property
    def mean_high(self) -> float | None:
        """Mean of the highest values."""
        return None if self.why else _mean(self.high)


def tie_margin(measure: Measure, ranking: Ranking) -> Margin:
    """Tied judged results, and the worst and best case over the orders of tied scores."""
    tied = n_judged_tied(ranking)
    low, high = tie_bounds(measure, ranking)
    return Margin(low, high, int(tied.sum()), int((tied > 0).sum()), why_untied(measure, ranking))


def unjudged_margin(measure: Measure, ranking: Ranking) -> Margin:
    """Unjudged results within the cutoff, and the lowest and highest values that their judgments could give."""
    low, high = bounds(measure, ranking)
    query, _ = unjudged_results(ranking, measure.cutoff if isinstance(measure.cutoff, int) else None)
    why = why_unbounded(measure, ranking)
    _, scored, _ = compute(measure, ranking)
    query = query[scored[query]]
    if not why:
        unknown = int((scored & np.isnan(low)).sum())
        why = TOO_MANY.format(n=unknown, total=ranking.n_queries) if unknown else ""
    return Margin(low, high, len(query), len(np.unique(query)), why)


def _mean(values: FloatQ) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
