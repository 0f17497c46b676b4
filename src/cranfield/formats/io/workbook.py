"""Excel workbooks, whose sheet is read as CSV."""

from __future__ import annotations

import csv
import io
import zipfile
from datetime import date, datetime, time
from functools import lru_cache
from pathlib import Path
from typing import Any

from cranfield.base.errors import CranfieldError, MissingExtraError, Problem, shorten

ZIP_MAGIC = b"PK\x03\x04"
MAX_BYTES = 1 << 29
"""Most bytes of an unpacked workbook."""


def is_workbook(path: Path) -> bool:
    """Whether a file is an Excel workbook, and not another ZIP archive."""
    try:
        with path.open("rb") as stream:
            if stream.read(len(ZIP_MAGIC)) != ZIP_MAGIC:
                return False
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def sheet_text(path: Path, shown: str, error: type[CranfieldError]) -> bytes:
    """The one sheet of a workbook that has cells, as CSV in UTF-8: a row is a line.

    Raises:
        CranfieldError: of type `error`: it is damaged or too large, or has several sheets with cells.
        MissingExtraError: no library is there to read it.
    """
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError.for_extra(f"{shown}: an Excel file", "excel") from None
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise error(Problem(f"the workbook unpacks to more than {MAX_BYTES >> 20} MB", path=shown))
        stat = path.stat()
        sheets = _sheets(openpyxl, path, (stat.st_mtime_ns, stat.st_size))
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, SyntaxError) as cause:  # XML is SyntaxError
        raise error(Problem("this Excel file is damaged", path=shown, got=shorten(str(cause)))) from None
    filled = {name: text for name, text in sheets.items() if text.strip(b",\r\n")}
    if len(filled) > 1:
        expected, got = "one sheet with cells", ", ".join(filled)
        hint = "keep only the intended sheet, or save it as CSV"
        raise error(Problem(f"{len(filled)} sheets have cells", path=shown, expected=expected, got=got, hint=hint))
    return next(iter(filled.values()), b"")


@lru_cache(maxsize=1)
def _sheets(openpyxl: Any, path: Path, _: tuple[int, int]) -> dict[str, bytes]:
    """Name of each sheet to its text; a file is read again when it has changed."""
    workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        found = {}
        for sheet in workbook.worksheets:
            text = io.StringIO(newline="")
            csv.writer(text, lineterminator="\n").writerows(
                [_cell(value) for value in row] for row in sheet.iter_rows(values_only=True)
            )
            found[sheet.title] = text.getvalue().encode("utf-8", "surrogatepass")
        return found
    finally:
        workbook.close()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)
