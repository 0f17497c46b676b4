"""Files that are of no expected format, and what to do with them: reports, logs, broken JSON, runs without all columns."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cranfield.errors import Problem, shorten
from cranfield.formats.io.files import shown
from cranfield.formats.registry import HEAD_BYTES, Head, is_number

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


def short_run(path: Path, head: Head) -> Problem | None:
    """The problem of a TREC run all of whose lines have too few columns; None where it does not look like a run."""
    rows = head.rows
    if not rows or not all(3 <= len(row) < RUN_COLUMNS and _is_result(row) for row in rows):
        return None
    n_columns = len(rows[0])
    line = 1 + head.data[: head.data.find(head.first_line)].count(b"\n")
    return Problem(
        f"{n_columns} columns",
        path=shown(path),
        line=line,
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


def is_log(head: Head) -> bool:
    """Whether this is the log beside a collected run."""
    try:
        record = json.loads(head.first_line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "cranfield_run_log" in record
