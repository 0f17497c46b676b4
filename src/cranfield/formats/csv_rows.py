"""CSV files with a header row, as other tools export them: rows with their first lines, ratings as numbers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from cranfield.errors import ProblemList, TestSetError
from cranfield.formats.files import decode, read_bytes, shown

Row = tuple[int, list[str]]
"""First line, and cells without the blanks around them."""


def csv_rows(path: Path, problems: ProblemList, mend: Callable[[str], str] = str) -> Iterator[Row]:
    """Rows that are not blank, the header among them; quotes that do not fit end them with a problem.

    Args:
        path: the file.
        problems: are added to.
        mend: makes CSV of what a tool writes for CSV.

    Raises:
        TestSetError: the file cannot be read, or is not UTF-8.
    """
    text = mend(decode(read_bytes(path, TestSetError), path, TestSetError))
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for cells in rows:
            if any(cells):
                yield line, [cell.strip() for cell in cells]
            line = rows.line_num + 1
    except csv.Error as error:
        problems.add(f"not CSV: {error}", path=shown(path), line=line, expected='quotes in pairs, `""` inside of them')


def number(text: str) -> float | None:
    """A finite number; None where it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value + 0.0 if math.isfinite(value) and "_" not in text else None


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A CSV file, line by line."""
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\r\n")  # so that cells with either character are quoted
    for row in (header, *rows):
        writer.writerow(row)
        yield line.getvalue().removesuffix("\r\n") + "\n"
        line.seek(0)
        line.truncate()
