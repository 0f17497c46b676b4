"""Judgments in a table of text, a row each: TSV or CSV with a header row, or JSONL with an object a line.

Columns (or keys) are found by name: query, document and grade; a rater, the text of the query and `stratum.NAME` where
there are such. `judgment_jsonl` reads the lines of JSONL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from cranfield.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.columns import JUDGMENT_COLUMNS
from cranfield.formats.io.delimited import STRATUM, Sheet, read_sheet, write_sheet, write_unicode
from cranfield.formats.io.files import opened, shown, stem, suffix_of
from cranfield.formats.io.grades import number_of, short, whole
from cranfield.model import Note, Query, Rating, TestSet
from cranfield.model.note import info, not_carried
from cranfield.words import n_of

ASKED = ("query_id", "doc_id", "grade")
QUERY_IS_ID = "`query` is read as the id of the query; its text goes under `query_text`"
WRITTEN = frozenset({str, int, float})
"""Types of what a grade may be; true/false is none."""
JSON_LINES = {".jsonl", ".ndjson"}


class Row(NamedTuple):
    """One judgment as its file has it."""

    line: int
    query_id: str
    doc_id: str
    grade: Any
    """Text of a cell, or what a JSON value is; empty or None where nothing is said."""
    rater: str
    text: str
    strata: Sequence[str]
    """In the order of `Source.strata`; empty where nothing is said."""


Plain = tuple[int, str, str, Any, str, str, Sequence[str]]
"""The fields of a `Row`, as a million of them are made fast."""


class Source(Protocol):
    """Where rows come from."""

    path: Path
    problems: ProblemList
    strata: list[str]
    has_rater: bool

    def rows(self) -> Iterator[Plain]:
        """The rows; may be asked for again."""

    def fault(self, line: int, role: str, message: str, *, expected: str, got: Any = None) -> None:
        """Note what is wrong with one value."""

    def number(self, value: Any) -> float | None:
        """A grade; None where it is none."""

    def notes(self) -> Iterator[Note]:
        """What it noticed."""


def read_judgment_table(path: Path | str) -> TestSet:
    """Read judgments, a row each.

    With a column `rater` the rows are ratings: an empty grade is a slot that nobody filled, and a row without a rater is
    a settled grade. Without one, an empty grade is a mistake, and so is a document judged twice, differently.

    Raises:
        TestSetError: with every bad value, each at its line, and both lines of what contradicts.
    """
    path = Path(path)
    source: Source = _json_source(path) if _is_json(path) else _SheetSource(path)
    gathered = _Gathered(source)
    gathered.read()
    gathered.report_conflicts()
    source.problems.raise_if_any()
    if not gathered.queries:
        raise TestSetError("no judgment in this file", path=shown(path), expected="a row per judgment")
    return gathered.testset()


def _is_json(path: Path) -> bool:
    with opened(path, TestSetError) as stream:
        return stream.read(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _json_source(path: Path) -> Source:
    from cranfield.formats.testsets.judgment_jsonl import JsonSource

    return JsonSource(path)


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


@dataclass
class _Gathered:
    """Rows put together by query."""

    source: Source
    queries: dict[str, dict[str, str]] = field(default_factory=dict)
    """Query id to text (under the empty name) and strata."""
    grades: dict[str, dict[str, float]] = field(default_factory=dict)
    ratings: dict[str, dict[tuple[str, str], float | None]] = field(default_factory=dict)
    n_repeated: int = 0
    n_settled: int = 0
    """Rows without a rater where others have one."""
    _numbers: dict[Any, float] = field(default_factory=dict)
    """Grades by how they are written: a file holds few different ones."""
    _conflicts: list[tuple[Row, object]] = field(default_factory=list)

    def read(self) -> None:
        """Take every row; one that is but a new pair with a grade, by the shortest way."""
        numbers, grades, queries = self._numbers, self.grades, self.queries
        is_plain = not self.source.has_rater
        for row in self.source.rows():
            _, query_id, doc_id, written, _, text, strata = row
            grade = numbers.get(written) if type(written) in WRITTEN else None
            said = queries.get(query_id)
            is_known = said is not None and not strata and (not text or said.get("") == text)
            if grade is not None and is_plain and is_known and doc_id:
                judged = grades.setdefault(query_id, {})
                known = len(judged)
                judged.setdefault(doc_id, grade)
                if len(judged) > known:
                    continue
            self.add(Row._make(row))

    def add(self, row: Row) -> None:
        """Take one row."""
        if not row.query_id or not row.doc_id:
            role = "doc_id" if row.query_id else "query_id"
            self.source.fault(row.line, role, f"no {role}", expected="an id in each row")
            return
        grade = self._grade(row)
        said = self.queries.get(row.query_id)
        if said is None:
            said = self.queries[row.query_id] = {}
        if row.text or row.strata:
            self._describe(said, row)
        if row.rater:
            pairs = self.ratings.setdefault(row.query_id, {})
            self._put(pairs, (row.doc_id, row.rater), grade, row)
        elif grade is not None:
            self.n_settled += self.source.has_rater
            self._put(self.grades.setdefault(row.query_id, {}), row.doc_id, grade, row)

    def _put(self, there: dict[Any, Any], key: object, grade: float | None, row: Row) -> None:
        known = len(there)
        earlier = there.setdefault(key, grade)
        if len(there) > known:
            return
        if earlier == grade:
            self.n_repeated += 1
        else:
            self._conflicts.append((row, earlier))

    def _grade(self, row: Row) -> float | None:
        written = row.grade
        if type(written) in WRITTEN and written in self._numbers:
            return self._numbers[written]
        if written is None or written == "":
            if not row.rater:
                self.source.fault(row.line, "grade", "no grade", expected="a number")
            return None
        grade = self.source.number(written) if type(written) in WRITTEN else None
        if grade is None:
            self.source.fault(row.line, "grade", "the grade is not a finite number", expected="a number", got=written)
        else:
            self._numbers[written] = grade
        return grade

    def _describe(self, said: dict[str, str], row: Row) -> None:
        named = [("", row.text), *zip(self.source.strata, row.strata, strict=True)]
        for name, value in named:
            if value and said.setdefault(name, value) != value:
                what = f"stratum {name!r}" if name else "text"
                message = f"query {row.query_id!r} has another {what} than in an earlier row"
                role = STRATUM + name if name else "text"
                self.source.fault(row.line, role, message, expected=shorten(said[name]), got=value)

    def report_conflicts(self) -> None:
        """Name both rows of what is judged twice, differently."""
        wanted = {(row.query_id, row.doc_id, row.rater) for row, _ in self._conflicts}
        first: dict[tuple[str, str, str], int] = {}
        n = len(self.source.problems.problems)
        for line, query_id, doc_id, _, rater, *_ in self.source.rows() if wanted else ():
            if (query_id, doc_id, rater) in wanted:
                first.setdefault((query_id, doc_id, rater), line)
        del self.source.problems.problems[n:]
        for row, earlier in self._conflicts:
            line = first[row.query_id, row.doc_id, row.rater]
            by = f" by {row.rater!r}" if row.rater else ""
            message = f"query {row.query_id!r}, document {row.doc_id!r} is judged twice{by}"
            said = short(earlier) if isinstance(earlier, float) else "no grade"
            self.source.fault(row.line, "grade", message, expected=f"{said}, as on line {line}", got=row.grade)

    def testset(self) -> TestSet:
        """What the rows come to."""
        queries = tuple(
            Query(query_id, said.get("", ""), {name: value for name, value in said.items() if name})
            for query_id, said in self.queries.items()
        )
        ratings = {
            query_id: tuple(Rating(doc_id, rater, grade) for (doc_id, rater), grade in said.items())
            for query_id, said in self.ratings.items()
        }
        notes = list(self.source.notes())
        if self.n_repeated:
            notes += info(f"said again: {n_of(self.n_repeated, 'judgments')}, with the same grade")
        if self.n_settled:
            notes += info(f"{n_of(self.n_settled, 'rows')} without a rater: taken as settled")
        return TestSet(stem(self.source.path), queries, self.grades, ratings=ratings, notes=tuple(notes))


class _SheetSource:
    """Rows of a TSV or CSV file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sheet: Sheet = read_sheet(path)
        self.problems = self.sheet.problems
        self._place = roles_of(self.sheet.column)
        self._strata = self.sheet.strata()
        self.strata = list(self._strata.values())
        self.has_rater = "rater" in self._place
        for role in ASKED:
            if role not in self._place:
                got = "columns " + ", ".join(self.sheet.names)
                names = " or ".join(JUDGMENT_COLUMNS[role])
                self.sheet.fault(self.sheet.line, None, f"no column {role}", expected=names, got=got)

    def rows(self) -> Iterator[Plain]:
        """The rows; none where a column is missing."""
        if any(role not in self._place for role in ASKED):
            return
        query, document, grade = (self._place[role] for role in ASKED)
        rater, text = self._place.get("rater"), self._place.get("text")
        strata = list(self._strata)
        for line, cells in self.sheet.rows():
            yield (
                line,
                cells[query],
                cells[document],
                cells[grade],
                "" if rater is None else cells[rater],
                "" if text is None else cells[text],
                [cells[place] for place in strata] if strata else (),
            )

    def fault(self, line: int, role: str, message: str, *, expected: str, got: Any = None) -> None:
        """Note what is wrong with one cell."""
        place = self._place.get(role)
        if place is None:
            place = next((place for place, name in self._strata.items() if STRATUM + name == role), None)
        self.sheet.fault(line, place, message, expected=expected, got=got)

    def number(self, value: Any) -> float | None:
        """A grade as its cell has it."""
        return number_of(value)

    def notes(self) -> Iterator[Note]:
        """Columns that mean nothing here."""
        if self._place.get("query_id") == self.sheet.column("query"):
            yield from info(QUERY_IS_ID)
        known = {*self._place.values(), *self._strata}
        others = [name for place, name in enumerate(self.sheet.names) if place not in known and name]
        yield from not_carried(f"column {name!r}; a column of a stratum is called `{STRATUM}{name}`" for name in others)


def write_judgment_table(testset: TestSet, path: Path | str) -> None:
    """Write graded ids and ratings, a row each: JSONL where the file's name ends in `.jsonl`, TSV in `.tsv`, else CSV.

    Raises:
        TestSetError: a query judged by a rule, or what no cell can hold.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    for query in testset.queries:
        if testset.targets.get(query.id) or query.negative is not None:
            message = f"not written: query {query.id!r} is judged by a rule"
            problems.add(message, path=str(path), expected="graded document ids")
        if not all(query.strata.values()):
            message = f"not written: query {query.id!r} has an empty stratum"
            problems.add(message, path=str(path), expected="a value")
    problems.raise_if_any()
    records = list(_records(testset))
    used = {name for record in records for name, value in record.items() if value is not None}
    strata = dict.fromkeys(key for query in testset.queries for key in query.strata)
    names: list[str] = [
        name for name in ("query_id", "query_text", "doc_id", "grade", "rater") if name in {*ASKED, *used}
    ]
    names += [STRATUM + key for key in strata]
    if suffix_of(path) in JSON_LINES:
        kept = ({name: record[name] for name in names if record.get(name) is not None} for record in records)
        write_unicode(path, (json.dumps(one, ensure_ascii=False) + "\n" for one in kept))
        return
    cells = ([_cell(record.get(name)) for name in names] for record in records)
    write_sheet(path, names, cells)


def _records(testset: TestSet) -> Iterator[dict[str, Any]]:
    for query in testset.queries:
        said: dict[str, Any] = {"query_id": query.id, "query_text": query.text or None}
        strata = {STRATUM + key: value for key, value in query.strata.items()}
        for rating in testset.ratings.get(query.id, ()):
            grade = None if rating.grade is None else whole(rating.grade)
            yield {**said, "doc_id": rating.doc_id, "grade": grade, "rater": rating.rater, **strata}
        for doc_id, grade in testset.grades.get(query.id, {}).items():
            yield {**said, "doc_id": doc_id, "grade": whole(grade), "rater": None, **strata}


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
