"""A run file becomes a ranking: which reader reads it, what is kept of large ones, and reading that begins before numpy is there.

Scans of run files are cached by content, so that other measures, levels or gains need no second reading. The key of an entry is the
digest of the run's bytes and of all inputs of the scan; a file is hashed only where an entry has its size and first bytes. Entries
are arrays and JSON, never pickles; a damaged one is ignored. `CRANFIELD_CACHE` names the folder, `off` turns the cache off.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import asdict, fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.base.errors import RunFormatError, UsageError
from cranfield.base.words import short_name
from cranfield.formats.io.files import PRIVATE_FOLDER, open_inside, opened, stem, write_bytes
from cranfield.model import Convention, TestSet
from cranfield.ranking import c_reader
from cranfield.ranking.engine import kernel_requested, requested_engine, requested_jobs, scan_file
from cranfield.ranking.prepared import PreparedJudgments
from cranfield.ranking.scan import (
    BLOCK_BYTES,
    REPORTED_HITS,
    Duplicates,
    JudgedIndex,
    Missing,
    Scan,
    ScanOptions,
    TopHits,
)

if TYPE_CHECKING:
    from cranfield.ranking.join import RankedRun


FOLDER_VARIABLE = "CRANFIELD_CACHE"
FORMAT = 2
"""Incremented when a reader would make other columns of the same bytes."""
HEAD_BYTES = 65_536
DIGEST_BYTES = sha256().digest_size
"""An entry begins with the digest of what follows."""
SMALLEST_BYTES = 4 * 1024 * 1024
"""A smaller file is read faster than its entry."""
MAX_BYTES = 256 * 1024 * 1024
"""Most bytes of all entries together; the least recently used are deleted first."""
ARRAYS = (
    "query",
    "rank",
    "item",
    "tie_first",
    "tie_last",
    "answered",
    "n_returned",
    "n_duplicates",
    "n_tied",
    "misranked",
)
TOP_ARRAYS = ("start", "offset", "score", "item")


def cached(path: Path, index: JudgedIndex, options: ScanOptions, jobs: int, read: Callable[[], Scan]) -> Scan:
    """The scan of a run file: from its entry where there is one, else from `read`, and kept.

    Args:
        path: the run file; a small one, or one that cannot be opened twice, is not cached.
        index: the judgments.
        options: how the file is ordered and cut.
        jobs: threads that hash.
        read: reads the file.
    """
    folder = cache_folder()
    if folder is None or not path.is_file() or path.stat().st_size < SMALLEST_BYTES:
        return read()
    prefix = _prefix(path)
    if _has_entry(folder, prefix):
        entry = folder / f"{prefix}-{_key(file_digest(path, jobs), index, options)}.npz"
        scan = _load(entry)
        if scan is not None:
            return scan
    scan = read()
    _keep(folder / f"{prefix}-{_key(scan.digest, index, options)}.npz", scan)
    return scan


def may_be_cached(path: Path) -> bool:
    """Whether an entry has the size and the first bytes of a file."""
    folder = cache_folder()
    return folder is not None and path.stat().st_size >= SMALLEST_BYTES and _has_entry(folder, _prefix(path))


def _has_entry(folder: Path, prefix: str) -> bool:
    return any(folder.glob(f"{prefix}-*.npz"))


def cache_folder() -> Path | None:
    """The folder of the entries; None where the cache is turned off."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named == "off":
        return None
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "cranfield" / "scans"
    except RuntimeError:  # no home directory
        return None


def file_digest(path: Path, jobs: int) -> str:
    """Digest of a file's unpacked bytes, as `Scan.digest` has it, block by block in threads."""
    from concurrent.futures import ThreadPoolExecutor

    hasher = sha256()
    with opened(path, RunFormatError) as stream, ThreadPoolExecutor(max(1, jobs)) as pool:
        waiting = []
        while block := stream.read(BLOCK_BYTES):
            waiting.append(pool.submit(lambda data: sha256(data).digest(), block))
            if len(waiting) > jobs:  # at most one block more in memory than threads
                hasher.update(waiting.pop(0).result())
        for block_digest in waiting:
            hasher.update(block_digest.result())
    return "sha256:" + hasher.hexdigest()


def _prefix(path: Path) -> str:
    with path.open("rb") as stream:
        return f"{path.stat().st_size:x}-{sha256(stream.read(HEAD_BYTES)).hexdigest()[:16]}"


def _key(digest: str, index: JudgedIndex, options: ScanOptions) -> str:
    hasher = sha256(json.dumps([FORMAT, digest, asdict(options), list(index.whole)]).encode())
    for query_id, doc_ids in zip(index.query_ids, index.doc_ids, strict=True):
        hasher.update(b"\n".join((b"\0%d" % len(doc_ids), query_id, *doc_ids)))
    return hasher.hexdigest()[:32]


def _load(entry: Path) -> Scan | None:
    """The scan of an entry; None when it is absent or damaged."""
    import numpy as np

    try:
        with os.fdopen(open_inside(entry.parent, entry, os.O_RDONLY), "rb") as stream:
            data = stream.read()
            os.utime(stream.fileno())
        if sha256(data[DIGEST_BYTES:]).digest() != data[:DIGEST_BYTES]:
            return None
        with np.load(io.BytesIO(data[DIGEST_BYTES:]), allow_pickle=False) as arrays:
            facts = json.loads(bytes(arrays["facts"]))
            top = TopHits(**{name: arrays[f"top_{name}"] for name in TOP_ARRAYS}, blob=bytes(arrays["top_blob"]))
            columns = {name: arrays[name] for name in ARRAYS}
            scan = Scan(**columns, top=top, **(facts | {"extra_queries": tuple(facts["extra_queries"])}))
    except (OSError, UsageError):  # a link is not followed
        return None
    return scan


def _keep(entry: Path, scan: Scan) -> None:
    """Write an entry; write errors are ignored."""
    import numpy as np

    facts = {f.name: getattr(scan, f.name) for f in fields(scan) if f.name not in {*ARRAYS, "top"}}
    arrays = {name: getattr(scan, name) for name in ARRAYS}
    arrays |= {f"top_{name}": getattr(scan.top, name) for name in TOP_ARRAYS}
    arrays["top_blob"] = np.frombuffer(scan.top.blob, dtype=np.uint8)
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    data = packed.getvalue()
    try:
        entry.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        write_bytes(entry, [sha256(data).digest(), data], root=entry.parent, private=True, keep=False)
        _prune(entry.parent)
    except (OSError, UsageError):
        return


def _prune(folder: Path) -> None:
    entries = sorted(((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("*.npz")), reverse=True)
    total = 0
    for _, size, entry in entries:
        total += size
        if total > MAX_BYTES:
            entry.unlink(missing_ok=True)


def rank_file(
    testset: TestSet,
    path: Path,
    convention: Convention,
    *,
    missing: Missing = "zero",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
    cache: bool = False,
) -> RankedRun:
    """Read, order and join a TREC run file.

    Args:
        testset: the judged queries; a query of the file that is not among them is ignored and named.
        path: six columns a line (query, Q0, document, rank, score, tag), separated by white space; gzip is recognised.
        convention: says whether score, position or rank orders a query, and how ties are broken.
        missing: a judged query without an answer counts as 0, or is left out.
        duplicates: a repeated document of a query is an error naming both lines, or the best ranked one is kept.
        depth: ranks kept per query, before any measure is computed; None keeps all.
        keep: hits per query kept for reports.
        cache: use the scan that was kept of this content, and keep this one; see `cranfield.ranking.file`.

    Raises:
        RunFormatError: with every bad line found.
        NoCommonQueryError: the file answers no judged query.
    """
    if convention.repeats == "kept":
        from cranfield.ranking.collected import rank_as_shown

        return rank_as_shown(testset, path, convention, missing=missing, depth=depth, keep=keep)
    reading = FileReading(testset, path, convention, missing, duplicates, depth=depth, keep=keep, cache=cache)
    return reading.result()


class FileReading:
    """A TREC run file on its way to a Ranking; the arguments are those of `rank_file`."""

    def __init__(
        self,
        testset: TestSet,
        path: Path,
        convention: Convention,
        missing: Missing,
        duplicates: Duplicates,
        *,
        depth: int | None,
        keep: int,
        cache: bool,
    ) -> None:
        requested_engine()  # refused when misspelt, even where nothing has to be read
        self._jobs = requested_jobs()
        self._path = path
        self._missing: Missing = missing
        self._cache = cache
        self._judgments = PreparedJudgments(testset, convention)
        self._options = ScanOptions(
            order=convention.file_order,
            ties=convention.tie_order,
            width=convention.score_width,
            duplicates=duplicates,
            depth=depth,
            keep=keep,
        )
        self._pending: c_reader.PendingScan | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def start(self) -> None:
        """Begin to read in the kernel's threads; not where the kernel is absent or the scan may be cached."""
        if kernel_requested() and self._path.is_file() and not (self._cache and may_be_cached(self._path)):
            options = self._judgments.scan_options(self._options)
            self._pending = c_reader.start(self._path, self._judgments.index, options, threads=self._jobs)

    def result(self) -> RankedRun:
        """Finish reading, and join the judgments; see `rank_file`."""
        scan = (
            cached(
                self._path,
                self._judgments.index,
                self._judgments.scan_options(self._options),
                self._jobs,
                self._read,
            )
            if self._cache
            else self._read()
        )
        from cranfield.ranking.join import join_ranks

        return join_ranks(
            self._judgments,
            scan,
            missing=self._missing,
            options=self._options,
            states_empty=False,
            name=short_name(scan.tag) if scan.tag else stem(self._path),
            make_digest=lambda: scan.digest,
        )

    def close(self) -> None:
        """Stop reading."""
        if self._pending is not None:
            self._pending.close()

    def _read(self) -> Scan:
        if self._pending is not None:
            return self._pending.result()
        options = self._judgments.scan_options(self._options)
        return scan_file(self._path, self._judgments.index, options, self._jobs)
