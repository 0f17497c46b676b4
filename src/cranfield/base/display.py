"""How values of the library show themselves: a line in a terminal, a card in a notebook, a data frame, a query side by side.

The classes that derive from `Displayed` stand below what renders them. The face of the package, which knows every room,
puts it into `LOAD_DISPLAYS`; nothing of it is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cranfield.base import LOAD_DISPLAYS
from cranfield.base.words import printable, shorten_to

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Library = Literal["pandas", "polars", "pyarrow"]

LINE_COLUMNS, LINE_CHARS = 150, 170
"""Most columns and characters of the line that a value prints, without its class."""
NAME_COLUMNS = 32
"""Most columns of a name in it."""
MAX_READ = 1000
"""Characters of a text that are looked at for a line: a name may be a megabyte long."""


class Displays(Protocol):
    """What renders values."""

    def card(self, value: object) -> str:
        """A value as HTML for a notebook."""

    def frame(self, value: object, library: Library) -> Any:
        """The tidy rows of a value as a frame of a library."""

    def query(self, value: object, query: str) -> QueryDisplay:
        """A query of a result, found by its id or its text."""


def _displays() -> Displays:
    """What renders values."""
    displays: Displays = LOAD_DISPLAYS[-1]()
    return displays


def in_line(text: str, columns: int = NAME_COLUMNS) -> str:
    """A text that may come from elsewhere, cut for a line and safe to print."""
    return shorten_to(printable(text[:MAX_READ]), columns)


class OneLine:
    """Base of values that print one line; a dataclass of it is declared with `repr=False`."""

    __slots__ = ()

    def _summary(self) -> str:
        """The value in a line, without its class; names from elsewhere go through `in_line`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """One line of under 200 characters: `<Run bm25: 50 queries, 500 results>`."""
        line = in_line(self._summary(), LINE_COLUMNS)
        line = line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…"
        return f"<{type(self).__name__} {line}>"


class Displayed(OneLine):
    """Base of values that also show a card in a notebook, and hand out their rows as data frames."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The card that a notebook shows: HTML without a script, which requests nothing."""
        return _displays().card(self)

    def to_pandas(self) -> pd.DataFrame:
        """The tidy rows as a pandas frame: of results one row a query and measure, as in the CSV form of a report.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        frame: pd.DataFrame = _displays().frame(self, "pandas")
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The same rows as a Polars frame.

        Raises:
            MissingExtraError: Polars is not installed.
        """
        frame: pl.DataFrame = _displays().frame(self, "polars")
        return frame

    def to_arrow(self) -> pa.Table:
        """The same rows as an Arrow table.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        return _displays().frame(self, "pyarrow")


class DisplayedByQuery(Displayed):
    """Base of results that have a value per query."""

    __slots__ = ()

    def show(self, query: str) -> QueryDisplay:
        """One query side by side: the lists of the systems, what was expected and missed, the values, the latency.

        Args:
            query: its id, or its exact text.

        Raises:
            UnknownNameError: there is no such query, with those of a similar id or text; or several have this text.
        """
        return _displays().query(self, query)


@dataclass(frozen=True, repr=False)
class QueryDisplay:
    """A query of a result: prints as text, and shows itself as HTML in a notebook."""

    query_id: str
    data: Mapping[str, Any]
    """Everything that is shown, as of `cranfield.reporting.query_data.query_detail`."""
    text: str
    render_html: Callable[[], str]

    def __repr__(self) -> str:
        """The query as text, of at most 100 columns."""
        return self.text

    def _repr_html_(self) -> str:
        return self.render_html()
