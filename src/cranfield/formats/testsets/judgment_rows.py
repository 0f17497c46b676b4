"""Rows of judgments, as the sources of `judgment_table` give them: cells of a table, or objects of JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from cranfield.errors import ProblemList
from cranfield.formats.io.columns import JUDGMENT_COLUMNS
from cranfield.model import Note

REQUIRED = ("query_id", "doc_id", "grade")
QUERY_IS_ID = "`query` is read as the id of the query; its text goes under `query_text`"

Row = tuple[int, str, str, Any, str, str, Sequence[str]]
"""Line, query id, document id, grade, rater, text of the query, and strata.

A grade is the text of a cell or what a JSON value is; empty or None where there is none. Strata stand in the order of
`Source.strata`. A plain tuple: a million of them are made.
"""


class Source(Protocol):
    """Where rows come from."""

    problems: ProblemList
    strata: list[str]
    has_rater: bool

    def rows(self) -> Iterator[Row]:
        """The rows."""

    def fault(self, line: int, role: str, message: str, *, expected: str, got: Any = None) -> None:
        """Add a problem with one value."""

    def mark(self, line: int) -> tuple[int, int | None]:
        """Line and column of the grade on a line."""

    def number(self, value: Any) -> float | None:
        """A grade; None where the value is not a finite number."""

    def notes(self) -> Iterator[Note]:
        """Notes on what was read."""


def roles_of(column: Callable[..., Any]) -> dict[str, Any]:
    """Role to where its value is; `column` finds the first of some names.

    A text is looked for only under a name that is not that of the id.
    """
    found: dict[str, Any] = {}
    for role, names in JUDGMENT_COLUMNS.items():
        free = [name for name in names if role != "text" or found.get("query_id") != column(name)]
        place = column(*free) if free else None
        if place is not None:
            found[role] = place
    return found
