"""The schema of a test set in YAML or JSON, as pydantic models: what may be said, its type and its bounds.

The string under each field is its description in the published JSON Schema. What one field alone cannot tell (ids used
twice, a query without judgments) is checked in `testset_yaml`.
"""

from __future__ import annotations

import re
import warnings
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic_core import PydanticCustomError

from cranfield.formats.located import PlainScalar, Text
from cranfield.formats.validation import OURS
from cranfield.model import Credit, Scalar

PARAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _complaint(
    message: str, *, expected: str | None = None, got: str | None = None, hint: str | None = None
) -> PydanticCustomError:
    context = {OURS: "yes", "expected": expected, "got": got, "hint": hint}
    return PydanticCustomError("cranfield", message, {k: v for k, v in context.items() if v})


def _without_nul(value: Scalar) -> Scalar:
    if isinstance(value, str) and "\0" in value:
        raise _complaint("holds a NUL character", hint="no command line can carry one")
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise _complaint("is empty")
    _without_nul(value)
    return value


def _param_name(value: str) -> str:
    if not PARAM_NAME.fullmatch(value):
        raise _complaint(
            "is not a parameter name",
            expected="letters, digits and underscores, no digit first",
            hint="commands ask for it as {params.NAME}",
        )
    return value


def _compiles(value: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what some later Python may read differently
            re.compile(value)
    except re.error as error:
        at = "" if error.pos is None else f" at position {error.pos}"
        raise _complaint(f"does not compile: {error.msg}{at}", got=repr(value)) from None
    except (OverflowError, RecursionError) as error:
        raise _complaint(f"does not compile: {error}", got=repr(value)) from None
    return value


FilledText = Annotated[
    Text,
    AfterValidator(_not_blank),
    WithJsonSchema({"type": ["string", "number", "boolean"], "pattern": r"\S"}),
]
Id = Annotated[str, AfterValidator(_not_blank), Field(json_schema_extra={"pattern": r"\S"})]
ParamName = Annotated[str, AfterValidator(_param_name), Field(json_schema_extra={"pattern": f"^{PARAM_NAME.pattern}$"})]
Grade = Annotated[float, Field(allow_inf_nan=False)]


_CLOSED: dict[str, JsonValue] = {"additionalProperties": False}
"""Pydantic says a key's pattern as `patternProperties`, which alone forbids nothing."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class PatternModel(_Strict):
    """Ids that are relevant, by a regular expression."""

    regex: Annotated[FilledText, AfterValidator(_compiles)]
    """Python regular expression, searched for anywhere in the result id (anchor it with ^ and $), case-sensitive."""
    grade: Grade = 1
    """How relevant a match is."""
    credit: Credit = "once"
    """`once`: the pattern is one expected item, earned by the first match. `every`: each match is an item."""
    expected_count: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """How many documents match in the whole corpus, where known; needed by measures that count, with `every`."""


class QueryModel(_Strict):
    """One query, what kind of question it is, and what is expected for it."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["judgments"], "properties": {"judgments": {"minProperties": 1}}},
                {"required": ["patterns"], "properties": {"patterns": {"minItems": 1}}},
            ]
        }
    )

    id: FilledText
    """Pairs the query with the runs; every query has its own."""
    text: FilledText
    """What is asked, as a user types it."""
    strata: dict[Id, Annotated[Text, AfterValidator(_without_nul)]] = Field(
        default_factory=dict, json_schema_extra=_CLOSED
    )
    """Any key to a value: class, task type, difficulty. Reports break results down by each."""
    params: dict[ParamName, Annotated[PlainScalar, AfterValidator(_without_nul)]] = Field(
        default_factory=dict, json_schema_extra=_CLOSED
    )
    """Filled into a system's command as `{params.NAME}`, for example a minimum version."""
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    """How often it is asked, in any unit: weighted means multiply by it."""
    judgments: dict[Id, Grade] = Field(default_factory=dict, json_schema_extra=_CLOSED)
    """Document id to grade. 0 is judged and not relevant; under 0 is pooled and not judged."""
    patterns: list[PatternModel] = Field(default_factory=list)
    """Relevance by pattern: what no pattern matches is not relevant."""


class TestSetModel(_Strict):
    """A Cranfield test set: queries with what is expected for each."""

    __test__ = False

    cranfield_testset: Literal[1]
    """Version of this schema; a file is told to be a test set by this key."""
    name: FilledText
    """What reports call it."""
    version: Text = ""
    """Version of its content, in any form."""
    description: Text = ""
    """Where it comes from, for whom."""
    queries: Annotated[list[QueryModel], Field(min_length=1)]
    """The queries, in the order of reports."""
