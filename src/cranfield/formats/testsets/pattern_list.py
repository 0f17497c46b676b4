"""Lists of queries with a regular expression on the ids of their answers: a row a pattern, in TSV or CSV.

Columns `query` and `pattern`; `id`, `class`, `query_class`, `grade`, `credit`, `expected_count` and strata where there
are such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.delimited import (
    STRATUM,
    Sheet,
    number_of,
    pattern_error,
    read_sheet,
    short,
    strata_of,
    write_sheet,
)
from cranfield.formats.testsets.judgment_table import CLASS_WORDS, NO_CLASS
from cranfield.formats.testsets.trec import TestSetBuilder, UnknownFields
from cranfield.model import LETTERS, QUERY_CLASSES, Credit, Negative, Pattern, Query, TestSet
from cranfield.model.note import info
from cranfield.model.query_ids import needs_no_ids

ROLES: Mapping[str, tuple[str, ...]] = {
    "query": ("query", "query_text"),
    "pattern": ("pattern", "regex"),
    "id": ("id", "query_id"),
    "class": ("class",),
    "query_class": ("query_class",),
    "grade": ("grade",),
    "credit": ("credit",),
    "expected_count": ("expected_count",),
    "negative": ("negative",),
}
"""What a column holds to what it may be called."""
CREDITS: Mapping[str, Credit] = {"": "once", "once": "once", "every": "every"}
NEGATIVE = "negative"
YES = "yes"


def read_pattern_list(path: Path | str) -> TestSet:
    """Read queries with the patterns of their answers.

    Rows of one id, or without ids of one text, are one query with several patterns. A column `class` is a stratum and the
    query class, unless there is a column `query_class`. A query of the class of negative queries, or with a `yes` under `negative`, has no pattern.

    Raises:
        TestSetError: with every bad cell, each at its line and column.
    """
    sheet = read_sheet(Path(path))
    reader = _Reader(sheet)
    reader.read()
    builder = TestSetBuilder(sheet.path, sheet.mark, sheet.problems)
    builder.queries = {query.id: query for query in reader.queries()}
    builder.targets = {entry.query.id: entry.patterns for entry in reader.found.values()}
    notes = (*info(*reader.notes()), *reader.unknown_fields.notes())
    builder.makes_ids = not reader.has_ids
    return builder.testset(notes, noun="query", expected="rows of a query and a pattern")


@dataclass
class _Entry:
    """A query, with the line of its first row and what all its rows must say alike."""

    query: Query
    line: int
    common: tuple[str, ...]
    patterns: list[Pattern] = field(default_factory=list)


class _Reader:
    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.found: dict[str, _Entry] = {}
        """Id, or text where there are no ids, to the query."""
        self.no_classes: dict[str, int] = {}
        """Words that are no query class, to the first line of each."""
        self._place = sheet.places(ROLES)
        self.class_role = "query_class" if "query_class" in self._place else "class"
        self._strata = sheet.strata()
        self._others = sheet.others({*self._place.values(), *self._strata})
        self.unknown_fields = UnknownFields()

    @property
    def has_ids(self) -> bool:
        """Whether the file has ids of queries."""
        return "id" in self._place

    def read(self) -> None:
        missing = [role for role in ("query", "pattern") if role not in self._place]
        for role in missing:
            self.sheet.missing_column(role, ROLES[role])
        for line, cells in () if missing else self.sheet.rows():
            self._row(line, cells)
        self._finish()

    def _cell(self, role: str, cells: list[str]) -> str:
        return cells[self._place[role]] if role in self._place else ""

    def _row(self, line: int, cells: list[str]) -> None:
        text = self._cell("query", cells)
        if not text.strip():
            self.sheet.fault(line, self._place["query"], "no query", expected="the text of a query")
        query_id = self._cell("id", cells)
        if "id" in self._place and not query_id.strip():
            self.sheet.fault(line, self._place["id"], "no id", expected="an id in each row")
        strata = strata_of(self._strata, cells)
        if word := self._cell("class", cells):
            strata["class"] = word
        common = (text, word, self._cell("query_class", cells), *strata.values())
        key = query_id or text
        new = Query(query_id or str(len(self.found) + 1), text, strata, query_class=self._query_class(line, cells))
        entry = self.found.setdefault(key, _Entry(new, line, common))
        if entry.common != common:
            message = f"query {shorten(key)} has a different text, class or stratum than on line {entry.line}"
            self.sheet.fault(line, None, message, expected="the same in all rows of a query")
        self.unknown_fields.take(entry.query.id, {name: cells[place] for place, name in self._others.items()})
        pattern = self._pattern(line, cells)
        if pattern is not None:
            entry.patterns.append(pattern)

    def _pattern(self, line: int, cells: list[str]) -> Pattern | None:
        regex = self._cell("pattern", cells)
        n = len(self.sheet.problems.problems)
        grade = number_of(self._cell("grade", cells) or "1")
        credit = CREDITS.get(self._cell("credit", cells).strip())
        count = self._cell("expected_count", cells).strip()
        if not regex:
            if not self._may_be_negative(line, cells):
                self.sheet.fault(line, self._place["pattern"], "no pattern", expected="a regular expression")
            return None
        if self._cell("negative", cells):
            wanted = "none: nothing should be found"
            self.sheet.fault(line, self._place["pattern"], "a negative query has a pattern", expected=wanted, got=regex)
        if message := pattern_error(regex):
            self.sheet.fault(line, self._place["pattern"], f"the pattern does not compile: {message}",
                             expected="a Python regular expression", got=regex)  # fmt: skip
        if grade is None:
            got = self._cell("grade", cells)
            self.sheet.fault(
                line, self._place["grade"], "the grade is not a finite number", expected="a number", got=got
            )
        if credit is None:
            got = self._cell("credit", cells)
            self.sheet.fault(line, self._place["credit"], "unknown credit", expected="once or every", got=got)
        if count and (not count.isascii() or not count.isdigit() or int(count) < 1):
            wanted = "a whole number of 1 or more"
            self.sheet.fault(line, self._place["expected_count"], "no count", expected=wanted, got=count)
        elif count and int(count) > 1 and credit == "once":
            message = f"the pattern is credited once but expects {count}"
            self.sheet.fault(
                line,
                self._place["expected_count"],
                message,
                expected="1 or none",
                hint="credit `every` credits each match",
            )
        if len(self.sheet.problems.problems) > n or grade is None or credit is None:
            return None
        return Pattern(regex, grade, credit, int(count) if count else None)

    def _may_be_negative(self, line: int, cells: list[str]) -> bool:
        """Whether a row without a pattern says that nothing should be found."""
        word = self._cell("negative", cells).strip()
        if word not in {"", YES}:
            self.sheet.fault(line, self._place["negative"], "unknown word", expected=f"{YES}, or nothing", got=word)
        words = (self._cell("query_class", cells), self._cell("class", cells))
        return bool(word) or NEGATIVE in {LETTERS.get(word.strip(), word.strip()) for word in words}

    def _query_class(self, line: int, cells: list[str]) -> str:
        """What the column `query_class`, or else `class`, says."""
        word = self._cell(self.class_role, cells).strip()
        name = LETTERS.get(word, word)
        if name and name not in QUERY_CLASSES:
            self.no_classes.setdefault(word, line)
        return name

    def _finish(self) -> None:
        """Refuse all words that are no class in one problem; queries without patterns are negative."""
        if self.no_classes:
            message = f"unknown query class in column {self.class_role!r}"
            line, words = next(iter(self.no_classes.values())), join_first(self.no_classes)
            self.sheet.fault(
                line, self._place[self.class_role], message, expected=CLASS_WORDS, got=words, hint=NO_CLASS
            )
        for entry in self.found.values():
            if not entry.patterns:  # or there is a problem
                entry.query = replace(entry.query, negative=Negative())

    def queries(self) -> tuple[Query, ...]:
        """The queries in the order of their first rows."""
        found = [entry.query for entry in self.found.values()]
        return tuple(replace(query, strata={**self.unknown_fields.strata(query.id), **query.strata}) for query in found)

    def notes(self) -> Iterator[str]:
        """What was noticed."""
        several = sum(len(entry.patterns) > 1 for entry in self.found.values())
        if several:
            yield f"{count_noun(several, 'queries')} of several rows: each row is a pattern of its query"
        if self.class_role == "class" and any(entry.query.query_class for entry in self.found.values()):
            yield "column 'class' is read as the query class, and kept as a stratum"


def write_pattern_list(testset: TestSet, path: Path | str) -> None:
    """Write the patterns of a test set, a row each.

    Raises:
        TestSetError: a query without text or patterns that is not negative either, or with something else than patterns.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    for query in testset.queries:
        patterns = testset.targets.get(query.id, ())
        message = expected = ""
        if not all(isinstance(target, Pattern) for target in patterns) or testset.grades.get(query.id):
            message, expected = f"query {query.id!r} is judged by something other than patterns", "patterns alone"
        elif not query.text.strip() or not query.id.strip() or not all(query.strata.values()):
            message, expected = f"query {query.id!r} has no text, no id or an empty stratum", "text in each"
        elif query.negative is None and not patterns:
            message, expected = f"query {query.id!r} has no pattern", "patterns, or a query that is negative"
        elif query.negative is not None and patterns:
            message, expected = f"query {query.id!r} is negative and has patterns", "one of both"
        if message:
            problems.add(f"not written: {message}", path=str(path), expected=expected)
    problems.raise_if_any()
    write_sheet(path, *_table(testset))


def _table(testset: TestSet) -> tuple[list[str], list[list[str]]]:
    queries = testset.queries
    named = not needs_no_ids(testset) or len({query.text for query in queries}) < len(queries)
    words = [query.strata.get("class", "") for query in queries]
    by_class = all(LETTERS.get(w.strip(), w.strip()) == q.query_class for w, q in zip(words, queries, strict=True))
    keys = [
        key for key in dict.fromkeys(key for query in queries for key in query.strata) if key != "class" or not by_class
    ]
    columns: dict[str, Callable[[Query, Pattern], str]] = {
        "id": lambda q, _: q.id,
        "query": lambda q, _: q.text,
        "pattern": lambda _, p: p.regex,
        "class": lambda q, _: q.strata.get("class", ""),
        "query_class": lambda q, _: q.query_class,
        "grade": lambda _, p: short(p.grade) if p.regex else "",
        "credit": lambda _, p: p.credit if p.regex else "",
        "expected_count": lambda _, p: "" if p.expected_count is None else str(p.expected_count),
        "negative": lambda q, _: "" if q.negative is None or q.query_class == NEGATIVE else YES,
    }
    if not named:
        del columns["id"]
    rows = [
        [*(cell(query, pattern) for cell in columns.values()), *(query.strata.get(key, "") for key in keys)]
        for query in queries
        for pattern in testset.targets.get(query.id) or (Pattern(""),)
        if isinstance(pattern, Pattern)
    ]
    names = [*columns, *(STRATUM + key for key in keys)]
    boring = {
        "negative": {""},
        "class": {""},
        "query_class": {""},
        "grade": {"1", ""},
        "credit": {"once", ""},
        "expected_count": {""},
    }
    if by_class:
        boring["query_class"] = {row[names.index("query_class")] for row in rows}
    else:
        boring["class"] = {row[names.index("class")] for row in rows}
    places = [n for n, name in enumerate(names) if name not in boring or {row[n] for row in rows} - boring[name]]
    return [names[n] for n in places], [[row[n] for n in places] for row in rows]
