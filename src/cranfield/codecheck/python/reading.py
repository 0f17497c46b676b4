"""What the type checker knows of the objects whose attributes code reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cranfield.codecheck.python.facts import Import, Place
from cranfield.codecheck.python.probes import PROBE_MODULE
from cranfield.codecheck.python.revealed import (
    NO_SUCH_NAME,
    Expression,
    components,
    reveal_types,
    shown_type,
    types_of_any_name,
)
from cranfield.codecheck.python.symbols import ARGUMENT_RULES, Sources
from cranfield.codecheck.python.ty import ATTRIBUTE, NO_MODULE, NO_NAME, OF_UNION, REVEALED, Diagnostic, Workplace

NO_TYPE = "the type of the object is not known"


@dataclass(frozen=True, slots=True)
class Member:
    """An attribute that is read."""

    file: str
    line: int
    column: int
    name: str
    first: Place
    """Of the object."""
    last: Place

    @property
    def object(self) -> Expression:
        """Of which it is read."""
        return self.file, self.first, self.last

    @property
    def whole(self) -> Expression:
        """The object with the attribute."""
        return self.file, self.first, (self.line, self.column + len(self.name))


@dataclass(frozen=True, slots=True)
class Reading:
    """The attributes that are read, and what is known of their objects."""

    members: tuple[Member, ...]
    types: Mapping[Expression, str]
    """As the type checker displays them."""
    any_name: Mapping[str, str]
    """Types that have an attribute of every name, with the type of such an attribute."""
    rows: Mapping[tuple[str, Place], Diagnostic]
    """Diagnostics of attributes, by where they end."""

    def row(self, member: Member) -> Diagnostic | None:
        """What the type checker says against an attribute."""
        return self.rows.get((member.file, member.whole[2]))

    def types_of(self, member: Member) -> list[str]:
        """The types that the object may be of; none: nothing is known of it."""
        return components(self.types.get(member.object, ""))

    def doubt(self, member: Member) -> str:
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


async def read_members(
    place: Workplace, sources: Sources, rows: tuple[Diagnostic, ...], version: str, platform: str
) -> Reading:
    """All attributes that the files read.

    Raises:
        CheckerError: the type checker could not run.
    """
    members = tuple(Member(file, *row) for file in sources.texts for row in sources.facts[file].members)
    free = [each for each in members if not is_fixed(each, sources)]
    expressions = [expression for each in free for expression in (each.object, each.whole)]
    types = await reveal_types(place, sources.texts, expressions, version, platform)
    examples = {types[each.object]: each.object for each in reversed(free) if components(types.get(each.object, ""))}
    any_name = await types_of_any_name(place, sources.texts, examples, version, platform)
    wrong = {(row.file, row.end): row for row in rows if row.rule in {ATTRIBUTE, OF_UNION}}
    return Reading(members, types, any_name, wrong)


async def names_of_any_kind(
    place: Workplace, names: Iterable[tuple[str, str]], version: str, platform: str
) -> set[tuple[str, ...]]:
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
    probe = place.code / f"{PROBE_MODULE}.py"
    probe.write_text("\n".join([*lines, ""]), encoding="utf-8")
    rows = await place.run_types(version, platform, [probe.name])
    probe.unlink()
    refused = {row.line for row in rows if row.rule in {NO_NAME, NO_MODULE}}
    types = {row.line: row.message for row in rows if row.rule == REVEALED}
    return {
        wanted[index]
        for index in range(len(wanted))
        if 2 * index + 2 not in refused
        and (
            types.get(2 * index + 1) == types.get(2 * index + 2)
            or not components(shown_type(types.get(2 * index + 1, "")))
        )
    }


def is_fixed(member: Member, sources: Sources) -> bool:
    """Whether the object cannot be replaced by another expression, so that its type is not revealed."""
    facts, at = sources.facts[member.file], (member.line, member.column)
    return at in facts.fixed or at in facts.unplaced


def is_of_import(row: Diagnostic, item: Import, sources: Sources) -> bool:
    """Whether a diagnostic is about an imported module or name."""
    if row.rule == NO_NAME or not item.name:
        return row.rule in {NO_NAME, NO_MODULE} and (row.line, row.column) == (item.line, item.column)
    is_before = (row.line, row.column) < (item.line, item.column)
    return row.rule == NO_MODULE and is_before and sources.text_of(row) == item.module


async def rows_that_exist(
    place: Workplace,
    sources: Sources,
    rows: tuple[Diagnostic, ...],
    there: tuple[Diagnostic, ...],
    version: str,
    platform: str,
) -> list[Diagnostic]:
    """Diagnostics whose symbol exists for another version or platform.

    Where what a symbol belongs to is not there either, the type checker says nothing of it: that is no proof.

    Args:
        place: with the files.
        sources: of the files.
        rows: that this version does not have.
        there: all diagnostics of the other version.
        version: the other one.
        platform: the other one.

    Raises:
        CheckerError: the type checker could not run.
    """
    owners = {row: owner for row in rows if (owner := _owner(row, sources)) is not None}
    types = await reveal_types(place, sources.texts, owners.values(), version, platform)
    examples = {displayed: owner for owner, displayed in types.items()}
    any_name = await types_of_any_name(place, sources.texts, examples, version, platform)
    known = {owner for owner in owners.values() if components(types.get(owner, "")) and types[owner] not in any_name}
    return [row for row in rows if (owners[row] in known if row in owners else not _lacks_module(row, sources, there))]


def _owner(row: Diagnostic, sources: Sources) -> Expression | None:
    """The object of an attribute, or what is called with an argument; None: of neither."""
    facts = sources.facts[row.file]
    if row.rule == ATTRIBUTE:
        found = [
            (first, last) for line, column, name, first, last in facts.members if (line, column + len(name)) == row.end
        ]
        return (row.file, *found[0]) if found else None
    if row.rule in ARGUMENT_RULES:
        calls = [call for call in facts.callees if call[0] <= (row.line, row.column) < call[1]]
        _, _, first, last = max(calls, default=((0, 0), (0, 0), (0, 0), (0, 0)))
        return (row.file, first, last) if calls else None
    return None


def _lacks_module(row: Diagnostic, sources: Sources, there: tuple[Diagnostic, ...]) -> bool:
    items = [each for each in sources.facts[row.file].imports if (row.line, row.column) == (each.line, each.column)]
    return any(
        other.file == row.file and other.rule == NO_MODULE and is_of_import(other, item, sources)
        for item in items
        for other in there
    )
