"""A change of a tree, made in the text that the tree was read from.

The change is what differs between the data that a format writes of the old test set and of the new one. Its keys and values
are looked up in the text, and only they are replaced; what the format does not write, as comments and unknown keys, is not
looked at.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from cranfield.formats.io.delimited import separator_of
from cranfield.formats.io.records import RECORDS
from cranfield.formats.splice.parts import (
    MAX_TEMPLATES,
    Edits,
    SpliceMember,
    SplicePart,
    Style,
    UnspliceableError,
    json_lines_part,
    json_part,
    yaml_part,
)

_IDS = ("id", "query_id", "_id")
_WORDS = ("query", "query_text", "name", "description", "placeholders")
"""Keys by which an entry without an id is known again; those of an entry with one may change."""
_PLACES = ("doc_id", "docId", "rater", "regex")


def splice_tree(text: str, root: SplicePart, old: Any, new: Any, *, is_yaml: bool) -> str:
    """The text with what differs between two versions of its data.

    Args:
        text: the file as it stands.
        root: the same as parts.
        old: data that the format writes of the test set in the file.
        new: data that it writes of the changed one.
        is_yaml: whether the text is YAML; JSON otherwise.

    Raises:
        UnspliceableError: what changed is not in the text as the format writes it.
    """
    patch = _Patch(Style(text, root, is_yaml=is_yaml))
    patch.value(old, new, root)
    return patch.applied()


@dataclass(frozen=True, slots=True)
class _Insertion:
    after: int
    """Place of the member after which it stands; -1 before the first."""
    value: Any
    key: str | None = None


class _Patch:
    def __init__(self, style: Style) -> None:
        self.style = style
        self.edits = Edits()
        self._moved: dict[str, list[tuple[Any, SplicePart]]] = {}
        style.copied = self._copied
        self._changed: list[tuple[SplicePart, Sequence[_Insertion], Sequence[int]]] = []
        """Lists and mappings with the members that come and go: written last, when every entry that moves is known."""

    def applied(self) -> str:
        """The changed text."""
        for part, insertions, gone in self._changed:
            if part.style == "block":
                self._block_members(part, insertions, gone)
            else:
                self._flow_members(part, insertions, gone)
        return self.edits.applied(self.style.text)

    def _remember(self, value: Any, part: SplicePart) -> bool:
        """Keep the queries that leave their place, as they may stand elsewhere, and groups of them that stay as they are."""
        if isinstance(value, list):
            kept = [self._remember(item, member.part) for item, member in zip(value, part.members, strict=False)]
            return any(kept)
        if not isinstance(value, dict):
            return False
        found = {key: part.member(key) for key in value}
        below = [self._remember(value[key], member.part) for key, member in found.items() if member is not None]
        is_group = any(below)
        is_known = bool(set(_keys(value)).difference(_PLACES))
        if is_known:
            known_by = json.dumps(value, sort_keys=True) if is_group else _identity(value)
            self._moved.setdefault(known_by, []).append((value, part))
        return is_group or is_known

    def _copied(self, value: Any, indent: str) -> str | None:
        """The text of what left its place and is known by the same words, changed where it differs; None where none did."""
        known_by = (json.dumps(value, sort_keys=True), _identity(value)) if self._moved else ()
        entries = next((entries for key in known_by if (entries := self._moved.get(key))), None)
        if not entries:
            return None
        old, part = entries.pop(0)
        own = self.style.indent_at(part.start)
        text = own + self.style.text[part.start : part.end]
        changed = splice_tree(text, json_part(text), old, value, is_yaml=False)
        return changed[len(own) :].replace("\n" + own, "\n" + indent)

    def value(self, old: Any, new: Any, part: SplicePart) -> None:
        """Change a part that holds `old` into one that holds `new`."""
        if _same(old, new):
            return
        if isinstance(old, dict) and isinstance(new, dict):
            if part.kind == "list" and _same(_without_records(old), _without_records(new)):
                self.value(old.get(RECORDS), new.get(RECORDS), part)
                return
            if part.kind == "map":
                self._mapping(old, new, part)
                return
        if isinstance(old, list) and isinstance(new, list):
            records = part.member(RECORDS) if part.kind == "map" else None
            if records is not None or part.kind == "list":
                self._sequence(old, new, part if records is None else records.part)
                return
        raise UnspliceableError

    def _put(
        self, old: Any, new: Any, member: SpliceMember, parent: SplicePart, templates: Sequence[SplicePart]
    ) -> None:
        """Change a member, or replace it where it is of another kind now."""
        part = member.part
        if isinstance(old, dict | list) and type(old) is type(new) and part.kind != "scalar":
            self.value(old, new, part)
            return
        if part.kind != "scalar" and not _same(part.plain(), old):
            raise UnspliceableError  # it holds more than the format writes
        if parent.style == "block" and (part.style == "block" or (isinstance(new, dict | list) and new)):
            entry = {member.key: new} if parent.kind == "map" else [new]
            start = member.start
            if not self.style.text[self.style.line_start(start) : start].strip():
                indent = self.style.indent_at(start)
                block = self.style.block(entry, indent)
                self.edits.add(start, part.end, block[len(indent) :])
                return
            raise UnspliceableError
        at = self.style.indent_at(member.start)
        text = self.style.rewritten(part, new, templates, at, block=parent.style == "block")
        self.edits.add(part.start, part.end, text)

    def _mapping(self, old: dict[str, Any], new: dict[str, Any], part: SplicePart) -> None:
        insertions, after = [], -1
        places = {id(member): place for place, member in enumerate(part.members)}
        present = {key: member for key in {**old, **new} if (member := part.member(key)) is not None}
        for key, value in new.items():
            member = present.get(key)
            if member is None:
                if key not in old or not _same(old[key], value):
                    insertions.append(_Insertion(after, value, key))
                continue
            after = places[id(member)]
            was = old.get(key, type(value)() if isinstance(value, dict | list) else None)
            if not _same(was, value):
                self._put(was, value, member, part, [])
        first = min((places[id(member)] for key, member in present.items() if key in new), default=0)
        insertions = [_Insertion(first - 1, i.value, i.key) if i.after < 0 else i for i in insertions]
        gone = [places[id(member)] for key, member in present.items() if key not in new]
        self._members(part, insertions, sorted(gone))

    def _sequence(self, old: list[Any], new: list[Any], part: SplicePart) -> None:
        places = _aligned(old, part)
        insertions: list[_Insertion] = []
        gone: list[int] = []
        templates = [member.part for member in part.members[-MAX_TEMPLATES:]]
        for tag, first, last, start, stop in _opcodes(old, new):
            if tag == "equal" or _is_rewrite(old[first:last], new[start:stop]):
                for i, j in zip(range(first, last), range(start, stop), strict=True):
                    if not _same(old[i], new[j]):
                        self._put(old[i], new[j], part.members[places[i]], part, templates)
                continue
            gone += [places[i] for i in range(first, last)]
            for i in range(first, last):
                self._remember(old[i], part.members[places[i]].part)
            after = places[first - 1] if first else places[0] - 1 if places else -1
            after = len(part.members) - 1 if last == len(old) else after
            insertions += [_Insertion(after, value) for value in new[start:stop]]
        self._members(part, insertions, sorted(gone))

    def _members(self, part: SplicePart, insertions: Sequence[_Insertion], gone: Sequence[int]) -> None:
        if insertions or gone:
            self._changed.append((part, insertions, gone))

    def _block_members(self, part: SplicePart, insertions: Sequence[_Insertion], gone: Sequence[int]) -> None:
        style = self.style
        if len(gone) == len(part.members):
            self._replace_block(part, insertions)
            return
        for place in gone:
            member = part.members[place]
            start, stop = style.line_start(member.start), style.line_stop(member.end)
            if style.text[start : member.start].strip():
                raise UnspliceableError
            if start > 0:
                self.edits.add(start - len(style.line_end), stop, "")
            else:
                self.edits.add(start, stop + len(style.line_end), "")
        for insertion in insertions:
            entry = [insertion.value] if insertion.key is None else {insertion.key: insertion.value}
            before = part.members[max(insertion.after, 0)]
            indent = " " * (before.start - style.line_start(before.start))
            block = style.block(entry, indent)
            if insertion.after >= 0:
                stop = style.line_stop(before.end)
                self.edits.add(stop, stop, style.line_end + block)
            else:
                start = style.line_start(before.start)
                if style.text[start : before.start].strip():
                    raise UnspliceableError
                self.edits.add(start, start, block + style.line_end)

    def _replace_block(self, part: SplicePart, insertions: Sequence[_Insertion]) -> None:
        """Put members in the place of all that are there."""
        first = part.members[0].start
        indent = " " * (first - self.style.line_start(first))
        if not insertions or self.style.text[first - len(indent) : first].strip():
            raise UnspliceableError
        blocks = [self.style.block([i.value] if i.key is None else {i.key: i.value}, indent) for i in insertions]
        self.edits.add(first - len(indent), part.members[-1].end, self.style.line_end.join(blocks))

    def _flow_members(self, part: SplicePart, insertions: Sequence[_Insertion], gone: Sequence[int]) -> None:
        members, n = part.members, len(part.members)
        if not members:
            self._fill(part, insertions)
            return
        if len(gone) == n and insertions:
            between = self._between(part, 0)
            text = between.join(self._entry(part, insertion, between) for insertion in insertions)
            self.edits.add(members[0].start, members[-1].end, text)
            return
        if len(gone) == n:
            inside = self.style.text[part.start + 1 : members[0].start], self.style.text[members[-1].end : part.end - 1]
            multiline = all("\n" in blanks for blanks in inside) and part.style == "flow"
            span = (part.start + 1, part.end - 1) if multiline else (members[0].start, members[-1].end)
            self.edits.add(*span, "")
            return
        for first, last in _runs(gone):
            if first == 0:
                self.edits.add(members[0].start, members[last + 1].start, "")
            else:
                self.edits.add(members[first - 1].end, members[last].end, "")
        for insertion in insertions:
            after = max((place for place in range(insertion.after + 1) if place not in gone), default=-1)
            between = self._between(part, after)
            text = self._entry(part, insertion, between)
            if after < 0:
                self.edits.add(members[0].start, members[0].start, text + between)
            else:
                end = members[after].end
                self.edits.add(end, end, between + text)

    def _fill(self, part: SplicePart, insertions: Sequence[_Insertion]) -> None:
        """Put members into what is empty."""
        style = self.style
        if part.style == "lines":
            raise UnspliceableError
        own = style.indent_at(part.start)
        between = "," + style.line_end + own + style.unit if style.is_multiline and not style.is_yaml else style.comma
        text = between.join(self._entry(part, insertion, between) for insertion in insertions)
        if "\n" in between:
            blanks = between[1:]
            self.edits.add(part.start + 1, part.end - 1, blanks + text + style.line_end + own)
        else:
            self.edits.add(part.start + 1, part.start + 1, text)

    def _between(self, part: SplicePart, after: int) -> str:
        """What stands between two members there."""
        members, text = part.members, self.style.text
        if part.style == "lines" and len(members) == 1:
            return self.style.line_end
        if len(members) > 1:
            first = min(max(after, 0), len(members) - 2)
            return text[members[first].end : members[first + 1].start]
        before = text[part.start + 1 : members[0].start]
        return "," + before if "\n" in before else self.style.comma

    def _entry(self, part: SplicePart, insertion: _Insertion, between: str) -> str:
        style = self.style
        indent = between.rpartition("\n")[2] if "\n" in between else style.indent_at(part.start)
        templates = [member.part for member in part.members[-MAX_TEMPLATES:]]
        multiline = None if "\n" in between and part.style == "flow" else False
        key = "" if insertion.key is None else style.key(insertion.key)
        return key + style.flow(insertion.value, templates, indent, multiline=multiline)


def _same(old: Any, new: Any) -> bool:
    """Whether two values are equal, where true is not 1 at any depth."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_same(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _without_records(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != RECORDS}


def _is_rewrite(old: list[Any], new: list[Any]) -> bool:
    """Whether items that differ are the same ones, changed: as many, and none of another query."""
    if len(old) != len(new):
        return False
    pairs = ((i, j) for i, j in zip(old, new, strict=True) if isinstance(i, dict) and isinstance(j, dict))
    return all(i.get(key) == j.get(key) for i, j in pairs for key in {*_keys(i), *_keys(j)}.difference(_PLACES))


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of neighbours."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] == place - 1:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs


def _keys(item: Any) -> tuple[str, ...]:
    """The keys by which an entry of a list is known again."""
    if not isinstance(item, dict):
        return ()
    return tuple(key for key in (*(_IDS if item.keys() & set(_IDS) else _WORDS), *_PLACES) if key in item)


def _identity(item: Any) -> str:
    if isinstance(item, dict):
        found = {key: item[key] for key in _keys(item) if isinstance(item[key], str | int | float | dict)}
        if found:
            return json.dumps(found, sort_keys=True)
    return json.dumps(item, sort_keys=True)


def _known_by(value: Any) -> str:
    """A value by which an entry is known again: the number 1 and the text "1" are the same one."""
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else str(value)


def _opcodes(old: list[Any], new: list[Any]) -> list[tuple[str, int, int, int, int]]:
    before, after = [_identity(item) for item in old], [_identity(item) for item in new]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return list(matcher.get_opcodes())


def _aligned(old: list[Any], part: SplicePart) -> list[int]:
    """The place in the text of each item of the old list.

    Raises:
        UnspliceableError: one of them is not there.
    """
    by_keys: dict[tuple[str, ...], dict[str, list[int]]] = {}
    places: list[int] = []
    for item in old:
        keys = _keys(item)
        if keys not in by_keys:
            table: dict[str, list[int]] = {}
            for place in range(len(part.members) - 1, -1, -1):
                table.setdefault(_part_identity(part.members[place].part, keys), []).append(place)
            by_keys[keys] = table
        wanted = {key: _known_by(item[key]) for key in keys} if keys else item
        found = by_keys[keys].get(json.dumps(wanted, sort_keys=True))
        if not found:
            if len(old) == len(part.members):
                return list(range(len(old)))
            raise UnspliceableError
        places.append(found.pop())
    return places


def _part_identity(part: SplicePart, keys: tuple[str, ...]) -> str:
    if not keys:
        return json.dumps(part.plain(), sort_keys=True)
    values = {key: member.part.plain() for key in keys if (member := part.member(key)) is not None}
    return json.dumps({key: _known_by(value) for key, value in values.items()}, sort_keys=True)


_NAMES = ("id", "query_id", "_id", "query", "query_text", "text", "qid")


def place_of_item(path: Path, names: tuple[str, ...], item: str) -> tuple[int | None, int | None]:
    """Line and column at which a text file says an item of a query; None where it is not found.

    Args:
        path: of the test set.
        names: id and text of the query.
        item: what is judged, or the value of a stratum.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None, None
    found = _in_tree(text, path, names, item)
    if found is None:
        return _in_rows(text, names, item), None
    first = text.rfind("\n", 0, found) + 1
    return text.count("\n", 0, found) + 1, found - first + 1


def _in_tree(text: str, path: Path, names: tuple[str, ...], item: str) -> int | None:
    begins = text.lstrip()[:1] in {"{", "["}
    readers = (json_part, json_lines_part) if begins else (yaml_part,) if path.suffix in {".yaml", ".yml"} else ()
    for read in readers:
        try:
            root = read(text)
            found = _in_part(root, names, item)
            return found if found is not None else _in_part(root, names, None)
        except (UnspliceableError, RecursionError):
            continue
    return None


def _in_part(part: SplicePart, names: tuple[str, ...], item: str | None) -> int | None:
    """The item in an entry of the query; without an item, the entry."""
    if part.kind == "map" and any(
        member.key in _NAMES and str(member.part.value) in names
        for member in part.members
        if member.part.kind == "scalar"
    ):
        return part.start if item is None else _of_item(part, item)
    for member in part.members:
        if (found := _in_part(member.part, names, item)) is not None:
            return found
    return None


def _of_item(part: SplicePart, item: str) -> int | None:
    for member in part.members:
        if member.key == item or (member.part.kind == "scalar" and str(member.part.value) == item):
            return member.start
        if (found := _of_item(member.part, item)) is not None:
            return found
    return None


def _in_rows(text: str, names: tuple[str, ...], item: str) -> int | None:
    lines = text.splitlines()
    head = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    separator = separator_of(head.encode("utf-8", "replace"))
    for number, line in enumerate(lines, start=1):
        if item in line and any(name in line for name in names):
            try:
                cells = next(csv.reader([line], delimiter=separator), [])
            except csv.Error:
                cells = []
            words = {*(cell.strip() for cell in cells), *line.split()}
            if words & set(names) and any(word == item or word.startswith(f"{item}:") for word in words):
                return number
    return None
