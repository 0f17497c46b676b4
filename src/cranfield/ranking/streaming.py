"""The reader of TREC run files in Python alone: a block of lines at a time, as columns.

Holds one query at a time, of a file of any size. A file whose queries are interleaved is read again, and the lines of
its judged queries are held. What a block says is in `columns`, what a doubtful line is in `lines`, what a query comes
to in `settle`, and one pass over lines in `reading`.
"""

from __future__ import annotations

import io
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import RunFormatError
from cranfield.formats.io.files import from_here, opened, seekable, shown
from cranfield.ranking.problems import empty_run
from cranfield.ranking.reading import InterleavedError, Reading
from cranfield.ranking.scan import BLOCK_BYTES, JudgedIndex, Scan, ScanOptions
from cranfield.ranking.settle import Part, Settler, joined, top_hits

PIECE_BYTES = 1 << 20
"""Lines are looked at in pieces of this size, or of a query where that is larger: their columns stay in the cache."""
MOST_THREADS = 4
"""A third of the work holds Python's lock: more threads would wait for each other."""
BLOCKS_PER_RANGE = 4
"""Digest blocks that a thread reads before it asks for more; a file of fewer is read by one."""
UNTOUCHED_BYTES = 16 * PIECE_BYTES
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Opener = Callable[[], AbstractContextManager[BinaryIO]]
Read = Callable[[int], bytes]


def scan_file_python(
    source: Path | BinaryIO,
    index: JudgedIndex,
    options: ScanOptions,
    *,
    threads: int = 1,
    block_bytes: int = BLOCK_BYTES,
) -> Scan:
    """Reduce a TREC run file to what measures need.

    Args:
        source: a file (packed ones are recognised, `-` is standard input), or a stream of bytes, read from where it
            stands.
        index: what was judged.
        options: how the file is ordered and cut.
        threads: how many may read at the same time, as numpy lets them; no more than MOST_THREADS do. Only plain files
            of several digest blocks are shared out.
        block_bytes: of a digest block; ranges are made of such. Another number than BLOCK_BYTES gives another digest.

    Raises:
        RunFormatError: with the first problems that were met; or the file cannot be read, or has no result line.
    """
    if isinstance(source, Path):
        opener: Opener = partial(opened, source, RunFormatError)
        return _scan(opener, Settler(index, options, shown(source)), threads, block_bytes)
    with seekable(source) as stream:
        opener = partial(from_here, stream, stream.tell())
        return _scan(opener, Settler(index, options, str(getattr(source, "name", "<stream>"))), 1, block_bytes)


def _scan(opener: Opener, settler: Settler, threads: int, block_bytes: int) -> Scan:
    # The C library hands free memory back beyond a threshold that grows with the largest block it ever freed. Of this
    # one no page is touched; after it, the arrays of a piece get the memory of the last one's, and time falls by a tenth.
    np.empty(UNTOUCHED_BYTES, dtype=np.uint8)
    passes = _read_ranges(opener, settler, threads, block_bytes) if threads > 1 else None
    if passes is None:
        try:
            passes = [_read_all(opener, settler, block_bytes, hold=False)]
        except InterleavedError:
            passes = [_read_all(opener, settler, block_bytes, hold=True)]
    if not any(one.n_lines for one in passes):
        raise RunFormatError(empty_run(settler.path))
    return _put_together(passes, settler)


class _Blocks:
    """SHA-256 digests of the blocks of the bytes it is given; see `Scan.digest`."""

    def __init__(self, size: int) -> None:
        self._room = self._size = size
        self._hasher = sha256()
        self._digests: list[bytes] = []

    def update(self, data: bytes) -> None:
        """Take the next bytes, any number."""
        rest = memoryview(data)
        while rest:
            now, rest = rest[: self._room], rest[self._room :]
            self._hasher.update(now)
            self._room -= len(now)
            if not self._room:
                self._close()

    def digests(self) -> tuple[bytes, ...]:
        """Those of all blocks; the last one may be shorter."""
        if self._room < self._size:
            self._close()
        return tuple(self._digests)

    def _close(self) -> None:
        self._digests.append(self._hasher.digest())
        self._room, self._hasher = self._size, sha256()


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one reading of a file, or of a range of it, came to."""

    part: Part
    met: dict[bytes, None]
    n_lines: int
    tag: bytes | None
    blocks: tuple[bytes, ...]
    """Digests of the blocks of its bytes."""

    @classmethod
    def of(cls, reading: Reading, blocks: _Blocks) -> _Pass:
        return cls(joined(reading.parts), reading.met, reading.n_lines, reading.tag, blocks.digests())


def _read_all(opener: Opener, settler: Settler, block_bytes: int, *, hold: bool) -> _Pass:
    reading, blocks = Reading(settler, hold), _Blocks(block_bytes)
    with opener() as stream:

        def read(size: int) -> bytes:
            data = stream.read(size)
            blocks.update(data)
            return data

        for lines in _whole_lines(read, reading, begins=True):
            reading.take(lines)
    reading.finish()
    return _Pass.of(reading, blocks)


def _whole_lines(read: Read, reading: Reading, *, begins: bool) -> Iterator[bytes]:
    """Pieces of whole lines, each at least as large as what is carried: so a long query is split a few times only."""
    pending: list[bytes] = []
    size = 0
    while data := read(PIECE_BYTES):
        end = data.rfind(b"\n") + 1
        size += len(data)
        if not end or size < len(reading.carry):
            pending.append(data)
            continue
        lines = b"".join((*pending, data[:end]))
        pending, size = [data[end:]], 0
        yield lines.removeprefix(BYTE_ORDER_MARK) if begins else lines
        begins = False
    rest = b"".join(pending)
    if begins:
        rest = rest.removeprefix(BYTE_ORDER_MARK)
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


@dataclass(frozen=True, slots=True)
class _Range:
    """Part of a file: its bytes from begin to end are hashed, its lines from first to last are read."""

    begin: int
    end: int
    first: int
    last: int


def _read_ranges(opener: Opener, settler: Settler, threads: int, block_bytes: int) -> list[_Pass] | None:
    """Read ranges of a file at the same time; None when it is no plain file of several, or anything about it is odd."""
    with opener() as stream:
        if not isinstance(getattr(stream, "raw", None), io.FileIO):
            return None
        about = os.fstat(stream.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size <= BLOCKS_PER_RANGE * block_bytes:
            return None
        ranges = _ranges(stream, about.st_size, block_bytes)
        trouble = Event()
        with ThreadPoolExecutor(min(threads, MOST_THREADS, len(ranges))) as pool:
            work = pool.map(partial(_read_range, stream.fileno(), settler, trouble, block_bytes), ranges)
            try:
                passes = [one for one in work if one is not None]
            except BaseException:
                trouble.set()
                raise
    met = set[bytes]().union(*(one.met for one in passes))
    if len(passes) < len(ranges) or len(met) < sum(len(one.met) for one in passes):
        return None
    return passes


def _ranges(stream: BinaryIO, size: int, block_bytes: int) -> list[_Range]:
    """Ranges of some blocks each; the lines of each begin with a query."""
    begins = range(0, size, BLOCKS_PER_RANGE * block_bytes)
    firsts = [0]
    for begin in begins[1:]:
        firsts.append(_next_query(stream, begin, size) if firsts[-1] <= begin else firsts[-1])
    edges = zip(itertools.pairwise([*begins, size]), itertools.pairwise([*firsts, size]), strict=True)
    return [_Range(begin, end, first, last) for (begin, end), (first, last) in edges]


def _next_query(stream: BinaryIO, begin: int, size: int) -> int:
    """Where, from `begin` on, the first line stands that names another query than the one before it."""
    stream.seek(begin)
    place = begin + len(stream.readline())
    query_id: bytes | None = None
    for line in stream:
        columns = line.split(None, 1)
        if columns and not line.startswith(b"#"):
            if query_id is not None and columns[0] != query_id:
                return place
            query_id = columns[0]
        place += len(line)
    return size


def _read_range(file: int, settler: Settler, trouble: Event, block_bytes: int, part: _Range) -> _Pass | None:
    """Read a range on its own; None when its lines are not all good, or its queries not each in one place."""
    reading, blocks, place = Reading(settler), _Blocks(block_bytes), part.begin

    def read(size: int) -> bytes:
        """The next lines of the range; what is before them is hashed and passed over."""
        nonlocal place
        while place < max(part.end, part.last):
            if part.end <= place < part.first:
                place = part.first
            until = part.end if place < part.end else part.last
            data = os.pread(file, min(size, until - place), place)
            if not data:
                raise EOFError  # the file became shorter
            if place < part.end:
                blocks.update(data)
            wanted = data[max(part.first - place, 0) : max(part.last - place, 0)]
            place += len(data)
            if wanted:
                return wanted
        return b""

    try:
        for lines in _whole_lines(read, reading, begins=not part.first):
            if trouble.is_set():
                return None
            reading.take(lines)
        reading.finish()
    except (InterleavedError, RunFormatError, EOFError):
        trouble.set()
        return None
    return _Pass.of(reading, blocks)


def _put_together(passes: Sequence[_Pass], settler: Settler) -> Scan:
    part = joined(one.part for one in passes)
    n_queries = len(settler.index.query_ids)
    rows = np.argsort(part.query, kind="stable")
    tag = next((one.tag for one in passes if one.tag is not None), None)

    def by_query(values: NDArray[Any]) -> NDArray[Any]:
        column = np.zeros(n_queries, dtype=values.dtype)
        column[part.run_query] = values
        return column

    return Scan(
        query=part.query[rows],
        rank=part.rank[rows],
        item=part.item[rows],
        tie_first=part.tie_first[rows],
        tie_last=part.tie_last[rows],
        answered=by_query(np.ones(len(part.run_query), dtype=np.bool_)),
        n_returned=by_query(part.n_returned),
        n_duplicates=by_query(part.n_duplicates),
        n_tied=by_query(part.n_tied),
        misranked=by_query(part.misranked),
        top=top_hits(part, n_queries),
        n_lines=sum(one.n_lines for one in passes),
        tag=None if tag is None else tag.decode("utf-8", "replace"),
        digest=_digest_of(block for one in passes for block in one.blocks),
        extra_queries=tuple(_text(query_id) for one in passes for query_id in one.met if query_id not in settler.place),
        engine="python",
    )


def _digest_of(blocks: Iterable[bytes]) -> str:
    return "sha256:" + sha256(b"".join(blocks)).hexdigest()


def _text(query_id: bytes) -> str:
    return query_id.decode("utf-8", "surrogateescape")
