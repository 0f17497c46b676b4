"""Kinds of field in a test set's file: what text, an id, a grade, a regular expression may be, and the words for what may not.

The models that are made of them are in `native_models`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic_core import PydanticCustomError

from cranfield.errors import UnknownNameError
from cranfield.formats.io.cells import PARAM_NAME, pattern_error
from cranfield.formats.io.validation import OWN_FIELDS, Text
from cranfield.model import LETTERS, QUERY_CLASSES, Scalar, Span, class_named

_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
SHORT_SPAN = re.compile(
    rf"(?P<path>.*[^\s:].*):(?P<start>[0-9]{{1,9}})-(?P<end>[0-9]{{1,9}})(?::(?P<grade>{_NUMBER}))?"
)
"""`src/index.rs:41-61`, or with its grade `src/index.rs:41-61:2`."""
LINES = re.compile(r"(?P<start>[0-9]{1,9})(?:-(?P<end>[0-9]{1,9}))?")
DATABASE = re.compile(r"(sqlite|duckdb|env):.+", re.DOTALL)


def complaint(
    message: str, *, expected: str | None = None, got: str | None = None, hint: str | None = None
) -> PydanticCustomError:
    """What a validator raises: the message goes on from the field's name."""
    context = {OWN_FIELDS: "yes", "expected": expected, "got": got, "hint": hint}
    return PydanticCustomError("cranfield", message, {k: v for k, v in context.items() if v})


def without_nul(value: Scalar) -> Scalar:
    """A value that can be an argument of a command."""
    if isinstance(value, str) and "\0" in value:
        raise complaint("holds a NUL character", hint="no command line can carry one")
    return value


def _not_blank(value: str) -> str:
    if not value or value.isspace():
        raise complaint("is empty")
    without_nul(value)
    return value


def _param_name(value: str) -> str:
    if not PARAM_NAME.fullmatch(value):
        raise complaint(
            "is not a parameter name",
            expected="letters, digits and underscores, no digit first",
            hint="commands ask for it as {params.NAME}",
        )
    return value


def _compiles(value: str) -> str:
    if message := pattern_error(value):
        raise complaint(f"does not compile: {message}", got=repr(value))
    return value


def _class(value: str) -> str:
    try:
        return class_named(value).name
    except UnknownNameError as error:
        (problem,) = error.problems
        raise complaint("is no query class", expected=CLASS_NAMES, got=repr(value), hint=problem.hint) from None


CLASS_NAMES = ", ".join(QUERY_CLASSES) + f", or a letter ({', '.join(LETTERS)})"


def _date(value: str) -> str:
    try:
        dt.date.fromisoformat(value)
    except ValueError:
        raise complaint("is no date", expected="a date like 2026-11-21", got=repr(value)) from None
    if len(value) != len("2026-11-21"):
        raise complaint("is no date", expected="a date like 2026-11-21", got=repr(value))
    return value


def _database(value: str) -> str:
    if not DATABASE.fullmatch(value):
        raise complaint("is no place of a database", expected="sqlite:FILE, duckdb:FILE or env:VARIABLE")
    return value


def lines_of(text: str) -> tuple[int, int]:
    """First and last line of `41-61`, or of `41`; raise a complaint where it is neither."""
    found = LINES.fullmatch(text)
    if not found:
        raise complaint("says no lines", expected="two line numbers, as 41-61", got=repr(text))
    start = int(found["start"])
    end = int(found["end"] or start)
    if start < 1 or end < start:
        raise complaint(
            "says no lines", expected="a first line of 1 or more, and a last one not before it", got=repr(text)
        )
    return start, end


def _lines(text: str) -> str:
    lines_of(text)
    return text


def short_span(text: str) -> Span | None:
    """The span that `src/index.rs:41-61:2` says; None where it says none."""
    found = SHORT_SPAN.fullmatch(text)
    if not found or "\0" in text:
        return None
    start, end = int(found["start"]), int(found["end"])
    grade = float(found["grade"] or 1) + 0.0
    return Span(found["path"], start, end, grade) if 1 <= start <= end and math.isfinite(grade) else None


FilledText = Annotated[
    Text,
    AfterValidator(_not_blank),
    WithJsonSchema({"type": ["string", "number", "boolean"], "pattern": r"\S"}),
]
Regex = Annotated[FilledText, AfterValidator(_compiles)]
AnyRegex = Annotated[Text, AfterValidator(_compiles)]
"""It may be empty too."""
Id = Annotated[str, AfterValidator(_not_blank), Field(json_schema_extra={"pattern": r"\S"})]
ParamName = Annotated[str, AfterValidator(_param_name), Field(json_schema_extra={"pattern": f"^{PARAM_NAME.pattern}$"})]
Grade = Annotated[float, Field(allow_inf_nan=False)]
ClassName = Annotated[FilledText, AfterValidator(_class), WithJsonSchema({"enum": [*QUERY_CLASSES, *LETTERS]})]
Lines = Annotated[
    Text,
    AfterValidator(_lines),
    WithJsonSchema(
        {"type": ["string", "integer"], "pattern": f"^{LINES.pattern}$".replace("?P<start>", "").replace("?P<end>", "")}
    ),
]
Date = Annotated[
    Text, AfterValidator(_date), WithJsonSchema({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})
]
Database = Annotated[
    FilledText, AfterValidator(_database), WithJsonSchema({"type": "string", "pattern": "^(sqlite|duckdb|env):"})
]

CLOSED: dict[str, JsonValue] = {"additionalProperties": False}
"""Pydantic says a key's pattern as `patternProperties`, which alone forbids nothing."""


class Strict(BaseModel):
    """What every model of a test set's file is."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class OrShort:
    """Says in the JSON Schema that a model may be written in a short form too."""

    def __init__(self, short: dict[str, Any]) -> None:
        self.short = short

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """The short form, or the model's own."""
        return {"anyOf": [self.short, handler(core_schema)]}
