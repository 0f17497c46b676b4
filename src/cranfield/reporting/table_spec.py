"""Tables declared once: rows, and columns that say where their cells come from.

The same declaration is the table of a report in every form and the tidy table that CSV and data frames have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from cranfield.base.numbers import Kind
from cranfield.reporting.document import Cell, Column, Table

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Col(Generic[Row]):
    """A column: its heading in reports, the cell of a row, and what kind of thing that is."""

    title: str
    value: Callable[[Row], Cell]
    kind: Kind = "text"
    key: str = ""
    """Heading in CSV and data frames; empty: the title."""
    only: Literal["", "report", "tidy"] = ""
    """Where the column is, if not in both."""


@dataclass(frozen=True, slots=True)
class TableSpec(Generic[Row]):
    """Rows of a record, and the columns that are shown of them."""

    caption: str
    rows: Sequence[Row]
    columns: tuple[Col[Row], ...]

    def table(self, **settings: Any) -> Table:
        """The table of a report; `settings` are those of `Table`: footer, shown, wrap. Every row is shown by default."""
        columns = [column for column in self.columns if column.only != "tidy"]
        rows = [tuple(column.value(row) for column in columns) for row in self.rows]
        headings = tuple(Column(column.title, column.kind) for column in columns)
        return Table(headings, rows, self.caption, **{"shown": None, **settings})

    def tidy(self) -> Table:
        """The table of CSV and data frames: keys as headings, numbers as they are."""
        columns = [column for column in self.columns if column.only != "report"]
        rows = [tuple(column.value(row) for column in columns) for row in self.rows]
        # A frame has whole numbers where all are, and other numbers where a column says so, known or not.
        kinds: list[Kind] = ["text" if column.kind == "count" else column.kind for column in columns]
        headings = tuple(Column(column.key or column.title, kind) for column, kind in zip(columns, kinds, strict=True))
        return Table(headings, rows, "", shown=None)
