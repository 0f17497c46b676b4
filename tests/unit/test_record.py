"""Dataclasses as plain data, by a table of fields; and every table names what is there."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum

import numpy as np
import pytest

import cranfield.reporting
from cranfield.measures import parse
from cranfield.record import Fields, plain, record_of


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    mean: float
    note: str = ""


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner | None
    parts: tuple[Inner, ...] = ()
    p50: float = 1.5

    @property
    def n(self) -> int:
        return len(self.parts)

    def spell(self) -> str:
        return self.name.upper()


OUTER = Outer("a", Inner(0.5), (Inner(0.25, "why"),))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("name n", {"name": "a", "n": 1}),
        ("n name", {"n": 1, "name": "a"}),
        ("called=name", {"called": "a"}),
        ("mean=inner.mean", {"mean": 0.5}),
        ("spelled=spell", {"spelled": "A"}),
        ("count=parts.__len__", {"count": 1}),
        ("first=parts.0.note", {"first": "why"}),
        ("ms.p50=p50 ms.n=n", {"ms": {"p50": 1.5, "n": 1}}),
        ("name note=inner.note?", {"name": "a"}),
        ("parts", {"parts": [{"note": "why"}]}),
        ("inner", {"inner": {}}),
    ],
)
def test_an_entry_names_a_key_and_where_its_value_is(entries: str, expected: dict[str, object]) -> None:
    record = record_of(OUTER, {Outer: entries, Inner: "note?"})
    assert record == expected
    assert list(record) == list(expected)


def test_a_path_through_none_is_none() -> None:
    assert record_of(Outer("a", None), {Outer: "mean=inner.mean left=inner.mean?"}) == {"mean": None}


def test_a_class_without_a_row_is_written_with_all_fields_in_order() -> None:
    assert record_of(OUTER) == {
        "name": "a",
        "inner": {"mean": 0.5, "note": ""},
        "parts": [{"mean": 0.25, "note": "why"}],
        "p50": 1.5,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "red"),
        (parse("P@5"), "P@5"),
        ({parse("P@5"): (1, None)}, {"P@5": [1, None]}),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (np.array([1, 2]), [1, 2]),
        ({2: True}, {"2": True}),
    ],
)
def test_values_become_what_json_has(value: object, expected: object) -> None:
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(AttributeError, match="nosuch"):
        record_of(OUTER, {Outer: "nosuch"})


def tables() -> Iterator[tuple[str, Fields]]:
    for module in pkgutil.walk_packages(cranfield.reporting.__path__, "cranfield.reporting."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, dict) and value and all(is_dataclass(key) for key in value):
                yield f"{module.name}.{name}", value


def type_of(owner: type, name: str) -> object:
    """The class that the field is declared as; None where it is no class of its module."""
    declared = {field.name: str(field.type) for field in fields(owner)}.get(name, "")
    return vars(importlib.import_module(owner.__module__)).get(declared.removesuffix(" | None"))


def test_every_table_of_the_reports_names_fields_that_exist() -> None:
    checked = 0
    for name, table in tables():
        for owner, entries in table.items():
            for entry in entries.split():
                key, _, path = entry.removesuffix("?").partition("=")
                at: object = owner
                for step in (path or key).split("."):
                    if not (isinstance(at, type) and is_dataclass(at)):
                        break
                    known = {field.name for field in fields(at)}
                    assert step in known or hasattr(at, step), f"{name}: {owner.__name__} has no {step} ({entry})"
                    at = type_of(at, step)
                    checked += 1
    assert checked > 150
