"""Judgments in a table of text, a row each: TSV or CSV with a header row, or JSONL with an object a line.

Columns (or keys) are found by name: query, document and grade; a rater, the text of the query and `stratum.NAME` where
there are such. `judgment_jsonl` reads the lines of JSONL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cranfield.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.columns import JUDGMENT_COLUMNS
from cranfield.formats.io.delimited import STRATUM, Sheet, read_sheet, write_sheet, write_unicode
from cranfield.formats.io.files import opened, suffix_of
from cranfield.formats.io.grades import number_of, whole
from cranfield.formats.testsets.builder import TestSetBuilder, check_graded
from cranfield.formats.testsets.judgment_jsonl import JsonSource
from cranfield.formats.testsets.judgment_rows import QUERY_IS_ID, REQUIRED, Row, Source, roles_of
from cranfield.model import Note, Query, TestSet
from cranfield.model.note import info, not_carried
from cranfield.words import n_of

GRADE_TYPES = frozenset({str, int, float})
"""Types of what a grade may be; true/false is none."""
JSON_LINES = {".jsonl", ".ndjson"}


def read_judgment_table(path: Path | str) -> TestSet:
    """Read judgments, a row each.

    With a column `rater` the rows are ratings: an empty grade is a slot that is not filled, and a row without a rater is
    a final grade. Without one, an empty grade is a mistake, and so is a document judged twice, differently.

    Raises:
        TestSetError: with every bad value, each at its line, and both lines of what contradicts.
    """
    path = Path(path)
    source: Source = JsonSource(path) if _is_json(path) else _SheetSource(path)
    builder = TestSetBuilder(path, source.mark, source.problems)
    texts: dict[str, dict[str, str]] = {}
    builder.judge_rows(_judgments(source, builder, texts))
    for query_id, values in texts.items():
        strata = {name: value for name, value in values.items() if name}
        builder.queries[query_id] = Query(query_id, values.get("", ""), strata)
    n_final = sum(map(len, builder.grades.values.values())) if source.has_rater else 0
    notes = [*source.notes(), *builder.repeated()]
    notes += info(f"{n_of(n_final, 'rows')} without a rater: taken as final") if n_final else ()
    return builder.testset(notes, expected="a row per judgment")


def _is_json(path: Path) -> bool:
    with opened(path, TestSetError) as stream:
        return stream.read(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _judgments(
    source: Source, builder: TestSetBuilder, texts: dict[str, dict[str, str]]
) -> Iterator[tuple[str, str, float, int]]:
    """The judgments of a source; ratings go to the builder, texts and strata of the queries to `texts`."""
    numbers: dict[Any, float] = {}
    """Grades by how they are written: a file holds few different ones."""
    last, known = "", dict[str, str]()
    for line, query_id, doc_id, written, rater, text, strata in source.rows():
        if not query_id or not doc_id:
            role = "doc_id" if query_id else "query_id"
            source.fault(line, role, f"no {role}", expected="an id in each row")
            continue
        grade = numbers.get(written) if type(written) in GRADE_TYPES else None
        if grade is None and not (rater and (written is None or written == "")):
            grade = _number(source, line, written)
            if grade is not None:
                numbers[written] = grade
        if query_id != last:
            last = query_id
            known = texts.setdefault(query_id, {})
            builder.queries[query_id] = Query(query_id)
        if text or strata:
            _describe(source, known, (line, query_id, text, strata))
        if rater:
            builder.rate(query_id, doc_id, rater, grade, line)
        elif grade is not None:
            yield query_id, doc_id, grade, line


def _number(source: Source, line: int, written: Any) -> float | None:
    if written is None or written == "":
        source.fault(line, "grade", "no grade", expected="a number")
        return None
    grade = source.number(written) if type(written) in GRADE_TYPES else None
    if grade is None:
        source.fault(line, "grade", "the grade is not a finite number", expected="a number", got=written)
    return grade


def _describe(source: Source, known: dict[str, str], row: tuple[int, str, str, Sequence[str]]) -> None:
    """Keep the text and strata of a query; a problem where an earlier row has others."""
    line, query_id, text, strata = row
    for name, value in (("", text), *zip(source.strata, strata, strict=True)):
        if value and known.setdefault(name, value) != value:
            what = f"stratum {name!r}" if name else "text"
            message = f"query {query_id!r} has another {what} than in an earlier row"
            role = STRATUM + name if name else "text"
            source.fault(line, role, message, expected=shorten(known[name]), got=value)


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
        for role in REQUIRED:
            if role not in self._place:
                got = "columns " + ", ".join(self.sheet.names)
                names = " or ".join(JUDGMENT_COLUMNS[role])
                self.sheet.fault(self.sheet.line, None, f"no column {role}", expected=names, got=got)

    def rows(self) -> Iterator[Row]:
        """The rows; none where a column is missing."""
        if any(role not in self._place for role in REQUIRED):
            return
        query, document, grade = (self._place[role] for role in REQUIRED)
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

    def mark(self, line: int) -> tuple[int, int | None]:
        """Line and column of the grade."""
        return self.sheet.mark((line, self._place.get("grade")))

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
    check_graded(testset, path, problems)
    for query in testset.queries:
        if not all(query.strata.values()):
            message = f"not written: query {query.id!r} has an empty stratum"
            problems.add(message, path=str(path), expected="a value")
    problems.raise_if_any()
    records = list(_records(testset))
    used = {name for record in records for name, value in record.items() if value is not None}
    strata = dict.fromkeys(key for query in testset.queries for key in query.strata)
    names: list[str] = [
        name for name in ("query_id", "query_text", "doc_id", "grade", "rater") if name in {*REQUIRED, *used}
    ]
    names += [STRATUM + key for key in strata]
    if suffix_of(path) in JSON_LINES:
        kept = ({name: record[name] for name in names if record.get(name) is not None} for record in records)
        write_unicode(path, (json.dumps(record, ensure_ascii=False) + "\n" for record in kept))
        return
    cells = ([_cell(record.get(name)) for name in names] for record in records)
    write_sheet(path, names, cells)


def _records(testset: TestSet) -> Iterator[dict[str, Any]]:
    for query in testset.queries:
        values: dict[str, Any] = {"query_id": query.id, "query_text": query.text or None}
        strata = {STRATUM + key: value for key, value in query.strata.items()}
        for rating in testset.ratings.get(query.id, ()):
            grade = None if rating.grade is None else whole(rating.grade)
            yield {**values, "doc_id": rating.doc_id, "grade": grade, "rater": rating.rater, **strata}
        for doc_id, grade in testset.grades.get(query.id, {}).items():
            yield {**values, "doc_id": doc_id, "grade": whole(grade), "rater": None, **strata}


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
