"""What the type checker knows of the objects whose attributes code reads.

Types are read as it displays them, from a copy of a file in which each expression is passed to `reveal_type`. A type that has
an attribute of every name, by a `__getattr__` or because nothing is known of it, is found by reading one that is not defined.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cranfield.benefit.codecheck.python.facts import Import, Place
from cranfield.benefit.codecheck.python.probes import PROBE_MODULE, Copy, Edit, Expression, in_turns
from cranfield.benefit.codecheck.python.symbols import AttributeRead, Sources
from cranfield.benefit.codecheck.python.ty import (
    ARGUMENT_RULES,
    ATTRIBUTE,
    NO_MODULE,
    NO_NAME,
    OF_UNION,
    REVEALED,
    SYNTAX,
    Diagnostic,
    Workplace,
)

NO_TYPE = "the type of the object is unknown"
NO_SUCH_NAME = "cranfield_no_such_name"
_FUNCTION = "reveal_type("
_TYPE = re.compile(r"`(?P<type>.*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Unknown|Any|Divergent|@Todo.*|Todo.*")
_OPEN, _CLOSED = "[(<{", "])>}"
_Span = tuple[Place, Place]


@dataclass(frozen=True, slots=True)
class AttributeReading:
    """What is known of the objects whose attributes are read."""

    types: Mapping[Expression, str]
    """As the type checker displays them."""
    any_name: Mapping[str, str]
    """Types that have an attribute of every name, with the type of such an attribute."""
    rows: Mapping[tuple[str, Place], Diagnostic]
    """Diagnostics of attributes, by where they end."""

    def row(self, member: AttributeRead) -> Diagnostic | None:
        """What the type checker says against an attribute."""
        return self.rows.get((member.file, member.whole[2]))

    def types_of(self, member: AttributeRead) -> list[str]:
        """The types that the object may be of; none: nothing is known of it."""
        return components(self.types.get(member.object, ""))

    def doubt(self, member: AttributeRead) -> str:
        """Why the silence of the type checker says nothing of an attribute; empty: it has seen a definition."""
        if not self.types_of(member):
            return NO_TYPE
        row = self.row(member)
        if row is not None and row.rule == OF_UNION and row.lacking != "None":
            return f"the object may be of a type that has no such attribute: {row.message}"
        if self.types_of(member) == ["Never"]:
            return ""  # it is not run
        displayed, own = self.types[member.object], self.types.get(member.whole, "")
        of_any = self.any_name.get(displayed)
        if of_any is None or (components(own) and own != of_any):
            return ""
        return f"{displayed[:80]} has an attribute of every name"


async def read_members(place: Workplace, sources: Sources, rows: tuple[Diagnostic, ...]) -> AttributeReading:
    """All attributes that the files read.

    Raises:
        CheckerError: the type checker could not run.
    """
    free = [each for each in sources.members if not sources.facts[each.file].is_fixed(each.place[1:])]
    expressions = [expression for each in free for expression in (each.object, each.whole)]
    types = await _reveal_types(place, sources, expressions)
    examples = {types[each.object]: each.object for each in reversed(free) if components(types.get(each.object, ""))}
    any_name = await _types_of_any_name(place, sources, examples)
    wrong = {(row.file, row.end): row for row in rows if row.rule in {ATTRIBUTE, OF_UNION}}
    return AttributeReading(types, any_name, wrong)


async def names_of_any_kind(place: Workplace, names: Iterable[tuple[str, str]]) -> set[tuple[str, ...]]:
    """Names of modules, given with them, that the type checker takes only because such a module has every name.

    Raises:
        CheckerError: the type checker could not run.
    """
    wanted = sorted(names)
    if not wanted:
        return set()
    lines = [
        f"from {module} import {imported} as name_{number}; reveal_type(name_{number})"
        for number, (module, name) in enumerate(wanted)
        for imported in (name, NO_SUCH_NAME)
    ]
    rows = await place.run_copies({f"{PROBE_MODULE}.py": "\n".join([*lines, ""])})
    refused = {row.line for row in rows if row.rule in {NO_NAME, NO_MODULE}}
    types = {row.line: row.message for row in rows if row.rule == REVEALED}
    return {
        each
        for line, each in zip(range(1, len(lines), 2), wanted, strict=True)
        if line + 1 not in refused
        and (types.get(line) == types.get(line + 1) or not components(_shown_type(types.get(line, ""))))
    }


def is_of_import(row: Diagnostic, file: str, item: Import, sources: Sources) -> bool:
    """Whether a diagnostic is about an imported module or name."""
    if row.file != file:
        return False
    if row.rule == NO_NAME or not item.name:
        return row.rule in {NO_NAME, NO_MODULE} and (row.line, row.column) == (item.line, item.column)
    is_before = (row.line, row.column) < (item.line, item.column)
    return row.rule == NO_MODULE and is_before and sources.text_of(row) == item.module


async def rows_that_exist(
    place: Workplace, sources: Sources, rows: tuple[Diagnostic, ...], there: tuple[Diagnostic, ...]
) -> list[Diagnostic]:
    """Diagnostics whose symbol exists for another version or platform.

    Where what a symbol belongs to is not there either, the type checker says nothing of it: that is no proof.

    Args:
        place: with the files, for the other version or platform.
        sources: of the files.
        rows: that this version does not have.
        there: all symbols that the other version does not have.

    Raises:
        CheckerError: the type checker could not run.
    """
    owners = {row: owner for row in rows if (owner := _owner(row, sources)) is not None}
    types = await _reveal_types(place, sources, owners.values())
    any_name = await _types_of_any_name(place, sources, {displayed: owner for owner, displayed in types.items()})
    known = {owner for owner in owners.values() if components(types.get(owner, "")) and types[owner] not in any_name}
    return [row for row in rows if (owners[row] in known if row in owners else not _lacks_module(row, sources, there))]


def _owner(row: Diagnostic, sources: Sources) -> Expression | None:
    """The object of an attribute, or what is called with an argument; None: of neither."""
    if row.rule == ATTRIBUTE:
        member = sources.member_of(row)
        return member.object if member else None
    if row.rule in ARGUMENT_RULES:
        calls = [call for call in sources.facts[row.file].callees if call[0] <= (row.line, row.column) < call[1]]
        return (row.file, *max(calls)[2:]) if calls else None
    return None


def _lacks_module(row: Diagnostic, sources: Sources, there: tuple[Diagnostic, ...]) -> bool:
    items = [each for each in sources.facts[row.file].imports if (row.line, row.column) == (each.line, each.column)]
    return any(
        other.rule == NO_MODULE and is_of_import(other, row.file, item, sources) for item in items for other in there
    )


def _shown_type(text: str) -> str:
    """The type in a message of the type checker."""
    match = _TYPE.search(text)
    return match["type"] if match else ""


def components(displayed: str) -> list[str]:
    """The types of a union, without those of which nothing is known, and without None beside them."""
    if not displayed:
        return []
    parts, depth, part = [], 0, ""
    for position, sign in enumerate(displayed):
        depth += (sign in _OPEN) - (sign in _CLOSED and displayed[position - 1 : position + 1] != "->")
        if sign == "|" and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += sign
    known = [each for each in [*parts, part.strip()] if not _UNKNOWN.fullmatch(each)]
    return [] if known == ["None"] and parts else known


async def _reveal_types(place: Workplace, sources: Sources, expressions: Iterable[Expression]) -> dict[Expression, str]:
    """Types of expressions. Those of a file whose copy cannot be read are left out."""
    copies = {file: _revealing(sources.texts[file], spans) for file, spans in _by_file(expressions).items()}
    found: dict[Expression, str] = {}
    rows = await place.run_copies({file: text for file, (text, _) in copies.items()})
    for row in rows:
        span = copies[row.file][1].get((row.line, row.column))
        if row.rule == REVEALED and span is not None:
            found.setdefault((row.file, *span), _shown_type(row.message))
    broken = {row.file for row in rows if row.rule == SYNTAX}
    return {key: value for key, value in found.items() if key[0] not in broken}


async def _types_of_any_name(place: Workplace, sources: Sources, examples: Mapping[str, Expression]) -> dict[str, str]:
    """Types that have an attribute of every name, and the type of such an attribute; of each an expression is given."""
    found: dict[str, str] = {}
    for turn in in_turns(examples.items(), lambda example: example[1]):
        spans = _by_file(expression for _, expression in turn)
        copies = {file: _with_no_such_name(sources.texts[file], spans[file]) for file in spans}
        rows = await place.run_copies({file: copy.text for file, copy in copies.items()})
        at = {(file, *copies[file].moved(first)): displayed for displayed, (file, first, _) in turn}
        refused = {row.place for row in rows if row.rule in {ATTRIBUTE, OF_UNION}}
        for row in rows:
            if row.rule == REVEALED and row.place in at and row.place not in refused:
                found[at[row.place]] = _shown_type(row.message)
    return found


def _by_file(expressions: Iterable[Expression]) -> Mapping[str, set[_Span]]:
    found = defaultdict[str, set[_Span]](set)
    for file, first, last in expressions:
        found[file].add((first, last))
    return found


def _with_no_such_name(text: str, spans: Iterable[_Span]) -> Copy:
    """A copy that looks at an attribute that is not defined before each expression, whose value remains: other types follow from it."""
    copy = Copy(text, ())
    return Copy(
        text,
        [
            edit
            for first, last in spans
            for edit in (
                Edit(first, first, f"({_FUNCTION}"),
                Edit(last, last, f".{NO_SUCH_NAME}), {copy.between(first, last)})[1]"),
            )
        ],
    )


def _revealing(text: str, spans: Iterable[_Span]) -> tuple[str, dict[Place, _Span]]:
    """A copy, and the expression whose type is revealed at each place of it."""
    ordered = sorted(spans)
    copy = Copy(
        text,
        [
            *(Edit(last, last, ")") for _, last in ordered),
            *(Edit(first, first, _FUNCTION) for first, _ in ordered),
        ],
    )
    places, n_inside = dict[Place, _Span](), Counter[Place]()
    for first, last in ordered:  # of those that begin at one place, the innermost comes first, and begins last
        line, column = copy.moved(first)
        places[line, column - n_inside[first] * len(_FUNCTION)] = first, last
        n_inside[first] += 1
    return copy.text, places
