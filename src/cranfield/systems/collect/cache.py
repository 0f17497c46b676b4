"""Cache of answers of finished collections, and the digest of what a system depends on besides its config.

One file per system, test set and k, named by a digest of everything that an answer may depend on. Failures are not
cached. Files are written atomically; a damaged file is ignored with a note. Cached answers are reused, and a collection is
resumed, only if the digest is unchanged: contents are read whole; sizes and modification times are not used.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from pathlib import Path

from cranfield.config.template import ENV, placeholders, texts
from cranfield.formats.io.files import write_text
from cranfield.formats.runs.record import json_line
from cranfield.systems.collect.journal import (
    UNREADABLE,
    VERSION,
    KeptAnswer,
    kept_from_record,
    kept_record,
    read_records,
)
from cranfield.systems.configured import ConfiguredSystem
from cranfield.systems.system import System
from cranfield.version import __version__

_HEADER = "cranfield_answers"
_FILE_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}-[0-9a-f]{64}\.jsonl|\.[A-Za-z0-9].*\.part")
"""Names of cache files, and of incomplete files left by a killed process."""
MAX_BYTES = 1024**3
"""Maximum size of all files together."""
MAX_FILES = 20_000
PASSED_OVER = frozenset({"__pycache__", ".cranfield"})
"""Folders that are ignored: Python and Cranfield write them."""


class UndigestedError(Exception):
    """The dependencies of a system cannot be digested; the message is the reason."""


def dependency_digest(system: System, known: dict[Path, str] | None = None) -> str:
    """SHA-256 over everything that a system depends on besides its config.

    Covers the folder that its paths are relative to, the files and folders of `depends_on` with their contents, the values
    of variables that its config names, and the same for every part of a fusion. Of a system that is not a
    `ConfiguredSystem`, only `depends_on` is used, if it has one.

    Args:
        system: the system.
        known: digests of files that were read for other systems; those of this one are added.

    Raises:
        UndigestedError: files are too large or not readable.
    """
    hasher = sha256(b"cranfield surroundings 1\n")
    contents = _Contents({} if known is None else known)
    try:
        for record in _records(system, contents):
            hasher.update(json.dumps(record).encode() + b"\n")
    except OSError as error:
        raise UndigestedError(f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}") from None
    return "sha256:" + hasher.hexdigest()


def _records(system: System, contents: _Contents) -> Iterator[list[str | None]]:
    if isinstance(system, ConfiguredSystem):
        yield ["folder", str(system.folder)]
        yield from _variables(system)
    depends_on = getattr(system, "depends_on", None)
    paths = {Path(path) for path in depends_on()} if depends_on is not None else set()
    for path in sorted(paths - contents.done):
        yield from contents.of(path)
    contents.done |= paths
    parts: Mapping[str, System] = getattr(system, "parts", {})
    for name, part in sorted(parts.items()):
        yield ["part", name, part.config_digest]
        yield from _records(part, contents)


def _variables(system: ConfiguredSystem) -> Iterator[list[str | None]]:
    """Name of each environment variable in the config, and a digest of its value."""
    all_texts = [*texts(system.config.model_dump()), *texts(system.declared.model_dump())]
    named = {name.removeprefix(ENV) for text in all_texts for name in placeholders(text) if name.startswith(ENV)}
    for name in sorted(named | set(system.variables_of_settings())):
        value = system.environment.get(name)
        hidden = None if value is None else sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
        yield ["variable", name, hidden]


@dataclass
class _Contents:
    """Digests of files and folders, up to a limit for all of them."""

    known: dict[Path, str]
    n_bytes: int = 0
    n_files: int = 0
    done: set[Path] = field(default_factory=set)
    """Paths already covered by the fusion that the system is part of."""
    folders: set[Path] = field(default_factory=set)
    """Folders being read: a symbolic link may lead back to one."""

    def of(self, path: Path) -> Iterator[list[str | None]]:
        """A path with the digest of its file; of a folder, its contents in order of names."""
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            yield ["nothing", str(path)]
            return
        if stat.S_ISREG(found.st_mode):
            self._count(path, found.st_size)
            if path not in self.known:
                with path.open("rb") as stream:
                    self.known[path] = file_digest(stream, "sha256").hexdigest()
            yield ["file", str(path), self.known[path]]
            log = path.with_name(path.name + "-wal")
            if log.is_file() and log.stat().st_size:  # SQLite's write-ahead log is part of the database
                yield from self.of(log)
        elif stat.S_ISDIR(found.st_mode):
            yield ["folder", str(path)]
            real = path.resolve()
            if real in self.folders:
                return
            self.folders.add(real)
            for name in sorted(set(os.listdir(path)) - PASSED_OVER):  # noqa: PTH208 - names alone, to be sorted
                yield from self.of(path / name)
            self.folders.discard(real)
        else:
            yield ["neither file nor folder", str(path)]  # opening a pipe would wait for its writer

    def _count(self, path: Path, n_bytes: int) -> None:
        self.n_bytes += n_bytes
        self.n_files += 1
        if self.n_bytes > MAX_BYTES or self.n_files > MAX_FILES:
            limit = f"{MAX_BYTES // 1024**3} GB" if self.n_bytes > MAX_BYTES else f"{MAX_FILES:,} files"
            raise UndigestedError(f"the files it depends on are over {limit}, counted up to {path}")


class DamagedError(Exception):
    """A cache file is damaged."""


def cache_key(system: System, dependencies: str, collection: Mapping[str, object]) -> str:
    """64 hexadecimal digits over everything that an answer may depend on.

    Args:
        system: the system; its name is part of the key, so that systems of equal config do not share answers.
        dependencies: digest of what the system depends on besides its config.
        collection: test set, k, repeats.
    """
    same = {
        "cranfield": __version__,
        "journal": VERSION,
        "system": system.name,
        "config": system.config_digest,
        "surroundings": dependencies,
        **collection,
    }
    return sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()


class Cache:
    """A folder of cached answers."""

    def __init__(self, folder: Path, max_age_h: float) -> None:
        """Use `folder`, created on the first write; answers older than `max_age_h` hours are not used."""
        self._folder = folder
        self._max_age_s = max_age_h * 3600

    def read(self, name: str, key: str) -> dict[str, KeptAnswer]:
        """Query id to cached answer, without those that are too old; each is marked as cached.

        Raises:
            DamagedError: the file is damaged.
            OSError: it cannot be read.
        """
        try:
            data = self._path(name, key).read_bytes()
        except FileNotFoundError:
            return {}
        now = time.time()
        try:
            header, *records = read_records(data)
            answers = dict(kept_from_record(record) for record in records)
        except UNREADABLE:
            raise DamagedError from None
        if header != {_HEADER: VERSION, "key": key, "n": len(answers)} or len(answers) < len(records):
            raise DamagedError
        return {
            query_id: replace(kept, log=replace(kept.log, cached=True))
            for query_id, kept in answers.items()
            # A time in the future: a clock was wrong.
            if abs(now - kept.at) <= self._max_age_s and not kept.answer.outcome.is_failure
        }

    def write(self, name: str, key: str, answers: Iterable[tuple[str, KeptAnswer]]) -> None:
        """Write all answers but failures, replacing the file. Raises `OSError`."""
        records = [
            kept_record(query_id, replace(kept, log=replace(kept.log, cached=False)))
            for query_id, kept in answers
            if not kept.answer.outcome.is_failure
        ]
        self._folder.mkdir(parents=True, exist_ok=True)
        header = {_HEADER: VERSION, "key": key, "n": len(records)}
        write_text(self._path(name, key), map(json_line, [header, *records]), errors="surrogatepass")

    def tidy(self) -> None:
        """Remove files that are too old."""
        oldest = time.time() - self._max_age_s
        with suppress(OSError):
            for path in self._folder.iterdir():
                with suppress(OSError):  # another process may be tidying too
                    if _FILE_NAMES.fullmatch(path.name) and path.stat().st_mtime < oldest:
                        path.unlink()

    def _path(self, name: str, key: str) -> Path:
        return self._folder / f"{name}-{key}.jsonl"


def oldest_time(answers: Iterable[KeptAnswer]) -> str:
    """Time of the oldest answer: `2026-11-21 20:51 UTC`."""
    oldest = min(kept.at for kept in answers)
    return f"{datetime.fromtimestamp(oldest, UTC):%Y-%m-%d %H:%M} UTC"
