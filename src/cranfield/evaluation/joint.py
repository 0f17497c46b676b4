"""Unjudged results of two systems: the lowest and highest mean difference that judgments of them could give.

A document has one grade, in every list. Queries do not share judgments, so the extremes of the mean are the means of the
extremes of each query. `METHODS` says how those are found; a test holds each method to every assignment of small cases.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.margins import best_assignment, ratios_of, why_no_bounds, why_unbounded, with_whole
from cranfield.measures import Measure, compute
from cranfield.model import TestSet
from cranfield.ranking.value import FloatQ, RankedHit, Ranking, ResultState, unjudged_results, with_assumed_grades

FloatN = NDArray[np.float64]
Places = NDArray[np.intp]

Method = Literal["sum", "first", "ratio", "every assignment"]
METHODS: dict[str, Method] = {
    **dict.fromkeys(("P", "CG", "DCG", "Hits", "RBP"), "sum"),
    **dict.fromkeys(("RR", "Success"), "first"),
    **dict.fromkeys(("nDCG", "R"), "ratio"),
    **dict.fromkeys(("AP", "F1", "ERR", "Rprec", "nERR"), "every assignment"),
}
"""`sum`: each document adds to the difference by itself. `first`: one relevant document at most is needed. `ratio`: a
linear difference over what depends on the numbers of documents of each grade alone. `every assignment`: all are tried,
as long as they are few."""
SEPARABLE = frozenset({"AP", "F1", "ERR"})
"""Measures that fall, or stay, when a document is relevant that the list does not have: where
assignments are too many, the bounds of either list at its own worst and best grades bound the difference."""

MAX_OPEN = 200
"""Unjudged documents of one query: the work grows with their square."""
MAX_GRADES = 12_000_000
"""Grades in all supposed lists of one analysis; that many take a minute."""
ROWS_AT_A_TIME = 2_000_000

NO_METHOD = "no method for the difference of two lists of {measure}"
TIES_BY_MEASURE = "under this convention each measure has its own order of ties"
REPEATED = "under this convention a document may be in a list twice"
NUMBER_OF_QUERIES = "under this convention the judgments decide which queries count"
NOT_KEPT = "the results beyond rank {kept} are not kept: give the measure a cutoff"
TOO_MANY = "{n} unjudged results in query {query} are more than {most}: give the measure a smaller cutoff"
TOO_MUCH = "{n} unjudged results are too many: give the measure a smaller cutoff, or compare fewer queries"


def grades_of(testset: TestSet) -> tuple[float, ...]:
    """Grades that a judgment may have, ascending: of the declared scale, else 0 to the highest grade of the test set."""
    declared = sorted({grade for grade in testset.meta.scale if grade >= 0})
    if len(declared) > 1:
        return tuple(float(grade) for grade in declared)
    return with_whole({grade for grades in testset.grades.values() for grade in grades.values()})


@dataclass(frozen=True, eq=False)
class OpenLists:
    """The unjudged results of some lists a query, one of each system, and what the measure is under any grades of them.

    Axes: Q queries that all sides have, S sides, N documents that are unjudged within the cutoff of any list, L grades.
    """

    measure: Measure
    sides: tuple[Ranking, ...]
    query_ids: tuple[str, ...]
    places: tuple[Places, ...]
    """intp[Q] of each side: the query there."""
    grades: tuple[float, ...]
    """L, ascending."""
    query: Places
    """intp[N], ascending."""
    doc_ids: tuple[str, ...]
    rank: NDArray[np.int32]
    """int32[N, S]: in each list; 0 where it is not within the cutoff."""
    hits: tuple[dict[str, tuple[RankedHit, ...]], ...] = field(repr=False)
    """Results of the queries that have such documents, for each side; they take long to look up."""

    @cached_property
    def start(self) -> Places:
        """intp[Q + 1]: the documents of query q are start[q] to start[q + 1]."""
        return np.searchsorted(self.query, np.arange(len(self.query_ids) + 1)).astype(np.intp)

    @cached_property
    def n_open(self) -> Places:
        """intp[Q]: documents of each query."""
        return np.diff(self.start)

    @cached_property
    def now(self) -> FloatN:
        """float64[Q, S]: the values as they are; NaN where there is none."""
        columns = []
        for side, place in zip(self.sides, self.places, strict=True):
            values, scored, _ = compute(self.measure, side)
            columns.append(np.where(scored, values, np.nan)[place])
        return np.column_stack(columns)

    def values(self, query: Places, grade: FloatN) -> FloatN:
        """float64[P, S]: values of P times S lists in which all is judged; NaN where there is none.

        Args:
            query: intp[P], whose lists.
            grade: of each open document of the first, then of the second query, and so on.
        """
        n = self.n_open[query]
        ends = np.cumsum(n)
        found = np.empty((len(query), len(self.sides)))
        per_list = sum(len(side.query) + len(side.expected_query) for side in self.sides) / max(len(self.query_ids), 1)
        cuts = np.flatnonzero(np.diff((ends + np.arange(len(query)) * per_list) // ROWS_AT_A_TIME)) + 1
        for some in np.split(np.arange(len(query)), cuts):
            if len(some):
                first, last = ends[some[0]] - n[some[0]], ends[some[-1]]
                found[some] = self._values(query[some], grade[first:last])
        return found

    def _values(self, query: Places, grade: FloatN) -> FloatN:
        n = self.n_open[query]
        owner = np.repeat(np.arange(len(query)), n)
        hole = np.arange(len(owner)) - np.repeat(np.cumsum(n) - n, n) + self.start[query[owner]]
        gain, level = np.maximum(grade, 0.0), np.floor(grade).astype(np.int32)
        if self.sides[0].convention.gain == "match":
            gain = (grade > 0).astype(np.float64)
        named = (gain > 0) | (level >= 1)
        owner, hole, gain, level = owner[named], hole[named], gain[named], level[named]
        columns = []
        for number, (side, place) in enumerate(zip(self.sides, self.places, strict=True)):
            lists = with_assumed_grades(side, place[query], owner, self.rank[hole, number], gain=gain, level=level)
            values, scored, _ = compute(self.measure, lists)
            columns.append(np.where(scored, values, np.nan))
        return np.column_stack(columns)

    def judged(self, fixed: FloatN) -> FloatN:
        """float64[Q, S]: the values with some documents judged; those that are not (NaN) have the lowest grade."""
        result = self.now.copy()
        queries = np.flatnonzero(self.n_open)
        result[queries] = self.values(queries, np.where(np.isnan(fixed), self.grades[0], fixed))
        return result

    def changes(self, queries: Places, fixed: FloatN) -> tuple[FloatN, Places, FloatN]:
        """What one more judgment would change.

        Args:
            queries: intp[P].
            fixed: float64[N] grades of what is judged; NaN where a document is not, which has the lowest grade then.

        Returns:
            float64[P, S] values as things are; intp[M] documents of these queries that are not judged; and float64[M, L, S]
            how much each value of the query changes with each grade of each.
        """
        lowest = np.where(np.isnan(fixed), self.grades[0], fixed)
        open_holes = [np.arange(self.start[q], self.start[q + 1]) for q in queries.tolist()]
        free = [holes[np.isnan(fixed[holes])] for holes in open_holes]
        others = np.array(self.grades[1:])
        lists, grades = [], []
        for query, holes, some in zip(queries.tolist(), open_holes, free, strict=True):
            rows = np.tile(lowest[holes], (1 + len(some) * len(others), 1))
            rows[np.arange(1, len(rows)), np.repeat(some - self.start[query], len(others))] = np.tile(others, len(some))
            lists.append(np.full(len(rows), query, dtype=np.intp))
            grades.append(rows.ravel())
        n_sides = len(self.sides)
        if not lists:
            return np.zeros((0, n_sides)), np.zeros(0, dtype=np.intp), np.zeros((0, len(self.grades), n_sides))
        values = self.values(np.concatenate(lists), np.concatenate(grades))
        sizes = np.array([len(each) for each in lists])
        first = np.cumsum(sizes) - sizes
        is_base = np.zeros(len(values), dtype=np.bool_)
        is_base[first] = True
        base, holes = values[first], np.concatenate(free).astype(np.intp)
        change = (values - np.repeat(base, sizes, axis=0))[~is_base].reshape(len(holes), len(others), n_sides)
        return base, holes, np.hstack([np.zeros((len(holes), 1, n_sides)), change])

    def effects(self, queries: Places, fixed: FloatN) -> tuple[FloatN, Places, FloatN]:
        """What one more judgment would change in the difference B - A of the first two sides.

        Args:
            queries: intp[P].
            fixed: see `changes`.

        Returns:
            float64[P] differences as things are; intp[M] documents; and float64[M, L] how much the difference changes.
        """
        base, holes, change = self.changes(queries, fixed)
        return base[:, 1] - base[:, 0], holes, change[..., 1] - change[..., 0]


def open_lists(measure: Measure, sides: Sequence[Ranking], grades: Sequence[float]) -> OpenLists | str:
    """The unjudged results of rankings of one test set; the reason where their bounds cannot be computed.

    Args:
        measure: one of `METHODS`.
        sides: two or more, the baseline first; each keeps its hits down to the cutoff (`keep` of the reader).
        grades: that a judgment may have.
    """
    why = _why_not(measure, sides)
    if why:
        return why
    index = [{query_id: place for place, query_id in enumerate(side.query_ids)} for side in sides]
    query_ids = tuple(query_id for query_id in sides[0].query_ids if all(query_id in kept for kept in index))
    places = tuple(np.array([kept[q] for q in query_ids], dtype=np.intp) for kept in index)
    query: list[int] = []
    doc_ids: list[str] = []
    rank: list[list[int]] = []
    known: tuple[dict[str, tuple[RankedHit, ...]], ...] = tuple({} for _ in sides)
    is_open = np.array([_has_unjudged(measure, side)[place] for side, place in zip(sides, places, strict=True)])
    for number in np.flatnonzero(is_open.any(axis=0)).tolist():
        query_id = query_ids[number]
        found: dict[str, list[int]] = {}
        for side, ranking in enumerate(sides):
            shown = _shown(ranking, int(places[side][number]), measure)
            hits = known[side][query_id] = ranking.top.get(query_id, ())
            if len(hits) < shown:
                return NOT_KEPT.format(kept=len(hits))
            for hit in hits[:shown]:
                if hit.state is not ResultState.JUDGED:
                    found.setdefault(hit.id, [0] * len(sides))[side] = hit.rank
        if len(found) > MAX_OPEN:
            return TOO_MANY.format(n=len(found), query=query_id, most=MAX_OPEN)
        query += [number] * len(found)
        doc_ids += found
        rank += found.values()
    lists = OpenLists(
        measure,
        tuple(sides),
        query_ids,
        places,
        tuple(grades),
        np.array(query, dtype=np.intp),
        tuple(doc_ids),
        np.array(rank, dtype=np.int32).reshape(-1, len(sides)),
        known,
    )
    n_grades = int(lists.n_open @ lists.n_open) * len(grades)
    return TOO_MUCH.format(n=len(doc_ids)) if n_grades > MAX_GRADES else _only_scored(lists)


def _has_unjudged(measure: Measure, ranking: Ranking) -> NDArray[np.bool_]:
    """bool[Q]: an unjudged result within the cutoff."""
    found = np.zeros(ranking.n_queries, dtype=np.bool_)
    found[unjudged_results(ranking, measure.depth)[0]] = True
    return found


def _shown(ranking: Ranking, place: int, measure: Measure) -> int:
    """Results of a list that the measure looks at and that can be unjudged."""
    if ranking.closed_world[place]:
        return 0
    n = int(ranking.n_returned[place])
    return n if measure.depth is None else min(n, measure.depth)


def _why_not(measure: Measure, sides: Sequence[Ranking]) -> str:
    convention = sides[0].convention
    if measure.name not in METHODS or why_no_bounds(measure):
        return NO_METHOD.format(measure=measure)
    if convention.orders != "one":
        return TIES_BY_MEASURE
    if convention.repeats == "kept":
        return REPEATED
    if convention.no_relevant == "skip":
        return NUMBER_OF_QUERIES
    return next((why for side in sides if (why := why_unbounded(measure, side))), "")


def _only_scored(lists: OpenLists) -> OpenLists:
    """The lists of the queries that have a value on every side once all is judged."""
    final = lists.judged(np.full(len(lists.query), np.nan))
    counts: NDArray[np.bool_] = np.isfinite(final.sum(axis=1))
    if counts.all():
        return lists
    keep = counts[lists.query]
    return replace(
        lists,
        query_ids=tuple(itertools.compress(lists.query_ids, counts.tolist())),
        places=tuple(place[counts] for place in lists.places),
        query=(np.cumsum(counts) - 1)[lists.query[keep]].astype(np.intp),
        doc_ids=tuple(itertools.compress(lists.doc_ids, keep.tolist())),
        rank=lists.rank[keep],
    )


MAX_ASSIGNMENTS = 4096
"""Most assignments of one query."""
MAX_ENUMERATED = 1_000_000
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
    pair: OpenLists, *, most_lists: int = MAX_ENUMERATED, progress: Callable[[int, int], None] | None = None
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
        if n_lists > min(MAX_ASSIGNMENTS, budget):
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
            n = int(pair.n_open[query])
            every = np.array(list(itertools.product(_levels_that_count(pair), repeat=n)))
            values = pair.values(np.full(len(every), query, dtype=np.intp), every.ravel())
            difference = values[:, 1] - values[:, 0]
            yield some, np.column_stack([every[difference.argmin()], every[difference.argmax()]])
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
