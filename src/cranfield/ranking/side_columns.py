"""What is recorded of a list of results besides the expected items: files, legacy forms, sources, and silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.matching.aspects import Lookout
from cranfield.model import Hit, Negative, Order, Outcome
from cranfield.ranking.value import Aspect, Aspects, Silence

AspectRow = tuple[int, int, int, int, bool]
"""Kind, place, rank, relevant rank, expected: as in `Aspects`."""


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
