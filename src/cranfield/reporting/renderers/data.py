"""A Document as data: its tidy table as CSV, its payload as JSON.

CSV has numbers in full, and nothing where nothing is known. A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@`
for a formula and runs it. Text from elsewhere that begins so gets an apostrophe in front, unless it is a plain number.
"""

from __future__ import annotations

import csv
import io

from cranfield.reporting.document import Cell, Document, Table, cell_value
from cranfield.results import to_json
from cranfield.words import is_formula, printable


def guard(text: str) -> str:
    """Text that no spreadsheet will run."""
    return "'" + text if is_formula(text) else text


def render_csv(document: Document) -> str:
    """A heading line, then a line for every row of the tidy table."""
    return csv_text(document.tidy())


def csv_text(table: Table) -> str:
    """A table as CSV: a heading line, then a line for every row."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.title for column in table.columns])
    writer.writerows([_plain(cell) for cell in row] for row in table.rows)
    return stream.getvalue()


def _plain(cell: Cell) -> str:
    value = cell_value(cell)
    if value is None:
        return ""
    return guard(printable(value)) if isinstance(value, str) else repr(value)


def render_json(document: Document) -> str:
    """What `--format json` prints."""
    return to_json(document.payload())


def render_record(document: Document) -> str:
    """What a .json file holds: the payload, and everything about every query."""
    return to_json(document.payload() if document.record is None else document.record())
