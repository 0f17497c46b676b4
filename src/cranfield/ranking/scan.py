"""What a reader of run files gives back: the sufficient statistic of a run, as columns.

Most measures need only the rank of each judged result, how many results there were, and what was judged. Two readers
make exactly that from the same bytes: `native` (the C kernel) and `streaming` (Python alone). Neither holds a whole
run, knows a grade, or builds a `Ranking`; the door does that. Axes: Q queries of the index, J judged results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FileOrder = Literal["score", "given", "rank"]
Ties = Literal["descending", "ascending", "given"]
Duplicates = Literal["error", "first"]
REPORTED_HITS = 10
"""Hits kept per query for people to look at."""
UNJUDGED = -1
"""In `TopHits.item`: no judgment names this document."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How a run file is ordered and cut."""

    order: FileOrder = "score"
    """By score, best first; as the lines stand; or by the rank column, smallest first."""
    ties: Ties = "descending"
    """Equal scores fall by document id in byte order, or stand as their lines do. Equal ranks always stand."""
    width: Literal[64, 32] = 64
    """Bits of a score when scores are compared: at 32, 1.00000001 ties with 1."""
    duplicates: Duplicates = "error"
    """A document twice in one query: an error that names both lines, or the first by rank is kept."""
    depth: int | None = None
    """Ranks kept per query, after the order is settled and duplicates are dropped; None keeps all."""
    keep: int = REPORTED_HITS
    """Hits per query whose ids and scores are kept."""


@dataclass(frozen=True, slots=True)
class JudgedIndex:
    """What a reader has to recognise: the ids of the queries, and those of the judged documents of each."""

    query_ids: tuple[bytes, ...]
    """Q, each once."""
    doc_ids: tuple[tuple[bytes, ...], ...]
    """Per query its judged documents, each once; a document's place here is its `item`."""
    whole: tuple[bool, ...] = ()
    """Per query whether all its results are kept, whatever `keep` says: its truth is not a list of ids. Empty: none."""


@dataclass(frozen=True, slots=True)
class TopHits:
    """The first results of each query, id and score, packed."""

    start: NDArray[np.int64]  # [Q + 1] the hits of query q are start[q] to start[q + 1]
    offset: NDArray[np.int64]  # [H + 1] the id of hit h is blob[offset[h]:offset[h + 1]]
    blob: bytes
    score: NDArray[np.float64]  # [H] as written, whatever the width
    item: NDArray[np.int32]  # [H] UNJUDGED, or the place among the query's judged documents

    def of(self, query: int) -> Iterator[tuple[bytes, float, int]]:
        """(document id, score, item) of one query's first results, rank 1 first."""
        for hit in range(int(self.start[query]), int(self.start[query + 1])):
            doc_id = self.blob[int(self.offset[hit]) : int(self.offset[hit + 1])]
            yield doc_id, float(self.score[hit]), int(self.item[hit])


@dataclass(frozen=True, slots=True)
class Scan:
    """One run file, reduced to what measures need."""

    query: NDArray[np.int32]  # [J] place in JudgedIndex.query_ids; rows are sorted by query, then rank
    rank: NDArray[np.int32]  # [J] 1-based, after duplicates are dropped
    item: NDArray[np.int32]  # [J] place in JudgedIndex.doc_ids[query]
    tie_first: NDArray[np.int32]  # [J] smallest and largest rank of the results that tie with this one (itself, alone)
    tie_last: NDArray[np.int32]  # [J] before the cut at depth, so it may lie beyond it
    answered: NDArray[np.bool_]  # [Q] the file has a line of this query
    n_returned: NDArray[np.int32]  # [Q] without duplicates, cut at depth
    n_duplicates: NDArray[np.int32]  # [Q] dropped before the cut
    n_tied: NDArray[np.int32]  # [Q] results that tie with the one before them, duplicates included
    misranked: NDArray[np.bool_]  # [Q] by score, the rank column goes down somewhere
    top: TopHits
    n_lines: int
    """Result lines, of all queries."""
    tag: str | None
    """Sixth column of the first result line."""
    digest: str
    """`sha256:` and the SHA-256 of the SHA-256 digests of the unpacked bytes, block by block of BLOCK_BYTES."""
    extra_queries: tuple[str, ...]
    """Queries of the file that are not in the index, in the order met."""
    engine: Literal["native", "python"]
    """Which reader read it."""


BLOCK_BYTES = 8 * 1024 * 1024
"""Bytes of a digest block, and of a read."""
RUN_COLUMNS = 6


@dataclass
class TopBuilder:
    """Packs first results, query by query in any order."""

    n_queries: int
    _hits: dict[int, Sequence[tuple[bytes, float, int]]] = field(default_factory=dict)

    def add(self, query: int, hits: Sequence[tuple[bytes, float, int]]) -> None:
        """Take one query's first results, rank 1 first."""
        self._hits[query] = hits

    def build(self) -> TopHits:
        """Put them in query order."""
        counts = [len(self._hits.get(query, ())) for query in range(self.n_queries)]
        hits = [hit for query in range(self.n_queries) for hit in self._hits.get(query, ())]
        lengths = [len(doc_id) for doc_id, _, _ in hits]
        return TopHits(
            start=np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64),
            offset=np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int64),
            blob=b"".join(doc_id for doc_id, _, _ in hits),
            score=np.array([score for _, score, _ in hits], dtype=np.float64),
            item=np.array([item for _, _, item in hits], dtype=np.int32),
        )
