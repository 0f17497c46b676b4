"""The schemas of MCP tools, and what their SDKs make of results: types, required keys and alternatives are checked, as far as they stand in the schema itself.

A server may send any schema. References, patterns and what combines with them are not followed: a reference can lead to
another server or back to itself, and a pattern or a tree of references can take for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cranfield.systems.calls.answer_schema import json_type

_MAX_DEPTH = 50
"""Levels of a schema that are read."""
_TYPES: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}


def find_mismatch(schema: object, value: object, where: str = "it", depth: int = 0) -> str | None:
    """How a value violates a schema; None where it does not, or not in what is checked here."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    names = schema.get("type")
    names = names if isinstance(names, list) else [names]
    known = [_TYPES[name] for name in names if isinstance(name, str) and name in _TYPES]
    if known and len(known) == len(names) and not any(is_of(value) for is_of in known):
        return f"{where} is {json_type(value)}, not of type {' or '.join(names)}"
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options and all(_found(option, value, depth) for option in options):
            return f"{where} matches none of the alternatives"
    for part in _as_list(schema.get("allOf")):
        if found := find_mismatch(part, value, where, depth + 1):
            return found
    return _mismatch_inside(schema, value, where, depth)


def _mismatch_inside(schema: Mapping[str, Any], value: object, where: str, depth: int) -> str | None:
    """The first mismatch of a key or an item."""
    if isinstance(value, dict):
        for name in _as_list(schema.get("required")):
            if isinstance(name, str) and name not in value:
                return f"{where} has no {name!r}"
        properties = schema.get("properties")
        for name, part in properties.items() if isinstance(properties, dict) else ():
            if name in value and (found := find_mismatch(part, value[name], repr(name), depth + 1)):
                return found
    if isinstance(value, list) and "prefixItems" not in schema:
        for number, item in enumerate(value, start=1):
            if found := find_mismatch(schema.get("items"), item, f"item {number} of {where}", depth + 1):
                return found
    return None


def _found(schema: object, value: object, depth: int) -> bool:
    return find_mismatch(schema, value, depth=depth + 1) is not None


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def wrapped_text(value: object) -> str | None:
    """The text that a tool returned, of the structure that SDKs send it in: `{"result": "..."}`; None of another structure."""
    text = value.get("result") if isinstance(value, dict) and len(value) == 1 else None
    return text if isinstance(text, str) else None
