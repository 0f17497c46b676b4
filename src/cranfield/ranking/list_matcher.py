"""One list of results matched hit by hit: the expected item of each, and the credit for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cranfield.matching import Expectation
from cranfield.model import Hit
from cranfield.ranking.side_columns import AspectRow, Watch
from cranfield.ranking.value import RankedHit, Silence, State


class Row(NamedTuple):
    """One judged result of one query."""

    rank: int
    gain: float
    level: int
    state: int
    item: int
    tie_first: int
    tie_last: int
    tokens: float


ROW_TYPES: Mapping[str, type[np.generic]] = {
    "rank": np.int32,
    "gain": np.float64,
    "level": np.int32,
    "state": np.int8,
    "item": np.int32,
    "tie_first": np.int32,
    "tie_last": np.int32,
    "tokens": np.float64,
}
NO_TIES: tuple[tuple[int, int], ...] = ()


@dataclass
class MatchedList:
    """The results of one query, matched hit by hit."""

    rows: list[Row] = field(default_factory=list)
    top: list[RankedHit] = field(default_factory=list)
    tokens: float = 0.0
    has_tokens: bool = False
    """Whether any result states its tokens."""
    covered: dict[int, int] = field(default_factory=dict)
    """Item to the rank of the first result that matches it."""
    aspects: list[AspectRow] = field(default_factory=list)
    silence: Silence = Silence.NOT_NEGATIVE
    n_unplaced: int = 0
    """Results without line numbers, where lines are expected."""


def match_list(
    expectation: Expectation, hits: Sequence[Hit], keep: int, ties: Sequence[tuple[int, int]] = NO_TIES
) -> MatchedList:
    """Match the hits in order, and credit each item once unless it is repeatable.

    A hit that matches several items is credited for the best one not yet credited; one that matches only credited items
    is worth nothing (`credited` is false).

    Args:
        expectation: of the query.
        hits: rank 1 first.
        keep: hits kept for reports.
        ties: per hit the first and last rank of those that tie with it; empty when nothing can tie.
    """
    matched = MatchedList()
    levels = expectation.levels
    credited_items: set[int] = set()
    watch = Watch(expectation.lookout)
    for rank, hit in enumerate(hits, start=1):
        matched.tokens += math.nan if hit.tokens is None else hit.tokens
        matched.has_tokens |= hit.tokens is not None
        items = expectation.matches(hit)
        if not items:
            matched.n_unplaced += expectation.is_unplaced(hit)
            watch.see(hit, rank, relevant=False)
            if rank <= keep:
                state = State.JUDGED if expectation.closed_world else State.UNJUDGED
                matched.top.append(RankedHit(rank, hit.id, hit.score, hit.title, state, span=hit.span))
            continue
        for covered in items:
            matched.covered.setdefault(covered, rank)
        item = next((i for i in items if expectation.repeatable[i] or i not in credited_items), None)
        credited = item is not None
        if item is None:
            item = items[0]
        credited_items.add(item)
        state = State.POOLED if expectation.grades[item] < 0 else State.JUDGED
        gain, level = (expectation.gains[item], levels[item]) if credited else (0.0, 0)
        tie_first, tie_last = ties[rank - 1] if ties else (rank, rank)
        matched.rows.append(Row(rank, gain, level, int(state), item, tie_first, tie_last, matched.tokens))
        watch.see(hit, rank, relevant=levels[items[0]] >= 1)  # credited or not
        if rank <= keep:
            label = expectation.labels[item]
            matched.top.append(
                RankedHit(rank, hit.id, hit.score, hit.title, state, level, gain, label, credited, hit.span)
            )
    matched.aspects = watch.rows()
    return matched
