"""The scans of run files, cached by content: other measures, levels or gains need no second reading.

The key of an entry is the digest of the run's bytes and of all inputs of the scan. A file is hashed first only where an
entry has its size and first bytes. Entries are arrays and JSON, never pickles; a damaged one is ignored.
`CRANFIELD_CACHE` names the folder, `off` turns the cache off.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.errors import RunFormatError, UsageError
from cranfield.formats.io.files import PRIVATE_FOLDER, open_inside, opened, write_bytes
from cranfield.ranking.scan import (
    BLOCK_BYTES,
    JudgedIndex,
    Scan,
    ScanOptions,
    TopHits,
)

if TYPE_CHECKING:
    pass


FOLDER_VARIABLE = "CRANFIELD_CACHE"


FORMAT = 2


"""Incremented when a reader would make other columns of the same bytes."""


HEAD_BYTES = 65_536


DIGEST_BYTES = sha256().digest_size


"""An entry begins with the digest of what follows."""


SMALLEST_BYTES = 4 * 1024 * 1024


"""A smaller file is read faster than its entry."""


MOST_BYTES = 256 * 1024 * 1024


"""Of all entries together; the least recently used are deleted first."""


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
            scan = _scan_of(arrays)
    except (OSError, UsageError):  # a link is not followed
        return None
    return scan


def _scan_of(arrays: Mapping[str, Any]) -> Scan:
    facts = json.loads(bytes(arrays["facts"]))
    top = TopHits(**{name: arrays[f"top_{name}"] for name in TOP_ARRAYS}, blob=bytes(arrays["top_blob"]))
    columns = {name: arrays[name] for name in ARRAYS}
    return Scan(**columns, top=top, **(facts | {"extra_queries": tuple(facts["extra_queries"])}))


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
        if total > MOST_BYTES:
            entry.unlink(missing_ok=True)
