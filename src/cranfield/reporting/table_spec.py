"""Tables declared once: rows, and columns that say where their cells come from.

The same declaration is the table of a report in every form and the tidy table that CSV and data frames have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Generic, Literal, Protocol, TypeVar

from cranfield.base.numbers import Interval, Kind
from cranfield.reporting.document import Cell, Column, Table, cell_value

Row = TypeVar("Row")
Place = Literal["", "report", "tidy"]


@dataclass(frozen=True, slots=True)
class Col(Generic[Row]):
    """A column: its heading in reports, the cell of a row, and what kind of thing that is."""

    title: str
    value: Callable[[Row], Cell]
    kind: Kind = "text"
    key: str = ""
    """Heading in CSV and data frames; empty: the title."""
    only: Place = ""
    """Where the column is, if not in both."""
    when: bool = True
    """False leaves the column out."""


@dataclass(frozen=True, slots=True)
class Cols(Generic[Row]):
    """A column for each of some keys: measures, systems, strata."""

    keys: Iterable[Any]
    value: Callable[[Row, Any], Cell]
    """The cell of a row and a key."""
    kind: Kind = "text"
    title: Callable[[Any], str] = str
    """Heading of a key."""
    only: Place = ""

    def column(self, key: object) -> Col[Row]:
        """The column of one of the keys."""
        return Col(self.title(key), lambda row: self.value(row, key), self.kind, only=self.only)


class HasInterval(Protocol):
    """A value with the ends of its interval."""

    @property
    def ci_low(self) -> float | None:
        """The lower end."""

    @property
    def ci_high(self) -> float | None:
        """The upper end."""


def interval(found: HasInterval) -> Interval:
    """The cell of an interval."""
    return found.ci_low, found.ci_high


def by_place(kinds: Mapping[str, Kind]) -> tuple[Col[Sequence[Cell]], ...]:
    """Columns of rows that are tuples of cells: heading to kind, in their order."""
    return tuple(Col(title, itemgetter(place), kind) for place, (title, kind) in enumerate(kinds.items()))


Columns = tuple[Col[Row] | Cols[Row], ...]


@dataclass(frozen=True, slots=True)
class TableSpec(Generic[Row]):
    """Rows of a record, and the columns that are shown of them."""

    caption: str
    rows: Sequence[Row]
    columns: Columns[Row]

    def table(self, **settings: Any) -> Table:
        """The table of a report; `settings` are those of `Table`: footer, shown, wrap. Every row is shown by default."""
        columns = [column for column in self._expanded() if column.only != "tidy"]
        headings = tuple(Column(column.title, column.kind) for column in columns)
        return Table(headings, self._cells(columns), self.caption, **{"shown": None, **settings})

    def tidy(self) -> Table:
        """The table of CSV and data frames: keys as headings, numbers as they are."""
        columns = [column for column in self._expanded() if column.only != "report"]
        # A frame has whole numbers where all are, and other numbers where a column says so, known or not.
        kinds: list[Kind] = ["text" if column.kind == "count" else column.kind for column in columns]
        headings = tuple(Column(column.key or column.title, kind) for column, kind in zip(columns, kinds, strict=True))
        return Table(headings, self._cells(columns), "", shown=None)

    def without(self, *titles: str) -> TableSpec[Row]:
        """The same rows without the columns of these headings, as a short form or the data of a figure has them."""
        return replace(self, columns=tuple(each for each in self._expanded() if each.title not in titles))

    def filled(self) -> TableSpec[Row]:
        """The same rows without the columns that are empty in all of them."""
        cells = [(each, {cell_value(each.value(row)) for row in self.rows}) for each in self._expanded()]
        return replace(self, columns=tuple(each for each, found in cells if not found or found - {None, ""}))

    def _expanded(self) -> Iterator[Col[Row]]:
        for column in self.columns:
            if isinstance(column, Cols):
                yield from map(column.column, column.keys)
            elif column.when:
                yield column

    def _cells(self, columns: Sequence[Col[Row]]) -> list[tuple[Cell, ...]]:
        return [tuple(column.value(row) for column in columns) for row in self.rows]
