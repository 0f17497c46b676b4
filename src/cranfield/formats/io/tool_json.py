"""JSON files of other tools: loading them, and walking what may not be of the shape that was promised.

A pydantic model reports everything that is wrong with a file; the walk over the same data takes the valid parts, so that
contradicting judgments are reported together with values of the wrong type.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from cranfield.errors import TestSetError
from cranfield.formats.io.files import shown, write_text
from cranfield.formats.io.located import Located, load_any
from cranfield.formats.io.tree import SourceFloat, SourceInt
from cranfield.formats.testsets.native_fields import PARAM_NAME
from cranfield.model import Scalar


class Loose(BaseModel):
    """What another tool's file holds; it may hold more."""

    model_config = ConfigDict(extra="ignore", strict=True)


def load_json(path: Path) -> Located:
    """Read a JSON file whose top is an object.

    Raises:
        TestSetError: it cannot be read, or is no such file; with its first syntax error, or every duplicate key.
    """
    located = load_any(path, TestSetError, is_json=True)
    if not isinstance(located.top, dict):
        raise TestSetError("no object at the top of the file", path=shown(path), line=1, expected="`{…}`")
    return located


def write_json(path: Path, document: object) -> None:
    """Write JSON, indented by two blanks."""
    write_text(path, [json.dumps(document, indent=2) + "\n"])


def entries(value: object) -> list[tuple[int, Mapping[str, Any]]]:
    """Position and content of the objects of a list; the model reports the rest."""
    return (
        [(i, entry) for i, entry in enumerate(value) if isinstance(entry, Mapping)] if isinstance(value, list) else []
    )


def params_of(values: Mapping[str, Any], lost: Counter[str]) -> dict[str, Scalar]:
    """Those of the values that can be parameters of a query; the others are counted in `lost`."""
    fit = {name: value for name, value in values.items() if _is_param(name, value)}
    lost["parameters without a word for a name, or a text or number for a value"] += len(values) - len(fit)
    return {name: _plain(value) for name, value in fit.items()}


def _is_param(name: str, value: object) -> bool:
    return bool(PARAM_NAME.fullmatch(name)) and isinstance(value, str | int | float)


def _plain(value: Scalar) -> Scalar:
    """Without the memory of how it was written."""
    if isinstance(value, SourceInt):
        return int(value)
    return float(value) if isinstance(value, SourceFloat) else value
