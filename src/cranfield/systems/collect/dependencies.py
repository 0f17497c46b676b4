"""The digest of what a system depends on besides its config.

Cached answers are reused, and a collection is resumed, only if the digest is unchanged. Contents of files are read whole;
sizes and modification times are not used.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path

from cranfield.base.concurrency.child_process import NotStartedError, TooMuchOutputError, child_process, exit_reason
from cranfield.base.concurrency.loop import event_loop
from cranfield.config.strict import ENV, fill, placeholders, texts
from cranfield.config.systems import VersionCommand, VersionField
from cranfield.model import Query
from cranfield.systems.configured import ConfiguredSystem
from cranfield.systems.kinds.command import argument_files
from cranfield.systems.system import System

MAX_BYTES = 1024**3
"""Maximum size of all files together."""
MAX_FILES = 20_000
PASSED_OVER = frozenset({"__pycache__", ".cranfield"})
"""Folders that are ignored: Python and Cranfield write them."""


class UndigestedError(Exception):
    """The dependencies of a system cannot be digested; the message is the reason."""


def is_declared(system: System) -> bool:
    """Whether a system says what its answers depend on."""
    if isinstance(system, ConfiguredSystem):
        return system.declares_dependencies
    depends_on = getattr(system, "depends_on", None)
    return depends_on is not None and any(True for _ in depends_on())


def dependency_digest(
    system: System, known: dict[Path, str] | None = None, *, query: Query | None = None, k: int = 10
) -> str:
    """SHA-256 over everything that a system depends on besides its config.

    Covers the folder that its paths are relative to, the files and folders of `depends_on` with their contents, the output
    of version commands, the fields that name a version, the values of variables that its config names, and the same for
    every part of a fusion. Of a system that is not a `ConfiguredSystem`, only `depends_on` is used, if it has one.

    Args:
        system: the system.
        known: digests of files that were read for other systems; those of this one are added.
        query: sent to read fields that name a version.
        k: number of results requested with it.

    Raises:
        UndigestedError: what it declares is not there, files are too large or not readable, a command failed, or there is
            no such field.
    """
    hasher = sha256(b"cranfield surroundings 1\n")
    contents = _Contents({} if known is None else known)
    try:
        for record in _records(system, contents, query, k):
            hasher.update(json.dumps(record).encode() + b"\n")
    except OSError as error:
        raise UndigestedError(f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}") from None
    return "sha256:" + hasher.hexdigest()


def _records(system: System, contents: _Contents, query: Query | None, k: int) -> Iterator[list[str | None]]:
    if isinstance(system, ConfiguredSystem):
        yield ["folder", str(system.folder)]
        yield from _variables(system)
        for entry in system.config.depends:
            if isinstance(entry, VersionCommand):
                yield ["command", *entry.command, event_loop().run(_output(system, entry.command))]
            elif isinstance(entry, VersionField):
                yield ["field", entry.field, _field(system, entry.field, query, k)]
            elif not (system.cwd / entry).exists():
                raise UndigestedError(f"{entry}, named in its `depends`, does not exist")
    depends_on = getattr(system, "depends_on", None)
    paths = {Path(path) for path in depends_on()} if depends_on is not None else set()
    if isinstance(system, ConfiguredSystem) and system.set_up is not None:
        paths.update(path for command in system.set_up.commands for path in argument_files(system, command))
    for path in sorted(paths - contents.done):
        yield from contents.of(path)
    contents.done |= paths
    parts: Mapping[str, System] = getattr(system, "parts", {})
    for name, part in sorted(parts.items()):
        yield ["part", name, part.config_digest]
        yield from _records(part, contents, query, k)


async def _output(system: ConfiguredSystem, command: Sequence[str]) -> str:
    """Digest of what a version command prints."""
    shown = f"`{shlex.join(command)}`, named in its `depends`,"
    argv = fill(command, query="", k=0, python=sys.executable, params={})
    try:
        async with (
            asyncio.timeout(system.config.timeout_s),
            child_process(argv, cwd=system.cwd, env=system.environment) as child,
        ):
            status = await child.run()
            printed = bytes(child.stdout)
    except NotStartedError as error:
        raise UndigestedError(f"{shown} could not be started: {error}") from None
    except TooMuchOutputError:
        raise UndigestedError(f"{shown} printed too much") from None
    except TimeoutError:
        raise UndigestedError(f"{shown} did not end in {system.config.timeout_s:g} s") from None
    if status:
        raise UndigestedError(f"{shown} ended with {exit_reason(status)}")
    if not printed.strip():
        raise UndigestedError(f"{shown} printed nothing")
    return sha256(printed).hexdigest()


def _field(system: ConfiguredSystem, name: str, query: Query | None, k: int) -> str:
    """The value of a field of the answer to a query, as JSON."""
    if query is None:
        raise UndigestedError(f"no query to read the field {name} with")
    answer, _ = system.search(query, k)
    if answer.outcome.is_failure:
        raise UndigestedError(f"the call that reads the field {name} failed: {answer.reason or answer.outcome.value}")
    value = answer.fields.get(name)
    if value is None:
        raise UndigestedError(f"the answer to its first query has no field {name}")
    return json.dumps(value, sort_keys=True, default=str)


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
            for name in sorted({entry.name for entry in path.iterdir()} - PASSED_OVER):
                yield from self.of(path / name)
            self.folders.discard(real)
        else:
            yield ["neither file nor folder", str(path)]  # opening a pipe would wait for its writer

    def _count(self, path: Path, n_bytes: int) -> None:
        self.n_bytes += n_bytes
        self.n_files += 1
        if self.n_bytes > MAX_BYTES or self.n_files > MAX_FILES:
            limit = f"{MAX_BYTES // 1024**3} GB" if self.n_bytes > MAX_BYTES else f"{MAX_FILES:,} files"
            hint = "name in `depends` a small file that changes with them"
            raise UndigestedError(f"the files it depends on are over {limit}, counted up to {path} ({hint})")
