"""Where code uses a symbol of the map of deprecated symbols: by its imports, and by the types of objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cranfield.codecheck.deprecations import Deprecation
from cranfield.codecheck.python.facts import FileFacts, Place
from cranfield.codecheck.python.probes import PROBE_MODULE, type_stub, with_typed_objects
from cranfield.codecheck.python.symbols import Sources
from cranfield.codecheck.python.ty import NO_MODULE, Diagnostic, Workplace

_CALL = re.compile(r"\.(is|any)_(\d+)\($")
"""What stands before the argument of a function of the probe."""


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a symbol of the map."""

    file: str
    line: int
    column: int
    entry: Deprecation
    is_sure: bool = True
    """The type of the object is known."""

    def is_on_lines_of(self, row: Diagnostic) -> bool:
        """Whether a diagnostic is about the lines of this use."""
        return row.file == self.file and row.line <= self.line <= row.end[0]

    def is_at(self, row: Diagnostic) -> bool:
        """Whether a diagnostic is about this use."""
        if row.rule == NO_MODULE:
            return (row.file, row.line) == (self.file, self.line)
        return row.file == self.file and (row.line, row.column) <= (self.line, self.column) < row.end


@dataclass(frozen=True, slots=True)
class _Member:
    """An attribute whose name is that of a member in the map."""

    file: str
    line: int
    column: int
    first: Place
    last: Place
    entry: Deprecation


async def find_uses(
    place: Workplace, sources: Sources, entries: Mapping[str, Deprecation], version: str, platform: str
) -> tuple[Use, ...]:
    """Uses of the entries, which are given by name. What the code itself provides for is not among them.

    Raises:
        CheckerError: the type checker could not run.
    """
    found: list[Use] = []
    members: list[_Member] = []
    for file in sources.texts:
        facts = sources.facts[file]
        imported = [
            Use(file, item.line, item.column, entry)
            for item in facts.imports
            if item.level == 0
            for entry in [_longest(f"{item.module}.{item.name}" if item.name else item.module, entries)]
            if entry
        ]
        named = {(line, column): _longest(name, entries) for line, column, name in facts.resolved_uses()}
        known = {use.entry.symbol for use in imported}
        found += imported
        found += [Use(file, *at, entry) for at, entry in named.items() if entry and entry.symbol not in known]
        members += [row for row in _members(file, facts, entries.values()) if (row.line, row.column) not in named]
    found += await _typed_uses(place, sources, members, version, platform)
    return tuple(use for use in found if not _is_provided_for(use, sources.facts[use.file]))


def _longest(name: str, entries: Mapping[str, Deprecation]) -> Deprecation | None:
    """The entry of a name, or of the module or class that it is in."""
    while name and name not in entries:
        name = name.partition("(")[0] if name.endswith(")") else name.rpartition(".")[0]
    return entries.get(name)


def _members(file: str, facts: FileFacts, entries: Iterable[Deprecation]) -> list[_Member]:
    by_member: dict[str, list[Deprecation]] = {}
    for entry in entries:
        owner, dot, member = entry.symbol.partition(":")[2].rpartition(".")
        if owner and dot:
            by_member.setdefault(member, []).append(entry)
    return [
        _Member(file, line, column, first, last, entry)
        for line, column, name, first, last in facts.members
        for entry in by_member.get(name, ())
    ]


async def _typed_uses(
    place: Workplace, sources: Sources, members: list[_Member], version: str, platform: str
) -> list[Use]:
    """The members whose objects are of the class of the entry, or of unknown type."""
    found: list[Use] = []
    left = members
    while left:
        now: list[_Member] = []
        for row in left:  # objects that lie in one another take turns
            if all(row.file != other.file or row.last < other.first or other.last < row.first for other in now):
                now.append(row)
        left = [row for row in left if row not in now]
        refused = await _refused(place, sources, now, version, platform)
        for number, row in enumerate(now):
            if ("is", number) not in refused:
                found.append(Use(row.file, row.line, row.column, row.entry, is_sure=("any", number) in refused))
    return found


async def _refused(
    place: Workplace, sources: Sources, members: list[_Member], version: str, platform: str
) -> set[tuple[str, int]]:
    """Functions of the probe that do not take the object that is passed to them, by kind and number."""
    files = sorted({row.file for row in members})
    classes = [
        (module, name.rpartition(".")[0]) for row in members for module, _, name in [row.entry.symbol.partition(":")]
    ]
    probe = place.code / f"{PROBE_MODULE}.pyi"
    probe.write_text(type_stub(classes), encoding="utf-8")
    copies: dict[str, list[str]] = {}
    for file in files:
        numbers = [number for number, row in enumerate(members) if row.file == file]
        objects = [(members[number].first, members[number].last) for number in numbers]
        copy = with_typed_objects(sources.texts[file], objects, numbers)
        copies[file] = copy.split("\n")
        (place.code / file).write_text(copy, encoding="utf-8")
    rows = await place.run_types(version, platform, files)
    for file in files:
        (place.code / file).write_text(sources.texts[file], encoding="utf-8")
    probe.unlink()
    wrong = [row for row in rows if row.rule == "invalid-argument-type"]
    matches = (_CALL.search(copies[row.file][row.line - 1][: row.column - 1]) for row in wrong)
    return {(match[1], int(match[2])) for match in matches if match}


def _is_provided_for(use: Use, facts: FileFacts) -> bool:
    """Whether the code uses the symbol only where a newer one is not there."""
    guarded = any(facts.is_guarded(use.line, is_import=is_import) for is_import in (True, False))
    return guarded or facts.depends_on_version(use.line) or facts.is_fallback(use.line, ())
