"""Which diagnostics of the type checker are symbols that do not exist, and which of them exist elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from cranfield.benefit.codecheck.python.environment import Environment
from cranfield.benefit.codecheck.python.facts import FileFacts, Place
from cranfield.benefit.codecheck.python.probes import Expression, with_unknown_arguments
from cranfield.benefit.codecheck.python.ty import (
    ARGUMENT_RULES,
    ATTRIBUTE,
    NO_MODULE,
    NO_NAME,
    OVERLOAD,
    SYMBOL_RULES,
    Diagnostic,
    Workplace,
)
from cranfield.benefit.codecheck.report import CodeCheck, CodeFinding

_SYMBOL_CHARS = 80
_ANY_NAME = {"exec", "globals"}
"""A file that uses one of these may bind names at run time."""


@dataclass(frozen=True, slots=True)
class AttributeRead:
    """An attribute that is read."""

    file: str
    line: int
    column: int
    name: str
    first: Place
    """Start of the object."""
    last: Place

    @property
    def place(self) -> tuple[str, int, int]:
        """File, line and column of the attribute."""
        return self.file, self.line, self.column

    @property
    def object(self) -> Expression:
        """Object of which the attribute is read."""
        return self.file, self.first, self.last

    @property
    def whole(self) -> Expression:
        """The object with the attribute."""
        return self.file, self.first, (self.line, self.column + len(self.name))


@dataclass(frozen=True)
class Sources:
    """The files of an answer: texts and facts, by path; and what they may import."""

    texts: Mapping[str, str]
    facts: Mapping[str, FileFacts]
    environment: Environment
    """Environment with the packages that they may import."""

    @cached_property
    def members(self) -> tuple[AttributeRead, ...]:
        """All attributes that the files read."""
        return tuple(AttributeRead(file, *row) for file in self.texts for row in self.facts[file].members)

    @cached_property
    def stored(self) -> frozenset[str]:
        """Attributes that some file sets."""
        return frozenset().union(*(facts.stored for facts in self.facts.values()))

    @cached_property
    def own_modules(self) -> frozenset[str]:
        """Modules of the first level that the files are."""
        return frozenset(PurePosixPath(name).parts[0].removesuffix(".py") for name in self.texts)

    def is_of_package(self, module: str) -> bool:
        """Whether a module is of a package, and none of the files takes its place."""
        return self.environment.has(module) and module.partition(".")[0] not in self.own_modules

    def member_of(self, found: Diagnostic) -> AttributeRead | None:
        """The attribute that a diagnostic ends with."""
        return next((each for each in self.members if (each.file, each.whole[2]) == (found.file, found.end)), None)

    def text_of(self, found: Diagnostic) -> str:
        """What a diagnostic within a line marks."""
        return self.texts[found.file].split("\n")[found.line - 1][found.column - 1 : found.end[1] - 1]

    def symbol(self, found: Diagnostic) -> str:
        """The text that a diagnostic is about, with the module where an import tells it; of `a(b).c` the attribute `c`."""
        lines = self.texts[found.file].split("\n")[found.line - 1 : found.end[0]]
        if not lines:
            return ""
        last = lines[-1][: found.end[1] - 1]
        is_of_call = "(" in "\n".join([*lines[:-1], last])[found.column - 1 :]
        if found.rule == ATTRIBUTE and is_of_call and (name := re.search(r"\w+$", last)):
            return name[0][:_SYMBOL_CHARS]
        if found.line == found.end[0]:
            lines[0] = last
        text = lines[0][found.column - 1 :].partition("(")[0].partition(" as ")[0].strip()
        head, dot, rest = text.partition(".")
        module = self.facts[found.file].aliases.get(head, head) if dot else head
        return f"{module}{dot}{rest}"[:_SYMBOL_CHARS]

    def finding(self, found: Diagnostic, check: CodeCheck, message: str = "") -> CodeFinding:
        """A diagnostic as a finding."""
        return CodeFinding(check, found.file, found.line, self.symbol(found), message or found.message, found.rule)


def is_among(found: Diagnostic, rows: Iterable[Diagnostic]) -> bool:
    """Whether the symbol of a diagnostic is missing there too.

    A call may be refused at an argument by one version, and as a whole by another, which has the function with overloads.
    """
    return any(
        row.place == found.place
        or ({row.rule, found.rule} <= ARGUMENT_RULES and row.file == found.file and _overlap(row, found))
        for row in rows
    )


def _overlap(first: Diagnostic, second: Diagnostic) -> bool:
    return (first.line, first.column) < second.end and (second.line, second.column) < first.end


async def missing_symbols(
    place: Workplace, sources: Sources, rows: tuple[Diagnostic, ...] | None = None
) -> tuple[Diagnostic, ...]:
    """Diagnostics of symbols, of which `rows` are those of the type checker; a place once. Calls that are refused for the types of their arguments are not among them.

    Raises:
        CheckerError: the type checker could not run.
    """
    if rows is None:
        rows = await place.run_types(list(sources.texts))
    found = {row.place: row for row in rows if row.rule in SYMBOL_RULES}
    refused = {row.place for row in found.values() if row.rule == OVERLOAD}
    for name in {file for file, _, _ in refused}:
        calls = [(line, column) for file, line, column in refused if file == name]
        copy, places = with_unknown_arguments(sources.texts[name], sources.facts[name], calls)
        again = await place.run_copies({name: copy.text})
        still = {(row.line, row.column) for row in again if row.rule == OVERLOAD}
        for call in calls:
            if places.get(call) not in still:
                del found[name, *call]
    return tuple(found.values())


def split_unknown(
    found: Iterable[Diagnostic], sources: Sources, decided: AbstractSet[Diagnostic] = frozenset()
) -> tuple[tuple[Diagnostic, ...], tuple[tuple[Diagnostic, str], ...]]:
    """Diagnostics that stand, and those that nothing can be concluded from, with the reason; without those that are decided."""
    found = tuple(found)
    standing: list[Diagnostic] = []
    unknown: list[tuple[Diagnostic, str]] = []
    for row in found:
        if row in decided:
            continue
        facts = sources.facts[row.file]
        failed = [other.line for other in found if other.file == row.file and _is_import(other)]
        if facts.is_guarded(row.line, is_import=_is_import(row)) or facts.is_fallback(row.line, failed):
            continue  # the code expects that it may be missing
        reason = _why_unknown(row, facts, sources)
        if reason is None:
            standing.append(row)
        elif reason:
            unknown.append((row, reason))
    return tuple(standing), tuple(unknown)


def _is_import(row: Diagnostic) -> bool:
    return row.rule in {NO_MODULE, NO_NAME}


def _why_unknown(row: Diagnostic, facts: FileFacts, sources: Sources) -> str | None:
    """None: the diagnostic stands; empty: it is about nothing that is read."""
    if row.rule == "unresolved-reference":
        stars = any(item.name == "*" and sources.environment.is_untyped(item.module) for item in facts.imports)
        is_open = stars or any(name in _ANY_NAME for _, _, name in facts.uses)
        return "the file binds names that are not known statically" if is_open else None
    if row.rule != ATTRIBUTE:
        return None
    read = sources.member_of(row)
    if read is None:
        return None if not facts.members and facts.error else ""
    is_imported = read.place[1:] in facts.imported_at
    return None if is_imported or read.name not in sources.stored else "the code itself sets an attribute of this name"
