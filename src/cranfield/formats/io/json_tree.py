"""JSON text as a tree with places: the standard library reads strings, this module keeps the positions it forgets."""

from __future__ import annotations

import json
import re
from bisect import bisect_right

from cranfield.errors import Problem, shorten
from cranfield.formats.io.tree import (
    MAX_NUMBER_CHARS,
    Node,
    NodeValue,
    TreeBuilder,
    Unreadable,
    real_number,
    whole_number,
)

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
            raise self._error("a string that does not end or holds a bad character", error.pos, "a string") from None
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
