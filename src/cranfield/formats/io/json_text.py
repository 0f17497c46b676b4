"""JSON text: as plain values at the speed of the standard library, as a tree with places, and as lines of objects.

The standard library forgets positions: `parse_json` finds them, for files in which something is wrong.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from cranfield.base.errors import Problem, ProblemList, shorten
from cranfield.formats.io.files import MAX_PROBLEMS
from cranfield.formats.io.tree import (
    MAX_DEPTH,
    MAX_NUMBER_CHARS,
    Node,
    NodeValue,
    TreeBuilder,
    Unreadable,
    describe,
    real_number,
    whole_number,
)
from cranfield.model.kinds import SourceFloat, SourceInt

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_DECODER = json.JSONDecoder()
_CLOSING = {"[": "]", "{": "}"}


def parse_json(text: str) -> Node:
    """Read one JSON value.

    Raises:
        Unreadable: with the first syntax error, or with every duplicate key.
    """
    return _Json(text).read()


class _Json:
    """One pass over the text with a stack of the brackets that are open."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.builder = TreeBuilder()
        self.brackets: list[str] = []
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def read(self) -> Node:
        position = self._value(self._skip(0))
        while self.brackets:
            position = self._next(position)
        if position < len(self.text):
            raise self._error("text after the end of the value", position, "the end of the file")
        root = self.builder.result()
        if root is None:
            raise self._error("no value", 0, "a JSON value")
        return root

    def _place(self, position: int) -> tuple[int, int]:
        line = bisect_right(self.starts, position)
        return line, position - self.starts[line - 1] + 1

    def _error(self, message: str, position: int, expected: str) -> Unreadable:
        line, column = self._place(position)
        got = shorten(self.text[position : position + 20]) if position < len(self.text) else "the end of the file"
        problem = Problem(f"not valid JSON: {message}", line=line, column=column, expected=expected, got=got)
        return Unreadable([problem], is_syntax=True)

    def _skip(self, position: int) -> int:
        found = _SPACE.match(self.text, position)
        return found.end() if found else position

    def _string(self, position: int) -> tuple[str, int]:
        try:
            value, end = _DECODER.raw_decode(self.text, position)
        except json.JSONDecodeError as error:
            raise self._error(
                "a string that does not end or contains an invalid character", error.pos, "a string"
            ) from None
        return str(value), end

    def _value(self, position: int) -> int:
        """Read a scalar, or go into a list or mapping; returns where the next thing starts."""
        line, column = self._place(position)
        start = self.text[position : position + 1]
        if start in _CLOSING:
            self.builder.begin(line, column, [] if start == "[" else {})
            self.brackets.append(start)
            return self._first(self._skip(position + 1))
        value: NodeValue
        if start == '"':
            value, end = self._string(position)
        elif found := _NUMBER.match(self.text, position):
            end = found.end()
            if len(found.group()) > MAX_NUMBER_CHARS:
                raise self._error(f"a number of more than {MAX_NUMBER_CHARS} characters", position, "a shorter one")
            value = real_number(found.group()) if found.group(2) or found.group(3) else whole_number(found.group())
        elif found := _WORD.match(self.text, position):
            value, end = _WORDS[found.group()], found.end()
        else:
            raise self._error("no value here", position, "a value")
        self.builder.add(Node(line, column, value))
        return self._skip(end)

    def _first(self, position: int) -> int:
        """What follows an opening bracket: its end, or its first member."""
        if self.text.startswith(_CLOSING[self.brackets[-1]], position):
            return self._close(position)
        return self._member(position)

    def _next(self, position: int) -> int:
        """What follows a member: the end of its list or mapping, or a comma and another member."""
        closing = _CLOSING[self.brackets[-1]]
        if self.text.startswith(closing, position):
            return self._close(position)
        if not self.text.startswith(",", position):
            raise self._error("a comma or bracket is missing", position, f"`,` or `{closing}`")
        return self._member(self._skip(position + 1))

    def _member(self, position: int) -> int:
        if self.brackets[-1] == "{":
            if not self.text.startswith('"', position):
                raise self._error("no key here", position, "a key in double quotes")
            key, end = self._string(position)
            end = self._skip(end)
            if not self.text.startswith(":", end):
                raise self._error("no colon after the key", end, "`:`")
            self.builder.key(key, *self._place(position))
            position = self._skip(end + 1)
        return self._value(position)

    def _close(self, position: int) -> int:
        self.brackets.pop()
        self.builder.end()
        return self._skip(position + 1)


def json_values(text: str) -> Any:
    """What `tree.sourced(parse_json(text))` gives; None where the text is no JSON, or goes beyond the limits of a tree."""
    try:
        values = json.loads(
            text, object_pairs_hook=_with_unique_keys, parse_int=_whole, parse_float=_real, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        return None
    return values if _is_flat_enough(values) else None


@lru_cache(maxsize=4096)
def _whole(text: str) -> SourceInt:
    if len(text) > MAX_NUMBER_CHARS:
        raise ValueError("a long number")
    return whole_number(text)


@lru_cache(maxsize=4096)
def _real(text: str) -> SourceFloat:
    if len(text) > MAX_NUMBER_CHARS:
        raise ValueError("a long number")
    return real_number(text)


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _is_flat_enough(values: Any) -> bool:
    """Whether lists and mappings are nested no deeper than a tree may be."""
    level = [values]
    for _ in range(MAX_DEPTH + 1):
        inner = [node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list)]
        if not inner:
            return True
        level = [value for part in inner for value in part if isinstance(value, dict | list)]
    return False


def json_objects(
    lines: Iterable[str | bytes],
    path: str,
    problems: ProblemList,
    *,
    expected: str = "an object a line",
    unique_keys: bool = False,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line that is not blank, until there are too many problems.

    Args:
        lines: text, or bytes that should be UTF-8.
        path: what problems call the file.
        problems: gets every line that is not an object.
        expected: what a line should be, in problems.
        unique_keys: whether a key that a line has twice is a problem.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if unique_keys and isinstance(record, dict) and line.count('":') != len(record):  # type: ignore[arg-type]  # text
                record = json.loads(line, object_pairs_hook=_with_unique_keys)
        except (ValueError, RecursionError) as error:  # bytes that are not UTF-8 are a ValueError too
            message = f"not valid JSON: {getattr(error, 'msg', error)}"
            column = getattr(error, "colno", None)
            problems.add(message, path=path, line=number, column=column, expected=expected)
        else:
            if isinstance(record, dict):
                yield number, record
            else:
                problems.add("no object", path=path, line=number, expected=expected, got=describe(record))
        if len(problems.problems) >= MAX_PROBLEMS:
            return


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return record
