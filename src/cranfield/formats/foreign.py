"""Files that are of no expected format, and what to do with them: reports, logs, broken JSON, runs without all columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cranfield.base.errors import Problem, shorten
from cranfield.base.words import command_word
from cranfield.formats.io.delimited import JUDGMENT_COLUMNS
from cranfield.formats.io.files import shown
from cranfield.formats.registry import HEAD_BYTES, Format, Head, is_number

_REPORT = re.compile(
    rb"""\A\s*\{\s*("schema_version"\s*:\s*\d+\s*,\s*"(testset|kind|measure|run|default)"|"testsets")\s*:"""
)
"""The first keys of the JSON reports that the commands write; a report on several test sets has those under `testsets`."""
_INSTEAD = {
    "run": "give the run file that was scored; `cranfield run` keeps the runs in the folder runs next to its report.",
    "test set": "give the test set or the qrels that the runs were scored against.",
    "query file": "give the file of query texts.",
}
RUN_COLUMNS = 6


def report_problem(path: Path, what: str, head: Head) -> Problem | None:
    """The problem of a JSON report of Cranfield where a run, a test set or a query file was expected."""
    if not _REPORT.match(head.data):
        return None
    return Problem("this is a JSON report of Cranfield", path=shown(path), expected=f"a {what}", hint=_INSTEAD[what])


_CONFIG = re.compile(rb"(^|\n)systems[ \t]*:"), re.compile(rb"(^|\n)testsets?[ \t]*:")


def config_problem(path: Path, what: str, head: Head) -> Problem | None:
    """The problem of a config where a run, a test set or a query file was expected."""
    if not all(key.search(head.data) for key in _CONFIG):
        return None
    hint = f"`cranfield run {command_word(path)}` queries its systems and scores them; its test set is the file under `testset`."
    return Problem("this is a config of Cranfield", path=shown(path), expected=f"a {what}", hint=hint)


def short_run(path: Path, head: Head) -> Problem | None:
    """The problem of a TREC run all of whose lines have too few columns; None where it does not look like a run."""
    rows = head.rows
    if not rows or not all(3 <= len(row) < RUN_COLUMNS and _is_result(row) for row in rows):
        return None
    n_columns = len(rows[0])
    return Problem(
        f"{n_columns} columns",
        path=shown(path),
        line=_line_of(head),
        expected=f"{RUN_COLUMNS}: query Q0 document rank score tag",
        got=shorten(head.first_line.decode("utf-8", "replace")),
        hint="add the missing columns, or write a table of results whose first line names its columns.",
    )


def _is_result(row: list[bytes]) -> bool:
    """Whether a line begins or ends as one of a TREC run."""
    return row[1] == b"Q0" or is_number(row[-1]) or is_number(row[-2])


def broken_json(path: Path, head: Head) -> Problem | None:
    """Where a file that begins as JSON becomes invalid; None where it is valid, not JSON at all, or JSON lines."""
    if not head.first_line.startswith((b"{", b"[")) or len(head.data) >= HEAD_BYTES:
        return None
    try:
        json.loads(head.data)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return None
        message = f"this JSON cannot be read: {error.msg[0].lower()}{error.msg[1:]}"
        return Problem(message, path=shown(path), line=error.lineno, column=error.colno)
    except (ValueError, RecursionError):
        return None
    return None


def nearly(path: Path, what: str, head: Head, fitting: Callable[[Head], Format | None]) -> Problem | None:
    """What is wrong with a file whose columns would be those of a format if they were separated, quoted or counted otherwise.

    Args:
        path: the file.
        what: is expected of it.
        head: its beginning.
        fitting: the format of such a beginning.
    """
    given: dict[str, Any] = {
        "path": shown(path),
        "line": _line_of(head),
        "got": shorten(head.first_line.decode("utf-8", "replace")),
    }
    names = {*head.first_line.decode("utf-8", "replace").lower().split()}
    if not re.search(rb"[\t,;]", head.first_line) and all(
        names & {*JUDGMENT_COLUMNS[role]} for role in ("query_id", "doc_id")
    ):
        hint = "`tr -s ' ' '\\t' < FILE > NEW` puts tabs there"
        return Problem(f"not a {what}: blanks between its columns", expected="tabs or commas", hint=hint, **given)
    for message, hint, changes in _NEARLY:
        data = head.data
        for old, new in changes:
            data = data.replace(old, new)
        if data != head.data and (entry := fitting(Head(data, head.path))) is not None:
            return Problem(f"not a {what}: {message}", expected=entry.sentence, hint=hint, **given)
    columns = {len(row) for row in head.rows}
    if what == "test set" and columns in ({3}, {5}) and _has_grades(head):
        (n,) = columns
        add = "a 0 as the second column: `awk '{print $1, 0, $2, $3}' FILE > NEW`"
        hint = f"add the iteration, {add}" if n == 3 else "remove the column that is not one of these"
        return Problem(f"{n} columns", expected="4: query iteration document grade", hint=hint, **given)
    return None


_NEARLY = (
    ("quotation marks around its cells", "`tr -d '\"' < FILE > NEW` removes them", ((b'"', b""),)),
    ("commas between its columns", "`tr ',' ' ' < FILE > NEW` puts blanks there", ((b",", b" "),)),
    ("semicolons between its columns", "`tr ';' ' ' < FILE > NEW` puts blanks there", ((b";", b" "),)),
    (
        "commas between its columns, and quotation marks around its cells",
        "`tr -d '\"' < FILE | tr ',' ' ' > NEW` changes that",
        ((b'"', b""), (b",", b" ")),
    ),
)
"""What is otherwise than in a format of columns, what changes it, and what of the bytes is replaced by what."""


def _has_grades(head: Head) -> bool:
    """Whether the last column, or the fourth of five, has whole numbers that are no ranks: they do not count up within a query."""
    rows = [(row[0], row[3] if len(row) > 3 else row[-1]) for row in head.rows]
    if not all(re.fullmatch(rb"-?[0-9]{1,2}(\.0)?", value) for _, value in rows):
        return False
    by_query: dict[bytes, list[bytes]] = {}
    for query, value in rows:
        by_query.setdefault(query, []).append(value)
    counts_up = all(len(set(values)) == len(values) and b"0" not in values for values in by_query.values())
    return len(rows[0]) == 5 or head.path.suffix in {".qrels", ".qrel"} or not counts_up


def _line_of(head: Head) -> int:
    """The number of the first line that is no comment."""
    return 1 + head.data[: head.data.find(head.first_line)].count(b"\n")


def is_log(head: Head) -> bool:
    """Whether this is the log beside a collected run."""
    try:
        record = json.loads(head.first_line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "cranfield_run_log" in record
