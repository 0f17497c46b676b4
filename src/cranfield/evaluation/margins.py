"""Bounds of values and of means: over the judgments of unjudged results, and over the order of equal scores.

Both rest on one property: a measure that never falls when a result worth more changes places with one worth less above
it. For such a measure the best place for u relevant results is the first u ranks on offer, and the worst is the last u;
what it divides by depends on u alone. So all values lie between those of the u best and the u worst, over every u.
`RISES_WITH_RANK` lists the measures that have the property; a test holds each to every assignment of small cases.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.values import known_mean
from cranfield.measures import Measure, compute
from cranfield.measures.rules import ordered_for
from cranfield.ranking.transform import best_case, n_judged_tied, supposing, unjudged_results, with_gains, worst_case
from cranfield.ranking.value import FloatQ, Ranking

RISES_WITH_RANK = frozenset(
    ("nDCG", "RR", "AP", "P", "R", "Success", "CG", "DCG", "Hits", "F1", "Rprec", "ERR", "nERR", "RBP")
)
"""Measures of the catalogue that never fall when a result worth more changes places with one worth less above it."""

MOST_UNJUDGED = 200
ROWS_AT_A_TIME = 1_000_000

NO_ARGUMENT = "it may fall when a relevant result rises"
DIVIDES_BY_THE_RETRIEVED = "under this convention it divides by what is within the cutoff, which the order changes"
SEVERAL_ITEMS = (
    "under this convention one result may be several items, and of those the list keeps the first ranks alone"
)
ODD_GAINS = "its gains pay what is not relevant, or charge for what is"
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
        return None if self.why else known_mean(self.low)

    @property
    def mean_high(self) -> float | None:
        """Mean of the highest values."""
        return None if self.why else known_mean(self.high)


def tie_margin(measure: Measure, ranking: Ranking) -> Margin:
    """Tied judged results, and the worst and best case over the orders of tied scores."""
    tied = n_judged_tied(ranking)
    low, high = tie_bounds(measure, ranking)
    return Margin(low, high, int(tied.sum()), int((tied > 0).sum()), why_untied(measure, ranking))


def unjudged_margin(measure: Measure, ranking: Ranking) -> Margin:
    """Unjudged results within the cutoff, and the lowest and highest values if each is not relevant or of the highest grade."""
    low, high = bounds(measure, ranking)
    query, _ = unjudged_results(ranking, measure.cutoff if isinstance(measure.cutoff, int) else None)
    why = why_unbounded(measure, ranking)
    _, scored, _ = compute(measure, ranking)
    query = query[scored[query]]
    if not why:
        unknown = int((scored & np.isnan(low)).sum())
        why = TOO_MANY.format(n=unknown, total=ranking.n_queries) if unknown else ""
    return Margin(low, high, len(query), len(set(query.tolist())), why)


def why_unbounded(measure: Measure, ranking: Ranking) -> str:
    """Why `bounds` has nothing to say of a measure; empty where it has."""
    if measure.name not in RISES_WITH_RANK:
        return NO_ARGUMENT
    gains = measure.param("gains", default=())
    if isinstance(gains, tuple):
        _, highest = best_judgment(ranking)
        if any(gain < 0 or (grade < 1 and gain > 0) for grade, gain in gains if grade <= highest):
            return ODD_GAINS
    return ""


def why_untied(measure: Measure, ranking: Ranking) -> str:
    """Why `tie_bounds` has nothing to say of a measure; empty where it has, and where nothing judged ties."""
    if not n_judged_tied(ranking).any():
        return ""
    if measure.name not in RISES_WITH_RANK:
        return NO_ARGUMENT
    if ranking.covered is not None:
        return SEVERAL_ITEMS
    convention = ranking.convention
    follows = (
        convention.unjudged == "unscored"
        or convention.ideal == "retrieved"
        or convention.precision_over == "judged"
        or convention.average_precision_over == "found"
    )
    return DIVIDES_BY_THE_RETRIEVED if follows and measure.cutoff is not None else ""


def bounds(measure: Measure, ranking: Ranking, *, most: int = MOST_UNJUDGED) -> tuple[FloatQ, FloatQ]:
    """What each value could become if the unjudged results within the cutoff (or the list) were judged.

    Each of them may turn out not relevant, or of the highest grade among the queries ranked. Over those two the answer is
    exact: some assignment reaches either end. Where a measure divides by the best that the query has (nDCG, nERR, RBP without
    `rel`), a grade between them can give a higher value: a higher grade raises the divisor more. What the convention makes of the values (a query without one, rounding)
    holds for the supposed values too; an assignment without a value takes no part.

    Args:
        measure: one of `RISES_WITH_RANK`.
        ranking: Q queries.
        most: unjudged results within the cutoff beyond which a query has no bounds: the work grows with their square.

    Returns:
        float64[Q] lowest and float64[Q] highest value; NaN where the measure has none, where more than `most` results
        are unjudged, and everywhere if `why_unbounded` says so.
    """
    if why_unbounded(measure, ranking):
        return np.full(ranking.n_queries, np.nan), np.full(ranking.n_queries, np.nan)
    low = _values(measure, ranking)
    high = low.copy()
    ranking = ordered_for(measure, ranking)
    unjudged, ranks = unjudged_results(ranking, measure.cutoff if isinstance(measure.cutoff, int) else None)
    n_unjudged = np.bincount(unjudged, minlength=ranking.n_queries)
    low[n_unjudged > most] = high[n_unjudged > most] = np.nan
    open_queries = np.flatnonzero((n_unjudged > 0) & (n_unjudged <= most))
    low[open_queries], high[open_queries] = np.inf, -np.inf
    start = np.concatenate(([0], np.cumsum(n_unjudged)))
    for some in _batches(open_queries, n_unjudged, ranking):
        found, query = _supposed(measure, ranking, some, n_unjudged, ranks, start)
        np.minimum.at(low, query, np.where(np.isnan(found), np.inf, found))
        np.maximum.at(high, query, np.where(np.isnan(found), -np.inf, found))
    low[np.isinf(low)], high[np.isinf(high)] = np.nan, np.nan
    return low, high


def tie_bounds(measure: Measure, ranking: Ranking) -> tuple[FloatQ, FloatQ]:
    """What each value could be if equal scores had fallen otherwise: float64[Q] worst and float64[Q] best case.

    Exact where every result is an item of its own (see `best_case`). NaN where a query has no value, and everywhere if
    `why_untied` says so.
    """
    if why_untied(measure, ranking):
        return np.full(ranking.n_queries, np.nan), np.full(ranking.n_queries, np.nan)
    if not n_judged_tied(ranking).any():
        values = _values(measure, ranking)
        return values, values.copy()
    gains = measure.param("gains", default=())
    if isinstance(gains, tuple) and gains:  # what is best is best by these
        ranking = with_gains(ranking, dict(gains))
    worst, best = (_values(measure, case(ranking)) for case in (worst_case, best_case))
    return worst, best


def best_judgment(ranking: Ranking) -> tuple[float, int]:
    """Gain and grade of the best document among the queries ranked; 1 and 1 where none is relevant."""
    gain = float(ranking.expected_gain.max(initial=0.0))
    return (gain, int(ranking.expected_level.max(initial=0))) if gain > 0 else (1.0, 1)


def _supposed(
    measure: Measure,
    ranking: Ranking,
    queries: NDArray[np.intp],
    n_unjudged: NDArray[np.intp],
    ranks: NDArray[np.int32],
    start: NDArray[np.intp],
) -> tuple[FloatQ, NDArray[np.intp]]:
    """Values of some queries with their first u, and with their last u, unjudged results relevant; and whose each is."""
    n = n_unjudged[queries]
    # Per query n + 1 lists with the first u, 0 <= u <= n, and n + 1 with the last u.
    query = np.repeat(queries, 2 * (n + 1))
    place = np.arange(len(query)) - np.repeat(np.cumsum(2 * (n + 1)) - 2 * (n + 1), 2 * (n + 1))
    is_last = place > n_unjudged[query]
    u = np.where(is_last, place - n_unjudged[query] - 1, place)
    owner = np.repeat(np.arange(len(query)), u)
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(u) - u, u)
    skipped = np.where(is_last, n_unjudged[query] - u, 0)
    gain, level = best_judgment(ranking)
    named = ranks[start[query[owner]] + skipped[owner] + nth]
    lists = supposing(ranking, query, owner, named, gain=gain, level=level)
    return _values(measure, lists), query


def _batches(queries: NDArray[np.intp], n_unjudged: NDArray[np.intp], ranking: Ranking) -> list[NDArray[np.intp]]:
    """Queries in groups whose lists fit in memory."""
    n = n_unjudged[queries]
    judged = np.bincount(ranking.query, minlength=ranking.n_queries) + np.diff(ranking.expected_start)
    rows = np.cumsum(2 * (n + 1) * (judged[queries] + n / 2))
    cuts = np.flatnonzero(np.diff(rows // ROWS_AT_A_TIME)) + 1
    return np.split(queries, cuts) if len(queries) else []


def _values(measure: Measure, ranking: Ranking) -> FloatQ:
    values, scored, _ = compute(measure, ranking)
    result: FloatQ = np.where(scored, values, np.nan)
    return result
