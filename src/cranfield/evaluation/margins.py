"""Bounds of values and of means: over judgments of unjudged results, over the order of equal scores, and of linear differences.

Both rest on one property: a measure that never falls when a result worth more changes places with one worth less above
it. For such a measure the best place for u relevant results is the first u ranks on offer, and the worst is the last u;
what it divides by depends on u alone. So all values lie between those of the u best and the u worst, over every u.
`RISES_WITH_RANK` lists the measures that have the property; a test holds each to every assignment of small cases.

The extremes of a difference that is linear in gains, over what depends on the numbers of documents of each grade alone.

nDCG and recall of two lists are such: N(g) / I(g), N the difference of what the lists gain, I what the ideal list gains.
Of all assignments with so many documents of each grade, the best gives the higher grades to the larger coefficients.
Dinkelbach's iteration finds the best numbers: the largest N - x I for a value x, by dynamic programming over the grades
from the highest, each taking some of the documents that are left; its N / I is the next x, until none is larger.

Source: Dinkelbach 1967, Management Science 13(7). Exact: the work is L n^2 for n documents and L grades, a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.values import known_mean
from cranfield.measures import Measure, compute
from cranfield.measures.measure import ordered_for
from cranfield.ranking.value import (
    FloatQ,
    Ranking,
    best_case,
    exponential_gains,
    n_judged_tied,
    only_queries,
    only_rows,
    unjudged_results,
    with_assumed_grades,
    with_gains,
    worst_case,
)

Floats = NDArray[np.float64]
SMALL = 1e-13
"""Below it, N - x I is no gain but the rounding of one."""
MAX_STEPS = 100


@dataclass(frozen=True, eq=False)
class Ratio:
    """The difference of one query as a function of the grades of its n unjudged documents; what is judged is in the constants."""

    numerator: float
    coefficient: Floats
    """float64[n]: what a gain of 1 of each document adds to the numerator."""
    worth: Floats
    """float64[L], descending: gain of each grade."""
    level: NDArray[np.intp]
    """intp[L]: which grade each of them is."""
    cost: tuple[Floats, ...]
    """Cost of each grade, float64[n + 1, n + 1]: what I gains when u to v - 1, in the order of the grades, have it."""
    rest: float
    """What I gains besides."""


RatioOf = Callable[[int, NDArray[np.int32], Sequence[float], int], Ratio]


def best_assignment(ratio: Ratio) -> NDArray[np.intp]:
    """intp[n]: the grade of each document at the highest value."""
    n, n_levels = len(ratio.coefficient), len(ratio.worth)
    order = np.argsort(-ratio.coefficient, kind="stable")
    total = np.concatenate(([0.0], np.cumsum(ratio.coefficient[order])))
    gained = total[np.newaxis, :] - total[:, np.newaxis]
    backward = np.arange(n + 1)[:, np.newaxis] > np.arange(n + 1)[np.newaxis, :]
    ends = np.zeros(n_levels, dtype=np.intp)
    ends[-1] = n  # all have the lowest grade
    value = _value(ratio, gained, ends)
    for _ in range(MAX_STEPS):
        most = np.where(np.arange(n + 1) == 0, 0.0, -np.inf)
        choices = []
        for worth, cost in zip(ratio.worth.tolist(), ratio.cost, strict=True):
            table = most[:, np.newaxis] + worth * gained - value * cost
            table[backward] = -np.inf
            choices.append(table.argmax(axis=0))
            most = table.max(axis=0)
        if ratio.numerator + most[n] - value * ratio.rest <= SMALL:
            break
        found = np.full(n_levels, n, dtype=np.intp)
        for place in range(n_levels - 1, 0, -1):
            found[place - 1] = choices[place][found[place]]
        higher = _value(ratio, gained, found)
        if higher <= value:
            break
        ends, value = found, higher
    result = np.empty(n, dtype=np.intp)
    result[order] = np.repeat(ratio.level, np.diff(ends, prepend=0))
    return result


def _value(ratio: Ratio, gained: Floats, ends: NDArray[np.intp]) -> float:
    """N / I where the first ends[0] documents have the highest grade, those up to ends[1] the next, and so on; 0 where I is 0."""
    begins = np.concatenate(([0], ends[:-1]))
    numerator = ratio.numerator + sum(
        worth * gained[u, v] for worth, u, v in zip(ratio.worth, begins, ends, strict=True)
    )
    ideal = ratio.rest + sum(cost[u, v] for cost, u, v in zip(ratio.cost, begins, ends, strict=True))
    return float(numerator / ideal) if ideal > 0 else 0.0


def ratios_of(measure: Measure, sides: Sequence[Ranking], places: Sequence[NDArray[np.intp]]) -> RatioOf:
    """The function that makes the `Ratio` of a query: of its number, the ranks of its documents, the grades, and 1 or -1.

    With -1 it is the ratio of A - B, whose highest value is the lowest of B - A.
    """
    seen = tuple(_with_gains(measure, side) for side in sides)
    depth = measure.depth
    worth = _worth_of(measure, seen[0])
    discounted = measure.name == "nDCG"
    ideal_depth = None if not discounted or seen[0].convention.ideal == "judged uncut" else depth

    def discount(rank: NDArray[np.int32]) -> Floats:
        shown = (rank > 0) & ((rank <= depth) if depth is not None else True)
        weight = 1.0 / np.log2(np.maximum(rank, 1) + 1.0) if discounted else np.ones(len(rank))
        return np.where(shown, weight, 0.0)

    def make(query: int, rank: NDArray[np.int32], grades: Sequence[float], sign: int) -> Ratio:
        numerator = 0.0
        for side, place, way in zip(seen, places, (-1, 1), strict=True):
            first, last = np.searchsorted(side.query, [place[query], place[query] + 1])
            rows = slice(int(first), int(last))
            numerator += way * float(discount(side.rank[rows]) @ worth(side.gain[rows], side.level[rows]))
        begin, end = seen[0].expected_start[places[0][query] : places[0][query] + 2]
        judged = worth(seen[0].expected_gain[begin:end], seen[0].expected_level[begin:end])
        own = _gains(np.array(grades), seen[0], measure)
        each = worth(own, np.floor(np.array(grades)))
        level = np.argsort(-each, kind="stable")
        cost, rest = _ideal(np.sort(judged)[::-1], each[level], len(rank), ideal_depth, discounted=discounted)
        coefficient = sign * (discount(rank[:, 1]) - discount(rank[:, 0]))
        return Ratio(sign * numerator, coefficient, each[level], level, cost, rest)

    return make


def _with_gains(measure: Measure, ranking: Ranking) -> Ranking:
    """The ranking with the gains that the measure sees; no result is left out, as all are judged."""
    if ranking.convention.gain == "exponential":
        ranking = exponential_gains(ranking)
    gains = measure.param("gains", default=())
    return with_gains(ranking, dict(gains)) if isinstance(gains, tuple) else ranking


def _gains(grades: Floats, seen: Ranking, measure: Measure) -> Floats:
    """Gains of grades as `_with_gains` has them."""
    gain = (grades > 0).astype(np.float64) if seen.convention.gain == "match" else grades.copy()
    if seen.convention.gain == "exponential":
        gain = np.exp2(gain) - 1.0
    gains = measure.param("gains", default=())
    if isinstance(gains, tuple):
        for level, worth in gains:
            gain[np.floor(grades) == level] = worth
    return gain


def _worth_of(measure: Measure, seen: Ranking) -> Callable[[Floats, NDArray[Any]], Floats]:
    """What the measure makes of gains and levels: of recall, whether they are relevant."""
    if measure.name == "R":
        rel = measure.whole("rel", 1)
        return lambda _, level: (level >= rel).astype(np.float64)
    if measure.param("dcg", "log2") == "exp-log2" and seen.convention.gain != "exponential":
        return lambda gain, _: np.exp2(gain) - 1.0
    return lambda gain, _: gain


def _ideal(
    judged: Floats, worth: Floats, n: int, depth: int | None, *, discounted: bool
) -> tuple[tuple[Floats, ...], float]:
    """What the ideal list gains: by each grade of n documents among the judged ones (both descending), and besides."""
    ranks = np.arange(1, len(judged) + n + 1)
    weight = 1.0 / np.log2(ranks + 1.0) if discounted else np.ones(len(ranks))
    if depth is not None:
        weight[depth:] = 0.0
    sums = np.concatenate(([0.0], np.cumsum(weight)))
    before, costs, u = 0, [], np.arange(n + 1)
    for each in worth.tolist():
        after = int((judged >= each).sum())
        between = np.zeros(n + 1)
        for place in range(before, after):  # judged between this grade and the one above it: u documents are before
            between += judged[place] * weight[place + u]
        block = sums[after + u]
        costs.append(between[:, np.newaxis] + each * (block[np.newaxis, :] - block[:, np.newaxis]))
        before = after
    rest = sum(float(judged[place] * weight[place + n]) for place in range(before, len(judged)))
    return tuple(costs), rest


RISES_WITH_RANK = frozenset(
    ("nDCG", "RR", "AP", "P", "R", "Success", "CG", "DCG", "Hits", "F1", "Rprec", "ERR", "nERR", "RBP")
)
"""Measures of the catalogue that never fall when a result worth more changes places with one worth less above it."""

MAX_WHOLE = 10
"""Up to this grade the whole numbers between the grades of a test set are grades too."""
MAX_UNJUDGED = 200
ROWS_AT_A_TIME = 1_000_000

OF_ITS_DIVISOR = "it does not divide by all relevant documents"
OF_ONE_GRADE = "only one grade counts, so a higher one may lower it"
NO_ARGUMENT = "it may fall when a relevant result rises"
DIVIDES_BY_THE_RETRIEVED = "under this convention its divisor depends on the order of the results"
SEVERAL_ITEMS = "under this convention one result may be several items, and only the first rank of each item is kept"
MEAN_OVER_TIES = "its value is a mean over the orders of equal scores"
ODD_GAINS = "its gains reward documents that are not relevant, or penalise relevant ones"
FALLING_GAINS = "its gains are larger for a lower grade than for a higher one"
BETWEEN = (
    "it divides by the best value of the query, so a grade between the lowest and the highest may give a larger value"
)
TOO_MANY = "too many results are unjudged in {n} of {total} queries: give the measure a cutoff"


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
    if measure.whole("only_grade", 0) or measure.param("only_best", default=False):
        return OF_ONE_GRADE
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
    if highest <= MAX_WHOLE and all(grade.is_integer() for grade in found):
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


def bounds(measure: Measure, ranking: Ranking, *, most: int = MAX_UNJUDGED) -> tuple[FloatQ, FloatQ]:
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
    worst = _values(measure, ranking)
    best, tied = worst.copy(), n_judged_tied(ranking) > 0
    if not tied.any():
        return worst, best
    ranking = only_queries(ranking, tied)
    gains = measure.param("gains", default=())
    if isinstance(gains, tuple) and gains:  # what is best is best by these
        ranking = with_gains(ranking, dict(gains))
    worst[tied], best[tied] = (_values(measure, case(ranking)) for case in (worst_case, best_case))
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
    lists = with_assumed_grades(ranking, query, owner, named, gain=gain, level=level)
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
    found = with_assumed_grades(
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
