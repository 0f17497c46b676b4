"""JSON, JSON Lines and YAML text as a tree of parts that know where they begin and end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from cranfield.formats.io.delimited import JUDGMENT_COLUMNS
from cranfield.formats.io.tree import MAX_DEPTH, scalar

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
