"""The reader of TREC run files in C: what it is given to read, by how many threads, and what its columns come to.

The kernel takes bytes and knows nothing of files. A plain file of some size is read in ranges, each from a query's
first line to another's; whatever is odd about one has the file read again from beginning to end, so that problems and
their lines do not depend on how the file was shared out. Ranks of runs in memory come from the same kernel.
"""

from __future__ import annotations

import io
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import SHOWN_PROBLEMS, Problem, ProblemList, RunFormatError
from cranfield.formats.io.files import from_here, opened, seekable, shown
from cranfield.ranking import problems
from cranfield.ranking.scan import BLOCK_BYTES, JudgedIndex, Scan, ScanOptions, TopHits

try:
    from cranfield.ranking import _kernel
except ImportError as cause:
    _REFUSAL = str(cause)
else:
    _REFUSAL = ""

PIECE_BYTES = 1024 * 1024
"""Bytes read at a time: while they are hashed and looked at they stay in the processor's cache."""
BLOCKS_PER_RANGE = 4
"""Digest blocks that a thread reads before it asks for more; a file of fewer is read by one."""
MOST_THREADS = 8
LARGEST = 2**63 - 1
FIRST_LOOK_BYTES = 64 * 1024
"""Where a range may begin is looked for in so many bytes, then in twice as many, up to a digest block."""

Opener = Callable[[], AbstractContextManager[BinaryIO]]
Ints = NDArray[np.int32]


def available() -> bool:
    """Whether the kernel was built and loads."""
    return not _REFUSAL


def why_not() -> str:
    """What keeps the kernel from being used; empty when nothing does."""
    if not _REFUSAL:
        return ""
    if find_spec("cranfield.ranking._kernel") is None:
        return "the C kernel was not built when Cranfield was installed"
    return f"the C kernel does not load here: {_REFUSAL}"


def scan_file_native(
    source: Path | BinaryIO,
    index: JudgedIndex,
    options: ScanOptions,
    *,
    threads: int | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Scan:
    """Reduce a TREC run file to what measures need.

    Args:
        source: a file (packed ones are recognised), or a stream of bytes, read from where it stands.
        index: what was judged.
        options: how the file is ordered and cut.
        threads: how many may read at the same time; None is one a processor, at most MOST_THREADS. Only plain files of
            several digest blocks are shared out.
        block_bytes: of a digest block; ranges are made of such. Another number than BLOCK_BYTES gives another digest.

    Raises:
        RunFormatError: with the first problems that were met; or the file cannot be read, or has no result line.
    """
    threads = default_threads() if threads is None else threads
    known = _kernel.Index(index.query_ids, index.doc_ids, index.whole)
    if isinstance(source, Path):
        opener: Opener = partial(opened, source, RunFormatError)
        return _Reader(shown(source), opener, index, options, threads, block_bytes, known).scan()
    with seekable(source) as stream:
        opener = partial(from_here, stream, stream.tell())
        name = str(getattr(source, "name", "<stream>"))
        return _Reader(name, opener, index, options, 1, block_bytes, known).scan()


def default_threads() -> int:
    """One a processor that we may run on, at most MOST_THREADS."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(MOST_THREADS, len(affinity(0)) if affinity else os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class _Range:
    """Part of a file: its bytes from begin to end are hashed, its lines from first to last are read."""

    begin: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Found:
    """What one scanner found; most of it are arrays as bytes, see `Scanner.result` of the kernel."""

    judged: bytes
    answered: bytes
    hit_score: bytes
    hit_length: bytes
    hit_item: bytes
    hit_ids: bytes
    n_lines: int
    tag: bytes | None
    extra: list[bytes]
    problems: list[tuple[int, int, int, int, bytes, bytes]]
    status: int
    blocks: tuple[bytes, ...]
    """Digests of the blocks of its bytes."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one file, in one way or another."""

    name: str
    opener: Opener
    index: JudgedIndex
    options: ScanOptions
    threads: int
    block_bytes: int
    known: _kernel.Index

    def scan(self) -> Scan:
        """Read the file by as many threads as it can be shared out to, and again where anything about it is odd."""
        ranges = self._read_ranges() if self.threads > 1 else None
        if ranges is not None and not _is_odd(ranges):
            return self._scan_of(ranges)
        if ranges is not None and not any(found.problems for found in ranges):
            found = self._read_all(gather=True)  # queries are interleaved, and hardly anything else is amiss
            if not found.problems:
                return self._scan_of([found])
        found = self._read_all(gather=False)
        if found.status == _kernel.INTERLEAVED:
            found = self._read_all(gather=True)
        self._refuse(found)
        return self._scan_of([found])

    def _scanner(self, *, gather: bool = False, inner: bool = False, limit: int = SHOWN_PROBLEMS) -> _kernel.Scanner:
        options = self.options
        return _kernel.Scanner(
            index=self.known,
            order=options.order,
            ties=options.ties,
            duplicates=options.duplicates,
            single=options.width == 32,
            depth=-1 if options.depth is None else min(options.depth, LARGEST),
            keep=min(options.keep, LARGEST),
            gather=gather,
            inner=inner,
            problem_limit=limit,
        )

    def _read_all(self, *, gather: bool) -> _Found:
        scanner, blocks = self._scanner(gather=gather), _Blocks(self.block_bytes)
        with self.opener() as stream:
            while data := stream.read(min(PIECE_BYTES, blocks.room)):
                blocks.update(memoryview(data))
                if scanner.feed(data) != _kernel.FINE:
                    break
        status = scanner.finish()
        return _Found(*scanner.result(), status, blocks.digests())

    def _read_ranges(self) -> list[_Found] | None:
        """Read ranges of a file at the same time; None when it is no plain file of several."""
        with self.opener() as stream:
            if not isinstance(getattr(stream, "raw", None), io.FileIO) or not hasattr(os, "preadv"):
                return None
            file = stream.fileno()
            about = os.fstat(file)
            ranges = self._ranges(file, about.st_size) if stat.S_ISREG(about.st_mode) else []
            if len(ranges) < 2:
                return None
            stop = Event()
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(min(self.threads, len(ranges))) as pool:
                try:
                    return list(pool.map(partial(self._read_range, file, stop), ranges))
                except BaseException:
                    stop.set()
                    raise

    def _ranges(self, file: int, size: int) -> list[_Range]:
        """Ranges of some blocks each; a place without a new query near it begins none."""
        begins, firsts = [0], [0]
        for begin in range(self.block_bytes * BLOCKS_PER_RANGE, size, self.block_bytes * BLOCKS_PER_RANGE):
            first = self._next_query(file, begin)
            if first is not None:
                begins.append(begin)
                firsts.append(first)
        edges = zip(itertools.pairwise([*begins, size]), itertools.pairwise([*firsts, size]), strict=True)
        return [_Range(begin, end, first, last) for (begin, end), (first, last) in edges]

    def _next_query(self, file: int, begin: int) -> int | None:
        """Where, in the block that begins there, the first line stands that names another query than the one before."""
        size = min(FIRST_LOOK_BYTES, self.block_bytes)
        while True:
            data = os.pread(file, size, begin)
            place = _kernel.query_change(data)
            if place < len(data):
                return begin + place
            if size == self.block_bytes or len(data) < size:
                return None
            size = min(2 * size, self.block_bytes)

    def _read_range(self, file: int, stop: Event, part: _Range) -> _Found:
        """Read a range on its own, and have all others stop when there is anything odd in it."""
        scanner, blocks = self._scanner(inner=part.begin > 0, limit=1), _Blocks(self.block_bytes)
        view = memoryview(bytearray(PIECE_BYTES))
        place, status = part.begin, _kernel.FINE
        while place < part.last and status == _kernel.FINE and not stop.is_set():
            end = min(place + blocks.room, part.end) if place < part.end else part.last
            n = os.preadv(file, [view[: end - place]], place)
            if not n:
                raise RunFormatError(Problem("the file became shorter while it was read", path=self.name))
            data = view[:n]
            if place < part.end:
                blocks.update(data)
            place += n
            if place > part.first:
                status = scanner.feed(data[max(part.first - (place - n), 0) :])
        status = scanner.finish()
        if status != _kernel.FINE:
            stop.set()
        return _Found(*scanner.result(), status, blocks.digests())

    def _refuse(self, found: _Found) -> None:
        """Raise what is wrong with the file, if anything is."""
        listed = ProblemList(RunFormatError)
        listed.problems += [self._problem(*entry) for entry in found.problems]
        if not found.n_lines and not found.problems:
            listed.problems.append(problems.empty_run(self.name))
        listed.raise_if_any()

    def _problem(self, code: int, line: int, other_line: int, n_columns: int, got: bytes, query: bytes) -> Problem:
        if code == _kernel.COLUMNS:
            return problems.short_line(self.name, line, n_columns, got)
        if code == _kernel.DUPLICATE:
            return problems.duplicate_result(self.name, (line, other_line), query, got)
        if code == _kernel.CARRIAGE_RETURN:
            return problems.lone_carriage_return(self.name, line, got)
        return (problems.bad_score if code == _kernel.SCORE else problems.bad_rank)(self.name, line, got)

    def _scan_of(self, found: Sequence[_Found]) -> Scan:
        """Put together what was found, in the order of the file."""
        n_queries = len(self.index.query_ids)
        rows = _array((one.judged for one in found), np.int32).reshape(-1, 5)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        answered = _array((one.answered for one in found), np.int32).reshape(-1, 6)
        by_query = np.zeros((n_queries, 6), dtype=np.int32)
        by_query[answered[:, 0]] = answered
        is_answered = np.zeros(n_queries, dtype=np.bool_)
        is_answered[answered[:, 0]] = True
        tag = next((one.tag for one in found if one.tag is not None), None)
        query, rank, item, tie_first, tie_last = (np.ascontiguousarray(column) for column in rows.T)
        return Scan(
            query=query,
            rank=rank,
            item=item,
            tie_first=tie_first,
            tie_last=tie_last,
            answered=is_answered,
            n_returned=by_query[:, 1].copy(),
            n_duplicates=by_query[:, 2].copy(),
            n_tied=by_query[:, 3].copy(),
            misranked=by_query[:, 4].astype(np.bool_),
            top=_top_hits(found, answered, by_query[:, 5]),
            n_lines=sum(one.n_lines for one in found),
            tag=None if tag is None else tag.decode("utf-8", "replace"),
            digest="sha256:" + sha256(b"".join(block for one in found for block in one.blocks)).hexdigest(),
            extra_queries=tuple(name.decode("utf-8", "surrogateescape") for one in found for name in one.extra),
            engine="native",
        )


class _Blocks:
    """SHA-256 digests of blocks of the bytes it is given, which must not go beyond the block's end."""

    def __init__(self, size: int) -> None:
        self.room = self._size = size
        self._hasher = sha256()
        self._digests: list[bytes] = []

    def update(self, data: memoryview) -> None:
        """Take the next bytes, at most `room` of them."""
        self._hasher.update(data)
        self.room -= len(data)
        if not self.room:
            self._close()

    def digests(self) -> tuple[bytes, ...]:
        """Those of all blocks; the last one may be shorter."""
        if self.room < self._size:
            self._close()
        return tuple(self._digests)

    def _close(self) -> None:
        self._digests.append(self._hasher.digest())
        self.room, self._hasher = self._size, sha256()


def _is_odd(ranges: Sequence[_Found]) -> bool:
    """Whether ranges cannot stand beside each other: problems, no line at all, or a query in two places."""
    if any(found.status != _kernel.FINE or found.problems for found in ranges):
        return True
    answered = _array((found.answered for found in ranges), np.int32).reshape(-1, 6)[:, 0]
    extra = [name for found in ranges for name in found.extra]
    is_empty = not any(found.n_lines for found in ranges)
    return is_empty or len(np.unique(answered)) < len(answered) or len(set(extra)) < len(extra)


def _array(parts: Iterable[bytes], kind: type[Any]) -> NDArray[Any]:
    return np.frombuffer(b"".join(parts), dtype=kind)


def _top_hits(found: Sequence[_Found], answered: Ints, counts: Ints) -> TopHits:
    """Put first results in query order; `answered` has the queries as they were met, `counts` by query."""
    lengths = _array((one.hit_length for one in found), np.int64)
    blob = b"".join(one.hit_ids for one in found)
    hits: slice | NDArray[np.int64] = slice(None)
    query, met = answered[:, 0], answered[:, 5]
    if (np.diff(query) < 0).any():
        hits = np.argsort(np.repeat(query, met), kind="stable")
        offset, ends = _starts(lengths), np.cumsum(met)
        pieces = list(zip(offset[ends - met].tolist(), offset[ends].tolist(), strict=True))
        blob = b"".join(blob[slice(*pieces[place])] for place in np.argsort(query).tolist())
    return TopHits(
        start=_starts(counts),
        offset=_starts(lengths[hits]),
        blob=blob,
        score=_array((one.hit_score for one in found), np.float64)[hits],
        item=_array((one.hit_item for one in found), np.int32)[hits],
    )


def _starts(counts: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)
