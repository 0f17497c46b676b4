"""Kinds of field in the files of test sets: what text, a number, a grade, a regular expression may be there.

A kind is metadata of a type: `Annotated[str, Kind(...)]`. A reader of files makes its pydantic schema of it; pydantic is not imported here.
What a program puts together is not checked: a name may be empty, and so it can be stored; see `as_stored`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

Scalar = str | int | float | bool

PARAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Name of a parameter of a query."""
DATABASE = re.compile(r"(sqlite|duckdb|env):.+", re.DOTALL)
WHOLE_UNDER = 1e15
"""Above it, a whole number written without its exponent is longer than with it."""
_AS_STORED: ContextVar[bool] = ContextVar("as_stored", default=False)


class UnfitError(ValueError):
    """A value that is none of its kind; the message goes on from the field's name: `is empty`."""

    def __init__(
        self, message: str, *, expected: str | None = None, got: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.expected = expected
        self.got = got
        self.hint = hint


class SourceInt(int):
    """An int that remembers how it was written (`007`)."""

    source: str


class SourceFloat(float):
    """A float that remembers how it was written (`1.10`)."""

    source: str


def source_text(value: Any) -> Any:
    """A scalar as it was written; anything else unchanged, for the type to refuse."""
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


def whole(grade: float) -> float:
    """A whole grade as an int, as people write it; any other as it is."""
    is_whole = math.isfinite(grade) and grade == int(grade) and abs(grade) < WHOLE_UNDER
    return int(grade) if is_whole else grade


@contextmanager
def as_stored() -> Iterator[None]:
    """While pydantic makes a schema: kinds check nothing, as stored values were checked when a file was read, and may hold more."""
    token = _AS_STORED.set(True)
    try:
        yield
    finally:
        _AS_STORED.reset(token)


@dataclass(frozen=True, eq=False, slots=True)
class Kind:
    """What a value of a file may be beside its type, which is taken strictly: no text is a number."""

    check: Callable[[Any], Any] | None = None
    """Gives the value as it is kept; raises `UnfitError`."""
    read: Callable[[Any], Any] | None = None
    """What comes before the type is checked."""
    write: Callable[[Any], Any] | None = None
    """The value as it is written."""
    bounds: Mapping[str, Any] = field(default_factory=dict)
    """Bounds of a number, by the names of pydantic's schemas: `ge`, `le`, `allow_inf_nan`."""
    described: Mapping[str, Any] | None = None
    """JSON Schema; None: that of the type."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """A `CoreSchema` that checks in the order of `read`, the type, `check`."""
        schema: Any = handler(source)
        if _AS_STORED.get():
            return schema
        from pydantic_core import core_schema

        if schema["type"] in {"str", "int", "float", "bool"}:
            schema = {**schema, **self.bounds, "strict": True}
        if self.check is not None:
            schema = core_schema.no_info_after_validator_function(self.check, schema)
        if self.read is not None:
            schema = core_schema.no_info_before_validator_function(self.read, schema)
        if self.write is not None:
            schema["serialization"] = core_schema.plain_serializer_function_ser_schema(self.write)
        return schema

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe it."""
        return handler(schema) if self.described is None else dict(self.described)


@dataclass(frozen=True, eq=False, slots=True)
class OrNull:
    """Text that may be null too, which stands for empty text."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Null, or what the kind before it takes."""
        schema = handler(source)
        if _AS_STORED.get():
            return schema
        from pydantic_core import core_schema

        return core_schema.no_info_wrap_validator_function(
            lambda value, checked: "" if value is None else checked(value), schema
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe both."""
        return {"anyOf": [handler(schema), {"type": "null"}]}


class AnyJson:
    """What JSON may hold, numbers without their source text."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's own."""
        from pydantic import JsonValue

        return handler.generate_schema(JsonValue)


class InFile:
    """Base of values that a file has as keys with values: no other keys; what is as it is by default is not written."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}
    _ALWAYS: ClassVar[frozenset[str]] = frozenset()
    """Keys that are written with their default too."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic leaves out the defaults only of what it writes itself."""
        schema = handler(source)
        values: Any = handler.resolve_ref_schema(schema)
        for entry in values["schema"]["fields"]:
            if entry["name"] in cls._ALWAYS:
                inner = entry["schema"]["schema"]
                as_it_is = {"type": "function-plain", "function": lambda value: value}
                entry["schema"]["serialization"] = inner.get("serialization", as_it_is)
        return schema


def without_nul(value: Scalar) -> Scalar:
    """A value that can be an argument of a command."""
    if isinstance(value, str) and "\0" in value:
        raise UnfitError("contains a NUL character", hint="a command line cannot contain one")
    return value


def _not_blank(value: str) -> str:
    if not value or value.isspace():
        raise UnfitError("is empty")
    without_nul(value)
    return value


def _param_name(value: str) -> str:
    if not PARAM_NAME.fullmatch(value):
        raise UnfitError(
            "is not a parameter name",
            expected="letters, digits and underscores, no digit first",
            hint="commands ask for it as {params.NAME}",
        )
    return value


def _compiles(value: str) -> str:
    from cranfield.base.patterns import PatternError, compile_pattern

    try:
        compile_pattern(value)
    except PatternError as error:
        raise UnfitError(f"does not compile: {error}", got=repr(value)) from None
    return value


def _date(value: str) -> str:
    try:
        dt.date.fromisoformat(value)
    except ValueError:
        raise UnfitError("is no date", expected="a date like 2026-11-21", got=repr(value)) from None
    if len(value) != len("2026-11-21"):
        raise UnfitError("is no date", expected="a date like 2026-11-21", got=repr(value))
    return value


def _database(value: str) -> str:
    if not DATABASE.fullmatch(value):
        raise UnfitError("is not the location of a database", expected="sqlite:FILE, duckdb:FILE or env:VARIABLE")
    return value


def at_least(low: int, most: int | None = None) -> Kind:
    """A whole number within bounds."""
    return Kind(bounds={"ge": low} if most is None else {"ge": low, "le": most})


_ANY_TEXT = ["string", "number", "boolean"]
_FINITE = {"allow_inf_nan": False}
STRICT = Kind()

Whole = Annotated[int, STRICT]
Count = Annotated[int, at_least(0)]
Flag = Annotated[bool, STRICT]
Number = Annotated[float, STRICT]
Text = Annotated[str, Kind(read=source_text, described={"type": _ANY_TEXT})]
"""Text however it is spelled: `007`, `1.10` and `true` keep their source."""
FilledText = Annotated[str, Kind(_not_blank, source_text, described={"type": _ANY_TEXT, "pattern": r"\S"})]
ScalarText = Annotated[Text, Kind(without_nul)]
"""Text that a command line can carry."""
PlainScalar = Annotated[
    Annotated[str, STRICT] | Whole | Number | Flag, Kind(read=plain_scalar, described={"type": _ANY_TEXT})
]
"""Text, a number or true/false, which comes out as it was written (`3.10` is text)."""
Regex = Annotated[FilledText, Kind(_compiles)]
AnyRegex = Annotated[Text, Kind(_compiles)]
"""It may be empty too."""
Id = Annotated[str, Kind(_not_blank, described={"type": "string", "pattern": r"\S"})]
ParamName = Annotated[str, Kind(_param_name, described={"type": "string", "pattern": f"^{PARAM_NAME.pattern}$"})]
Finite = Annotated[float, Kind(write=whole, bounds=_FINITE)]
Grade = Annotated[float, Kind(lambda grade: grade + 0.0, write=whole, bounds=_FINITE)]
"""A float that is not -0.0, however it was written."""
Weight = Annotated[float, Kind(lambda weight: weight + 0.0, bounds={"ge": 0, **_FINITE})]
Share = Annotated[float, Kind(bounds={"ge": 0, "le": 1})]
Date = Annotated[Text, Kind(_date, described={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})]
Database = Annotated[FilledText, Kind(_database, described={"type": "string", "pattern": "^(sqlite|duckdb|env):"})]
