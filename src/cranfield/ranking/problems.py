"""The problems of run files: both readers report them with these functions.

A reader checks a line in this order, and reports the first problem only: its columns, its line end, its score, and its
rank where ranks order the file. Duplicates of a query are reported when the query is complete, in rank order, each with
the best ranked result. A reader collects the first SHOWN_PROBLEMS problems.
"""

from __future__ import annotations

from cranfield.base.errors import Problem, shorten
from cranfield.formats.io.files import MAX_LINE_BYTES

_COLUMNS = "query Q0 document rank score tag"
_LINE = f"lines `{_COLUMNS}` that end in line feeds"
GOT_BYTES = 1000
"""At most this much of a bad line or column is quoted."""


def long_line(path: str, line: int) -> Problem:
    """A line of more than MAX_LINE_BYTES; nothing behind it is read."""
    return Problem(f"the line is longer than {MAX_LINE_BYTES} bytes", path=path, line=line, expected=_LINE)


def short_line(path: str, line: int, n_columns: int, got: bytes) -> Problem:
    """A line of fewer than six columns; `got` is the line."""
    expected = f"6: {_COLUMNS}"
    return Problem(f"{n_columns} columns", path=path, line=line, expected=expected, got=_quoted(got))


def lone_carriage_return(path: str, line: int, got: bytes) -> Problem:
    """A tag with a carriage return: several lines that end in nothing else."""
    expected = "a line feed at the end of each line"
    return Problem("lines end in a lone carriage return", path=path, line=line, expected=expected, got=_quoted(got))


def bad_score(path: str, line: int, got: bytes) -> Problem:
    """A fifth column that is not a finite decimal number; `got` is the column."""
    message, expected = "the score is not a finite number", "a number in column 5"
    return Problem(message, path=path, line=line, expected=expected, got=_quoted(got))


def bad_rank(path: str, line: int, got: bytes) -> Problem:
    """A fourth column that is not a whole number, in a file ordered by it; `got` is the column."""
    message, expected = "the rank is not a whole number", "digits in column 4, because the rank orders this run"
    return Problem(message, path=path, line=line, expected=expected, got=_quoted(got))


def duplicate_result(path: str, lines: tuple[int, int], query_id: bytes, doc_id: bytes) -> Problem:
    """A repeated document of a query; `lines` in any order."""
    query, document = query_id.decode("utf-8", "surrogateescape"), doc_id.decode("utf-8", "replace")
    return Problem(
        f"query {query!r} lists document {document!r} twice",
        path=path,
        line=max(lines),
        expected="each document once per query",
        got=f"the same document on line {min(lines)}",
        hint="{duplicates=first} keeps the best-ranked one",
        parameters=("duplicates",),
    )


def empty_run(path: str) -> Problem:
    """A file without a result line."""
    return Problem("no line in this run", path=path, expected=f"lines `{_COLUMNS}`")


def _quoted(got: bytes) -> str:
    return shorten(got.lstrip()[:GOT_BYTES].decode("utf-8", "replace").strip())
