"""Which kind of query changed: slices of the queries by their attributes, found with control over all that were tried."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
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
from cranfield.stats.slices import MIN_DRAWS, SliceTests, slice_tests

MIN_QUERIES, MIN_SHARE = 10, 0.02
"""A slice has so many queries and this share of all, and so has its rest."""
MAX_SLICES = 400
"""Slices that are tried; of the conjunctions the largest are."""
SHARES = (0.8, 0.2)
"""Shares of the significance level, for single conditions and for conjunctions of two: there are fewer of the first, and most causes are one."""
MAX_OVERLAP = 0.9
"""A conjunction that has more of one of its conditions is as good as that condition, and is not tried."""
ALIKE = 0.5
"""Two slices that share so much of both together have much the same queries."""
MAX_FOUND = 10
"""Slices that are shown."""


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
    """The difference from the rest in standard errors, see `stats.slices`."""
    p: float
    """The p-value of this slice alone against the rest."""
    p_adjusted: float
    """Adjusted for all slices that were tried."""
    p_zero: float
    """The p-value of a mean difference of zero (permutation test of its queries); it decides the word for the change alone."""
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
    """Those with one condition; the others are conjunctions of two."""
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

    The family-wise error over all slices is at most `alpha` of the comparison: see `stats.slices.slice_tests`. Of slices that have the
    same queries, or all but these, one is tested. Of those that hold, the strongest is shown. Then its effect is taken out of the
    differences, and the strongest of those that still differ is shown too, and so on: what differs only because it shares
    queries with one shown is another description of it (half of the queries of both are shared), or counted there. A conjunction
    gives way to one of its conditions, or to one that has much the same queries, without whose effect it does not differ.

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
            for group in _groups(tried, tests, differences, options.alpha, options.seed)
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
    usable = (
        (both >= min_size) & (both <= MAX_OVERLAP * np.minimum.outer(sizes, sizes)) & (names[:, np.newaxis] != names)
    )
    first, second = np.nonzero(np.triu(usable, 1))
    order = np.argsort(-both[first, second], kind="stable")
    for place, (left, right) in enumerate(zip(first[order].tolist(), second[order].tolist(), strict=True)):
        if len(found) >= MAX_SLICES:
            return list(found.values()), len(order) - place
        pair = (conditions[left], conditions[right])
        _add(found, pair, pair[0].members & pair[1].members)
    return list(found.values()), 0


def _add(found: dict[bytes, _Tried], conditions: tuple[Condition, ...], members: NDArray[np.bool_]) -> None:
    """Add a slice, or its description to the slice that has the same queries or all but these."""
    text = " and ".join(each.text for each in conditions)
    key = np.packbits(members ^ members[0]).tobytes()
    if key not in found:
        found[key] = _Tried(conditions, members, [text])
    elif len(conditions) == len(
        found[key].conditions
    ):  # a conjunction with the queries of a condition adds no description
        known = found[key]
        (known.texts if known.members[0] == members[0] else known.opposite).append(text)


def _groups(
    tried: Sequence[_Tried], tests: SliceTests, differences: FloatN, alpha: float, seed: int
) -> Iterator[tuple[int, list[int], int]]:
    """Slices that hold and are no consequence of another: each with those that are much the same, and how many others it explains."""
    holds = [
        place for place in np.argsort(-np.abs(tests.t), kind="stable").tolist() if tests.p_adjusted[place] <= alpha
    ]
    members = np.array([tried[place].members for place in holds])
    kept: list[int] = []
    while holds and len(kept) < MAX_FOUND:
        strongest = holds[0]
        if kept:
            left = _without(differences, [tried[place].members for place in kept])
            again = slice_tests(left, members, seed=seed, n_draws=MIN_DRAWS)
            at = int(np.argmax(np.where(np.isin(holds, kept), 0.0, np.abs(again.t))))
            if again.p_adjusted[at] > alpha or holds[at] in kept:
                break
            strongest = holds[at]
        kept.append(_simplest(strongest, holds, kept, tried, differences, alpha, seed))
    alike: dict[int, list[int]] = {place: [] for place in kept}
    n_explained = dict.fromkeys(kept, 0)
    for place in holds:
        if place in alike:
            continue
        nearest = max(kept, key=lambda each: _overlap(tried[place], tried[each]))
        # A part of the slice that names its own condition again says nothing of it.
        is_part = not set(tried[place].conditions).isdisjoint(tried[nearest].conditions)
        if is_part or _overlap(tried[place], tried[nearest]) < ALIKE:
            n_explained[nearest] += 1
        else:
            alike[nearest].append(place)
    for place in kept:
        yield place, alike[place], n_explained[place]


def _simplest(
    strongest: int,
    holds: Sequence[int],
    kept: Sequence[int],
    tried: Sequence[_Tried],
    differences: FloatN,
    alpha: float,
    seed: int,
) -> int:
    """A slice, or one of fewer conditions that overlaps with it and without whose difference it does not differ."""
    wanted = tried[strongest]
    for place in holds:
        simpler = tried[place]
        if len(simpler.conditions) >= len(wanted.conditions) or not (
            simpler.conditions[0] in wanted.conditions or _overlap(simpler, wanted) >= ALIKE
        ):
            continue
        left = _without(differences, [tried[each].members for each in (*kept, place)])
        if slice_tests(left, wanted.members[np.newaxis], seed=seed, n_draws=MIN_DRAWS).p[0] > alpha:
            return place
    return strongest


def _without(differences: FloatN, slices: Sequence[NDArray[np.bool_]]) -> FloatN:
    """The differences without what membership in some slices adds to them (least squares)."""
    design = np.column_stack([np.ones(len(differences)), *slices])
    left = np.asarray(differences - design @ np.linalg.lstsq(design, differences, rcond=None)[0], dtype=np.float64)
    return np.where(np.abs(left) <= SAME * max(1.0, float(np.abs(differences).max())), 0.0, left)


def _overlap(first: _Tried, second: _Tried) -> float:
    """Jaccard index of the queries of two slices, or of one and of the rest of the other, whichever is larger."""
    return max(_share(first.members, second.members), _share(first.members, ~second.members))


def _share(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    return int((first & second).sum()) / max(1, int((first | second).sum()))


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
    means = tuple(math.fsum(differences[part]) / int(part.sum()) for part in (members, ~members))
    texts, opposite = slice_.texts, slice_.opposite
    if opposite and abs(means[1]) > abs(means[0]):
        members, sign, means, texts, opposite = ~members, -1, means[::-1], opposite, texts
    inside = np.flatnonzero(members)
    p_zero = float(
        permutation_p_values(differences[inside][:, np.newaxis], seed=comparison.options.seed, n_draws=10_000)[0]
    )
    overall = math.fsum(differences) / len(differences)
    shrunken = float(tests.shrunken[place])
    if sign < 0:  # the mean of all is that of both sides, weighted by their sizes
        shrunken = overall - (shrunken - overall) * (len(query_ids) - len(inside)) / len(inside)
    also = list(texts[1:])
    for other in sorted(alike, key=lambda each: len(tried[each].conditions)):
        known = tried[other]
        is_same_side = _share(members, known.members) >= _share(members, ~known.members)
        if named := (known.texts if is_same_side else known.opposite):
            also.append(named[0])
        else:  # the rest of a conjunction has no short description
            n_explained += 1
    order = sorted(inside.tolist(), key=lambda at: (-abs(differences[at]), query_ids[at]))
    return QuerySlice(
        text=texts[0],
        attributes=tuple(each.attribute for each in slice_.conditions),
        change=change_of(
            means[0] * sign_of(comparison.primary),
            means[1] * sign_of(comparison.primary),
            is_changed=p_zero <= comparison.options.alpha,
        ),
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


def change_of(gain: float, rest: float, *, is_changed: bool) -> SliceChange:
    """The word for a slice by its mean gain, that of the rest, and whether the first is not zero."""
    if not is_changed:
        return SliceChange.APART
    by_less = gain * rest > 0 and abs(gain) < abs(rest)
    if gain > 0:
        return SliceChange.BETTER_BY_LESS if by_less else SliceChange.BETTER
    return SliceChange.WORSE_BY_LESS if by_less else SliceChange.WORSE
