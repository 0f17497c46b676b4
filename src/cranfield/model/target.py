"""Targets: expected results that are not document ids, but patterns on ids, places in files, symbols, files, passages, or database rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from cranfield.model.kinds import FilledText, Grade, Id, InFile, Kind, Regex, ScalarText, Text, UnfitError, at_least

Credit = Literal["once", "every"]


@dataclass(frozen=True, slots=True)
class Pattern(InFile):
    """Relevant document ids, as a regular expression."""

    _ALWAYS: ClassVar = frozenset({"grade", "credit"})

    regex: Regex
    """Python regular expression, searched anywhere in the result id (anchor it with ^ and $), case-sensitive."""
    grade: Grade = 1.0
    """Grade of a match."""
    credit: Credit = "once"
    """`once`: the pattern is one expected item, credited to the first match. `every`: each match is an expected item."""
    expected_count: Annotated[int, at_least(1, 10_000_000)] | None = None
    """Number of matching documents in the corpus, if known; with `every`, required by measures such as recall."""

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
    grade: float = 1.0

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
    grade: float = 1.0
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
    grade: float = 1.0

    @property
    def label(self) -> str:
        """Its path."""
        return self.path


@dataclass(frozen=True, slots=True)
class PredicateRule(InFile):
    """Documents that a query to a database selects."""

    sql: FilledText
    """SQL query; its first column holds document ids."""
    database: FilledText = "corpus"
    """Name of the database in `databases`."""
    grade: Grade = 1.0
    """Grade of the selected documents."""


@dataclass(frozen=True, slots=True)
class Predicate(PredicateRule):
    """Every document that a query to the user's own database names, in its first column."""

    ids: tuple[str, ...] | None = None
    """Ids that the database returned; None before the query is run."""

    @property
    def label(self) -> str:
        """The query."""
        return self.sql


TESTS = ("is", "contains", "ends", "glob")
"""How a field of a result is compared with a value; the first is meant where a condition names a field alone."""


def condition(name: str) -> tuple[str, str]:
    """Field and test that the name of a condition says.

    Example:
        >>> condition("path ends"), condition("chapter_number")
        (('path', 'ends'), ('chapter_number', 'is'))
    """
    field, _, test = name.strip().rpartition(" ")
    return (field.strip(), test) if field and test in TESTS else (name.strip(), TESTS[0])


def _conditions(where: Mapping[str, str]) -> Mapping[str, str]:
    if not where:
        raise UnfitError("is empty", expected="a field with its value, as `path ends: guide.md`")
    return where


@dataclass(frozen=True, slots=True)
class Criteria(InFile):
    """Results that meet several conditions at once."""

    _ALWAYS: ClassVar = frozenset({"grade"})

    where: Annotated[Mapping[Id, ScalarText], Kind(_conditions, described={"minProperties": 1})]
    """Condition to value; a result has to meet all of them. A condition is a field of the result (`id`, `path`, `url`, `title`, `text`
    or any other), or the field and a test: `is` (the default), `contains` (without regard to case and white space), `ends` (of
    `path`: its last parts), `glob` (`*` also stands for slashes)."""
    grade: Grade = 1.0
    """Grade of a match."""

    def __hash__(self) -> int:
        """Hash of the conditions and the grade: equal criteria have equal hashes."""
        return hash((frozenset(self.where.items()), self.grade))

    @property
    def label(self) -> str:
        """Its id, where that is the condition; else the conditions: `path ends guide.md, chapter is 12`."""
        if self.where.keys() == {"id"}:
            return self.where["id"]
        return ", ".join(f"{' '.join(condition(name))} {value}" for name, value in self.where.items())


_RANGE = re.compile(r"([0-9]{1,12})-([0-9]{1,12})")


def _characters(text: str) -> str:
    found = _RANGE.fullmatch(text)
    if text and (not found or int(found[1]) >= int(found[2])):
        raise UnfitError(
            "are no characters", expected="the first, counted from 0, and the end, as 120-340", got=repr(text)
        )
    return text


def _pages(text: str) -> str:
    found = _RANGE.fullmatch(text if "-" in text else f"{text}-{text}")
    if text and (not found or not 1 <= int(found[1]) <= int(found[2])):
        raise UnfitError(
            "are no pages", expected="a page, counted from 1, or the first and the last, as 12-13", got=repr(text)
        )
    return text


@dataclass(frozen=True, slots=True)
class Passage(InFile):
    """A passage of text, by what it says, by its characters or by its pages: it stays what it is however documents are cut into results."""

    quote: Text = ""
    """The passage itself; `matching.quotes` says how it is compared with the text of a result."""
    path: Text = ""
    """Document that it is in; not needed with a quote, which may then be in any."""
    chars: Annotated[Text, Kind(_characters)] = ""
    """Its characters in the document, as `120-340`: the first, counted from 0, and the one after the last."""
    pages: Annotated[Text, Kind(_pages)] = ""
    """Its page, counted from 1, or the first and the last, as `12-13`."""
    grade: Grade = 1.0
    """Grade of a match."""

    @property
    def label(self) -> str:
        """Its quote; else its place: `guide.md, characters 120-340`."""
        places = (self.path, self.chars and f"characters {self.chars}", self.pages and f"page {self.pages}")
        return " ".join(self.quote.split()) or ", ".join(filter(None, places))


Target = Pattern | Span | Entity | File | Predicate | Criteria | Passage


@dataclass(frozen=True, slots=True)
class Legacy(InFile):
    """Legacy form of the requested item, which should rank below the modern one."""

    ids: tuple[FilledText, ...] = ()
    """Result ids of the legacy form."""
    patterns: tuple[Regex, ...] = ()
    """Regular expressions, searched anywhere in the result id."""


@dataclass(frozen=True, slots=True)
class Source(InFile):
    """A source of results."""

    name: FilledText
    """Name in reports."""
    pattern: Regex
    """Regular expression, searched anywhere in the result id."""
