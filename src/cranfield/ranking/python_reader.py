"""The reader of TREC run files in plain Python: the readable specification of the format.

It stands in where the C kernel was not built. One query at a time is in memory, in a file of any size; a file whose
queries are interleaved is read again, and all rows of its judged queries are kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import SHOWN_PROBLEMS, Problem, ProblemList, RunFormatError
from cranfield.formats.io.files import BYTE_ORDER_MARK, MAX_LINE_BYTES, from_here, opened, seekable, shown
from cranfield.ranking import problems
from cranfield.ranking.query_ranker import rank_query
from cranfield.ranking.scan import (
    BLOCK_BYTES,
    RUN_COLUMNS,
    UNJUDGED,
    BlockDigests,
    FileOrder,
    Hit,
    JudgedIndex,
    Scan,
    ScanOptions,
    TopHits,
    rank_columns,
    scan_digest,
)

PIECE_BYTES = 1 << 20
"""Bytes read at a time."""
Opener = Callable[[], AbstractContextManager[BinaryIO]]
WHOLE_NUMBER = re.compile(rb"[+-]?[0-9]{1,18}")


def scan_file(
    source: Path | BinaryIO, index: JudgedIndex, options: ScanOptions, *, block_bytes: int = BLOCK_BYTES
) -> Scan:
    """Reduce a TREC run file to what measures need.

    Args:
        source: a file (packed ones are recognised, `-` is standard input), or a stream of bytes, read from its position.
        index: the judgments.
        options: how the file is ordered and cut.
        block_bytes: of a digest block. Another number than BLOCK_BYTES gives another digest.

    Raises:
        RunFormatError: with the first problems; or the file cannot be read, or has no result line.
    """
    if isinstance(source, Path):
        return _scan(shown(source), partial(opened, source, RunFormatError), index, options, block_bytes)
    name = str(getattr(source, "name", "<stream>"))
    with seekable(source) as stream:
        return _scan(name, partial(from_here, stream, stream.tell()), index, options, block_bytes)


def _scan(name: str, opener: Opener, index: JudgedIndex, options: ScanOptions, block_bytes: int) -> Scan:
    try:
        with opener() as stream:
            return _Scanner(name, index, options).scan(stream, block_bytes)
    except _InterleavedError:
        with opener() as stream:
            return _Scanner(name, index, options, gather=True).scan(stream, block_bytes)


class _InterleavedError(Exception):
    """A query came back after another had begun."""


class _Row(NamedTuple):
    """A result line of a judged query."""

    line: int
    doc_id: bytes
    score: float
    rank: bytes


@dataclass
class _Scanner:
    """One pass over a file."""

    path: str
    index: JudgedIndex
    options: ScanOptions
    gather: bool = False
    """Keep the rows of all judged queries until the end: they may be interleaved."""
    _position: dict[bytes, int] = field(init=False)
    """Position of each judged query."""
    _rows: dict[bytes, list[_Row]] = field(default_factory=dict)
    """Rows of the current query; when gathering, of all judged queries so far."""
    _met: dict[bytes, None] = field(default_factory=dict)
    """The queries so far."""
    _current: bytes | None = None
    _n_lines: int = 0
    _tag: bytes | None = None
    _problems: ProblemList = field(default_factory=lambda: ProblemList(RunFormatError))
    _judged: list[tuple[int, ...]] = field(default_factory=list)
    """Judged rows and answered queries, as `rank_columns` takes them."""
    _answered: list[tuple[int, ...]] = field(default_factory=list)
    _top: dict[int, list[Hit]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._position = {query_id: position for position, query_id in enumerate(self.index.query_ids)}

    def scan(self, stream: BinaryIO, block_bytes: int) -> Scan:
        """Read all lines.

        Raises:
            _InterleavedError: a query came back, and rows are not gathered.
            RunFormatError: with the first problems.
        """
        digests = BlockDigests(block_bytes)
        for number, line in enumerate(_lines(stream, digests), start=1):
            if len(line) > MAX_LINE_BYTES:
                self._problems.problems.append(problems.long_line(self.path, number))
                self._problems.raise_if_any()
            self._take(number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line)
        for query_id in list(self._rows):
            self._finish(query_id)
        self._problems.raise_if_any()
        if not self._n_lines:
            raise RunFormatError(problems.empty_run(self.path))
        judged, answered = (np.array(table, dtype=np.int32).reshape(-1, 5) for table in (self._judged, self._answered))
        return Scan(
            **rank_columns(judged, answered, len(self.index.query_ids)),
            top=self._top_hits(),
            n_lines=self._n_lines,
            extra_queries=tuple(_text(query_id) for query_id in self._met if query_id not in self._position),
            engine="python",
            tag=None if self._tag is None else self._tag.decode("utf-8", "replace"),
            digest=scan_digest(digests.digests()),
        )

    def _take(self, number: int, line: bytes) -> None:
        """Read one line: columns are separated by any white space, and the sixth is all that follows the fifth."""
        columns = line.split(None, RUN_COLUMNS - 1)
        if not columns or line.startswith(b"#"):
            return
        problem = line_problem(columns, line, number, self.path, self.options.order)
        if problem is not None:
            self._note(problem)
            return
        query_id, _, doc_id, rank, score, tag = columns
        if query_id != self._current:
            self._begin(query_id)
        self._n_lines += 1
        if self._tag is None:
            self._tag = tag.rstrip()
        if query_id in self._position:
            self._rows.setdefault(query_id, []).append(_Row(number, doc_id, float(score), rank))

    def _begin(self, query_id: bytes) -> None:
        """A line whose query differs from the line before."""
        if not self.gather:
            if self._current in self._rows:
                self._finish(self._current)
            if query_id in self._met:
                raise _InterleavedError
        self._current = query_id
        self._met[query_id] = None

    def _finish(self, query_id: bytes) -> None:
        """Rank a judged query, and keep what measures need."""
        rows = self._rows.pop(query_id)
        query, options = self._position[query_id], self.options
        doc_ids = [row.doc_id for row in rows]
        ranks = [] if options.order == "given" else [_whole_number(row.rank) for row in rows]
        keeps_all = options.duplicates == "kept"
        keys = [(doc_id, at if keeps_all else 0) for at, doc_id in enumerate(doc_ids)]
        ranked = rank_query(keys, [row.score for row in rows], options, ranks=ranks, tie_key=itemgetter(0))
        if options.duplicates == "error":
            for position, earlier in ranked.repeated:
                lines = rows[position].line, rows[earlier].line
                self._note(problems.duplicate_result(self.path, lines, query_id, doc_ids[position]))
        items = {doc_id: item for item, doc_id in enumerate(self.index.doc_ids[query])}
        self._judged += ((query, *row) for row in ranked.judged_rows(items, doc_ids, options.depth))
        kept = ranked.order[: options.depth]
        shown_hits = kept if self.index.whole and self.index.whole[query] else kept[: options.keep]
        self._top[query] = [(doc_ids[at], rows[at].score, items.get(doc_ids[at], UNJUDGED)) for at in shown_hits]
        self._answered.append((query, len(kept), len(ranked.repeated), ranked.n_tied, int(ranked.misranked)))

    def _note(self, problem: Problem) -> None:
        self._problems.problems.append(problem)
        if len(self._problems.problems) >= SHOWN_PROBLEMS:
            self._problems.raise_if_any()

    def _top_hits(self) -> TopHits:
        """Pack the first results, in the order of the index."""
        hits = [self._top.get(query, []) for query in range(len(self.index.query_ids))]
        doc_ids, scores, items = (
            zip(*(hit for of_query in hits for hit in of_query), strict=True) if any(hits) else ((), (), ())
        )
        return TopHits(
            start=_starts([len(of_query) for of_query in hits]),
            offset=_starts([len(doc_id) for doc_id in doc_ids]),
            blob=b"".join(doc_ids),
            score=np.array(scores, dtype=np.float64),
            item=np.array(items, dtype=np.int32),
        )


def line_problem(columns: Sequence[bytes], line: bytes, number: int, path: str, order: FileOrder) -> Problem | None:
    """The first problem of a line; None where it is a valid result line."""
    if len(columns) < RUN_COLUMNS:
        return problems.short_line(path, number, len(columns), line)
    if b"\r" in columns[5].rstrip():  # else the lines of a file without line feeds would be the tag of its first line
        return problems.lone_carriage_return(path, number, line)
    if not _is_score(columns[4]):
        return problems.bad_score(path, number, columns[4])
    if order == "rank" and _whole_number(columns[3]) is None:
        return problems.bad_rank(path, number, columns[3])
    return None


def _is_score(column: bytes) -> bool:
    """Whether it is a finite decimal number; `1_0` is one in Python alone."""
    try:
        return math.isfinite(float(column)) and b"_" not in column
    except ValueError:
        return False


def _whole_number(column: bytes) -> int | None:
    return int(column) if WHOLE_NUMBER.fullmatch(column) else None


def _lines(stream: BinaryIO, digests: BlockDigests) -> Iterator[bytes]:
    """The lines of a stream without line feeds; of one that is too long, the beginning."""
    unfinished = b""
    while piece := stream.read(PIECE_BYTES):
        digests.update(piece)
        first, *more = piece.split(b"\n")
        unfinished += first
        if more or len(unfinished) > MAX_LINE_BYTES:
            yield unfinished
            yield from more[:-1]
            unfinished = more[-1] if more else b""
    if unfinished:
        yield unfinished


def _starts(counts: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)


def _text(query_id: bytes) -> str:
    return query_id.decode("utf-8", "surrogateescape")
