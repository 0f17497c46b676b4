"""Rankings by counting: runs of rows in any order, gone through twice, in memory that does not grow with the run.

A judged document's rank is one more than the number of rows of its query that stand before it, so rows are counted and
not sorted. What is kept: the judgments, the judged rows, and a filter that finds rows which may repeat a document.
Axes: Q queries, S systems, G = S * Q groups (a query of a system), J judgments, N rows, F judged rows.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cranfield.ranking.engine import kernel_requested
from cranfield.ranking.scan import Hit, JudgedRanks, ScanOptions

FOUND = np.dtype([("key", "<f8"), ("ordinal", "<u8"), ("group", "<i4"), ("judgment", "<i4")])
"""A row whose document is judged: which judgment it is."""
SUSPECT = np.dtype([("hash", "<u8"), ("ordinal", "<u8"), ("key", "<f8"), ("group", "<i4"), ("row", "<i4")])
"""A row that may repeat another of its group; `row` is its position among those given."""


class Counter:
    """The judgments, and what is counted at them; see `_kernel.pyi` for the arguments.

    The kernel's filter, `met`, only says whether repeated rows are looked for: hashes of rows are kept in a set, which takes memory for every row.
    """

    def __init__(
        self,
        query_offsets: Any,
        query_bytes: Any,
        doc_start: Any,
        doc_offsets: Any,
        doc_bytes: Any,
        ties: str,
        seed: bytes,
        met: Any,
    ) -> None:
        self._queries = {text: place for place, text in enumerate(_texts(query_offsets, query_bytes))}
        self._documents = list(_texts(doc_offsets, doc_bytes))
        self._start = np.frombuffer(doc_start, np.int64).tolist()
        self._judged = [
            {self._documents[i]: i for i in range(first, last)}
            for first, last in zip(self._start, self._start[1:], strict=False)
        ]
        if len(self._queries) < len(self._start) - 1 or sum(map(len, self._judged)) < len(self._documents):
            raise ValueError("a query, or a document of it, is there twice")
        self._ties, self._seed = ties, seed
        self._detects = bool(memoryview(met))
        self._met: set[int] = set()
        self._suspects: set[int] = set()

    def queries(self, offsets: Any, data: Any) -> bytes:
        """int32[N]: the place of each query, -1 where it is absent."""
        places = [self._queries.get(text, -1) for text in _texts(offsets, data)]
        return np.array(places, dtype=np.int32).tobytes()

    def document_order(self) -> bytes:
        """int32[J]: rank of each judged document in byte order within its query, from 0."""
        order = np.zeros(len(self._documents), dtype=np.int32)
        for judged in self._judged:
            for rank, text in enumerate(sorted(judged)):
                order[judged[text]] = rank
        return order.tobytes()

    def find(self, groups: Any, offsets: Any, data: Any, keys: Any, ordinal: int) -> tuple[bytes, bytes]:
        """Judged rows as FOUND, and as uint64 the hashes of rows that were met before."""
        found, repeated = [], []
        for row, group, text, key in _rows(groups, offsets, data, keys):
            judgment = self._judged[group % len(self._judged)].get(text)
            if judgment is not None:
                found.append((key, ordinal + row, group, judgment))
            if self._detects:
                hashed = self._hash(group, text)
                if hashed in self._met:
                    repeated.append(hashed)
                self._met.add(hashed)
        return np.array(found, dtype=FOUND).tobytes(), np.array(repeated, dtype=np.uint64).tobytes()

    def judge(self, start: Any, keys: Any, judgments: Any, ordinals: Any, counts: Any, suspects: Any) -> None:
        """Take the judged rows of all groups, sorted; `counts` is counted in; `suspects` are hashes to report."""
        self._group_start = np.frombuffer(start, np.int64).tolist()
        self._falling = [-key for key in np.frombuffer(keys, np.float64).tolist()]
        self._judgments = np.frombuffer(judgments, np.int32).tolist()
        self._ordinals = np.frombuffer(ordinals, np.uint64).tolist()
        self._counts = np.frombuffer(counts, np.int32).reshape(-1, 3)
        self._suspects = set(np.frombuffer(suspects, np.uint64).tolist())

    def count(self, groups: Any, offsets: Any, data: Any, keys: Any, ordinal: int, delta: int) -> bytes:
        """Add `delta` at the place of each row; returns the rows to report as SUSPECT."""
        suspects = []
        for row, group, text, key in _rows(groups, offsets, data, keys):
            place, kind = self._place(group, text, key, ordinal + row)
            self._counts[place + group, kind] += delta
            if self._suspects and (hashed := self._hash(group, text)) in self._suspects:
                suspects.append((hashed, ordinal + row, key, group, row))
        return np.array(suspects, dtype=SUSPECT).tobytes()

    def _place(self, group: int, text: bytes, key: float, ordinal: int) -> tuple[int, int]:
        """Where a row is counted: the judged row before which it stands, and the kind of count there.

        Kind 0: its key lies between those of judged rows; 1: it ties with the judged row of the place, and stands before
        it or is it; 2: it ties with the judged row of the place, the last of its key, and stands after it.
        """
        first, last = self._group_start[group], self._group_start[group + 1]
        place = bisect_left(self._falling, -key, first, last)
        end = bisect_right(self._falling, -key, place, last)
        if place == end:
            return place, 0
        while place < end and self._stands_before(place, text, ordinal):
            place += 1
        return (place, 1) if place < end else (end - 1, 2)

    def _stands_before(self, place: int, text: bytes, ordinal: int) -> bool:
        """Whether a judged row stands before a row of the same key."""
        if self._ties == "given":
            return bool(self._ordinals[place] < ordinal)
        judged = self._documents[self._judgments[place]]
        return bool(judged > text if self._ties == "descending" else judged < text)

    def _hash(self, group: int, text: bytes) -> int:
        from hashlib import blake2b

        return int.from_bytes(blake2b(b"%d %b" % (group, text), key=self._seed, digest_size=8).digest(), "little")


def _texts(offsets: Any, data: Any) -> Iterator[bytes]:
    places: NDArray[np.int64] = np.frombuffer(offsets, np.int64)
    whole = bytes(memoryview(data))
    for begin, end in zip(places.tolist(), places[1:].tolist(), strict=False):
        yield whole[begin:end]


def _rows(groups: Any, offsets: Any, data: Any, keys: Any) -> Iterator[tuple[int, int, bytes, float]]:
    """(position, group, document, key) of each row of a group."""
    columns = (
        np.frombuffer(groups, np.int32).tolist(),
        _texts(offsets, data),
        np.frombuffer(keys, np.float64).tolist(),
    )
    for row, (group, text, key) in enumerate(zip(*columns, strict=True)):
        if group >= 0:
            yield row, group, text, key


FILTER_BITS = 16
"""Bits of the filter for each row: about one row in four hundred is looked at again though nothing repeats it."""
LEAST_WORDS = 1 << 10
MAX_SUSPECTS = 4_000_000
"""Rows that may be repetitions and are held, about 100 bytes each; of very many rows, one in `SUSPECT_SHARE`."""
SUSPECT_SHARE = 200


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of ids: id i is data[offsets[i] : offsets[i + 1]]."""

    offsets: NDArray[np.int64]  # [N + 1]
    data: Any
    """Bytes, or any buffer of them."""

    def __getitem__(self, place: int) -> bytes:
        return bytes(memoryview(self.data)[int(self.offsets[place]) : int(self.offsets[place + 1])])


@dataclass(frozen=True, slots=True, eq=False)
class JudgedTexts:
    """The ids that are judged: documents of query q are start[q] to start[q + 1]."""

    queries: Texts
    start: NDArray[np.int64]  # [Q + 1]
    documents: Texts


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Some rows, numbered from `ordinal` on over the whole of the input."""

    groups: NDArray[np.int32]  # [N] system * Q + query; negative where the query is not judged
    documents: Texts  # [N]
    keys: NDArray[np.float64]  # [N] the larger stands first; finite
    ordinal: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A document that a query of a system has twice."""

    group: int
    document: bytes
    ordinals: tuple[int, int]
    """Ordinals of the row that counts, and of the one that does not."""


class _Counter(Protocol):
    def queries(self, offsets: Any, data: Any, /) -> bytes: ...
    def document_order(self) -> bytes: ...
    def find(self, groups: Any, offsets: Any, data: Any, keys: Any, ordinal: int, /) -> tuple[bytes, bytes]: ...
    def judge(self, start: Any, keys: Any, judgments: Any, ordinals: Any, counts: Any, suspects: Any, /) -> None: ...
    def count(self, groups: Any, offsets: Any, data: Any, keys: Any, ordinal: int, delta: int, /) -> bytes: ...


def new_seed() -> bytes:
    """A seed for the hashes of rows."""
    return secrets.token_bytes(16)


class TooManySuspectsError(Exception):
    """More rows may be repetitions than are held: many more than the filter takes for some; see `MAX_SUSPECTS`."""


@dataclass
class Counting:
    """Ranks the judged documents of runs whose rows are gone through twice.

    First every row is given to `find`, then, after `turn`, again to `count`; both may be called by several threads. The
    methods that end a pass (`turn`, `finish`) may not.
    """

    judged: JudgedTexts
    n_systems: int
    options: ScanOptions
    """`order` is only looked at for ties: the keys of the rows say how they are ordered."""
    n_rows: int
    """How many rows there are, about: the size of the filter."""
    seed: bytes
    """Seed of the hashes of rows: 16 bytes that who wrote the rows does not know; see `new_seed`."""
    duplicates: list[Duplicate] = field(default_factory=list)
    """After `finish`: rows that repeat a document, and are not counted."""

    def __post_init__(self) -> None:
        words = max(self.n_rows * FILTER_BITS // 64, LEAST_WORDS)
        self.filter = np.zeros(words, dtype=np.uint64)
        """uint64: bits of the rows met so far; with `found` and `repeated` all that a resumed first pass needs."""
        self.found: list[NDArray[Any]] = []
        self.repeated: list[NDArray[np.uint64]] = []
        self.suspects: list[tuple[NDArray[Any], list[bytes]]] = []
        self.n_kept = {"repeated": 0, "suspects": 0}
        """Rows in each of both."""
        self._lock = Lock()
        queries, documents = self.judged.queries, self.judged.documents
        kind: Any = Counter
        if kernel_requested():
            from cranfield.ranking._kernel import Counter as kind  # noqa: N813 - one of two classes
        ties = self.options.ties if self.options.order == "score" else "given"
        self._counter: _Counter = kind(
            queries.offsets,
            queries.data,
            self.judged.start,
            documents.offsets,
            documents.data,
            ties,
            self.seed,
            self.filter,
        )

    @property
    def most_suspects(self) -> int:
        """Rows that may be repetitions and are held."""
        return max(MAX_SUSPECTS, self.n_rows // SUSPECT_SHARE)

    @property
    def n_queries(self) -> int:
        """Q."""
        return len(self.judged.start) - 1

    def places(self, query_ids: Texts) -> NDArray[np.int32]:
        """int32[N]: the query of each id, -1 where it is not judged."""
        return np.frombuffer(self._counter.queries(query_ids.offsets, query_ids.data), dtype=np.int32)

    def find(self, rows: RowBlock) -> None:
        """The first pass.

        Raises:
            TooManySuspectsError: too many rows may be repetitions.
        """
        found, repeated = self._counter.find(
            rows.groups, rows.documents.offsets, rows.documents.data, rows.keys, rows.ordinal
        )
        self.found.append(np.frombuffer(found, dtype=FOUND))
        if repeated:
            self.repeated.append(np.frombuffer(repeated, dtype=np.uint64))
            self._hold("repeated", len(self.repeated[-1]))

    def _hold(self, what: str, n: int) -> None:
        with self._lock:
            self.n_kept[what] += n
        if self.n_kept[what] > self.most_suspects:
            raise TooManySuspectsError

    def turn(self) -> None:
        """End the first pass: sort the judged rows, and prepare to count."""
        found = np.concatenate([*self.found, np.zeros(0, dtype=FOUND)])
        self.found = []
        order = np.frombuffer(self._counter.document_order(), dtype=np.int32)
        # Of a judged document that is there twice the better row counts.
        found = found[np.lexsort((found["ordinal"], -found["key"], found["judgment"], found["group"]))]
        repeats = (found["group"][1:] == found["group"][:-1]) & (found["judgment"][1:] == found["judgment"][:-1])
        found = found[np.concatenate((np.ones(min(len(found), 1), dtype=np.bool_), ~repeats))]
        tie: NDArray[Any] = found["ordinal"]
        if self.options.order == "score" and self.options.ties != "given":
            tie = order[found["judgment"]] * (-1 if self.options.ties == "descending" else 1)
        found = found[np.lexsort((tie, -found["key"], found["group"]))]
        n_groups = self.n_systems * self.n_queries
        start = np.searchsorted(found["group"], np.arange(n_groups + 1)).astype(np.int64)
        suspects = np.unique(np.concatenate([*self.repeated, np.zeros(0, dtype=np.uint64)]))
        self.repeated = []
        self.filter = np.zeros(0, dtype=np.uint64)
        self._start, self._group = start, found["group"].copy()
        self._keys, self._judgments = found["key"].copy(), found["judgment"].copy()
        self.counts = np.zeros((len(found) + n_groups, 3), dtype=np.int32)
        """int32[F + G, 3]: what the second pass counts; see `counter_python.Counter`."""
        ordinals = found["ordinal"].copy()
        self._counter.judge(start, self._keys, self._judgments, ordinals, self.counts, suspects)

    def count(self, rows: RowBlock) -> None:
        """The second pass.

        Raises:
            TooManySuspectsError: too many rows may be repetitions.
        """
        documents = rows.documents
        data = self._counter.count(rows.groups, documents.offsets, documents.data, rows.keys, rows.ordinal, 1)
        if not data:
            return
        suspects = np.frombuffer(data, dtype=SUSPECT)
        self.suspects.append((suspects, [documents[row] for row in suspects["row"].tolist()]))
        self._hold("suspects", len(suspects))

    def finish(self) -> None:
        """End the second pass: rows that repeat a document are found, and not counted."""
        n_groups = self.n_systems * self.n_queries
        self._n_duplicates = np.zeros(n_groups, dtype=np.int64)
        self.duplicates = list(_repetitions(self.suspects))
        rows = np.concatenate([*(rows for rows, _ in self.suspects), np.zeros(0, dtype=SUSPECT)])
        by_ordinal = dict(zip(rows["ordinal"].tolist(), rows["key"].tolist(), strict=True)) if self.duplicates else {}
        self.suspects = []
        for duplicate in self.duplicates:
            self._n_duplicates[duplicate.group] += 1
            ordinal = duplicate.ordinals[1]
            offsets = np.array([0, len(duplicate.document)], dtype=np.int64)
            group, key = np.array([duplicate.group], dtype=np.int32), np.array([by_ordinal[ordinal]])
            self._counter.count(group, offsets, duplicate.document, key, ordinal, -1)
        self._columns()

    def _columns(self) -> None:
        """Ranks and bounds of ties of all judged rows, and the rows of each group, from the counts."""
        start, group, n_groups = self._start, self._group, self.n_systems * self.n_queries
        between, before, after = (np.concatenate(([0], np.cumsum(column, dtype=np.int64))) for column in self.counts.T)
        every = between + before + after
        first = start[:-1] + np.arange(n_groups)  # the first place of each group
        self._n_returned = every[start[1:] + np.arange(1, n_groups + 1)] - every[first]
        place = np.arange(len(group)) + group
        same = (group[1:] == group[:-1]) & (self._keys[1:] == self._keys[:-1])
        begins = np.concatenate((np.ones(min(len(group), 1), dtype=np.bool_), ~same))
        which = np.cumsum(begins) - 1  # the run of equal keys that a row is in
        run_first = place[begins][which]
        run_last = place[np.concatenate((begins[1:], np.ones(min(len(group), 1), dtype=np.bool_)))][which]
        at = first[group]
        above = between[run_first + 1] - between[at] + (before + after)[run_first] - (before + after)[at]
        self._rank = above + before[place + 1] - before[run_first]
        self._tie_first = above + 1
        self._tie_last = above + (before + after)[run_last + 1] - (before + after)[run_first]

    def n_rows_of(self, system: int) -> NDArray[np.int64]:
        """int64[Q]: rows of each query, repeated ones too."""
        part = slice(system * self.n_queries, (system + 1) * self.n_queries)
        n_rows: NDArray[np.int64] = self._n_returned[part] + self._n_duplicates[part]
        return n_rows

    def ranks(self, system: int) -> JudgedRanks:
        """The ranks of one system, cut at the depth of the options."""
        first, last = system * self.n_queries, (system + 1) * self.n_queries
        part = slice(int(self._start[first]), int(self._start[last]))
        query = (self._group[part] - first).astype(np.int32)
        rank, judgment = self._rank[part], self._judgments[part]
        by_score = self.options.order == "score"
        ties = (self._tie_first[part], self._tie_last[part]) if by_score else (rank, rank)
        n_returned, n_duplicates = self._n_returned[first:last], self._n_duplicates[first:last]
        kept = slice(None)
        if self.options.depth is not None:
            kept = np.flatnonzero(rank <= self.options.depth)  # type: ignore[assignment]
            n_returned = np.minimum(n_returned, self.options.depth)
        whole = [column[kept].astype(np.int32) for column in (rank, *ties)]
        none = np.zeros(self.n_queries, dtype=np.int32)
        return JudgedRanks(
            query=query[kept],
            rank=whole[0],
            item=(judgment - self.judged.start[query])[kept].astype(np.int32),
            tie_first=whole[1],
            tie_last=whole[2],
            answered=self.n_rows_of(system) > 0,
            n_returned=n_returned.astype(np.int32),
            n_duplicates=n_duplicates.astype(np.int32),
            n_tied=none,
            misranked=none.astype(np.bool_),
            top=_NoHits(),
            n_lines=int(self.n_rows_of(system).sum()),
            extra_queries=(),
            engine="python" if isinstance(self._counter, Counter) else "native",
        )


class _NoHits:
    """First results that were not kept."""

    def of(self, query: int) -> Iterator[Hit]:  # noqa: ARG002 - the protocol's parameter
        """Nothing."""
        return iter(())


def _repetitions(suspects: list[tuple[NDArray[Any], list[bytes]]]) -> Iterator[Duplicate]:
    """Rows that repeat a document of their group; the best one, and of equal ones the first, counts."""
    rows = np.concatenate([*(rows for rows, _ in suspects), np.zeros(0, dtype=SUSPECT)])
    texts = [text for _, part in suspects for text in part]
    _, inverse, counts = np.unique(rows["hash"], return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[inverse] > 1)
    order = several[np.lexsort((rows["ordinal"][several], -rows["key"][several]))]
    best: dict[tuple[int, bytes], int] = {}
    for place in order.tolist():
        group, ordinal = int(rows["group"][place]), int(rows["ordinal"][place])
        kept = best.setdefault((group, texts[place]), ordinal)
        if kept != ordinal:
            yield Duplicate(group, texts[place], (kept, ordinal))
