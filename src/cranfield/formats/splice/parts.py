"""JSON, JSON Lines and YAML text as a tree of parts that know where they begin and end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from cranfield.formats.io.delimited import JUDGMENT_COLUMNS
from cranfield.formats.io.tree import MAX_DEPTH, scalar
from cranfield.formats.io.yaml_text import Dumper, yaml_text

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE = re.compile(r"[^\r\n]+")
_DECODER = json.JSONDecoder()
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
ALIASES = tuple(
    frozenset(names)
    for names in (
        JUDGMENT_COLUMNS["query_id"][:-1],
        JUDGMENT_COLUMNS["doc_id"],
        JUDGMENT_COLUMNS["grade"],
        ("query_text", "text", "query"),
        ("pattern", "regex"),
        ("id", "query_id"),
    )
)
"""Names of one thing, in keys of JSON Lines and in columns of tables."""


class UnspliceableError(Exception):
    """The change cannot be made in the text: the caller writes the whole file, or refuses."""


class Edits:
    """Replacements of stretches of a text, which do not overlap."""

    def __init__(self) -> None:
        self._edits: list[tuple[int, int, str]] = []

    def add(self, start: int, end: int, text: str) -> None:
        """Replace what stands from `start` to `end`."""
        self._edits.append((start, end, text))

    def applied(self, text: str) -> str:
        """The text with the replacements; at one place in the order that they were added.

        Raises:
            UnspliceableError: two overlap.
        """
        pieces, position = [], 0
        # Before new lines at one place comes what ends the line there.
        for start, end, new in sorted(self._edits, key=lambda edit: (edit[0], edit[1], edit[2][:1] in "\r\n")):
            if start < position:
                raise UnspliceableError
            pieces += [text[position:start], new]
            position = end
        return "".join([*pieces, text[position:]])


@dataclass(slots=True, eq=False)
class SplicePart:
    """A value in a text."""

    start: int
    end: int
    kind: Literal["scalar", "list", "map"]
    value: Any = None
    """Value of a scalar."""
    members: list[SpliceMember] = field(default_factory=list)
    style: Literal["flow", "block", "lines"] = "flow"
    """Style of a list or mapping: in brackets, by indentation (YAML), or one value a line (JSON Lines)."""

    def member(self, key: str) -> SpliceMember | None:
        """The member under a key, or under another name of the same thing."""
        found = {member.key: member for member in self.members}
        if key in found:
            return found[key]
        names = next((names for names in ALIASES if key in names and names & found.keys()), frozenset[str]())
        return next((found[name] for name in found if name in names), None)

    def plain(self) -> Any:
        """The value as plain data."""
        if self.kind == "map":
            return {member.key: member.part.plain() for member in self.members}
        return [member.part.plain() for member in self.members] if self.kind == "list" else self.value


@dataclass(slots=True, eq=False)
class SpliceMember:
    """A value in its list or mapping."""

    start: int
    """Where its key, its dash or, in a list in brackets, the value itself begins."""
    part: SplicePart
    key: str = ""

    @property
    def end(self) -> int:
        """Where its value ends."""
        return self.part.end


def json_part(text: str) -> SplicePart:
    """JSON text as parts.

    Raises:
        UnspliceableError: it is no JSON, or too deep.
    """
    position = _skip(text, 0)
    part = _json_value(text, position, 0)
    if _skip(text, part.end) != len(text):
        raise UnspliceableError
    return part


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _json_value(text: str, start: int, depth: int) -> SplicePart:
    char = text[start : start + 1]
    if char in {"{", "["} and char:
        return _json_container(text, start, depth)
    try:
        value, end = _DECODER.raw_decode(text, start)
    except ValueError:
        raise UnspliceableError from None
    return SplicePart(start, end, "scalar", value)


def _json_container(text: str, start: int, depth: int) -> SplicePart:
    if depth > MAX_DEPTH:
        raise UnspliceableError
    is_map = text[start] == "{"
    closing = "}" if is_map else "]"
    part = SplicePart(start, start, "map" if is_map else "list")
    position = _skip(text, start + 1)
    while not text.startswith(closing, position):
        if part.members:
            if not text.startswith(",", position):
                raise UnspliceableError
            position = _skip(text, position + 1)
        first, key = position, ""
        if is_map:
            key, position = _json_key(text, position)
        member = SpliceMember(first, _json_value(text, position, depth + 1), key)
        part.members.append(member)
        position = _skip(text, member.end)
    part.end = position + 1
    return part


def _json_key(text: str, position: int) -> tuple[str, int]:
    """A key, and where its value begins."""
    if not text.startswith('"', position):
        raise UnspliceableError
    try:
        key, end = _DECODER.raw_decode(text, position)
    except ValueError:
        raise UnspliceableError from None
    end = _skip(text, end)
    if not text.startswith(":", end):
        raise UnspliceableError
    return key, _skip(text, end + 1)


def json_lines_part(text: str) -> SplicePart:
    """JSON Lines as a list of parts.

    Raises:
        UnspliceableError: a line that is no JSON value.
    """
    root = SplicePart(0, len(text), "list", style="lines")
    for found in _LINE.finditer(text):
        if found.group().strip():
            start = _skip(text, found.start())
            part = _json_value(text, start, 0)
            if text[part.end : found.end()].strip():
                raise UnspliceableError
            root.members.append(SpliceMember(start, part))
    return root


def yaml_part(text: str) -> SplicePart:
    """YAML text as parts.

    Raises:
        UnspliceableError: it is no YAML, or has aliases or tags of its own.
    """
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except (yaml.YAMLError, RecursionError):
        raise UnspliceableError from None
    if node is None:
        raise UnspliceableError
    return _Yaml(text).part(node)


class _Yaml:
    def __init__(self, text: str) -> None:
        self.text = text
        self.seen: set[int] = set()

    def part(self, node: yaml.Node) -> SplicePart:
        if id(node) in self.seen:
            raise UnspliceableError
        self.seen.add(id(node))
        start, end = node.start_mark.index, node.end_mark.index
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, start, end)
        style: Literal["flow", "block"] = "flow" if getattr(node, "flow_style", False) else "block"
        is_map = isinstance(node, yaml.MappingNode)
        part = SplicePart(start, end, "map" if is_map else "list", style=style)
        if isinstance(node, yaml.MappingNode):
            part.members = [
                SpliceMember(key.start_mark.index, self.part(value), str(key.value)) for key, value in node.value
            ]
        elif isinstance(node, yaml.SequenceNode):
            column = node.start_mark.column
            for item in node.value:
                value = self.part(item)
                first = value.start if style == "flow" else self._dash(value.start, column)
                part.members.append(SpliceMember(first, value))
        if style == "block" and part.members:
            part.end = part.members[-1].end
        return part

    def _scalar(self, node: yaml.ScalarNode, start: int, end: int) -> SplicePart:
        written = self.text[start:end].rstrip() if node.style in {"|", ">"} else self.text[start:end]
        value = node.value if node.style else scalar(node.value)  # libyaml: "" for a plain one
        return SplicePart(start, start + len(written), "scalar", value)

    def _dash(self, position: int, column: int) -> int:
        """The dash of an item of a list that is indented by so much."""
        for first in self._line_starts(position):
            if self.text.startswith("-", first + column):
                return first + column
            if self.text[first:position].strip(" \t\r\n"):
                break
        raise UnspliceableError

    def _line_starts(self, position: int) -> Iterator[int]:
        while position >= 0:
            position = self.text.rfind("\n", 0, position)
            yield position + 1


_UNICODE_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
_COLON = re.compile(r'"([ \t]*:[ \t]*)["\[{\dtfn-]')
_COMMA = re.compile(r'["\]}\dlse],([ \t]*)["\[{\dtfn-]')
MAX_TEMPLATES = 40


class Style:
    """The layout of one text."""

    def __init__(self, text: str, root: SplicePart, *, is_yaml: bool) -> None:
        self.text = text
        self.is_yaml = is_yaml
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        self.ascii = text.isascii() and _UNICODE_ESCAPE.search(text) is not None
        self.is_multiline = root.style == "flow" and "\n" in text[root.start : root.end]
        colon, comma = _COLON.search(text), _COMMA.search(text)
        self.colon = colon[1] if colon else ": "
        self.comma = "," + (comma[1] if comma else "" if self.colon == ":" else " ")
        self.unit = self._unit(root)
        self.copied: Callable[[Any, str], str | None] = lambda _value, _indent: None
        """The text of an entry that stands elsewhere already, from its value and its indentation; None where none does."""

    def _unit(self, root: SplicePart) -> str:
        """What a level is indented by."""
        for part in _containers(root):
            before = self.text[part.start : part.members[0].start]
            if "\n" in before:
                inner, own = before.rpartition("\n")[2], self.indent_at(part.start)
                if inner.startswith(own) and len(inner) > len(own):
                    return inner[len(own) :]
        return "  "

    def indent_at(self, position: int) -> str:
        """The blanks that the line of a position begins with."""
        line = self.text[self.line_start(position) : position]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def line_start(self, position: int) -> int:
        """Where the line of a position begins."""
        return self.text.rfind("\n", 0, position) + 1

    def line_stop(self, position: int) -> int:
        """Where the line of a position ends, its break not included."""
        found = self.text.find("\n", position)
        stop = len(self.text) if found < 0 else found
        return stop - 1 if stop > position and self.text[stop - 1] == "\r" else stop

    def flow(self, value: Any, templates: Sequence[SplicePart], indent: str, *, multiline: bool | None = None) -> str:
        """A value in brackets, as its templates are laid out: values that stand in the same place of other entries."""
        if self.is_yaml:
            return _yaml_flow(value)
        if not isinstance(value, dict | list) or not value:
            return json.dumps(value, ensure_ascii=self.ascii)
        if (copied := self.copied(value, indent)) is not None:
            return copied
        full = [
            part for part in templates if part.members and part.kind == ("map" if isinstance(value, dict) else "list")
        ]
        if full:
            multiline = "\n" in self.text[full[0].start : full[0].end]
        elif multiline is None:
            multiline = self.is_multiline
        inner = indent + self.unit
        if isinstance(value, dict):
            pieces = [
                json.dumps(key, ensure_ascii=self.ascii)
                + self.colon
                + self.flow(value[key], _under(full, key), inner, multiline=multiline)
                for key in _ordered(value, full)
            ]
        else:
            below = [member.part for part in full for member in part.members][:MAX_TEMPLATES]
            pieces = [self.flow(item, below, inner, multiline=multiline) for item in value]
        first, last = ("{", "}") if isinstance(value, dict) else ("[", "]")
        if not multiline:
            return first + self.comma.join(pieces) + last
        between = "," + self.line_end + inner
        return first + self.line_end + inner + between.join(pieces) + self.line_end + indent + last

    def rewritten(
        self, part: SplicePart, value: Any, templates: Sequence[SplicePart], indent: str, *, block: bool
    ) -> str:
        """Another value in the place of one, in the same quotes; `block`: it stands in YAML by indentation."""
        quote = self.text[part.start : part.start + 1]
        if isinstance(value, str) and self.is_yaml and part.kind == "scalar" and value.isprintable():
            if quote == '"':
                return json.dumps(value, ensure_ascii=False)
            if quote == "'":
                return "'" + value.replace("'", "''") + "'"
        if block and isinstance(value, str) and (written := self.block({"x": value}, "")).startswith("x: "):
            return written.removeprefix("x: ")
        return self.flow(value, templates, indent)

    def key(self, key: str) -> str:
        """A key of a mapping in brackets, with its colon."""
        return _yaml_flow(key) + ": " if self.is_yaml else json.dumps(key, ensure_ascii=self.ascii) + self.colon

    def block(self, value: dict[str, Any] | list[Any], indent: str) -> str:
        """An entry of YAML by indentation, without a line end."""
        if isinstance(value, list):
            lines = yaml_text({"x": value}).split("\n")[1:]
            shift = len(lines[0]) - len(lines[0].lstrip(" "))
            lines = [line[shift:] for line in lines]
        else:
            lines = yaml_text(value).split("\n")
        while lines and not lines[-1]:
            lines.pop()
        return self.line_end.join(indent + line if line else line for line in lines)


def _yaml_flow(value: Any) -> str:
    """A value on one line of YAML."""
    written = yaml.dump(
        [value], Dumper=Dumper, allow_unicode=True, sort_keys=False, width=1 << 30, default_flow_style=True
    )
    return str(written).strip()[1:-1]


def _containers(part: SplicePart) -> list[SplicePart]:
    """A part and what is in it: lists and mappings that hold something, the outer ones first; the beginning of a large file."""
    found = [part] if part.members else []
    for inner in found:
        if len(found) > MAX_TEMPLATES:
            break
        found += [member.part for member in inner.members[:MAX_TEMPLATES] if member.part.members]
    return found


def _under(templates: Sequence[SplicePart], key: str) -> list[SplicePart]:
    found = (part.member(key) for part in templates)
    return [member.part for member in found if member is not None]


def _ordered(value: dict[str, Any], templates: Sequence[SplicePart]) -> list[str]:
    """The keys of a new entry in the order of the others."""
    if not templates:
        return list(value)
    places = {member.key: place for place, member in enumerate(templates[0].members)}
    if not places.keys() & value.keys():
        return list(value)
    ranks: dict[str, tuple[int, int]] = {}
    rank = -1
    for number, key in enumerate(value):
        rank = places.get(key, rank)
        ranks[key] = (rank, number)
    return sorted(value, key=lambda key: ranks[key])
