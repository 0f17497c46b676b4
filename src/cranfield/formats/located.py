"""Files of keys and values (YAML or JSON) as plain data that remembers its places, and pydantic's complaints in words.

Reading is in `yaml_tree` and `json_tree`; here are the value they make, `Located`, and the one door, `load_located`.
What the keys mean is said by the models of each format; `validate` lays one over the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from cranfield.errors import CranfieldError, Problem
from cranfield.formats.files import decode, read_bytes
from cranfield.formats.tree import Node, SourceFloat, SourceInt, Unreadable, plain, sourced
from cranfield.formats.validation import describe, field_name, validate

__all__ = ["Loc", "Located", "PlainScalar", "Text", "describe", "field_name", "load_located", "validate"]

Loc = tuple[str | int, ...]


@dataclass(frozen=True)
class Located:
    """A file's data, with the line and column of every key and value."""

    path: Path
    root: Node

    @property
    def data(self) -> dict[str, Any]:
        """Plain dict, list, str, int, float, bool and None."""
        data = plain(self.root)
        return data if isinstance(data, dict) else {}

    @property
    def sourced(self) -> dict[str, Any]:
        """As `data`, but every number remembers how it was written: what `validate` works on."""
        data = sourced(self.root)
        return data if isinstance(data, dict) else {}

    def mark(self, loc: Loc, *, key: bool = False) -> tuple[int, int]:
        """1-based line and column of the value at `loc`, or of its nearest known ancestor.

        Args:
            loc: keys and list positions from the top.
            key: ask for the place of the last key, not of its value.
        """
        node, above = self.root, self.root
        for step in loc:
            child = node.child(step)
            if child is None:
                return node.line, node.column
            node, above = child, node
        if key and loc and isinstance(loc[-1], str):
            return above.keys[loc[-1]]
        return node.line, node.column

    def problem(self, message: str, loc: Loc, *, key: bool = False, **fields: str | None) -> Problem:
        """A problem at the place of `loc`; `fields` are `expected`, `got` and `hint`."""
        line, column = self.mark(loc, key=key)
        return Problem(message, path=str(self.path), line=line, column=column, **fields)


class _LateLocated(Located):
    """JSON whose values are read, and whose places are looked for when one is asked for: most files have no problem."""

    def __init__(self, path: Path, text: str, values: dict[str, Any]) -> None:
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_values", values)

    @cached_property
    def root(self) -> Node:  # a field above, found late here
        """The tree with its places."""
        from cranfield.formats.json_tree import parse_json

        text: str = self.__dict__["_text"]
        return parse_json(text)

    @property
    def sourced(self) -> dict[str, Any]:
        """The values as they were read."""
        values: dict[str, Any] = self.__dict__["_values"]
        return values


def load_located(path: Path, error: type[CranfieldError]) -> Located:
    """Read a YAML or JSON file whose top is a mapping.

    Scalars are those of YAML 1.2's JSON schema: `true`, `false`, `null`, numbers; all else is text (`no`, `012:30`,
    dates). Text that starts with `{` is tried as JSON first, because YAML refuses some of it.

    Raises:
        CranfieldError: of type `error`, with every duplicate key; or with the first syntax error.
    """
    text = decode(read_bytes(path, error), path, error)
    if text.lstrip().startswith("{"):
        from cranfield.formats.json_values import json_values

        values = json_values(text)
        if isinstance(values, dict):
            return _LateLocated(path, text, values)
    try:
        root = _parse(text, path)
    except Unreadable as unreadable:
        raise error([_at(path, problem) for problem in unreadable.problems]) from None
    if not isinstance(root.value, dict):
        what = "a list" if isinstance(root.value, list) else describe(root.value)
        raise error(
            Problem(
                f"{what} at the top of the file",
                path=str(path),
                line=root.line,
                column=root.column,
                expected="keys with values, as `name: …`",
            )
        )
    return Located(path, root)


def _at(path: Path, problem: Problem) -> Problem:
    return replace(problem, path=str(path))


def _parse(text: str, path: Path) -> Node:
    from cranfield.formats.json_tree import parse_json
    from cranfield.formats.yaml_tree import parse_yaml

    if not text.strip():
        raise Unreadable([Problem("the file is empty")])
    if path.suffix.lower() == ".json":
        return parse_json(text)
    if text.lstrip().startswith("{"):
        try:
            return parse_json(text)
        except Unreadable as unreadable:
            if not unreadable.is_syntax:
                raise
    return parse_yaml(text)


def source_text(value: Any) -> Any:
    """A scalar as it was written; anything else unchanged, for the model to refuse."""
    if isinstance(value, (SourceInt, SourceFloat)):
        return value.source
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value


def plain_scalar(value: Any) -> Any:
    """A number whose writing is more than its value (`3.10`, `007`) as text; anything else unchanged."""
    if isinstance(value, (SourceInt, SourceFloat)) and value.source != repr(value):
        return value.source
    return value


Text = Annotated[str, BeforeValidator(source_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""A model field that is text however it is spelled: `007`, `1.10` and `true` keep their source."""

PlainScalar = Annotated[
    str | int | float | bool,
    BeforeValidator(plain_scalar),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
"""A model field that is text, a number or true/false, and that comes out as it was written (`3.10` is text)."""
