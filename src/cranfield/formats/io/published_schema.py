"""JSON Schemas that are made from models and published beside them, for editors and other tools."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

WIDTH = 120


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, _: object) -> bool:
        """Leave out titles that repeat the names of fields."""
        return False


def published_schema(model: type[BaseModel], **head: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of a model; `head` stands before it."""
    schema = model.model_json_schema(schema_generator=_Untitled)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **head, **schema}


def schema_text(schema: dict[str, Any]) -> str:
    """A schema as its file holds it: a short value takes one line."""
    return _text(schema, 0) + "\n"


def _text(value: Any, indent: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if len(line) + indent < WIDTH or not inner:
        return line
    margin, closing = "\n" + " " * (indent + 2), "\n" + " " * indent
    if isinstance(value, list):
        return "[" + ",".join(margin + _text(each, indent + 2) for each in value) + closing + "]"
    rows = (f"{margin}{json.dumps(key)}: {_text(each, indent + 2)}" for key, each in value.items())
    return "{" + ",".join(rows) + closing + "}"
