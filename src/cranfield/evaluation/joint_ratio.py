"""The extremes of a difference that is linear in gains, over what depends on the numbers of documents of each grade alone.

nDCG and recall of two lists are such: N(g) / I(g), N the difference of what the lists gain, I what the ideal list gains.
Of all assignments with so many documents of each grade, the best gives the higher grades to the larger coefficients.
Dinkelbach's iteration finds the best numbers: the largest N - x I for a value x, by dynamic programming over the grades
from the highest, each taking some of the documents that are left; its N / I is the next x, until none is larger.

Source: Dinkelbach 1967, Management Science 13(7). Exact: the work is L n^2 for n documents and L grades, a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import Measure
from cranfield.ranking.transform import exponential_gains, with_gains
from cranfield.ranking.value import Ranking

Floats = NDArray[np.float64]
SMALL = 1e-13
"""Below it, N - x I is no gain but the rounding of one."""
MOST_STEPS = 100


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
    """Of each grade float64[n + 1, n + 1]: what I gains when u to v - 1, in the order of the grades, have it."""
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
    for _ in range(MOST_STEPS):
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
