"""What the inspector found in the files of an answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cranfield.benefit.codecheck.python.ty import CheckerError, ProgramOutput, run_limited

Place = tuple[int, int]
_SECONDS, _BYTES = 20, 2 << 30
_IMPORT_ERRORS = {"ImportError", "ModuleNotFoundError"}
_NAME_ERRORS = {"AttributeError", "NameError"}


@dataclass(frozen=True, slots=True)
class Import:
    """A name that is imported."""

    line: int
    column: int
    level: int
    """Level of a relative import; 0: absolute."""
    module: str
    name: str
    """Empty: the module itself."""
    bound: str

    @property
    def target(self) -> str:
        """Dotted name of what the bound name stands for."""
        if self.name:
            return f"{self.module}.{self.name}"
        return self.module if self.bound != self.module.partition(".")[0] else self.bound


@dataclass(frozen=True, slots=True)
class TryStatement:
    """A `try` statement."""

    body: tuple[Place, ...]
    handlers: tuple[Place, ...]
    caught: frozenset[str]
    """Names of exceptions."""


@dataclass(frozen=True)
class FileFacts:
    """What is known of a file."""

    error: str = ""
    """Why it does not compile; empty: it does."""
    line: int = 0
    """Line of the error."""
    is_syntax: bool = False
    """The error is of syntax, which another version of Python may have."""
    unread: str = ""
    """Why its names could not be read; empty: they were, or it has an error."""
    compiles: bool = True
    """False: whether it compiles is not known."""
    encoding: str = "utf-8"
    imports: tuple[Import, ...] = ()
    guards: tuple[TryStatement, ...] = ()
    stored: frozenset[str] = frozenset()
    """Attributes that the file sets, and members of its classes."""
    bound: frozenset[str] = frozenset()
    uses: tuple[tuple[int, int, str], ...] = ()
    """Line, column and dotted name as written; a parameter as `function(parameter)`."""
    members: tuple[tuple[int, int, str, Place, Place], ...] = ()
    """Attributes that are read: line, column, name, and the place of the object."""
    calls: Mapping[Place, tuple[tuple[Place, Place], ...]] = field(default_factory=dict)
    """Places of the values of the arguments of each call."""
    callees: tuple[tuple[Place, Place, Place, Place], ...] = ()
    """First and last places of each call, and of what is called."""
    fixed: frozenset[Place] = frozenset()
    """Places of members in annotations and patterns, where no other expression may stand."""
    unplaced: frozenset[Place] = frozenset()
    """Places of members that are not where they seem to be."""
    typing_only: tuple[Place, ...] = ()
    """First and last lines of what only type checkers read."""
    versions: tuple[Place, ...] = ()
    """First and last lines of what depends on the version of Python."""
    hidden: tuple[int, ...] = ()
    """Lines that no type checker reads."""

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """Names that only imports bind, to what they stand for."""
        return {
            item.bound: item.target
            for item in self.imports
            if item.level == 0 and item.name != "*" and item.bound not in self.bound
        }

    @cached_property
    def run_imports(self) -> tuple[str, ...]:
        """The modules that the file imports when it is run, in its order."""
        return tuple(item.module for item in self.imports if item.level == 0 and not self.is_for_typing(item.line))

    @cached_property
    def written_at(self) -> Mapping[Place, str]:
        """Dotted names as written, by place."""
        return _by_place(self.uses)

    @cached_property
    def imported_at(self) -> Mapping[Place, str]:
        """Dotted names of what is imported, by the place of the use."""
        return _by_place(self.resolved_uses())

    def resolved_uses(self) -> Iterator[tuple[int, int, str]]:
        """Uses of names that are imported, with the dotted name of what is imported."""
        aliases = self.aliases
        for line, column, name in self.uses:
            head, dot, rest = name.partition(".")
            bare, bracket, parameter = head.partition("(")
            if bare in aliases:
                yield line, column, f"{aliases[bare]}{bracket}{parameter}{dot}{rest}"

    def depends_on_version(self, line: int) -> bool:
        """Whether the code asks for the version of Python before this line runs."""
        return _within(line, self.versions)

    def provides_for(self, line: int, failed: Sequence[int]) -> bool:
        """Whether the code runs without a symbol of this line; imports fail at `failed` lines."""
        is_guarded = any(self.is_guarded(line, is_import=is_import) for is_import in (True, False))
        return is_guarded or self.depends_on_version(line) or self.is_fallback(line, failed)

    def is_fixed(self, member: Place) -> bool:
        """Whether the object of a member cannot be replaced by another expression, so that its type is not revealed."""
        return member in self.fixed or member in self.unplaced

    def is_for_typing(self, line: int) -> bool:
        """Whether a line is read by type checkers alone."""
        return _within(line, self.typing_only)

    def is_guarded(self, line: int, *, is_import: bool) -> bool:
        """Whether the code itself handles a missing symbol at this line; a handler of every exception does not do so."""
        names = _IMPORT_ERRORS if is_import else _NAME_ERRORS
        return any(bool(guard.caught & names) and _within(line, guard.body) for guard in self.guards)

    def is_fallback(self, line: int, failed: Sequence[int]) -> bool:
        """Whether a line is in a handler of imports none of which fails at `failed` lines, and so never runs."""
        return any(
            bool(guard.caught & _IMPORT_ERRORS)
            and _within(line, guard.handlers)
            and any(_within(item.line, guard.body) for item in self.imports)
            and not any(_within(other, guard.body) for other in failed)
            for guard in self.guards
        )


def _by_place(uses: Iterable[tuple[int, int, str]]) -> Mapping[Place, str]:
    return {(line, column): name for line, column, name in reversed(list(uses)) if "(" not in name}


def _within(line: int, places: Sequence[Place]) -> bool:
    return any(first <= line <= last for first, last in places)


async def inspect_files(folder: Path, files: Sequence[str]) -> dict[str, FileFacts]:
    """Compile files and list their names, in a process with limits.

    Raises:
        CheckerError: no file could be inspected.
    """
    found: dict[str, FileFacts] = {}
    left = list(files)
    while left:
        output = await _inspect(folder, left)
        rows = output.stdout.decode("utf-8", "replace").split("\n")[:-1]
        found.update({name: _facts(json.loads(row)) for name, row in zip(left, rows, strict=False)})
        left = left[len(rows) :]
        if left and not rows:  # it is not that of a file before it
            if not await _inspects_anything(folder):
                raise CheckerError(f"files cannot be compiled here: {output.describe()}")
            reason = f"the compiler reached the limits of this check: {output.describe()}"
            found[left.pop(0)] = FileFacts(unread=reason, compiles=False)
    return found


async def _inspect(folder: Path, files: Sequence[str]) -> ProgramOutput:
    script = Path(__file__).with_name("inspector.py")
    argv = [sys.executable, "-I", "-S", str(script), str(folder), *files]
    return await run_limited(argv, cwd=folder, seconds=_SECONDS, n_bytes=_BYTES)


async def _inspects_anything(folder: Path) -> bool:
    (folder.parent / "empty.py").touch()
    return bool((await _inspect(folder.parent, ["empty.py"])).stdout)


def _facts(row: Any) -> FileFacts:
    if "unread" in row:
        return FileFacts(unread=row["unread"], compiles=row["compiles"])
    if "error" in row:
        return FileFacts(error=row["error"], line=row["line"], is_syntax=row["is_syntax"])
    return FileFacts(
        encoding=row["encoding"],
        imports=tuple(Import(*item) for item in row["imports"]),
        guards=tuple(
            TryStatement(tuple(map(tuple, body)), tuple(map(tuple, handlers)), frozenset(caught))
            for body, handlers, caught in row["guards"]
        ),
        stored=frozenset(row["stored"]),
        bound=frozenset(row["bound"]),
        uses=tuple(map(tuple, row["uses"])),
        members=tuple(
            (line, column, name, tuple(first), tuple(last)) for line, column, name, first, last in row["members"]
        ),
        calls={tuple(place): tuple((tuple(a), tuple(b)) for a, b in spans) for place, spans in row["calls"]},
        callees=tuple((tuple(a), tuple(b), tuple(c), tuple(d)) for a, b, c, d in row["callees"]),
        fixed=frozenset(map(tuple, row["fixed"])),
        unplaced=frozenset(map(tuple, row["unplaced"])),
        typing_only=tuple(map(tuple, row["typing_only"])),
        versions=tuple(map(tuple, row["versions"])),
        hidden=tuple(row["hidden"]),
    )
