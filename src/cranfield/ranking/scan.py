"""The contract of the two readers of run files: options in, ranks of the judged results out.

Most measures need only the rank of each judged result, the number of results, and the judgments. `c_reader` (the C
kernel) and `python_reader` (the specification, and the reader where the kernel is absent) compute exactly that from the
same bytes. Neither keeps the whole run in memory, knows grades or builds a `Ranking`: `join` does.

Axes: Q queries of the index, J judged results, A answered queries, H hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:  # numpy is imported when the first array is made: the kernel's threads start before that
    import numpy as np
    from numpy.typing import NDArray

FileOrder = Literal["score", "given", "rank"]
Ties = Literal["descending", "ascending", "given"]
Duplicates = Literal["error", "first"]
Missing = Literal["zero", "skip"]
EngineName = Literal["native", "python"]
REPORTED_HITS = 10
"""Hits kept per query for reports."""
UNJUDGED = -1
"""Item of a hit that has no judgment."""
RUN_COLUMNS = 6
BLOCK_BYTES = 8 * 1024 * 1024
"""Bytes of a digest block."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How the results of a query are ordered and cut."""

    order: FileOrder = "score"
    """By score, best first; in file order; or by the rank column, smallest first."""
    ties: Ties = "descending"
    """Equal scores are ordered by document id in byte order, or keep file order. Equal ranks always keep file order."""
    width: Literal[64, 32] = 64
    """Bits of the scores that are compared: at 32, 1.00000001 ties with 1."""
    duplicates: Duplicates | Literal["kept"] = "error"
    """A repeated document of a query: an error that names both lines, or the best ranked one is kept; the Python reader can
    also keep all of them."""
    depth: int | None = None
    """Ranks kept per query, after duplicates are dropped; None keeps all."""
    keep: int = REPORTED_HITS
    """Hits per query whose ids and scores are kept."""


@dataclass(frozen=True, slots=True)
class JudgedIndex:
    """What a reader has to recognise: the ids of the queries, and those of the judged documents of each."""

    query_ids: tuple[bytes, ...]
    """Q, unique."""
    doc_ids: tuple[tuple[bytes, ...], ...]
    """Per query its judged documents, unique; a document's position is its `item`."""
    whole: tuple[bool, ...] = ()
    """Per query whether all its results are kept, whatever `keep` is: its truth is not a list of ids. Empty: none."""


Hit = tuple[bytes, float, int]
"""Document id, score, and item (or UNJUDGED)."""


class FirstResults(Protocol):
    """The first results of each query."""

    def of(self, query: int) -> Iterator[Hit]:
        """The first results of one query, rank 1 first."""


@dataclass(frozen=True, slots=True, eq=False)
class TopHits:
    """The first results of each query, packed."""

    start: NDArray[np.int64]  # [Q + 1] the hits of query q are start[q] to start[q + 1]
    offset: NDArray[np.int64]  # [H + 1] the id of hit h is blob[offset[h]:offset[h + 1]]
    blob: bytes
    score: NDArray[np.float64]  # [H] as written, whatever the width
    item: NDArray[np.int32]  # [H] UNJUDGED, or the position among the query's judged documents

    def of(self, query: int) -> Iterator[Hit]:
        """(document id, score, item) of the first results of one query, rank 1 first."""
        for hit in range(int(self.start[query]), int(self.start[query + 1])):
            doc_id = self.blob[int(self.offset[hit]) : int(self.offset[hit + 1])]
            yield doc_id, float(self.score[hit]), int(self.item[hit])


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRanks:
    """A run, of a file or in memory, reduced to what measures need."""

    query: NDArray[np.int32]  # [J] position in JudgedIndex.query_ids; rows are sorted by query, then rank
    rank: NDArray[np.int32]  # [J] 1-based, after duplicates are dropped
    item: NDArray[np.int32]  # [J] position in JudgedIndex.doc_ids[query]
    tie_first: NDArray[
        np.int32
    ]  # [J] smallest and largest rank of the results that tie with this one (itself, if none)
    tie_last: NDArray[np.int32]  # [J] before the cut at depth, so possibly below it
    answered: NDArray[np.bool_]  # [Q] the run has an answer to this query
    n_returned: NDArray[np.int32]  # [Q] without duplicates, cut at depth
    n_duplicates: NDArray[np.int32]  # [Q] dropped before the cut
    n_tied: NDArray[np.int32]  # [Q] results that tie with the one before them, duplicates included
    misranked: NDArray[np.bool_]  # [Q] by score: the rank column contradicts the order by score
    top: FirstResults
    n_lines: int
    """Results, of all queries of a file, of the judged queries of a run in memory."""
    extra_queries: tuple[str, ...]
    """Queries of the run that are not in the index, in their order there."""
    engine: EngineName


@dataclass(frozen=True, slots=True)
class Scan(JudgedRanks):
    """A run file, reduced to what measures need."""

    top: TopHits
    tag: str | None
    """Sixth column of the first result line."""
    digest: str
    """`sha256:` and the SHA-256 of the SHA-256 digests of the unpacked bytes, block by block of BLOCK_BYTES."""


class BlockDigests:
    """SHA-256 digests of the blocks of a file."""

    def __init__(self, size: int) -> None:
        self.room = self._size = size
        """Bytes left of the current block."""
        self._hasher = sha256()
        self._digests: list[bytes] = []

    def update(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        rest = memoryview(data)
        while rest:
            now, rest = rest[: self.room], rest[self.room :]
            self._hasher.update(now)
            self.room -= len(now)
            if not self.room:
                self._close()

    def digests(self) -> tuple[bytes, ...]:
        """Digests of all blocks; the last one may be shorter."""
        if self.room < self._size:
            self._close()
        return tuple(self._digests)

    def _close(self) -> None:
        self._digests.append(self._hasher.digest())
        self.room, self._hasher = self._size, sha256()


def scan_digest(blocks: Iterable[bytes]) -> str:
    """The digest of a file from those of its blocks."""
    return "sha256:" + sha256(b"".join(blocks)).hexdigest()


def rank_columns(rows: NDArray[np.int32], answered: NDArray[np.int32], n_queries: int) -> dict[str, Any]:
    """The columns of `JudgedRanks`, from tables with a row per judged result and per answered query.

    Args:
        rows: int32[J, 5]: query, rank, item, tie_first, tie_last; in any order.
        answered: int32[A, 5 or more]: query, n_returned, n_duplicates, n_tied, misranked; in any order.
        n_queries: Q.
    """
    import numpy as np

    place = rows[:, 0].astype(np.int64) << 32 | rows[:, 1]
    if (place[1:] < place[:-1]).any():
        rows = rows[np.argsort(place, kind="stable")]
    by_query = np.zeros((n_queries, answered.shape[1]), dtype=np.int32)
    by_query[answered[:, 0]] = answered
    is_answered = np.zeros(n_queries, dtype=np.bool_)
    is_answered[answered[:, 0]] = True
    names = ("query", "rank", "item", "tie_first", "tie_last")
    columns: dict[str, Any] = {name: np.ascontiguousarray(rows[:, at]) for at, name in enumerate(names)}
    counts = ("n_returned", "n_duplicates", "n_tied")
    columns |= {name: by_query[:, at].copy() for at, name in enumerate(counts, start=1)}
    return columns | {"answered": is_answered, "misranked": by_query[:, 4].astype(np.bool_)}
