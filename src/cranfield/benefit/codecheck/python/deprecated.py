"""Where code uses a symbol of the map of deprecated symbols: by its imports, and by the types of objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cranfield.benefit.codecheck.python.probes import PROBE_MODULE, in_turns, type_stub, with_typed_objects
from cranfield.benefit.codecheck.python.symbols import AttributeRead, Sources
from cranfield.benefit.codecheck.python.ty import NO_MODULE, Diagnostic, Workplace
from cranfield.benefit.codecheck.report import Deprecation

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


_Named = tuple[AttributeRead, Deprecation]
"""An attribute whose name is that of a member in the map."""


async def find_uses(place: Workplace, sources: Sources, entries: Mapping[str, Deprecation]) -> tuple[Use, ...]:
    """Uses of the entries, which are given by name. What the code itself provides for is not among them.

    Raises:
        CheckerError: the type checker could not run.
    """
    found: list[Use] = []
    named_at = set[tuple[str, int, int]]()
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
        named_at |= {(file, *at) for at in named}
    members = [(each, entry) for each, entry in _members(sources, entries.values()) if each.place not in named_at]
    found += await _typed_uses(place, sources, members)
    return tuple(use for use in found if not sources.facts[use.file].provides_for(use.line, ()))


def _longest(name: str, entries: Mapping[str, Deprecation]) -> Deprecation | None:
    """The entry of a name, or of the module or class that it is in."""
    while name and name not in entries:
        name = name.partition("(")[0] if name.endswith(")") else name.rpartition(".")[0]
    return entries.get(name)


def _members(sources: Sources, entries: Iterable[Deprecation]) -> list[_Named]:
    by_member: dict[str, list[Deprecation]] = {}
    for entry in entries:
        owner, dot, member = entry.symbol.partition(":")[2].rpartition(".")
        if owner and dot:
            by_member.setdefault(member, []).append(entry)
    return [(each, entry) for each in sources.members for entry in by_member.get(each.name, ())]


async def _typed_uses(place: Workplace, sources: Sources, members: list[_Named]) -> list[Use]:
    """The members whose objects are of the class of the entry, or of unknown type."""
    found: list[Use] = []
    for turn in in_turns(dict.fromkeys(members), lambda row: row[0].object):
        refused = await _refused(place, sources, turn)
        for number, (member, entry) in enumerate(turn):
            if ("is", number) not in refused:
                found.append(Use(*member.place, entry, is_sure=("any", number) in refused))
    return found


async def _refused(place: Workplace, sources: Sources, members: list[_Named]) -> set[tuple[str, int]]:
    """Functions of the probe that do not take the object that is passed to them, by kind and number."""
    symbols = [entry.symbol.partition(":") for _, entry in members]
    copies = {f"{PROBE_MODULE}.pyi": type_stub([(module, name.rpartition(".")[0]) for module, _, name in symbols])}
    for file in {member.file for member, _ in members}:
        numbers = [number for number, (member, _) in enumerate(members) if member.file == file]
        objects = [(members[number][0].first, members[number][0].last) for number in numbers]
        copies[file] = with_typed_objects(sources.texts[file], objects, numbers)
    wrong = [row for row in await place.run_copies(copies) if row.rule == "invalid-argument-type"]
    lines = {file: copy.split("\n") for file, copy in copies.items()}
    matches = (_CALL.search(lines[row.file][row.line - 1][: row.column - 1]) for row in wrong)
    return {(match[1], int(match[2])) for match in matches if match}
