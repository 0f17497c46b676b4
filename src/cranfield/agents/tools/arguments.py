"""Arguments of the tools: models whose JSON Schema is what a model of language receives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cranfield.base.words import printable

MAX_CONTEXT = 10
_Path = Annotated[str, Field(min_length=1, max_length=1_000)]
_Glob = Annotated[
    str,
    Field(max_length=200, description="Only paths that match: `*.py`, `src/**/test_*`, `*.{yml,yaml}`."),
]
_Line = Annotated[int, Field(ge=1)]


class ArgumentsError(ValueError):
    """Arguments that cannot be used; the message says what was expected."""


class Arguments(BaseModel):
    """Arguments of a call. A null value counts as not given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given

    @classmethod
    def schema_for_model(cls) -> Mapping[str, Any]:
        """JSON Schema, without titles."""
        schema = cls.model_json_schema()
        properties = {
            name: {key: value for key, value in each.items() if key != "title"}
            for name, each in schema["properties"].items()
        }
        required = {"required": schema["required"]} if "required" in schema else {}
        return {"type": "object", "properties": properties, **required, "additionalProperties": False}

    @classmethod
    def read(cls, text: str) -> Arguments:
        """The arguments of a call.

        Raises:
            ArgumentsError: they are not JSON, or do not fit the schema.
        """
        try:
            return cls.model_validate(json.loads(text or "{}"))
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {printable(each['msg'])}"
                for each in error.errors(include_url=False, include_input=False)
            ]
        except (ValueError, RecursionError):
            problems = ["the arguments are not JSON"]
        expected = ", ".join(
            name + ("" if field.is_required() else " (optional)") for name, field in cls.model_fields.items()
        )
        raise ArgumentsError(f"{'; '.join(problems)}. Expected an object with: {expected}")


class ListArguments(Arguments):
    """Arguments of `list_files`."""

    folder: Annotated[str, Field(max_length=1_000, description="Only files in it; empty: all.")] = ""
    glob: _Glob = ""


class SearchArguments(Arguments):
    """Arguments of `search`."""

    pattern: Annotated[
        str, Field(min_length=1, max_length=2_000, description="Regular expression of Python, searched in each line.")
    ]
    glob: _Glob = ""
    ignore_case: bool = False
    literal: Annotated[bool, Field(description="The pattern is plain text, not a regular expression.")] = False
    context: Annotated[int, Field(ge=0, le=MAX_CONTEXT, description="Lines shown before and after each hit.")] = 0
    limit: Annotated[int, Field(ge=1, description="Most hits to show.")] = 50


class ReadArguments(Arguments):
    """Arguments of `read_file`."""

    path: _Path
    start: Annotated[_Line, Field(description="First line.")] = 1
    end: Annotated[_Line | None, Field(description="Last line; without it, as many lines as are allowed.")] = None


class OutlineArguments(Arguments):
    """Arguments of `outline`."""

    path: _Path


class LogArguments(Arguments):
    """Arguments of `git_log`."""

    path: Annotated[str, Field(max_length=1_000, description="A file or a folder; empty: all commits.")] = ""
    limit: Annotated[int, Field(ge=1, description="Most commits to show.")] = 20


class BlameArguments(Arguments):
    """Arguments of `git_blame`."""

    path: _Path
    start: _Line
    end: _Line
