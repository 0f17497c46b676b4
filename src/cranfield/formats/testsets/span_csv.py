"""Graded spans of lines in CSV: `query,result1,result2,…`, each result `path:start-end:grade`.

Lines count from 1; where they count from 0, a comment above the header says so: `# line_base: 0`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.delimited import STRATUM, Sheet, number_of, read_sheet, short, strata_of, write_sheet
from cranfield.formats.io.files import shown
from cranfield.formats.testsets.trec import TestSetBuilder, UnknownFields
from cranfield.model import Query, Span, TestSet
from cranfield.model.note import info
from cranfield.model.query_ids import needs_no_ids

CELL = "`path:start-end:grade`"
_RESULT = re.compile(r"result\d*", re.IGNORECASE)
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_CELL = re.compile(r":([1-9][0-9]{0,8})-([1-9][0-9]{0,8}):(?=[-+.0-9])")
_BASE = re.compile(r"#\s*line[ _-]base\s*[:=]\s*(.*)", re.IGNORECASE)


def read_span_csv(path: Path | str) -> TestSet:
    """Read queries with the spans of lines that answer them.

    Ids are made from the queries, unless there is a column `id`. Other columns are strata.

    Raises:
        TestSetError: with every bad cell, each at its line and column.
    """
    sheet = read_sheet(Path(path))
    reader = _Reader(sheet)
    reader.read()
    notes = (*info(*reader.notes()), *reader.unknown_fields.notes())
    return reader.builder.testset(notes, noun="query", expected=f"rows of a query and {CELL}")


class _Reader:
    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.builder = TestSetBuilder(sheet.path, sheet.mark, sheet.problems)
        self.base = self._line_base()
        self.unknown_fields = UnknownFields()
        self._text, self._id = sheet.column("query", "query_text"), sheet.column("id", "query_id")
        self.builder.makes_ids = self._id is None
        self._results = [place for place, name in enumerate(sheet.names) if _RESULT.fullmatch(name)]
        self._strata = sheet.strata()
        self._others = sheet.others({self._text, self._id, *self._results, *self._strata})

    def read(self) -> None:
        if self._text is None or not self._results:
            got = "columns " + ", ".join(self.sheet.names)
            self.sheet.fault(self.sheet.line, None, "no such columns", expected="query, result1, …", got=got)
            return
        for number, (line, cells) in enumerate(self.sheet.rows(), start=1):
            self._row(number, line, cells, self._text)
        self.builder.queries = {
            key: replace(query, strata={**self.unknown_fields.strata(query.id), **query.strata})
            for key, query in self.builder.queries.items()
        }

    def _row(self, number: int, line: int, cells: list[str], text: int) -> None:
        query_id = str(number) if self._id is None else cells[self._id]
        if not query_id.strip():
            self.sheet.fault(line, self._id, "no id", expected="an id in each row")
        if not cells[text].strip():
            self.sheet.fault(line, text, f"row {number} has no query", expected="the text of a query")
        filled = [place for place in self._results if cells[place].strip()]
        if not filled:
            self.sheet.fault(line, self._results[0], f"row {number} has no result", expected=CELL)
        spans = [self._span(line, place, cells[place]) for place in filled]
        query = Query(query_id, cells[text], strata_of(self._strata, cells))
        self.builder.new_query(query, (line, self._id))
        self.builder.targets[query_id] = [span for span in spans if span is not None]
        self.unknown_fields.take(query_id, {name: cells[place] for place, name in self._others.items()})

    def _span(self, line: int, place: int, cell: str) -> Span | None:
        name, parts = self.sheet.names[place], cell.rsplit(":", 2)
        message, expected, got, hint = "", CELL, cell, None
        grade = number_of(parts[-1])
        found = _RANGE.fullmatch(parts[1]) if len(parts) == 3 else None
        if len(parts) < 3:
            message = f"{name} has fewer than 2 colons"
        elif not parts[0] or parts[0] != parts[0].strip():
            message, expected = f"{name} has no path, or blanks around it", "the path of a file"
        elif found is None:
            message, expected, got = f"{name}: the lines are not a range", "`start-end`, two whole numbers", parts[1]
        elif grade is None:
            message, expected, got = f"{name}: the grade is not a finite number", "a number", parts[2]
        elif int(found[1]) > int(found[2]):
            message, expected, got = f"{name}: the range ends before it starts", "start-end", parts[1]
        elif int(found[1]) < self.base:
            message, expected, got = (
                f"{name}: lines count from 1, so line 0 does not exist",
                "lines that count from 1",
                parts[1],
            )
            hint = "`# line_base: 0` above the header declares that lines count from 0"
        if message or found is None or grade is None:
            self.sheet.fault(line, place, message, expected=expected, got=got, hint=hint)
            return None
        shift = 1 - self.base
        return Span(parts[0], int(found[1]) + shift, int(found[2]) + shift, grade)

    def _line_base(self) -> int:
        for comment in self.sheet.comments:
            if match := _BASE.fullmatch(comment.strip()):
                if match[1].strip() in {"0", "1"}:
                    return int(match[1])
                self.sheet.problems.add(
                    "line_base cannot be used", path=shown(self.sheet.path), expected="0 or 1", got=shorten(match[1])
                )
        return 1

    def notes(self) -> Iterator[str]:
        """What was noticed."""
        texts = [query.text for query in self.builder.queries.values()]
        for text, n in Counter(texts).items():
            if n > 1:
                rows = ", ".join(str(row) for row, other in enumerate(texts, start=1) if other == text)
                yield f"the query {shorten(text)} occurs in rows {rows}"
        if self.base == 0:
            yield "the lines of the file count from 0; one was added to each"


def rebased(written: str, text: str) -> str:
    """A written table with its lines counted as another one counts them."""
    bases = (_BASE.fullmatch(line.strip()) for line in text.splitlines() if line.startswith("#"))
    if not any(base is not None and base[1].strip() == "0" for base in bases):
        return written
    return _CELL.sub(lambda found: f":{int(found[1]) - 1}-{int(found[2]) - 1}:", written)


def write_span_csv(testset: TestSet, path: Path | str) -> None:
    """Write the spans of a test set, lines from 1; a column `id` where reading would make other ids.

    Raises:
        TestSetError: a query without text or spans, or something that no cell can hold.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    for query in testset.queries:
        targets = testset.targets.get(query.id, ())
        spans = [target for target in targets if isinstance(target, Span)]
        message = expected = ""
        if len(spans) < len(targets) or testset.grades.get(query.id) or query.negative is not None:
            message, expected = f"query {query.id!r} is judged by something other than spans", "only spans of lines"
        elif not spans or not query.text.strip() or not query.id.strip():
            message, expected = f"query {query.id!r} has no spans, no text or no id", "all three"
        elif any(not span.path or span.path != span.path.strip() for span in spans):
            message, expected = f"query {query.id!r} has a path with blanks around it", "none"
        elif not all(query.strata.values()):
            message, expected = f"query {query.id!r} has an empty stratum", "a value"
        if message:
            problems.add(f"not written: {message}", path=str(path), expected=expected)
    problems.raise_if_any()
    named = not needs_no_ids(testset)
    widest = max((len(targets) for targets in testset.targets.values()), default=1)
    strata = list(dict.fromkeys(key for query in testset.queries for key in query.strata))
    results = [f"result{n}" for n in range(1, widest + 1)]
    rows = []
    for query in testset.queries:
        cells = [f"{s.label}:{short(s.grade)}" for s in testset.targets[query.id] if isinstance(s, Span)]
        cells += [""] * (widest - len(cells))
        row = [query.text, *cells, *(query.strata.get(key, "") for key in strata)]
        rows.append([query.id, *row] if named else row)
    names = ["query", *results, *(STRATUM + key for key in strata)]
    write_sheet(path, ["id", *names] if named else names, rows)
