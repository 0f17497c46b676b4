"""YAML and JSON files as plain data that keeps the line and column of every key and value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cranfield.base.errors import CranfieldError, Problem
from cranfield.formats.io.files import decode, read_bytes, shown, suffix_of
from cranfield.formats.io.tree import Loc, Node, Unreadable, describe, sourced


class Located:
    """A file's data; the line and column of every key and value are looked for when a problem asks for one."""

    def __init__(self, path: Path, tree: Node | Callable[[], Node], values: Any = None) -> None:
        self.path = path
        self._tree = tree
        self._values = values

    @cached_property
    def root(self) -> Node:
        """The data with their places."""
        return self._tree() if callable(self._tree) else self._tree

    @property
    def top(self) -> Any:
        """Whatever stands at the top of the file, every number as it was written: what `validate` works on."""
        if self._values is None:
            self._values = sourced(self.root)
        return self._values

    @property
    def sourced(self) -> dict[str, Any]:
        """The same, of a mapping."""
        return self.top if isinstance(self.top, dict) else {}

    def within(self, *steps: str | int) -> Located:
        """What stands at a place that is there."""

        def tree() -> Node:
            node = self.root
            for step in steps:
                node = node.child(step) or node
            return node

        values = self.top
        for step in steps:
            values = values[step]
        return Located(self.path, tree, values)

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

    def problem(
        self,
        message: str,
        loc: Loc,
        *,
        key: bool = False,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> Problem:
        """A problem at the place of `loc`."""
        line, column = self.mark(loc, key=key)
        return Problem(message, shown(self.path), line, column, expected, got, hint)


def load_located(path: Path, error: type[CranfieldError]) -> Located:
    """Read a YAML or JSON file whose top is a mapping.

    Scalars are those of YAML 1.2's JSON schema: `true`, `false`, `null`, numbers; all else is text (`no`, `012:30`,
    dates).

    Raises:
        CranfieldError: of type `error`, with every duplicate key; or with the first syntax error.
    """
    located = load_any(path, error)
    if not isinstance(located.top, dict):
        what = "a list" if isinstance(located.top, list) else describe(located.top)
        raise error(located.problem(f"{what} at the top of the file", (), expected="keys with values, as `name: …`"))
    return located


def load_any(path: Path, error: type[CranfieldError], *, is_json: bool = False) -> Located:
    """Read a YAML or JSON file, whatever is at its top; no YAML where `is_json`. Raises as `load_located`.

    Text that starts with a bracket is tried as JSON first, because YAML refuses some of it.
    """
    text = decode(read_bytes(path, error), path, error)
    try:
        return located_text(text, path, is_json=is_json or suffix_of(path) == ".json")
    except Unreadable as unreadable:
        raise error([replace(problem, path=shown(path)) for problem in unreadable.problems]) from None


def located_text(text: str, path: Path, *, is_json: bool) -> Located:
    """Text as located data.

    Raises:
        Unreadable: it is neither, or no JSON where it has to be.
    """
    from cranfield.formats.io.json_text import json_values, parse_json
    from cranfield.formats.io.yaml_text import parse_yaml

    if not text.strip():
        raise Unreadable([Problem("the file is empty")])
    begins = text.lstrip()[:1] in {"{", "["}
    if (is_json or begins) and (values := json_values(text)) is not None:
        return Located(path, lambda: parse_json(text), values)
    if is_json or begins:  # for the most part, an error with its place
        try:
            return Located(path, parse_json(text))
        except Unreadable as unreadable:
            if is_json or not unreadable.is_syntax:
                raise
    return Located(path, parse_yaml(text))
