"""Questions in a table that is no test set yet: a column of queries, perhaps one of regular expressions on the right answers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from cranfield.errors import Problem, TestSetError, shorten
from cranfield.formats.io.cells import pattern_error
from cranfield.formats.io.delimited import JUDGMENT_COLUMNS, separator_of
from cranfield.formats.io.files import decode, read_bytes, shown, stem
from cranfield.model import Pattern, Query, TestSet
from cranfield.model.note import not_carried
from cranfield.project.init.values import QUERY_NAMES

ID_NAMES = ("id", "query_id", "qid", "q_id", "_id", "number")
PATTERN_NAMES = ("pattern", "regex", "regexp", "expected", "right_answer", "uri_pattern", "answer_pattern")
DOCUMENT_NAMES = JUDGMENT_COLUMNS["doc_id"]
"""What the column of a right answer is called, whose grade is 1."""
TABLES = (".csv", ".tsv", ".txt", "")
"""Endings of file names of such tables."""
_LOOKS_LIKE_PATTERN = re.compile(r"[\\^$*+?|()\[\]]|://")
LEAST_SHARE = 0.8
"""Of the cells of a column without a name, to take them for regular expressions."""


def read_questions(path: Path) -> TestSet:
    """Read the queries of a table with or without a header; with their patterns, where there are any.

    Raises:
        TestSetError: it has no column of queries, or a pattern that does not compile; each at its line.
    """
    text = decode(read_bytes(path, TestSetError), path, TestSetError)
    rows = list(_rows(text))
    if not rows:
        raise TestSetError("the file is empty", path=shown(path), expected="a question in each line")
    header = [cell.strip().lower() for cell in rows[0][1]]
    query = _column(header, QUERY_NAMES)
    query_is_named = query is not None
    unused: list[str] = []
    if query is None:
        query, pattern, id_, document = 0, _pattern_column(rows), None, None
        if max(len(cells) for _, cells in rows) > 2 and pattern is None:
            expected = f"a header with a column of queries: {', '.join(QUERY_NAMES[:6])}"
            raise TestSetError("no column of queries", path=shown(path), line=rows[0][0], expected=expected,
                               got=shorten(", ".join(rows[0][1])))  # fmt: skip
    else:
        pattern, id_ = _column(header, PATTERN_NAMES), _column(header, ID_NAMES)
        document = _column(header, DOCUMENT_NAMES)
        used = {query, pattern, id_, document}
        unused = [name for place, name in enumerate(rows[0][1]) if place not in used and name.strip()]
        rows = rows[1:]
    testset = _testset(path, rows, (query, pattern, id_, document))
    if query_is_named and unused:
        names = ", ".join((*PATTERN_NAMES[:2], *DOCUMENT_NAMES))
        notes = not_carried(f"column {name!r}; right answers stand under {names}" for name in unused)
        testset = replace(testset, notes=notes)
    return testset


def _testset(
    path: Path, rows: Sequence[tuple[int, list[str]]], columns: tuple[int, int | None, int | None, int | None]
) -> TestSet:
    queries: dict[str, Query] = {}
    targets: dict[str, list[Pattern]] = {}
    grades: dict[str, dict[str, float]] = {}
    by_text: dict[str, str] = {}
    problems: list[Problem] = []
    for line, cells in rows:
        text, pattern, given_id, document = (_cell(cells, column).strip() for column in columns)
        if not text and not given_id:
            problems.append(
                Problem("no query", path=shown(path), line=line, expected="the text of a query in each row")
            )
            continue
        query_id = given_id or by_text.setdefault(text, f"q{len(by_text) + 1}")
        queries.setdefault(query_id, Query(query_id, text))
        if pattern and (message := pattern_error(pattern)):
            message = f"the pattern does not compile: {message}"
            expected = "a Python regular expression"
            problems.append(Problem(message, path=shown(path), line=line, expected=expected, got=shorten(pattern)))
        elif pattern:
            targets.setdefault(query_id, []).append(Pattern(pattern))
        elif document:
            grades.setdefault(query_id, {})[document] = 1.0
    if problems:
        raise TestSetError(problems)
    return TestSet(
        stem(path), tuple(queries.values()), grades, targets={key: tuple(found) for key, found in targets.items()}
    )


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of the rows that are not blank and no comments."""
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    reader = csv.reader(io.StringIO(text), delimiter=separator_of(first.encode("utf-8", "replace")))
    for cells in reader:
        if any(cell.strip() for cell in cells) and not cells[0].startswith("#"):
            yield reader.line_num, cells


def _cell(cells: Sequence[str], column: int | None) -> str:
    return cells[column] if column is not None and column < len(cells) else ""


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name.lower()) for name in names if name.lower() in header), None)


def _pattern_column(rows: Sequence[tuple[int, list[str]]]) -> int | None:
    """The second column, where it holds regular expressions and there are two columns."""
    if any(len(cells) != 2 for _, cells in rows):
        return None
    found = [cells[1] for _, cells in rows if _LOOKS_LIKE_PATTERN.search(cells[1])]
    return 1 if len(found) >= LEAST_SHARE * len(rows) else None
