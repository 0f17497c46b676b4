"""A tidy table as a frame of pandas, Polars or Arrow. Text is as it is; halves of characters are escaped, which no frame can hold."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from cranfield.base.display import Library
from cranfield.base.errors import MissingExtraError
from cranfield.base.words import printable
from cranfield.reporting.document import Cell, Column, Table, cell_value

Kind = Literal["text", "int", "float"]
Typed = Mapping[str, tuple[Kind, list[Any]]]
"""Name of a column to its kind and its values, None where there is none."""
INSTALLED_BY: Mapping[Library, str] = {"pandas": "pandas", "polars": "polars", "pyarrow": "'cranfield[parquet]'"}
"""Library to what is installed to have it."""


def frame_of(library: Library, make: Callable[[], Table]) -> Any:
    """The rows of a table in a frame.

    Args:
        library: of the frame.
        make: the table; it is not made where there is no such library.

    Raises:
        MissingExtraError: the library is not installed.
    """
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        method = f"to_{library.removeprefix('py')}"
        raise MissingExtraError.for_package(f"{method}()", library, INSTALLED_BY[library]) from error
    return _MAKERS[library](module, typed_columns(make()))


def typed_columns(table: Table) -> Typed:
    """The columns of a table: numbers where it says so, or where they hold nothing else."""
    cells = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.columns)
    return {column.title: _typed(column, of_column) for column, of_column in zip(table.columns, cells, strict=True)}


def _typed(column: Column, cells: Iterable[Cell]) -> tuple[Kind, list[Any]]:
    values = [cell_value(cell) for cell in cells]
    known = {type(value) for value in values if value is not None}
    if column.is_numeric or float in known or (values and not known):
        return "float", [None if value is None else float(value) for value in values]  # type: ignore[arg-type]  # no interval is in a tidy table
    if known == {int}:
        return "int", values
    return "text", [None if value is None else _unicode(str(value)) for value in values]


def _unicode(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return printable(text)
    return text


def _pandas(pd: Any, columns: Typed) -> Any:
    def made(kind: Kind, values: list[Any]) -> Any:
        if kind == "text":
            return pd.Series(values, dtype=None if values else "object")
        return pd.Series(values, dtype="int64" if kind == "int" and None not in values else "float64")

    return pd.DataFrame({name: made(*column) for name, column in columns.items()})


def _polars(pl: Any, columns: Typed) -> Any:
    types = {"text": pl.String, "int": pl.Int64, "float": pl.Float64}
    return pl.DataFrame({name: pl.Series(values, dtype=types[kind]) for name, (kind, values) in columns.items()})


def _arrow(pa: Any, columns: Typed) -> Any:
    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64()}
    return pa.table({name: pa.array(values, types[kind]) for name, (kind, values) in columns.items()})


_MAKERS: Mapping[Library, Callable[[Any, Typed], Any]] = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}
