"""Digest of what a system depends on besides its config: contents of files, variables, the parts of a fusion.

Cached answers are reused, and a collection is resumed, only if it is unchanged. Contents are read whole; sizes and
modification times are not used.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path

from cranfield.config.template import ENV, placeholders, texts
from cranfield.systems.configured import ConfiguredSystem
from cranfield.systems.system import System

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
