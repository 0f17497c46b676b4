"""Runs of lines, settled: order, ties, duplicates, depth, and which results are judged.

Works on whole blocks of queries at once. Axes: N lines of a block, R runs of one query each, J judged results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import SHOWN_PROBLEMS, Problem
from cranfield.ranking.columns import MARGIN, Bools, Columns, Floats, Ints, Words, hashes
from cranfield.ranking.problems import duplicate_result
from cranfield.ranking.scan import UNJUDGED, JudgedIndex, ScanOptions, TopHits

SLOTS_PER_JUDGMENT = 64
"""Of the table that tells most results from judged ones: so few of them pass it by chance."""
LARGEST_TABLE = 1 << 24


@dataclass(frozen=True, slots=True)
class Part:
    """What some queries of a file come to; rows are sorted by rank within a query."""

    query: NDArray[np.int32]  # [J]
    rank: NDArray[np.int32]  # [J]
    item: NDArray[np.int32]  # [J]
    tie_first: NDArray[np.int32]  # [J]
    tie_last: NDArray[np.int32]  # [J]
    run_query: Ints  # [R]
    n_returned: NDArray[np.int32]  # [R]
    n_duplicates: NDArray[np.int32]  # [R]
    n_tied: NDArray[np.int32]  # [R]
    misranked: Bools  # [R]
    top_count: Ints  # [R] first results kept
    top_length: NDArray[np.int32]  # [H] bytes of their ids, run by run
    top_score: Floats  # [H]
    top_item: NDArray[np.int32]  # [H]
    top_ids: tuple[bytes, ...]
    """Their ids, put together: a piece or more."""


def joined(parts: Iterable[Part]) -> Part:
    """Several parts as one, in the order they come."""
    rows = list(parts) or [NOTHING]
    if len(rows) == 1:
        return rows[0]
    columns: dict[str, Any] = {}
    for name in (entry.name for entry in fields(Part)):
        values = [getattr(part, name) for part in rows]
        columns[name] = (
            tuple(piece for value in values for piece in value) if name == "top_ids" else np.concatenate(values)
        )
    return Part(**columns)


def top_hits(part: Part, n_queries: int) -> TopHits:
    """Put first results in query order."""
    order = np.argsort(part.run_query, kind="stable")
    counts = np.zeros(n_queries, dtype=np.int64)
    counts[part.run_query] = part.top_count
    hits = np.argsort(np.repeat(part.run_query, part.top_count), kind="stable")
    blob = b"".join(part.top_ids)
    if (np.diff(part.run_query) < 0).any():
        size = np.concatenate(([0], np.cumsum(part.top_length, dtype=np.int64)))
        ends = size[np.cumsum(part.top_count)]
        starts = np.concatenate(([0], ends[:-1]))
        blob = b"".join(
            blob[start:end] for start, end in zip(starts[order].tolist(), ends[order].tolist(), strict=True)
        )
    return TopHits(
        start=_starts(counts),
        offset=_starts(part.top_length[hits]),
        blob=blob,
        score=part.top_score[hits],
        item=part.top_item[hits],
    )


@dataclass
class Settler:
    """Settles blocks of runs of judged queries."""

    index: JudgedIndex
    options: ScanOptions
    path: str
    place: dict[bytes, int] = field(init=False, repr=False)
    """Of each judged query."""
    _judged: Bools = field(init=False, repr=False)
    _shift: np.uint64 = field(init=False, repr=False)
    _whole: Bools = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.place = {query_id: place for place, query_id in enumerate(self.index.query_ids)}
        doc_ids = self.index.doc_ids
        counts = np.array([len(ids) for ids in doc_ids], dtype=np.int64)
        slots = 1 << 10
        while slots < min(LARGEST_TABLE, SLOTS_PER_JUDGMENT * int(counts.sum())):
            slots *= 2
        self._judged = np.zeros(slots, dtype=np.bool_)
        self._shift = np.uint64(64 - slots.bit_length() + 1)
        lengths = np.fromiter((len(doc_id) for ids in doc_ids for doc_id in ids), np.int64, int(counts.sum()))
        text = b"".join([MARGIN, *(doc_id for ids in doc_ids for doc_id in ids), MARGIN])
        ends = np.cumsum(lengths) + len(MARGIN)
        value = hashes(text, ends - lengths, ends, np.repeat(np.arange(len(doc_ids)), counts))
        self._judged[(value >> self._shift).astype(np.int64)] = True
        self._whole = np.array(self.index.whole or [False] * len(doc_ids), dtype=np.bool_)

    def is_likely_judged(self, value: Words) -> Bools:
        """Whether ids with such hashes may be judged: all that are, and few more."""
        likely: Bools = self._judged[(value >> self._shift).astype(np.int64)]
        return likely

    def settle(self, columns: Columns, queries: Ints) -> tuple[Part, list[list[Problem]]]:
        """Settle whole runs.

        Args:
            columns: of judged queries alone.
            queries: [R] place of each run's query in the index, each once.

        Returns:
            What they come to, and run by run the duplicates that are errors: the first SHOWN_PROBLEMS of each.
        """
        block = _Block.of(columns, queries, self.options)
        value = hashes(columns.text, columns.doc_start, columns.doc_end, queries[block.run])
        n_tied, misranked = block.n_tied(), block.misranked()
        repeated = _repeated(columns, value, block.run)
        found: list[list[Problem]] = [[] for _ in queries]
        n_duplicates = np.zeros(len(queries), dtype=np.int32)
        if repeated:
            dropped = block.duplicates(repeated)
            if self.options.duplicates == "error":
                self._say(dropped, columns, block.run, found)
            n_duplicates = np.bincount(block.run[[row for row, _ in dropped]], minlength=len(queries)).astype(np.int32)
            block.drop([row for row, _ in dropped])
        return self._part(block, value, n_tied, misranked, n_duplicates), found

    def _say(self, dropped: list[tuple[int, int]], columns: Columns, run: Ints, found: list[list[Problem]]) -> None:
        query_ids = columns.query_ids()
        for row, earlier in dropped:
            said = found[int(run[row])]
            if len(said) < SHOWN_PROBLEMS:
                lines = int(columns.line[row]), int(columns.line[earlier])
                doc_id = columns.doc_ids(np.array([row]))[0]
                said.append(duplicate_result(self.path, lines, query_ids[int(run[row])], doc_id))

    def _part(
        self, block: _Block, value: Words, n_tied: Ints, misranked: Bools, n_duplicates: NDArray[np.int32]
    ) -> Part:
        options, columns = self.options, block.columns
        count = np.diff(block.start)
        kept = count if options.depth is None else np.minimum(count, options.depth)
        rank = np.arange(len(block.order)) - np.repeat(block.start[:-1], count) + 1  # [N] by place in the order
        likely = self.is_likely_judged(value[block.order])
        likely &= rank <= np.repeat(kept, count)
        place, item = self._look_up(block, np.flatnonzero(likely))
        tie_first, tie_last = block.ties(place)
        first = block.start[block.run[block.order[place]]]

        shown = np.where(self._whole[block.queries], kept, np.minimum(kept, options.keep))
        hits = np.flatnonzero(rank <= np.repeat(shown, count))
        items = np.full(len(block.order), UNJUDGED, dtype=np.int32)
        items[place] = item
        doc_ids = columns.doc_ids(block.order[hits])
        return Part(
            query=block.queries[block.run[block.order[place]]].astype(np.int32),
            rank=rank[place].astype(np.int32),
            item=item,
            tie_first=(tie_first - first + 1).astype(np.int32),
            tie_last=(tie_last - first + 1).astype(np.int32),
            run_query=block.queries,
            n_returned=kept.astype(np.int32),
            n_duplicates=n_duplicates,
            n_tied=n_tied.astype(np.int32),
            misranked=misranked,
            top_count=shown,
            top_length=np.array([len(doc_id) for doc_id in doc_ids], dtype=np.int32),
            top_score=columns.score[block.order[hits]],
            top_item=items[hits],
            top_ids=(b"".join(doc_ids),),
        )

    def _look_up(self, block: _Block, places: Ints) -> tuple[Ints, NDArray[np.int32]]:
        """Of places that are likely judged, those that are, and their items."""
        rows = block.order[places]
        run_of = block.run[rows].tolist()
        found: list[int] = []
        items: list[int] = []
        run, known = -1, dict[bytes, int]()
        for place, of_run, doc_id in zip(places.tolist(), run_of, block.columns.doc_ids(rows), strict=True):
            if of_run != run:
                run = of_run
                judged = self.index.doc_ids[int(block.queries[run])]
                known = dict(zip(judged, range(len(judged)), strict=True))
            item = known.get(doc_id)
            if item is not None:
                found.append(place)
                items.append(item)
        return np.array(found, dtype=np.int64), np.array(items, dtype=np.int32)


@dataclass
class _Block:
    """Runs put in order: `order[start[r]:start[r + 1]]` are the rows of run r, rank 1 first."""

    columns: Columns
    queries: Ints  # [R]
    options: ScanOptions
    run: Ints  # [N]
    key: NDArray[Any]  # [N] scores at the width at which they are compared
    order: Ints
    start: Ints  # [R + 1]

    @classmethod
    def of(cls, columns: Columns, queries: Ints, options: ScanOptions) -> _Block:
        run = np.repeat(np.arange(columns.n_runs), np.diff(columns.run_start))
        key: NDArray[Any] = columns.score
        if options.width == 32:
            with np.errstate(over="ignore", under="ignore"):
                key = key.astype(np.float32)
        block = cls(columns, queries, options, run, key, np.arange(len(run)), columns.run_start)
        if options.order == "rank":
            block.sort(columns.rank)
        elif options.order == "score":
            block.sort(-key)
            if options.ties != "given":
                block.break_ties()
        return block

    def sort(self, key: NDArray[Any]) -> None:
        """Order each run by a key, smallest first; equal ones stand as their lines do."""
        if ((key[1:] < key[:-1]) & (self.run[1:] == self.run[:-1])).any():
            self.order = np.lexsort((key, self.run))

    def tied(self) -> Bools:
        """Whether each place in the order ties with the one before it."""
        tied = np.zeros(len(self.order), dtype=np.bool_)
        if self.options.order == "score":
            key, run = self.key[self.order], self.run[self.order]
            np.logical_and(key[1:] == key[:-1], run[1:] == run[:-1], out=tied[1:])
        return tied

    def break_ties(self) -> None:
        """Put equal scores in the order of their documents' bytes."""
        places = np.flatnonzero(self.tied())
        if not len(places):
            return
        breaks = np.flatnonzero(np.diff(places) > 1) + 1
        firsts = places[np.concatenate(([0], breaks))] - 1
        lasts = places[np.concatenate((breaks - 1, [len(places) - 1]))] + 1
        members = np.flatnonzero(_between(firsts, lasts, len(self.order)))
        rows = self.order[members]
        doc_ids = self.columns.doc_ids(rows)
        reverse = self.options.ties == "descending"
        at, by_doc = 0, list(range(len(doc_ids)))
        for size in (lasts - firsts).tolist():
            if size > 2 or (doc_ids[at] < doc_ids[at + 1] if reverse else doc_ids[at] > doc_ids[at + 1]):
                by_doc[at : at + size] = sorted(by_doc[at : at + size], key=doc_ids.__getitem__, reverse=reverse)
            at += size
        self.order[members] = rows[by_doc]

    def n_tied(self) -> Ints:
        """Results that tie with the one before them, run by run."""
        return np.bincount(self.run[self.order[self.tied()]], minlength=len(self.queries))

    def misranked(self) -> Bools:
        """Whether ranks go down somewhere in a run from one score to the next lower; within a tie they may stand as they
        like, and a column that is not all whole numbers says nothing.
        """
        bad = np.zeros(len(self.queries), dtype=np.bool_)
        if self.options.order == "score" and len(self.order):
            rank, firsts = self.columns.rank[self.order], np.flatnonzero(~self.tied())
            highest, lowest = np.maximum.reduceat(rank, firsts), np.minimum.reduceat(rank, firsts)
            run = self.run[self.order[firsts]]
            bad[run[1:][(highest[:-1] > lowest[1:]) & (run[1:] == run[:-1])]] = True
            bad[self.run[~self.columns.is_ranked]] = False
        return bad

    def duplicates(self, repeated: dict[int, int]) -> list[tuple[int, int]]:
        """Rows that say again what a better ranked one said, and that one, in the order.

        Args:
            repeated: row to a number that those of the same query and document share.
        """
        first: dict[int, int] = {}
        dropped: list[tuple[int, int]] = []
        is_repeated = np.zeros(len(self.order), dtype=np.bool_)
        is_repeated[list(repeated)] = True
        for row in self.order[is_repeated[self.order]].tolist():
            earlier = first.setdefault(repeated[row], row)
            if earlier != row:
                dropped.append((row, earlier))
        return dropped

    def drop(self, rows: Sequence[int]) -> None:
        """Take rows out of the order."""
        keep = np.ones(len(self.run), dtype=np.bool_)
        keep[list(rows)] = False
        self.order = self.order[keep[self.order]]
        self.start = _starts(np.bincount(self.run[self.order], minlength=len(self.queries)))

    def ties(self, places: Ints) -> tuple[Ints, Ints]:
        """First and last place of those that tie with each of some places."""
        firsts = np.flatnonzero(~self.tied())
        group = np.searchsorted(firsts, places, side="right") - 1
        lasts = np.concatenate((firsts[1:], [len(self.order)])) - 1
        return firsts[group], lasts[group]


def _repeated(columns: Columns, value: Words, run: Ints) -> dict[int, int]:
    """Rows whose query and document another row has too, each with a number for that pair."""
    rows = _alike(value)
    if not len(rows):
        return {}
    same: defaultdict[tuple[int, bytes], list[int]] = defaultdict(list)
    for row, of_run, doc_id in zip(rows.tolist(), run[rows].tolist(), columns.doc_ids(rows), strict=True):
        same[of_run, doc_id].append(row)
    return {row: group[0] for group in same.values() if len(group) > 1 for row in group}


def _alike(value: Words) -> Ints:
    """Rows whose value another row has too."""
    slots = 1 << (4 * len(value)).bit_length()
    slot = (value & np.uint64(slots - 1)).astype(np.int64)
    row = np.arange(len(value), dtype=np.int32)
    owner = np.empty(slots, dtype=np.int32)
    owner[slot] = row  # the last row of each slot has it
    owns = owner[slot]
    rest = np.flatnonzero(owns != row)
    # Of two rows that are alike, one does not own their slot: its owner is alike, or another row without one is.
    ordered = np.sort(value[rest])
    if not (value[owns[rest]] == value[rest]).any() and not (ordered[1:] == ordered[:-1]).any():
        return rest[:0]
    ordered = np.sort(value)
    return np.flatnonzero(np.isin(value, ordered[1:][ordered[1:] == ordered[:-1]]))


def _between(firsts: Ints, ends: Ints, size: int) -> Bools:
    """Mark first <= place < end for ranges that do not overlap."""
    change = np.zeros(size + 1, dtype=np.int8)
    change[firsts] = 1
    change[ends] -= 1
    return np.cumsum(change[:-1], dtype=np.int8).astype(np.bool_)


def _starts(counts: NDArray[Any]) -> Ints:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)


def _nothing() -> Part:
    int32, int64 = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
    return Part(
        query=int32,
        rank=int32,
        item=int32,
        tie_first=int32,
        tie_last=int32,
        run_query=int64,
        n_returned=int32,
        n_duplicates=int32,
        n_tied=int32,
        misranked=np.zeros(0, dtype=np.bool_),
        top_count=int64,
        top_length=int32,
        top_score=np.zeros(0, dtype=np.float64),
        top_item=int32,
        top_ids=(),
    )


NOTHING = _nothing()
