"""How a text is laid out, and new values written in the same way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import yaml

from cranfield.formats.io.yaml_text import Dumper, yaml_text
from cranfield.formats.splice.parts import SplicePart

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
