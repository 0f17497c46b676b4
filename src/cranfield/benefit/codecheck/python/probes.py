"""Rewritten copies of a file that decide what a diagnostic leaves open.

The type of an object is compared with a class by passing the object to a function that takes the class, and to one that
takes a class of which there is no object: what both take is of unknown type.

A call that matches no overload may have arguments of a wrong type, or arguments that the function does not have. The copy
passes a value of unknown type in the place of each argument: what is still refused is refused for its arguments' names or number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cranfield.benefit.codecheck.python.facts import FileFacts, Place

Item = TypeVar("Item")
Expression = tuple[str, Place, Place]
"""File, first and last place."""
UNKNOWN = '__import__("unknown").value'
"""An expression of which a type checker knows nothing."""

PROBE_MODULE = "cranfield_probe"
"""Name of the module of `type_stub`, which stands beside the copies."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Text that replaces what is between two places."""

    first: Place
    last: Place
    text: str


class Copy:
    """A text with edits, and where its places have moved."""

    def __init__(self, text: str, edits: Iterable[Edit]) -> None:
        self._text = text
        self._starts = _line_starts(text)
        self._ends, self._moves = [0], [0]
        parts: list[str] = []
        position = moved = 0
        for edit in sorted(edits, key=lambda edit: edit.first):
            first, last = self._offset(edit.first), self._offset(edit.last)
            if first < position:
                continue  # inside of what another edit has replaced
            parts += [text[position:first], edit.text]
            moved += len(edit.text) - (last - first)
            self._ends.append(last)
            self._moves.append(moved)
            position = last
        self.text = "".join([*parts, text[position:]])
        self._moved_starts = _line_starts(self.text)

    def _offset(self, place: Place) -> int:
        return self._starts[place[0] - 1] + place[1] - 1

    def between(self, first: Place, last: Place) -> str:
        """The text between two places, before any edit."""
        return self._text[self._offset(first) : self._offset(last)]

    def moved(self, place: Place) -> Place:
        """Where a place that no edit replaced is in the copy."""
        offset = self._offset(place)
        offset += self._moves[bisect_right(self._ends, offset) - 1]
        line = bisect_right(self._moved_starts, offset)
        return line, offset - self._moved_starts[line - 1] + 1


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def in_turns(items: Iterable[Item], expression: Callable[[Item], Expression]) -> Iterator[list[Item]]:
    """Items whose expressions do not lie in one another, until there are none left: one copy can change all of a turn."""
    left = list(items)
    while left:
        now, later = list[Item](), list[Item]()
        for item in left:
            file, first, last = expression(item)
            others = map(expression, now)
            is_apart = all(file != other or last <= start or end <= first for other, start, end in others)
            (now if is_apart else later).append(item)
        yield now
        left = later


def with_unknown_arguments(text: str, facts: FileFacts, calls: Iterable[Place]) -> tuple[Copy, Mapping[Place, Place]]:
    """A copy in which these calls have arguments of unknown type; where each call is in it.

    An argument that holds another of the calls is left as it is: the result of a refused call is unknown.
    """
    wanted = [place for place in calls if place in facts.calls]
    edits = [
        Edit(first, last, UNKNOWN)
        for place in wanted
        for first, last in facts.calls[place]
        if not any(first <= other < last for other in wanted)
    ]
    copy = Copy(text, edits)
    return copy, {place: copy.moved(place) for place in wanted}


def with_typed_objects(text: str, objects: Sequence[tuple[Place, Place]], numbers: Sequence[int]) -> str:
    """A copy in which each object, given by its places, is passed to the two functions of a number of `type_stub`."""
    copy = Copy(text, ())
    edits = [
        Edit(
            first,
            last,
            f"(__import__({PROBE_MODULE!r}).is_{number}({part}), __import__({PROBE_MODULE!r}).any_{number}({part}))[0]",
        )
        for (first, last), number in zip(objects, numbers, strict=True)
        for part in [copy.between(first, last)]
    ]
    return Copy(text, edits).text


def type_stub(classes: Sequence[tuple[str, str]]) -> str:
    """Functions `is_0`, `is_1`, ... that take an object of a class, given by module and name, or None, and `any_0`, ... that take none."""
    rows = ["from typing import Any", "class Nothing: ..."]
    for number, (module, name) in enumerate(classes):
        outer, _, _ = name.partition(".")
        rows += [f"from {module} import {outer} as class_{number}"]
        rows += [f"def is_{number}(x: class_{number}{name.removeprefix(outer)} | None, /) -> Any: ..."]
        rows += [f"def any_{number}(x: Nothing, /) -> Any: ..."]
    return "\n".join([*rows, ""])
