"""The tree that YAML and JSON files are read into: values with their places, numbers with their source text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cranfield.base.errors import Problem, shorten
from cranfield.model.kinds import SourceFloat, SourceInt

MAX_DEPTH = 64
"""Lists and mappings nested deeper than this are refused."""
MAX_NUMBER_CHARS = 300
"""Longer digits are text: no number of that length is meant as one."""

Loc = tuple[str | int, ...]
"""Keys and list positions from the top of a file."""

_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


NodeValue = str | SourceInt | SourceFloat | bool | None | list["Node"] | dict[str, "Node"]


@dataclass(slots=True, eq=False)
class Node:
    """One value of a file."""

    line: int
    column: int
    value: NodeValue
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where each key of a mapping stands."""
    size: int = 1
    """Nodes in it, those reached through aliases included."""
    height: int = 1

    def child(self, step: str | int) -> Node | None:
        """The value under a key or list position; None where there is none."""
        if isinstance(self.value, dict) and isinstance(step, str):
            return self.value.get(step)
        if isinstance(self.value, list) and isinstance(step, int) and 0 <= step < len(self.value):
            return self.value[step]
        return None


class Unreadable(Exception):  # noqa: N818  never seen by users: `load_located` turns it into the caller's error
    """A file that is no tree: what is wrong, without the path."""

    def __init__(self, problems: Sequence[Problem], *, is_syntax: bool = False) -> None:
        super().__init__(problems)
        self.problems = problems
        self.is_syntax = is_syntax


def scalar(text: str) -> str | SourceInt | SourceFloat | bool | None:
    """What unquoted text means: a word of YAML 1.2's JSON schema, a number, or itself."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > MAX_NUMBER_CHARS:
        return text
    if _INT.fullmatch(text):
        return whole_number(text)
    if _FLOAT.fullmatch(text) or text in _SPECIAL_FLOAT:
        return real_number(text)
    return text


def whole_number(text: str) -> SourceInt:
    """Digits as an int with its source."""
    number = SourceInt(text)
    number.source = text
    return number


def real_number(text: str) -> SourceFloat:
    """A decimal, or one of YAML's words for what is not finite, as a float with its source."""
    number = SourceFloat(_SPECIAL_FLOAT.get(text, text))
    number.source = text
    return number


def plain_number(value: Any) -> Any:
    """A number without its source text; anything else unchanged."""
    if isinstance(value, SourceInt):
        return int(value)
    return float(value) if isinstance(value, SourceFloat) else value


def plain_values(value: Any) -> Any:
    """The same data, numbers without their source text."""
    if isinstance(value, Mapping):
        return {key: plain_values(inner) for key, inner in value.items()}
    return [plain_values(inner) for inner in value] if isinstance(value, list) else plain_number(value)


def sourced(node: Node) -> Any:
    """The tree as dict, list, str, bool, None, and numbers that remember their source."""
    value = node.value
    if isinstance(value, dict):
        return {key: sourced(child) for key, child in value.items()}
    return [sourced(child) for child in value] if isinstance(value, list) else value


def describe(value: object) -> str:
    """A value of a file in a few words: quoted, or its kind and size."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (SourceInt, SourceFloat)):
        return value.source
    if isinstance(value, Mapping):
        return f"keys with values ({len(value)})" if value else "an empty mapping"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"a list of {len(value)}" if value else "an empty list"
    return shorten(value)


def field_name(loc: Loc) -> str:
    """A place in the data as people write it: `queries[0].judgments['a b']`."""
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.replace("-", "_").isidentifier():
            text += f".{step}" if text else step
        else:
            text += f"[{shorten(step)}]"
    return text


class TreeBuilder:
    """Puts values, keys and ends together into a tree, in the order a parser meets them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.root: Node | None = None
        self._open: list[Node] = []
        self._keys: list[tuple[str, int, int] | None] = []

    def begin(self, line: int, column: int, value: list[Node] | dict[str, Node]) -> None:
        """A list or mapping starts."""
        if len(self._open) >= MAX_DEPTH:
            raise Unreadable([Problem(f"nested more than {MAX_DEPTH} levels deep", line=line, column=column)])
        self._open.append(Node(line, column, value))
        self._keys.append(None)

    def end(self) -> Node:
        """The innermost list or mapping is complete."""
        node = self._open.pop()
        self._keys.pop()
        self._place(node)
        return node

    @property
    def wants_key(self) -> bool:
        """True when the next scalar is a key."""
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._keys[-1] is None

    def key(self, text: str, line: int, column: int) -> None:
        """A key, whose value comes next."""
        self._keys[-1] = (text, line, column)

    def add(self, node: Node) -> None:
        """A complete scalar."""
        self._place(node)

    def repeat(self, target: Node, line: int, column: int) -> None:
        """A complete value once more, through an alias."""
        if len(self._open) + target.height - 1 > MAX_DEPTH:
            raise Unreadable([Problem(f"nested more than {MAX_DEPTH} levels deep", line=line, column=column)])
        self._place(target)

    def _place(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if isinstance(parent.value, list):
            parent.value.append(node)
        elif isinstance(parent.value, dict) and (key := self._keys[-1]) is not None:
            self._keys[-1] = None
            text, line, column = key
            if text in parent.value:
                first = parent.keys[text]
                self.problems.append(
                    Problem(f"duplicate key {text!r}; it also occurs on line {first[0]}", line=line, column=column)
                )
                return
            parent.value[text] = node
            parent.keys[text] = (line, column)
        parent.size += node.size
        parent.height = max(parent.height, node.height + 1)

    def result(self) -> Node | None:
        """The whole tree; None when there was no value. Raises when a key stood twice."""
        if self.problems:
            raise Unreadable(self.problems)
        return self.root
