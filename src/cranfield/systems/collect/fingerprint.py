"""What a system depends on besides its config, as one digest: contents of files, variables, the parts of a fusion.

Answers are only used again, and a collection only gone on with, where this is the same. What cannot be read whole is
said to be so, never guessed from sizes and times.
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
"""Read of all files together, at most."""
MAX_FILES = 20_000
PASSED_OVER = frozenset({"__pycache__", ".cranfield"})
"""Folders inside a folder that Python and Cranfield write themselves."""


class UndigestedError(Exception):
    """What a system depends on cannot be told; `str()` says why."""


def dependency_digest(system: System, known: dict[Path, str] | None = None) -> str:
    """SHA-256 over all that a system depends on and that its config does not hold.

    Covered are the folder that its paths are relative to, the files and folders of `depends_on` with what is in them,
    the values of variables that its config names, and the same of every part of a fusion. A system that is no
    `ConfiguredSystem` depends on what its own `depends_on` gives, if it has one.

    Args:
        system: what is asked.
        known: digests of files that were read for other systems just now; what is read for this one is added.

    Raises:
        UndigestedError: it is too much to be read, or may not be.
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
    """Name of each variable of the environment that the config fills in, and a digest of its value."""
    held = [*texts(system.config.model_dump()), *texts(system.declared.model_dump())]
    named = {name.removeprefix(ENV) for text in held for name in placeholders(text) if name.startswith(ENV)}
    for name in sorted(named | set(system.variables_of_with())):
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
    """What was named already, by the fusion that a system is part of."""
    folders: set[Path] = field(default_factory=set)
    """Being looked into: a link may lead back to one."""

    def of(self, path: Path) -> Iterator[list[str | None]]:
        """A path with the digest of its file; of a folder, all that is in it, in the order of names."""
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
            if log.is_file() and log.stat().st_size:  # of SQLite: what is not in the database's own file yet
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
