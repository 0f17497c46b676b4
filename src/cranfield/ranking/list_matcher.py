"""One list of results matched hit by hit: the expected item of each, and the credit for it.

Recorded besides: files, legacy forms and sources where they are looked for, and silence where nothing should be found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield.matching.expectation import Expectation, Lookout
from cranfield.model import Hit, Negative, Order, Outcome
from cranfield.ranking.value import Aspect, Aspects, RankedHit, Silence, State

AspectRow = tuple[int, int, int, int, bool]
"""Kind, place, rank, relevant rank, expected: as in `Aspects`."""


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
class Watch:
    """Where the first of each thing looked for is, filled while a list is walked."""

    lookout: Lookout
    _rank: dict[tuple[int, int], int] = field(default_factory=dict)
    _relevant: dict[tuple[int, int], int] = field(default_factory=dict)

    def see(self, hit: Hit, rank: int, *, relevant: bool) -> None:
        """Take the next result of the list."""
        if self.lookout:
            for key in self._met(hit, relevant=relevant):
                self._rank.setdefault(key, rank)
                if relevant:
                    self._relevant.setdefault(key, rank)

    def _met(self, hit: Hit, *, relevant: bool) -> list[tuple[int, int]]:
        looked, met = self.lookout, []
        if looked.files and (path := looked.file_of(hit)) in looked.files:
            met.append((int(Aspect.FILE), looked.files.index(path)))
        if looked.is_legacy is not None:
            if looked.is_legacy(hit.id):
                met.append((int(Aspect.LEGACY), 0))
            elif relevant:
                met.append((int(Aspect.MODERN), 0))
        if looked.sources and (source := looked.source_of(hit.id)) is not None:
            met.append((int(Aspect.SOURCE), source))
        return met

    def rows(self) -> list[AspectRow]:
        """A row for each thing looked for, found or not."""
        looked = self.lookout
        keys = [(int(Aspect.FILE), place) for place in range(len(looked.files))]
        if looked.is_legacy is not None:
            keys += [(int(Aspect.LEGACY), 0), (int(Aspect.MODERN), 0)]
        keys += [(int(Aspect.SOURCE), place) for place in range(len(looked.sources))]
        return [
            (
                *(kind, place, self._rank.get((kind, place), 0), self._relevant.get((kind, place), 0)),
                kind == Aspect.SOURCE and place in looked.answered_by,
            )
            for kind, place in keys
        ]


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
                matched.top.append(RankedHit(rank, hit.public_id, hit.score, hit.title, state, span=hit.public_span))
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
            name = label if label == hit.id else hit.public_id  # what the test set itself names is no secret
            matched.top.append(
                RankedHit(rank, name, hit.score, hit.title, state, level, gain, label, credited, hit.public_span)
            )
    matched.aspects = watch.rows()
    return matched


def silence_of(
    negative: Negative | None,
    hits: Sequence[Hit],
    outcome: Outcome,
    fields: Mapping[str, Any],
    *,
    missing_is_silence: bool,
    order: Order = "given",
) -> Silence:
    """Whether a query where nothing should be found was met with silence.

    Args:
        negative: how the query says so; None where something should be found.
        hits: what came back, cut to depth.
        outcome: what became of it.
        fields: what the answer says as a whole.
        missing_is_silence: the run cannot say that it answered with nothing, so no line is such an answer.
        order: of the run; where scores rise from best to worst, those over the bound are the ones that do not count.
    """
    if negative is None:
        return Silence.NOT_NEGATIVE
    if outcome.is_failure or (outcome is Outcome.MISSING and not missing_is_silence):
        return Silence.BROKEN
    if negative.below is None:
        return Silence.BROKEN if hits else Silence.KEPT
    if negative.field:
        value = fields.get(negative.field)
        confident = isinstance(value, bool) or not isinstance(value, int | float) or not value < negative.below
        return Silence.BROKEN if hits and confident else Silence.KEPT
    way = -1 if order == "ascending" else 1
    kept = all(hit.score is not None and way * hit.score < way * negative.below for hit in hits)
    return Silence.KEPT if kept else Silence.BROKEN


def aspects_of(parts: Sequence[Sequence[AspectRow]]) -> Aspects | None:
    """The rows of every query as columns; None where nothing was looked for."""
    rows = [(query, *row) for query, part in enumerate(parts) for row in part]
    if not rows:
        return None
    query, kind, place, rank, relevant, expected = zip(*rows, strict=True)
    return Aspects(
        query=np.array(query, dtype=np.int32),
        kind=np.array(kind, dtype=np.int8),
        place=np.array(place, dtype=np.int32),
        rank=np.array(rank, dtype=np.int32),
        relevant_rank=np.array(relevant, dtype=np.int32),
        expected=np.array(expected, dtype=np.bool_),
    )


def silence_column(parts: Sequence[Silence]) -> NDArray[np.int8] | None:
    """[Q]; None where no query is negative."""
    column = np.array([int(part) for part in parts], dtype=np.int8)
    return column if (column != Silence.NOT_NEGATIVE).any() else None


def unplaced_column(parts: Sequence[int]) -> NDArray[np.int32] | None:
    """[Q]; None where every result says its lines, or no lines are expected."""
    return np.array(parts, dtype=np.int32) if any(parts) else None


def covered_column(parts: Sequence[Mapping[int, int]], start: NDArray[np.int64]) -> NDArray[np.int32]:
    """[E]: rank of the first result that covers each item; 0 where none does.

    Args:
        parts: per query, item to rank.
        start: int64[Q + 1], where the items of each query begin.
    """
    column = np.zeros(int(start[-1]), dtype=np.int32)
    for query, part in enumerate(parts):
        for item, rank in part.items():
            column[int(start[query]) + item] = rank
    return column
