"""Ranks by counting in plain Python: what the kernel's `Counter` computes, and its stand-in where the kernel is absent.

Rows come in any order, and are seen twice. The first time (`find`) the rows whose document is judged are found; the caller
sorts them by group, key and tie, and hands them back (`judge`). The second time (`count`) each row is counted at its
place among the judged ones of its group. A group is one query of one system: group % Q is the query.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
