"""JSON Schemas that are made from models and published beside them, for editors and other tools."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from dataclasses import fields
from itertools import pairwise
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import DataclassSchema, DictSchema

from cranfield.formats.io.validation import adapter_of

WIDTH = 120


class _Published(GenerateJsonSchema):
    def field_title_should_be_set(self, _: object) -> bool:
        """Leave out titles that repeat the names of fields."""
        return False

    def dict_schema(self, schema: DictSchema) -> dict[str, Any]:
        """Keys have one pattern; pydantic says it as `patternProperties`, which alone forbids nothing."""
        made = super().dict_schema(schema)
        return made | {"additionalProperties": False} if "patternProperties" in made else made

    def dataclass_schema(self, schema: DataclassSchema) -> dict[str, Any]:
        """The string under each field is its description."""
        made = super().dataclass_schema(schema)
        described = _descriptions(schema["cls"])
        for row in fields(schema["cls"]):
            if row.name in described:
                made["properties"][row.metadata.get("alias", row.name)]["description"] = described[row.name]
        return made


def _descriptions(kind: type) -> dict[str, str]:
    """Field to the string under it, in the class or in one that it derives from."""
    found: dict[str, str] = {}
    for each in reversed([base for base in kind.__mro__ if "__dataclass_fields__" in vars(base)]):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for row, after in pairwise(body):
            if isinstance(row, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found[ast.unparse(row.target)] = inspect.cleandoc(str(after.value.value))
    return found


def published_schema(model: type, **head: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of a model or a dataclass; `head` stands before it."""
    schema = adapter_of(model).json_schema(schema_generator=_Published)
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
