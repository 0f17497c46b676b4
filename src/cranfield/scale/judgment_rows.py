"""Judgments as they come out of a file, block by block, and the table that they make together.

A pair of query and document that is judged twice with one grade counts once; judged twice with different grades it is a
fault, which the reader of the format words: here it is only found. N rows in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cranfield.formats.io.files import MAX_PROBLEMS
from cranfield.scale.judgments import JudgmentTable, Keys, is_among, mixed, repeated_keys, text_bytes, text_keys

POOL = pa.system_memory_pool()
"""Memory of large arrays goes back to the system at once; Arrow's own pool keeps it."""
PIECE = 1 << 18
"""Rows that are put in order at once."""
MAX_STRING_BYTES = 1 << 31
FAR = 8
"""So many times PIECE may lie between two of them, else all texts are in memory twice."""
Pair = tuple[str, str]
"""Query and document."""
Progress = Callable[[str, int], None]
"""Called with what is read, `judgments` or `queries`, and how many so far."""


@dataclass(frozen=True, eq=False)
class JudgmentBlock:
    """Some rows, in the order of the file."""

    query_ids: pa.DictionaryArray  # of text
    doc_ids: pa.StringArray
    grade: NDArray[np.float64]

    @classmethod
    def of(cls, query_ids: Iterable[str], doc_ids: Iterable[str], grades: Iterable[float]) -> JudgmentBlock:
        """The same of values of Python."""
        queries = pa.array(query_ids, type=pa.large_string()).dictionary_encode()
        return cls(queries, pa.array(doc_ids, type=pa.string()), np.fromiter(grades, dtype=np.float64))


class RowCollector:
    """Rows of a file that is being read."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.n_rows = 0
        self._progress = progress
        self._names: list[pa.LargeStringArray] = []
        """Ids of queries, each once a block."""
        self._n_names = 0
        self._query: list[NDArray[np.int32]] = []
        """Place of the query of each row in all of `_names`."""
        self._doc_ids: list[pa.StringArray] = []
        self._grade: list[NDArray[np.floating[Any]]] = []
        """In half of the bytes, where they have few digits."""
        self._keys: list[Keys] = []

    def add(self, block: JudgmentBlock) -> None:
        """Add rows."""
        names = block.query_ids.dictionary.cast(pa.large_string())
        query = np.asarray(block.query_ids.indices)
        self._keys.append(mixed(text_keys(names))[query] + text_keys(block.doc_ids))
        self._query.append((query + self._n_names).astype(np.int32))
        self._names.append(names)
        self._n_names += len(names)
        self._doc_ids.append(block.doc_ids)
        with np.errstate(over="ignore"):
            short = block.grade.astype(np.float32)
        self._grade.append(short if np.array_equal(short, block.grade) else block.grade)
        self.n_rows += len(block.grade)
        if self._progress is not None:
            self._progress("judgments", self.n_rows)

    def rows(self) -> CollectedRows:
        """All rows; the collector is empty then."""
        keys = _joined(self._keys, np.uint64)
        alike = np.flatnonzero(is_among(keys, repeated_keys(keys)))
        del keys
        # The parts as one array; their list is empty then.
        joined = pa.concat_arrays(self._names, memory_pool=POOL) if self._names else pa.array([], pa.large_string())
        self._names.clear()
        names = pc.dictionary_encode(joined, memory_pool=POOL)
        query = np.asarray(names.indices)[_joined(self._query, np.int32)]
        doc_ids, self._doc_ids = self._doc_ids, []
        return CollectedRows(names.dictionary, query, doc_ids, _joined(self._grade, np.float64), alike)


@dataclass(eq=False)
class CollectedRows:
    """All rows of a file."""

    query_ids: pa.LargeStringArray  # [Q] in the order of their first row
    query: NDArray[np.int32]  # [N]
    doc_ids: list[pa.StringArray]  # [N] in parts
    grade: NDArray[np.floating[Any]]  # [N]
    alike: NDArray[np.int64]  # rows among which are all that have one query and document

    def drop_repeated(self) -> tuple[int, frozenset[Pair]]:
        """Leave out the rows that repeat a judgment.

        Returns:
            How many there were, and the pairs of the first rows that contradict an earlier one, as many as are reported.
        """
        rows = self.alike
        if not len(rows):
            return 0, frozenset()
        doc_ids = _in_order(list(self.doc_ids), rows)
        document = doc_ids.dictionary_encode().indices
        pair = self.query[rows].astype(np.int64) * len(rows) + np.asarray(document)
        _, first, own = np.unique(pair, return_index=True, return_inverse=True)
        earliest = first[own]
        later = earliest != np.arange(len(rows))
        other = later & (self.grade[rows] != self.grade[rows][earliest])
        found = np.flatnonzero(other)[:MAX_PROBLEMS]
        pairs = frozenset((self.query_ids[self.query[rows[k]]].as_py(), doc_ids[k].as_py()) for k in found.tolist())
        self._drop(rows[later])
        return int(later.sum() - other.sum()), pairs

    def _drop(self, rows: NDArray[np.int64]) -> None:
        if not len(rows):
            return
        kept = np.ones(len(self.grade), dtype=np.bool_)
        kept[rows] = False
        self.query, self.grade = self.query[kept], self.grade[kept]
        ends = np.cumsum([len(part) for part in self.doc_ids]).tolist()
        self.doc_ids = [
            part.filter(pa.array(kept[end - len(part) : end])) for part, end in zip(self.doc_ids, ends, strict=True)
        ]

    def table(self, name: str, digest: str = "") -> JudgmentTable:
        """The judgments, the documents of a query by falling grade; the rows are gone then."""
        counts = np.bincount(self.query, minlength=len(self.query_ids))
        start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        order = np.argsort(self.query, kind="stable").astype(np.int32 if len(self.query) < 1 << 31 else np.int64)
        first = 0
        while first < len(start) - 1:
            last = max(int(np.searchsorted(start, start[first] + PIECE, side="right")) - 1, first + 1)
            rows = order[start[first] : start[last]]
            rows[:] = rows[np.lexsort((-self.grade[rows], self.query[rows]))]
            first = last
        self.query, grade = self.query[:0], self.grade[order].astype(np.float64)
        self.grade = self.grade[:0]
        return JudgmentTable(name, digest, self.query_ids, start, _in_order(self.doc_ids, order), grade)


def _in_order(parts: list[Any], order: NDArray[Any]) -> pa.LargeStringArray:
    """Texts in another order, as one array. Each part is dropped when all of its texts are taken, where few are needed at once."""
    n_bytes = sum(len(text_bytes(part)[1]) for part in parts)
    pieces = [order[first : first + PIECE] for first in range(0, len(order), PIECE)]
    if any(piece.max() - piece.min() > FAR * PIECE for piece in pieces):
        kind = pa.string() if n_bytes < MAX_STRING_BYTES else pa.large_string()
        parts[:] = [pa.concat_arrays([part.cast(kind) for part in parts], memory_pool=POOL)]
    ends = np.cumsum([len(part) for part in parts])
    offsets, data = np.zeros(len(order) + 1, dtype=np.int64), np.empty(n_bytes, dtype=np.uint8)
    least: NDArray[Any] | list[int] = (
        np.minimum.accumulate([piece.min() for piece in reversed(pieces)])[::-1] if pieces else []
    )
    empty = parts[0][:0] if parts else None
    done = used = 0
    for place, piece in enumerate(pieces):
        unneeded, begin = np.searchsorted(ends, [least[place], piece.min()], side="right").tolist()
        end = int(np.searchsorted(ends, piece.max(), side="right")) + 1
        parts[:unneeded] = [empty] * unneeded
        before = int(ends[begin - 1]) if begin else 0
        near = parts[begin] if end == begin + 1 else pa.concat_arrays(parts[begin:end], memory_pool=POOL)
        starts, content = text_bytes(pc.take(near, pa.array(piece - before), memory_pool=POOL))
        offsets[done + 1 : done + len(piece) + 1] = starts[1:] + used
        data[used : used + len(content)] = content
        done, used = done + len(piece), used + len(content)
    parts.clear()
    return pa.LargeStringArray.from_buffers(len(order), pa.py_buffer(offsets), pa.py_buffer(data[:used]))


def _joined(parts: list[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    """The parts as one array; their list is empty then."""
    joined = np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
    parts.clear()
    return joined
