"""JSON files of other tools: loading them, and walking what may not be of the shape that was promised.

A pydantic model says everything that is wrong with a file; the walk goes over the same data and takes what is right, so
that judgments that contradict each other are told together with values of the wrong kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from cranfield.errors import TestSetError
from cranfield.formats.files import decode, read_bytes, shown
from cranfield.formats.json_tree import parse_json
from cranfield.formats.json_values import json_values
from cranfield.formats.located import Loc, Located
from cranfield.formats.testset_fields import PARAM_NAME
from cranfield.formats.tree import (
    Node,
    SourceFloat,
    SourceInt,
    Unreadable,
    sourced,
)
from cranfield.model import Scalar


class Loose(BaseModel):
    """What another tool's file holds; it may hold more."""

    model_config = ConfigDict(extra="ignore", strict=True)


def load_json(path: Path) -> Places:
    """Read a JSON file whose top is an object.

    Raises:
        TestSetError: it cannot be read, or is no such file; with its first syntax error, or every duplicate key.
    """
    text = decode(read_bytes(path, TestSetError), path, TestSetError)
    where = Path(shown(path))
    data = json_values(text)
    if data is None:
        data = sourced(_tree(text, where))  # for the most part, an error with its place
    if not isinstance(data, dict):
        raise TestSetError("no object at the top of the file", path=str(where), line=1, expected="`{…}`")
    return Places(where, text, data)


def _tree(text: str, where: Path) -> Node:
    try:
        return parse_json(text)
    except Unreadable as unreadable:
        raise TestSetError([replace(problem, path=str(where)) for problem in unreadable.problems]) from None


class Places(Located):
    """A JSON object whose places are looked for when a problem asks for them, and not before."""

    def __init__(self, path: Path, text: str, data: dict[str, Any], steps: Loc = ()) -> None:
        self.__dict__.update(path=path, text=text, kept=data, steps=steps)

    @cached_property
    def root(self) -> Node:
        """The tree, which a Located has from the start."""
        node = _tree(self.__dict__["text"], self.path)
        for step in self.__dict__["steps"]:
            node = node.child(step) or node
        return node

    @property
    def sourced(self) -> dict[str, Any]:
        """The data, which are read already."""
        data: dict[str, Any] = self.__dict__["kept"]
        return data

    def within(self, *steps: str | int) -> Places:
        """What stands at a place where an object is."""
        data: Any = self.sourced
        for step in steps:
            data = data[step]
        return Places(self.path, self.__dict__["text"], data, (*self.__dict__["steps"], *steps))


def entries(value: object) -> list[tuple[int, Mapping[str, Any]]]:
    """Position and content of the objects of a list; what is none of these is said by the model."""
    return (
        [(i, entry) for i, entry in enumerate(value) if isinstance(entry, Mapping)] if isinstance(value, list) else []
    )


def params_of(values: Mapping[str, Any], lost: Counter[str]) -> dict[str, Scalar]:
    """Those of the values that can be parameters of a query; the others are counted in `lost`."""
    fit = {name: value for name, value in values.items() if _is_param(name, value)}
    lost["parameters whose names are no words, or whose values are no text or number"] += len(values) - len(fit)
    return {name: _plain(value) for name, value in fit.items()}


def _is_param(name: str, value: object) -> bool:
    return bool(PARAM_NAME.fullmatch(name)) and isinstance(value, str | int | float)


def _plain(value: Scalar) -> Scalar:
    """Without the memory of how it was written."""
    if isinstance(value, SourceInt):
        return int(value)
    return float(value) if isinstance(value, SourceFloat) else value
