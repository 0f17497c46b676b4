"""Dataclasses as plain data: what JSON output, baselines and the history hold.

A table of fields says what is written of a class; a class that is not in the table is written with all of its fields. An
entry is `name`, or `key=path` where the key differs from the name or the value lies deeper:

    queries=n_queries          another key
    mean=summary.mean          an attribute of an attribute; a path through None is None
    n=query_ids.__len__        a method without arguments is called
    baseline=names.0           an element of a tuple
    latency_ms.p50=p50_ms      a mapping in the record
    note?                      left out where it is None or empty
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import Any

Fields = Mapping[type, str]
"""Class to its entries, separated by blanks, in the order they are written."""

NO_FIELDS: Fields = {}


def record_of(value: object, fields: Fields = NO_FIELDS) -> dict[str, Any]:
    """A dataclass as a mapping of plain values.

    Example:
        >>> from cranfield.model import Hit
        >>> record_of(Hit("d1", title="One"), {Hit: "doc=id title score?"})
        {'doc': 'd1', 'title': 'One'}
    """
    entries = fields.get(type(value))
    if entries is None:
        return {field.name: plain(getattr(value, field.name), fields) for field in fields_of(value)}  # type: ignore[arg-type]  # a dataclass
    record: dict[str, Any] = {}
    for keys, path, optional in _parse(entries):
        found = plain(_at(value, path), fields)
        if optional and (found is None or found in ("", [], {})):
            continue
        *parents, name = keys
        target = record
        for parent in parents:
            target = target.setdefault(parent, {})
        target[name] = found
    return record


def plain(value: object, fields: Fields = NO_FIELDS) -> Any:
    """A value as JSON has it: enums by value, measures and notes as text, tuples as lists, dataclasses as records."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {_key(key): plain(entry, fields) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, fields) for entry in value]
    if is_dataclass(value):
        has_text = type(value) not in fields and "__str__" in vars(type(value))  # a measure, a note
        text = getattr(value, "canonical", None)  # a measure, whatever its convention prints
        return text or str(value) if has_text else record_of(value, fields)
    return value.tolist() if hasattr(value, "tolist") else value  # numpy: a scalar gives a number, an array a list


@cache
def _parse(entries: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...], bool], ...]:
    """Keys, path and whether it may be left out, of each entry."""
    parsed = []
    for entry in entries.split():
        key, _, path = entry.removesuffix("?").partition("=")
        parsed.append((tuple(key.split(".")), tuple((path or key).split(".")), entry.endswith("?")))
    return tuple(parsed)


def _key(key: object) -> str:
    return key if type(key) is str else str(plain(key))


def _at(value: object, path: tuple[str, ...]) -> object:
    for step in path:
        if value is None:
            return None
        value = value[int(step)] if step.isdigit() and isinstance(value, tuple | list) else getattr(value, step)
    return value() if callable(value) and not isinstance(value, type) else value
