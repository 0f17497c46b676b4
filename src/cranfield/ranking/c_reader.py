"""The reader of TREC run files in C: files, threads and the conversion of the kernel's output to arrays.

The kernel takes bytes and knows nothing of files. A large plain file is read in ranges of whole queries by several
threads. When a range is irregular (a problem, a query in two ranges), the file is read again from beginning to end, so
that problems and their lines do not depend on the ranges.
"""

from __future__ import annotations

import io
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, BinaryIO

from cranfield.base.errors import SHOWN_PROBLEMS, Problem, ProblemList, RunFormatError
from cranfield.formats.io.files import from_here, opened, seekable, shown
from cranfield.ranking import problems
from cranfield.ranking.positional import read_at, read_into
from cranfield.ranking.scan import (
    BLOCK_BYTES,
    BlockDigests,
    JudgedIndex,
    Scan,
    ScanOptions,
    TopHits,
    rank_columns,
    scan_digest,
)

if TYPE_CHECKING:  # numpy is imported while the kernel's threads read
    import numpy as np
    from numpy.typing import NDArray

try:
    from cranfield.ranking import _kernel
except ImportError as cause:
    _REFUSAL = str(cause)
else:
    _REFUSAL = ""

PIECE_BYTES = 1024 * 1024
"""Bytes read at a time: hashed and scanned while in the processor's cache."""
BLOCKS_PER_RANGE = 4
"""Digest blocks of a range; a smaller file is read by one thread."""
MAX_THREADS = 8
LARGEST = 2**63 - 1
ANSWERED = 6
"""Columns of the kernel's table of answered queries."""
FIRST_LOOK_BYTES = 64 * 1024
"""The start of a range is searched in this many bytes, then in twice as many, up to a digest block."""

Opener = Callable[[], AbstractContextManager[BinaryIO]]


def available() -> bool:
    """Whether the kernel was built and loads."""
    return not _REFUSAL


def why_not() -> str:
    """Why the kernel cannot be used; empty when it can."""
    if not _REFUSAL:
        return ""
    if find_spec("cranfield.ranking._kernel") is None:
        return "the C kernel was not built when Cranfield was installed"
    return f"cannot load the C kernel: {_REFUSAL}"


def scan_file(
    source: Path | BinaryIO,
    index: JudgedIndex,
    options: ScanOptions,
    *,
    threads: int | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Scan:
    """Reduce a TREC run file to what measures need.

    Args:
        source: a file (packed ones are recognised), or a stream of bytes, read from its position.
        index: the judgments.
        options: how the file is ordered and cut.
        threads: of a plain file of several digest blocks; None is one per processor, at most MAX_THREADS.
        block_bytes: of a digest block; ranges consist of such. Another number than BLOCK_BYTES gives another digest.

    Raises:
        RunFormatError: with the first problems; or the file cannot be read, or has no result line.
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


def start(path: Path, index: JudgedIndex, options: ScanOptions, *, threads: int | None = None) -> PendingScan:
    """Begin `scan_file` in other threads."""
    threads = default_threads() if threads is None else threads
    known = _kernel.Index(index.query_ids, index.doc_ids, index.whole)
    opener = partial(opened, path, RunFormatError)
    return PendingScan(_Reader(shown(path), opener, index, options, threads, BLOCK_BYTES, known))


class PendingScan:
    """A scan in other threads: the kernel reads while the caller imports numpy and the measures."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self._found: list[_Found] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            self._found = self._reader.read()
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            self._error = error

    def result(self) -> Scan:
        """Wait for the end of the scan.

        Raises:
            RunFormatError: as `scan_file`.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._reader.scan_of(self._found)

    def close(self) -> None:
        """Stop reading, if that is not done."""
        self._reader.closed.set()
        self._thread.join()


def default_threads() -> int:
    """One per processor available to this process, at most MAX_THREADS."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(MAX_THREADS, len(affinity(0)) if affinity else os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class _Range:
    """Part of a file: its bytes from begin to end are hashed, its lines from first to last are read."""

    begin: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of one scanner; arrays as bytes, see `Scanner.result` of the kernel."""

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
    """Reads one file."""

    name: str
    opener: Opener
    index: JudgedIndex
    options: ScanOptions
    threads: int
    block_bytes: int
    known: _kernel.Index
    closed: Event = field(default_factory=Event)
    """The result is not needed any more."""

    def read(self) -> list[_Found]:
        """Read the file by several threads, and again by one where a range is irregular; results in file order."""
        ranges = self._read_ranges() if self.threads > 1 else None
        if ranges is not None and not _is_irregular(ranges):
            return ranges
        if ranges is not None and not any(found.problems for found in ranges):
            found = self._read_all(gather=True)  # queries are interleaved; usually nothing else is wrong
            if not found.problems:
                return [found]
        found = self._read_all(gather=False)
        if found.status == _kernel.INTERLEAVED:
            found = self._read_all(gather=True)
        self._refuse(found)
        return [found]

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
        scanner, blocks = self._scanner(gather=gather), BlockDigests(self.block_bytes)
        with self.opener() as stream:
            while not self.closed.is_set() and (data := stream.read(min(PIECE_BYTES, blocks.room))):
                blocks.update(memoryview(data))
                if scanner.feed(data) != _kernel.FINE:
                    break
        status = scanner.finish()
        return _Found(*scanner.result(), status, blocks.digests())

    def _read_ranges(self) -> list[_Found] | None:
        """Read the ranges of a file concurrently; None when it is not a plain file of several."""
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
        """Ranges of some blocks each; none begins where no new query is near."""
        begins, firsts = [0], [0]
        for begin in range(self.block_bytes * BLOCKS_PER_RANGE, size, self.block_bytes * BLOCKS_PER_RANGE):
            first = self._next_query(file, begin)
            if first is not None:
                begins.append(begin)
                firsts.append(first)
        edges = zip(itertools.pairwise([*begins, size]), itertools.pairwise([*firsts, size]), strict=True)
        return [_Range(begin, end, first, last) for (begin, end), (first, last) in edges]

    def _next_query(self, file: int, begin: int) -> int | None:
        """Offset of the first line in a block whose query differs from the line before; None where there is none."""
        size = min(FIRST_LOOK_BYTES, self.block_bytes)
        while True:
            data = read_at(file, size, begin)
            place = _kernel.query_change(data)
            if place < len(data):
                return begin + place
            if size == self.block_bytes or len(data) < size:
                return None
            size = min(2 * size, self.block_bytes)

    def _read_range(self, file: int, stop: Event, part: _Range) -> _Found:
        """Read one range, and stop all others when it is irregular."""
        scanner, blocks = self._scanner(inner=part.begin > 0, limit=1), BlockDigests(self.block_bytes)
        view = memoryview(bytearray(PIECE_BYTES))
        place, status = part.begin, _kernel.FINE
        while place < part.last and status == _kernel.FINE and not (stop.is_set() or self.closed.is_set()):
            end = min(place + blocks.room, part.end) if place < part.end else part.last
            n = read_into(file, view[: end - place], place)
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
        """Raise the problems of the file, if there are any."""
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
        if code in {_kernel.SCORE, _kernel.RANK}:
            return (problems.bad_score if code == _kernel.SCORE else problems.bad_rank)(self.name, line, got)
        return problems.long_line(self.name, line)

    def scan(self) -> Scan:
        """Read the file, and make arrays of the results."""
        return self.scan_of(self.read())

    def scan_of(self, found: Sequence[_Found]) -> Scan:
        """Concatenate the results of ranges, in file order."""
        import numpy as np

        judged = _array((part.judged for part in found), np.int32).reshape(-1, 5)
        answered = _array((part.answered for part in found), np.int32).reshape(-1, ANSWERED)
        n_queries = len(self.index.query_ids)
        tag = next((part.tag for part in found if part.tag is not None), None)
        return Scan(
            **rank_columns(judged, answered, n_queries),
            top=_top_hits(found, answered, n_queries),
            n_lines=sum(part.n_lines for part in found),
            extra_queries=tuple(name.decode("utf-8", "surrogateescape") for part in found for name in part.extra),
            engine="native",
            tag=None if tag is None else tag.decode("utf-8", "replace"),
            digest=scan_digest(block for part in found for block in part.blocks),
        )


def _is_irregular(ranges: Sequence[_Found]) -> bool:
    """Whether ranges cannot be concatenated: problems, no line at all, or a query in two ranges."""
    if any(found.status != _kernel.FINE or found.problems for found in ranges):
        return True
    answered = [query for found in ranges for query in memoryview(found.answered).cast("i").tolist()[::ANSWERED]]
    extra = [name for found in ranges for name in found.extra]
    is_empty = not any(found.n_lines for found in ranges)
    return is_empty or len(set(answered)) < len(answered) or len(set(extra)) < len(extra)


def _array(parts: Iterable[bytes], kind: type[Any]) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(b"".join(parts), dtype=kind)


def _top_hits(found: Sequence[_Found], answered: NDArray[np.int32], n_queries: int) -> TopHits:
    """Put first results in query order; `answered` has the queries in file order."""
    import numpy as np

    lengths = _array((part.hit_length for part in found), np.int64)
    blob = b"".join(part.hit_ids for part in found)
    hits: slice | NDArray[np.int64] = slice(None)
    query, n_hits = answered[:, 0], answered[:, 5]
    counts = np.zeros(n_queries, dtype=np.int64)
    counts[query] = n_hits
    if (np.diff(query) < 0).any():
        hits = np.argsort(np.repeat(query, n_hits), kind="stable")
        offset, ends = _starts(lengths), np.cumsum(n_hits)
        pieces = list(zip(offset[ends - n_hits].tolist(), offset[ends].tolist(), strict=True))
        blob = b"".join(blob[slice(*pieces[place])] for place in np.argsort(query).tolist())
    return TopHits(
        start=_starts(counts),
        offset=_starts(lengths[hits]),
        blob=blob,
        score=_array((part.hit_score for part in found), np.float64)[hits],
        item=_array((part.hit_item for part in found), np.int32)[hits],
    )


def _starts(counts: NDArray[Any]) -> NDArray[np.int64]:
    import numpy as np

    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)
