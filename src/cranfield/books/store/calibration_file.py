"""Calibration items as a file: CSV with the columns query, doc, grade, reason."""

from __future__ import annotations

import csv
from pathlib import Path

from cranfield.base.errors import InputError, ProblemList, shorten
from cranfield.formats.io.files import decode, read_bytes

COLUMNS = ("query", "doc", "grade")
"""Those that a file must have; `reason` may be missing."""


def read_calibration(path: Path) -> list[tuple[str, str, float, str]]:
    """Query, document, grade and reason of each line.

    Raises:
        InputError: the file cannot be read, lacks a column, or has a line without a query, document or number.
    """
    reader = csv.DictReader(decode(read_bytes(path, InputError), path, InputError).splitlines())
    problems, rows = ProblemList(InputError), []
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        got = ", ".join(reader.fieldnames or ()) or "an empty file"
        raise InputError(
            f"no column {', '.join(missing)}", path=str(path), line=1, expected=", ".join(COLUMNS), got=got
        )
    for row in reader:
        query, doc, grade = (str(row[name] or "").strip() for name in COLUMNS)
        if not query or not doc:
            problems.add("a line needs a query and a document", path=str(path), line=reader.line_num)
        try:
            rows.append((query, doc, float(grade), str(row.get("reason") or "").strip()))
        except ValueError:
            problems.add("the grade is no number", path=str(path), line=reader.line_num, got=shorten(grade))
    problems.raise_if_any()
    return rows
