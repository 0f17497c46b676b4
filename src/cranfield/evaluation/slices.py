"""Which kind of query changed: slices of the queries by their attributes, found with control over all that were tried."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from cranfield.evaluation.evaluate import SAME
from cranfield.evaluation.query_attributes import Columns, Condition, conditions_of
from cranfield.evaluation.values import Comparison
from cranfield.measures import Measure
from cranfield.measures.catalogue import sign_of
from cranfield.stats.describe import FloatN
from cranfield.stats.permutation import permutation_p_values
from cranfield.stats.slices import SliceTests, slice_tests

MIN_QUERIES, MIN_SHARE = 10, 0.02
"""A slice has so many queries and this share of all, and so has its rest."""
MAX_SLICES = 400
"""Slices that are tried; of the conjunctions the largest are."""
SHARES = (0.8, 0.2)
"""Of the significance level, for single conditions and for conjunctions of two: there are fewer of the first, and most causes are one."""
MAX_OVERLAP = 0.9
"""A conjunction that has more of one of its conditions is as good as that condition, and is not tried."""
ALIKE, SAME_PART = 0.5, 2.0
"""Two slices overlap by so much of both together, and what one has alone does not differ by |t| of so much."""


class SliceChange(StrEnum):
    """What became of the queries of a slice, from the baseline to the candidate."""

    BETTER = "better"
    WORSE = "worse"
    BETTER_BY_LESS = "better by less"
    """Than the rest."""
    WORSE_BY_LESS = "worse by less"
    APART = "apart"
    """Not as the rest, and neither better nor worse."""


@dataclass(frozen=True, slots=True)
class QuerySlice:
    """A kind of query that changed differently from the rest."""

    text: str
    """What follows `queries`: `with a digit`."""
    attributes: tuple[str, ...]
    """What the condition, or each of two, is about."""
    change: SliceChange
    n: int
    difference: float
    """Mean over its queries."""
    rest: float
    """Mean over all other queries."""
    shrunken: float
    """The difference shrunk towards the mean of all queries, by how far apart all slices lie: what to expect of new queries."""
    t: float
    """Of the difference from the rest, see `stats.slices`."""
    p: float
    """Of this slice alone against the rest."""
    p_adjusted: float
    """Adjusted for all slices that were tried."""
    p_zero: float
    """That the mean difference of its queries is zero (permutation test); it decides the word for the change alone."""
    also: tuple[str, ...]
    """Other descriptions of much the same queries."""
    n_explained: int
    """Further slices that hold, and differ because of this one alone."""
    queries: tuple[str, ...]
    """Its queries, the largest difference first."""


@dataclass(frozen=True, slots=True)
class SliceSearch:
    """Which kind of query changed differently from the rest, of all that were tried."""

    measure: Measure
    n: int
    """Queries with a value on both sides."""
    difference: float
    """Mean over all."""
    attributes: tuple[str, ...]
    """Attributes that make up the slices."""
    n_tried: int
    n_single: int
    """Of these with one condition; the others are conjunctions of two."""
    n_left_out: int
    """Conjunctions that were not tried because there are too many."""
    min_size: int
    alpha: float
    n_draws: int
    """Permutations, the observed order included."""
    found: tuple[QuerySlice, ...]
    """The largest |t| first."""


@dataclass(frozen=True, eq=False)
class _Tried:
    """A slice, with every description of its queries, and of all queries but these."""

    conditions: tuple[Condition, ...]
    members: NDArray[np.bool_]
    texts: list[str]
    opposite: list[str] = field(default_factory=list)


def slices_of(
    comparison: Comparison, *, columns: Columns | None = None, texts: Iterable[str] | None = None
) -> SliceSearch | None:
    """Which kind of query changed differently from the rest, on the primary measure.

    A slice is tested against the rest, and not against zero. Where a candidate is worse on all queries alike, every slice is
    worse, and a list of them only repeats the verdict. A user reads "queries with a digit got worse" to look there for a cause that
    other queries do not have. So a slice is shown where its mean difference is not that of the other queries, and both means stand
    beside it. `got worse` takes a second test, of its mean against zero: a slice that did not change while the rest gained is called
    `apart`.

    The family-wise error over all slices is `alpha` of the comparison: see `stats.slices.slice_tests`. Of slices that are the
    same queries, or all but these, one is tested. Of those that hold, the strongest is kept; one that has much the same queries is
    another description of it, and the simplest description stays; one that differs only through queries that it shares with
    one kept, or through the rest that has these, is counted there.

    Args:
        comparison: of two systems.
        columns: further attributes of queries: name to query id to value. Strata and parameters of the test set are attributes
            without this. A latency can be one; no result has it by itself, because the same inputs give the same result.
        texts: of the corpus, to count how many documents have a word; None: titles and texts of the results of both systems.

    Returns:
        None where no slice is large enough, or where no query differs.
    """
    measured = comparison.measures[comparison.primary].differences
    query_ids = sorted(measured)
    differences = np.array([measured[query_id] for query_id in query_ids], dtype=np.float64)
    min_size = max(MIN_QUERIES, math.ceil(MIN_SHARE * len(query_ids)))
    if len(query_ids) < 2 * min_size or not (np.abs(differences) > SAME).any():
        return None
    conditions = conditions_of(comparison, query_ids, min_size, columns or {}, texts)
    tried, n_left_out = slices_tried(conditions, min_size)
    if not tried:
        return None
    options = comparison.options
    tests = slice_tests(
        differences,
        np.array([each.members for each in tried]),
        families=[len(each.conditions) - 1 for each in tried],
        shares=SHARES,
        seed=options.seed,
    )
    return SliceSearch(
        measure=comparison.primary,
        n=len(query_ids),
        difference=math.fsum(differences) / len(differences),
        attributes=tuple(dict.fromkeys(each.attribute for each in conditions)),
        n_tried=len(tried),
        n_single=sum(len(each.conditions) == 1 for each in tried),
        n_left_out=n_left_out,
        min_size=min_size,
        alpha=options.alpha,
        n_draws=tests.n_draws,
        found=tuple(
            _shown(group, tried, tests, differences, query_ids, comparison)
            for group in _groups(tried, tests, differences, options.alpha)
        ),
    )


def slices_tried(conditions: Sequence[Condition], min_size: int) -> tuple[list[_Tried], int]:
    """Each condition and the largest conjunctions of two on different attributes, each set of queries once.

    Returns:
        The slices, and how many conjunctions were not tried because there are `MAX_SLICES`.
    """
    found: dict[bytes, _Tried] = {}
    for condition in conditions:
        _add(found, (condition,), condition.members)
    if not found:
        return [], 0
    counts = np.array([each.members for each in conditions], dtype=np.float64)
    both = counts @ counts.T
    sizes = counts.sum(axis=1)
    names = np.array([each.attribute for each in conditions], dtype=object)
    usable = (both >= min_size) & (both <= MAX_OVERLAP * np.minimum.outer(sizes, sizes)) & (names[:, np.newaxis] != names)
    first, second = np.nonzero(np.triu(usable, 1))
    order = np.argsort(-both[first, second], kind="stable")
    for place, (one, other) in enumerate(zip(first[order].tolist(), second[order].tolist(), strict=True)):
        if len(found) >= MAX_SLICES:
            return list(found.values()), len(order) - place
        pair = (conditions[one], conditions[other])
        _add(found, pair, pair[0].members & pair[1].members)
    return list(found.values()), 0


def _add(found: dict[bytes, _Tried], conditions: tuple[Condition, ...], members: NDArray[np.bool_]) -> None:
    """Add a slice, or its description to the slice that has the same queries or all but these."""
    text = " and ".join(each.text for each in conditions)
    key = np.packbits(members ^ members[0]).tobytes()
    if key not in found:
        found[key] = _Tried(conditions, members, [text])
    elif len(conditions) == len(found[key].conditions):  # a conjunction that is a condition says nothing new
        known = found[key]
        (known.texts if known.members[0] == members[0] else known.opposite).append(text)


def _groups(
    tried: Sequence[_Tried], tests: SliceTests, differences: FloatN, alpha: float
) -> Iterator[tuple[int, list[int], int]]:
    """Slices that hold: one that is shown, those that are another description of it, and how many it explains besides."""
    shown: list[int] = []
    alike: dict[int, list[int]] = {}
    n_explained: dict[int, int] = {}
    holds = np.flatnonzero(tests.p_adjusted <= alpha)
    for place in holds[np.argsort(-np.abs(tests.t[holds]), kind="stable")].tolist():
        slice_ = tried[place]
        by = next((at for at, kept in enumerate(shown) if _explains(tried[kept], slice_, differences)), None)
        if by is None:
            shown.append(place)
            alike[len(shown) - 1], n_explained[len(shown) - 1] = [], 0
            continue
        kept = tried[shown[by]]
        overlap = _share(kept.members, slice_.members)
        if max(overlap, _share(kept.members, ~slice_.members)) < ALIKE:
            n_explained[by] += 1
        elif len(slice_.conditions) < len(kept.conditions) and _explains(slice_, kept, differences) and _is_even(slice_, kept, differences):
            alike[by].append(shown[by])
            shown[by] = place
        else:
            alike[by].append(place)
    for at, place in enumerate(shown):
        yield place, alike[at], n_explained[at]


def _share(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """Jaccard index of two sets of queries."""
    return int((one & other).sum()) / max(1, int((one | other).sum()))


def _explains(kept: _Tried, other: _Tried, differences: FloatN) -> bool:
    """Whether a slice does not differ from the rest without the queries of another, and without those outside it."""
    return all(
        abs(_t(differences, other.members & part, ~other.members & part)) < SAME_PART
        for part in (~kept.members, kept.members)
    )


def _is_even(larger: _Tried, smaller: _Tried, differences: FloatN) -> bool:
    """Whether what a slice has beyond another one differs from the rest as that does."""
    return abs(_t(differences, larger.members & smaller.members, larger.members & ~smaller.members)) < SAME_PART


def _t(differences: FloatN, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Welch's t of two sets of queries; 0 where one has fewer than two."""
    parts = [differences[members] for members in (first, second)]
    if min(map(len, parts)) < 2:
        return 0.0
    error = math.sqrt(sum(float(part.var(ddof=1)) / len(part) for part in parts))
    gap = float(parts[0].mean() - parts[1].mean())
    return gap / error if error > SAME else 0.0 if abs(gap) <= SAME else math.copysign(math.inf, gap)


def _shown(
    group: tuple[int, list[int], int],
    tried: Sequence[_Tried],
    tests: SliceTests,
    differences: FloatN,
    query_ids: Sequence[str],
    comparison: Comparison,
) -> QuerySlice:
    """The record of a slice, by that of its two sides which lies farther from zero, where both have a description."""
    place, alike, n_explained = group
    slice_ = tried[place]
    members, sign = slice_.members, 1
    means = float(tests.inside[place]), float(tests.outside[place])
    texts, opposite = slice_.texts, slice_.opposite
    if opposite and abs(means[1]) > abs(means[0]):
        members, sign, means, texts, opposite = ~members, -1, means[::-1], opposite, texts
    inside = np.flatnonzero(members)
    p_zero = float(permutation_p_values(differences[inside][:, np.newaxis], seed=comparison.options.seed, n_draws=10_000)[0])
    overall = float(differences.mean())
    shrunken = float(tests.shrunken[place])
    if sign < 0:  # the mean of all is that of both sides, weighted by their sizes
        shrunken = overall - (shrunken - overall) * (len(query_ids) - len(inside)) / len(inside)
    also = [text for text in texts[1:]]
    for other in alike:
        same_side = _share(members, tried[other].members) >= _share(members, ~tried[other].members)
        named = tried[other].texts if same_side else tried[other].opposite
        also += named[:1] or [f"all but those {tried[other].texts[0]}"]
    order = sorted(inside.tolist(), key=lambda at: (-abs(differences[at]), query_ids[at]))
    return QuerySlice(
        text=texts[0],
        attributes=tuple(each.attribute for each in slice_.conditions),
        change=change_of(means[0] * sign_of(comparison.primary), means[1] * sign_of(comparison.primary), p_zero <= comparison.options.alpha),
        n=len(inside),
        difference=means[0],
        rest=means[1],
        shrunken=shrunken,
        t=sign * float(tests.t[place]),
        p=float(tests.p[place]),
        p_adjusted=float(tests.p_adjusted[place]),
        p_zero=p_zero,
        also=tuple(also),
        n_explained=n_explained,
        queries=tuple(query_ids[at] for at in order),
    )


def change_of(gain: float, rest: float, is_changed: bool) -> SliceChange:
    """The word for a slice by its mean gain, that of the rest, and whether the first is not zero."""
    if not is_changed:
        return SliceChange.APART
    by_less = gain * rest > 0 and abs(gain) < abs(rest)
    if gain > 0:
        return SliceChange.BETTER_BY_LESS if by_less else SliceChange.BETTER
    return SliceChange.WORSE_BY_LESS if by_less else SliceChange.WORSE
