"""Targets: expected results that are not document ids, but patterns on ids, places in files, symbols, files, or database rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Credit = Literal["once", "every"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression on the result id, searched (not anchored) and case-sensitive."""

    regex: str
    grade: float = 1
    credit: Credit = "once"
    """`once`: the pattern is one expected item, earned by the first match. `every`: each match is an item."""
    expected_count: int | None = None
    """How many documents match in the whole corpus, where known; a `once` pattern always counts as one."""

    @property
    def label(self) -> str:
        """Its name in reports."""
        return self.regex

    @property
    def count(self) -> int | None:
        """Expected items this pattern stands for; None when `every` match counts and the number is not known."""
        return 1 if self.credit == "once" else self.expected_count


@dataclass(frozen=True, slots=True)
class Span:
    """Lines of a file, counted from 1, both ends included. A result that overlaps them matches."""

    path: str
    start: int
    end: int
    grade: float = 1

    @property
    def label(self) -> str:
        """`src/index.rs:41-61`."""
        return f"{self.path}:{self.start}-{self.end}"


@dataclass(frozen=True, slots=True)
class Entity:
    """A symbol of a source file: `src/index.py::Index.add`. A result with that id, or of a chunk of it, matches.

    Where its lines are known, a result that names no symbol matches by lines.
    """

    id: str
    grade: float = 1
    lines: tuple[tuple[int, int], ...] = ()
    """First and last of each range of lines of its file, counted from 1, both included; empty where none is known."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """Its lines as spans of its file."""
        path = self.id.partition("::")[0]
        return tuple(Span(path, first, last) for first, last in self.lines)

    @property
    def label(self) -> str:
        """Its id."""
        return self.id


@dataclass(frozen=True, slots=True)
class File:
    """A file: any result in it matches."""

    path: str
    grade: float = 1

    @property
    def label(self) -> str:
        """Its path."""
        return self.path


@dataclass(frozen=True, slots=True)
class Predicate:
    """Every document that a query to the user's own database names, in its first column."""

    sql: str
    database: str = "corpus"
    """Name in `TestSet.databases`."""
    grade: float = 1
    ids: tuple[str, ...] | None = None
    """Ids that the database returned; None before the query is run."""

    @property
    def label(self) -> str:
        """The query."""
        return self.sql


Target = Pattern | Span | Entity | File | Predicate


@dataclass(frozen=True, slots=True)
class Legacy:
    """Legacy results for a query, which should rank below the current ones."""

    ids: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """Regular expressions on the result id, searched."""


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a result, recognised by its id."""

    name: str
    pattern: str
    """Regular expression on the result id, searched."""
