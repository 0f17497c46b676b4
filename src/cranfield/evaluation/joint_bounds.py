"""The lowest and highest difference of two lists over all grades of their unjudged results: see `joint`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.joint import METHODS, SEPARABLE, FloatN, Method, OpenLists, Places
from cranfield.evaluation.joint_ratio import best_assignment, ratios_of
from cranfield.ranking.value import FloatQ

MOST_ASSIGNMENTS = 4096
"""Of one query."""
MOST_ENUMERATED = 1_000_000
"""Assignments of all queries together."""
FEW_LISTS = 50_000
"""The same, where a second is the most that it may take."""

NOT_ENUMERATED = (
    "{measure} needs every assignment of grades, which are too many in {n} queries: give it a smaller cutoff"
)
RELEVANCE_ALONE = frozenset({"AP", "F1", "Rprec", "RR", "Success", "R", "P", "Hits"})
"""Measures for which two grades are enough: a relevant and another one."""


@dataclass(frozen=True, eq=False)
class JointBounds:
    """The lowest and highest difference B - A of each query, over all grades of its unjudged results."""

    low: FloatQ
    """float64[Q]."""
    high: FloatQ
    low_grades: FloatN
    """float64[N]: grades that give `low`; where that is a bound alone, NaN."""
    high_grades: FloatN
    exact: NDArray[np.bool_]
    """bool[Q]: some grades give `low`, and some give `high`."""


def joint_bounds(
    pair: OpenLists, *, most_lists: int = MOST_ENUMERATED, progress: Callable[[int, int], None] | None = None
) -> JointBounds | str:
    """The lowest and highest difference of every query; the reason where a query has neither them nor a bound.

    Args:
        pair: the unjudged results.
        most_lists: pairs of lists to try in all, where every assignment is tried.
        progress: called with the queries done and their number.
    """
    queries = np.flatnonzero(pair.n_open)
    found = np.tile((pair.now[:, 1] - pair.now[:, 0])[:, np.newaxis], (1, 2))
    grades = np.full((len(pair.query), 2), np.nan)
    method, enumerated = _method(pair), _enumerable(pair, most_lists)
    left = [] if method != "every assignment" else [q for q in queries.tolist() if q not in enumerated]
    if left and pair.measure.name not in SEPARABLE:
        return NOT_ENUMERATED.format(measure=pair.measure, n=len(left))
    for rows, values in _extremes(pair, method, [q for q in queries.tolist() if q not in set(left)], progress):
        grades[rows] = values
    exact = np.ones(len(pair.query_ids), dtype=np.bool_)
    exact[left] = False
    sure = queries[exact[queries]]
    for end in (0, 1):
        values = pair.values(sure, grades[exact[pair.query], end])
        found[sure, end] = values[:, 1] - values[:, 0]
    for query in left:
        (low_a, high_a), (low_b, high_b) = (_range_of_list(pair, query, side) for side in (0, 1))
        found[query] = low_b - high_a, high_b - low_a
    decimals = pair.sides[0].convention.decimals
    if decimals is not None and method in {"sum", "ratio"}:
        found[sure] += np.array([-1.0, 1.0]) * 10.0**-decimals  # of each value half a last digit may be rounded away
        exact[sure] = False
    return JointBounds(found[:, 0], found[:, 1], grades[:, 0], grades[:, 1], exact)


def _method(pair: OpenLists) -> Method:
    measure, ideal = pair.measure, pair.sides[0].convention.ideal
    if measure.name == "nDCG" and ideal in {"one", "retrieved"}:
        return "sum" if ideal == "one" else "every assignment"
    if measure.name == "RBP" and not measure.whole("rel", 0) and not measure.param("max_rel", 0.0):
        return "every assignment"  # gains are over the highest grade of the query
    return METHODS[measure.name]


def _enumerable(pair: OpenLists, most_lists: int) -> set[int]:
    """Queries whose assignments are few enough, those with the fewest first."""
    each = len(_levels_that_count(pair))
    budget, found = most_lists, set()
    for query in np.argsort(pair.n_open, kind="stable").tolist():
        n_lists = each ** int(pair.n_open[query])
        if n_lists > min(MOST_ASSIGNMENTS, budget):
            break
        budget -= n_lists
        found.add(query)
    return found


def _levels_that_count(pair: OpenLists) -> tuple[float, ...]:
    """Grades that differ for the measure: two where it asks for relevance alone."""
    if pair.measure.name in RELEVANCE_ALONE:
        return (pair.grades[0], pair.grades[-1])
    return pair.grades


def _extremes(
    pair: OpenLists, method: Method, queries: Sequence[int], progress: Callable[[int, int], None] | None
) -> Iterator[tuple[slice, FloatN]]:
    """The documents of each query, and float64[n, 2] their grades at its lowest and its highest difference."""
    if method in {"sum", "first"}:
        places = np.array(queries, dtype=np.intp)
        _, holes, change = pair.effects(places, np.full(len(pair.query), np.nan))
        row = {int(hole): place for place, hole in enumerate(holes.tolist())}
    ratios = ratios_of(pair.measure, pair.sides, pair.places) if method == "ratio" else None
    for done, query in enumerate(queries, start=1):
        some = slice(int(pair.start[query]), int(pair.start[query + 1]))
        if ratios is not None:
            rank = pair.rank[some]
            columns = [best_assignment(ratios(query, rank, pair.grades, sign)) for sign in (-1, 1)]
            yield some, np.array(pair.grades)[np.column_stack(columns)]
        elif method == "every assignment":
            yield some, _of_every_assignment(pair, query)
        else:
            first = row[some.start]
            table = change[first : first + some.stop - some.start]
            columns = [_best_grades(sign * table, single=method == "first") for sign in (-1, 1)]
            yield some, np.array(pair.grades)[np.column_stack(columns)]
        if progress is not None:
            progress(done, len(queries))


def _best_grades(change: FloatN, *, single: bool) -> Places:
    """intp[n]: the grade of each document that adds most; of the best document alone where `single`."""
    best: Places = change.argmax(axis=1)
    if single:
        gained = change.max(axis=1)
        others = np.arange(len(best)) != gained.argmax()
        best[others] = 0
    return best


def _of_every_assignment(pair: OpenLists, query: int) -> FloatN:
    n = int(pair.n_open[query])
    every = np.array(list(itertools.product(_levels_that_count(pair), repeat=n)))
    values = pair.values(np.full(len(every), query, dtype=np.intp), every.ravel())
    difference = values[:, 1] - values[:, 0]
    return np.column_stack([every[difference.argmin()], every[difference.argmax()]])


def _range_of_list(pair: OpenLists, query: int, side: int) -> tuple[float, float]:
    """Lowest and highest value of one list, whatever the other is: its first or last u relevant, the rest of the pair with it."""
    rank = pair.rank[pair.start[query] : pair.start[query + 1], side]
    own = np.flatnonzero(rank > 0)
    own = own[np.argsort(rank[own])]
    low, high = pair.grades[0], pair.grades[-1]
    best = np.full((len(own) + 1, len(rank)), low)
    worst = np.full((len(own) + 1, len(rank)), high)
    for u in range(len(own) + 1):
        best[u, own[:u]] = high
        worst[u, own[: len(own) - u]] = low
    values = pair.values(np.full(2 * (len(own) + 1), query, dtype=np.intp), np.concatenate([best, worst]).ravel())
    return float(values[:, side].min()), float(values[:, side].max())
