"""Bounds of values and of means: over the judgments of unjudged results, and over the order of equal scores.

Both rest on one property: a measure that never falls when a result worth more changes places with one worth less above
it. For such a measure the best place for u relevant results is the first u ranks on offer, and the worst is the last u;
what it divides by depends on u alone. So all values lie between those of the u best and the u worst, over every u.
`RISES_WITH_RANK` lists the measures that have the property; a test holds each to every assignment of small cases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.joint_ratio import best_assignment, ratios_of
from cranfield.evaluation.values import known_mean
from cranfield.measures import Measure, compute
from cranfield.measures.rules import ordered_for
from cranfield.ranking.transform import (
    best_case,
    n_judged_tied,
    only_rows,
    supposing,
    unjudged_results,
    with_gains,
    worst_case,
)
from cranfield.ranking.value import FloatQ, Ranking

RISES_WITH_RANK = frozenset(
    ("nDCG", "RR", "AP", "P", "R", "Success", "CG", "DCG", "Hits", "F1", "Rprec", "ERR", "nERR", "RBP")
)
"""Measures of the catalogue that never fall when a result worth more changes places with one worth less above it."""

MOST_WHOLE = 10
"""Up to this grade the whole numbers between the grades of a test set are grades too."""
MOST_UNJUDGED = 200
ROWS_AT_A_TIME = 1_000_000

OF_ITS_DIVISOR = "it does not divide by all relevant documents"
NO_ARGUMENT = "it may fall when a relevant result rises"
DIVIDES_BY_THE_RETRIEVED = "under this convention it divides by what is within the cutoff, which the order changes"
SEVERAL_ITEMS = (
    "under this convention one result may be several items, and of those the list keeps the first ranks alone"
)
MEAN_OVER_TIES = "its value is a mean over the orders of equal scores"
ODD_GAINS = "its gains pay what is not relevant, or charge for what is"
FALLING_GAINS = "its gains pay a lower grade more than a higher one"
BETWEEN = "it divides by the best that the query has, so that a grade between the lowest and the highest may give more"
TOO_MANY = "too much is unjudged in {n} of {total} queries: give the measure a cutoff"


@dataclass(frozen=True, eq=False)
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
    """Unjudged results within the cutoff, and the lowest and highest values over their grades."""
    low, high = bounds(measure, ranking)
    why = why_unbounded(measure, ranking) or _why_between(measure, ranking)
    query = unjudged_that_count(measure, ranking)
    if not why:
        _, scored, _ = compute(measure, ranking)
        unknown = int((scored & np.isnan(low)).sum())
        why = TOO_MANY.format(n=unknown, total=ranking.n_queries) if unknown else ""
    return Margin(low, high, len(query), len(set(query.tolist())), why)


def unjudged_that_count(measure: Measure, ranking: Ranking) -> NDArray[np.intp]:
    """The query of each unjudged result within the cutoff, of the queries that have a value."""
    query, _ = unjudged_results(ranking, measure.depth)
    _, scored, _ = compute(measure, ranking)
    found: NDArray[np.intp] = query[scored[query]]
    return found


def why_no_bounds(measure: Measure) -> str:
    """Why neither the order of ties nor unjudged results of a measure have bounds; empty where they have."""
    if measure.name == "AP" and measure.param("divisor", "relevant") != "relevant":
        return OF_ITS_DIVISOR
    return "" if measure.name in RISES_WITH_RANK else NO_ARGUMENT


def why_unbounded(measure: Measure, ranking: Ranking) -> str:
    """Why `bounds` has nothing to say of a measure; empty where it has."""
    if why := why_no_bounds(measure):
        return why
    if ranking.convention.ties == "expected" and (ranking.tie_last > ranking.tie_first).any():
        return MEAN_OVER_TIES
    gains = measure.param("gains", default=())
    if isinstance(gains, tuple):
        _, highest = best_judgment(ranking)
        if any(gain < 0 or (grade < 1 and gain > 0) for grade, gain in gains if grade <= highest):
            return ODD_GAINS
    return ""


def _needs_ratio(measure: Measure, ranking: Ranking) -> bool:
    """Whether a grade between the lowest and the highest may give the extremes of nDCG, and `best_assignment` finds them."""
    convention = ranking.convention
    is_graded = convention.gain != "match" and len(grades_among(ranking)) > 2
    whole = convention.ideal in {"judged", "judged uncut"} and convention.no_relevant == "zero"
    return measure.name == "nDCG" and is_graded and whole


def _why_between(measure: Measure, ranking: Ranking) -> str:
    """Why the extremes over all grades are not known; empty where they are."""
    grades = grades_among(ranking)
    if len(grades) < 3 or ranking.convention.gain == "match" or _needs_ratio(measure, ranking):
        return ""
    graded = measure.name == "RBP" and not measure.whole("rel", 0) and not measure.param("max_rel", 0.0)
    graded = graded and bool(measure.param("scaled", default=True))
    if measure.name == "nERR" or graded or (measure.name == "nDCG" and ranking.convention.ideal != "one"):
        return BETWEEN
    gains = measure.param("gains", default=())
    worth = [dict(gains).get(int(grade), grade) for grade in grades] if isinstance(gains, tuple) else []
    return FALLING_GAINS if worth != sorted(worth) else ""


def grades_among(ranking: Ranking) -> tuple[float, ...]:
    """0, the grades of the queries ranked, and where they are whole numbers those between: ascending, two at least."""
    is_match = ranking.convention.gain == "match"
    return with_whole(np.unique(ranking.expected_level if is_match else ranking.expected_gain).tolist())


def with_whole(given: Iterable[float]) -> tuple[float, ...]:
    """Grades that a judgment may have where some are given: those from 0 on, 0, and the whole numbers between whole ones."""
    found = {0.0, *(float(grade) for grade in given if grade >= 0)}
    highest = max(found)
    if highest <= MOST_WHOLE and all(grade.is_integer() for grade in found):
        found |= set(map(float, range(1, max(int(highest), 1) + 1)))
    return tuple(sorted(found))


def why_untied(measure: Measure, ranking: Ranking) -> str:
    """Why `tie_bounds` has nothing to say of a measure; empty where it has, and where nothing judged ties."""
    if not n_judged_tied(ranking).any():
        return ""
    if why := why_no_bounds(measure):
        return why
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

    Each of them may have any grade of `grades_among`, and some assignment reaches either end. For most measures 0 and the
    highest grade are enough. nDCG divides by the best that the query has, which a higher grade raises: there the best grades
    are those of `best_assignment`. What the convention makes of the values (a query without one, rounding) holds for the
    supposed values too; an assignment without a value takes no part.

    Args:
        measure: one of `RISES_WITH_RANK`.
        ranking: Q queries.
        most: unjudged results within the cutoff beyond which a query has no bounds: the work grows with their square.

    Returns:
        float64[Q] lowest and float64[Q] highest value; NaN where the measure has none, where more than `most` results
        are unjudged, and everywhere if `why_unbounded` says so, or grades between the lowest and the highest count.
    """
    if why_unbounded(measure, ranking) or _why_between(measure, ranking):
        return np.full(ranking.n_queries, np.nan), np.full(ranking.n_queries, np.nan)
    low = _values(measure, ranking)
    high = low.copy()
    ranking = ordered_for(measure, ranking)
    unjudged, ranks = unjudged_results(ranking, measure.depth)
    n_unjudged = np.bincount(unjudged, minlength=ranking.n_queries)
    low[n_unjudged > most] = high[n_unjudged > most] = np.nan
    open_queries = np.flatnonzero((n_unjudged > 0) & (n_unjudged <= most))
    low[open_queries], high[open_queries] = np.inf, -np.inf
    start = np.concatenate(([0], np.cumsum(n_unjudged)))
    cases = [
        _supposed(measure, ranking, some, n_unjudged, ranks, start)
        for some in _batches(open_queries, n_unjudged, ranking)
    ]
    if _needs_ratio(measure, ranking):
        cases.append(_best_assignments(measure, ranking, open_queries, ranks, start))
    for found, query in cases:
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


def _best_assignments(
    measure: Measure,
    ranking: Ranking,
    queries: NDArray[np.intp],
    ranks: NDArray[np.int32],
    start: NDArray[np.intp],
) -> tuple[FloatQ, NDArray[np.intp]]:
    """Values of nDCG at the worst and at the best grades of some queries; and whose each is."""
    grades = np.array(grades_among(ranking))
    every = np.arange(ranking.n_queries)
    nothing = only_rows(ranking, np.zeros(len(ranking.query), dtype=np.bool_))  # against which it gains what it has
    ratios = ratios_of(measure, (nothing, ranking), (every, every))
    lists: list[int] = []
    owner, named, chosen = [], [], []
    for query in queries.tolist():
        rank = ranks[start[query] : start[query + 1]]
        both = np.column_stack([np.zeros_like(rank), rank])
        for sign in (-1, 1):
            owner.append(np.full(len(rank), len(lists)))
            lists.append(query)
            named.append(rank)
            chosen.append(grades[best_assignment(ratios(query, both, grades.tolist(), sign))])
    if not lists:
        return np.zeros(0), queries
    grade, place, list_of = np.concatenate(chosen), np.concatenate(named), np.concatenate(owner)
    is_relevant = grade > 0
    gain = grade[is_relevant]
    found = supposing(
        ranking,
        np.array(lists, dtype=np.intp),
        list_of[is_relevant],
        place[is_relevant],
        gain=gain,
        level=np.floor(gain).astype(np.int32),
    )
    return _values(measure, found), np.array(lists, dtype=np.intp)


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
