"""Results as records: a frozen dataclass for each kind of result, whose field names are the keys of its JSON.

A record holds what is known of a result, derived numbers included, in plain values: reports, tables, REST, MCP, the history and
the database are made from it, and from its JSON it is read back. `cranfield.evaluation.result.result_of` makes it from evaluations
and comparisons. One pydantic adapter a class writes and reads it; pydantic is imported when the first record is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from cranfield.base.errors import InternalError
from cranfield.base.words import UNPRINTABLE
from cranfield.model.note import Note, NoteKind
from cranfield.model.testset import OtherJudgments, TestSet

if TYPE_CHECKING:
    from pydantic import TypeAdapter


R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What every record of a whole result begins with."""

    schema_version: Literal[1] = 1
    """A change that breaks what scripts read raises it."""


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line of a history file that could not be read, and the reason."""

    line: int
    """Its number."""
    why: str


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def adapter_of(kind: type) -> TypeAdapter[Any]:
    """What writes and reads records of a class."""
    if kind not in _ADAPTERS:
        from pydantic import TypeAdapter

        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def to_jsonable(record: object) -> Any:
    """A record as JSON has it: mappings, lists and plain values.

    Example:
        >>> from cranfield.model import Hit
        >>> to_jsonable(Hit("d1", title="One"))["title"]
        'One'
    """
    return adapter_of(type(record)).dump_python(record, mode="json")


def from_jsonable(kind: type[R], data: object, context: object = None) -> R:
    """The record that JSON holds. A field without a value and a value of another type are errors of pydantic; other keys are ignored.

    Args:
        kind: of the record.
        data: the JSON.
        context: what validators of fields see.
    """
    record: R = adapter_of(kind).validate_python(data, context=context)
    return record


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def to_json(record: object) -> str:
    """A record, or what `to_jsonable` makes of one, as JSON for files and terminals, ending in a line end.

    A container of plain values is one line, any other has a line for each entry.

    Raises:
        InternalError: a number in it is no number; such a thing is unscored, with a reason, and never gets this far.
    """
    data = record if isinstance(record, Mapping | list) else to_jsonable(record)
    try:
        text = "".join(_layout(data, ""))
    except ValueError as error:
        raise InternalError(f"the result has a number that JSON cannot represent: {error}") from error
    # Beside what JSON escapes: halves of a character, and what a terminal would obey.
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text) + "\n"


def _layout(value: object, indent: str) -> Iterator[str]:
    entries: Sequence[object] = (
        [*value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    )
    if not any(isinstance(entry, (Mapping, list)) and entry for entry in entries):
        yield _ENCODER.encode(value)
        return
    inner = indent + " "
    brackets = "{}" if isinstance(value, Mapping) else "[]"
    keys = [_ENCODER.encode(key) + ": " for key in value] if isinstance(value, Mapping) else [""] * len(entries)
    for position, (key, entry) in enumerate(zip(keys, entries, strict=True)):
        yield f"{',' if position else brackets[0]}\n{inner}{key}"
        yield from _layout(entry, inner)
    yield f"\n{indent}{brackets[1]}"


@dataclass(frozen=True, slots=True)
class TestSetRecord:
    """What identifies a test set, and what is to be known of it beside its queries."""

    __test__ = False

    name: str
    version: str
    digest: str
    n_queries: int
    review: str = ""
    """Free text of its metadata: `agent curated, pending human review`."""
    other_judgments: OtherJudgments | None = None
    """Judgments that took the place of its own."""
    notes: tuple[Note, ...] = ()
    made: str = ""
    """When its queries were gathered, as an ISO date; empty: not known."""
    refresh_days: int = 0
    """After so many days it is overdue for new queries."""
    uncommitted: str = ""
    """A sentence on changes of the repository that no commit has; of the set as it is stored where it was not read again."""

    @classmethod
    def of(cls, testset: TestSet) -> TestSetRecord:
        """The record of a test set."""
        uncommitted = (note.text.removesuffix(".") for note in testset.notes if note.kind is NoteKind.UNCOMMITTED)
        return cls(
            testset.name,
            testset.version,
            testset.digest,
            len(testset.queries),
            testset.meta.review,
            testset.other_judgments,
            testset.notes,
            testset.meta.made,
            testset.meta.refresh_days,
            next(uncommitted, testset.meta.uncommitted),
        )
