"""A document as an Excel workbook: the verdict, then a sheet for each section.

Numbers are numbers with the format of their column, and an interval is two columns. Text is never a formula, whatever it begins
with. The same document gives the same bytes.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import MissingExtraError
from cranfield.base.numbers import Kind, format_count
from cranfield.base.words import is_formula, printable, printable_lines, width
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Code,
    Column,
    Details,
    Document,
    HitLists,
    KeyValues,
    Mark,
    Paragraph,
    Section,
    Table,
    cell_value,
)

if TYPE_CHECKING:
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet

FORMATS: Mapping[Kind, str] = {
    "count": "#,##0", "value": "0.0000", "delta": "+0.0000;-0.0000;0.0000", "effect": "+0.00;-0.00;0.00", "p": "0.0000",
    "percent": "0.0%", "average": "0.0", "ms": '0.0" ms"', "statistic": "0.####", "interval": "0.0000",
    "delta interval": "+0.0000;-0.0000;0.0000",
}  # fmt: skip
"""Kind of a column to the number format of its cells."""
MAX_ROWS, MAX_COLUMNS, MAX_TEXT = 1_048_576, 16_384, 32_767
"""What a sheet and a cell can hold."""
MAX_NAME = 31
"""Characters in the name of a sheet."""
WIDEST = 60
"""Columns of text are not wider, in characters."""
MEASURED_ROWS = 1_000
"""Rows that the width of a column is made of."""
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\]")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODIFIED = re.compile(rb"(<dcterms:modified[^>]*>)[^<]*")


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of a sheet."""

    cells: Sequence[tuple[str | int | float | None, str, Mark]]
    """Value, number format and mark."""
    is_heading: bool = False


def render_xlsx(document: Document) -> bytes:
    """The workbook.

    Raises:
        MissingExtraError: the library that writes it is not installed.
    """
    try:
        from openpyxl import Workbook
    except ImportError:
        raise MissingExtraError.for_extra("an Excel workbook", "excel") from None
    workbook, names = Workbook(write_only=True), set[str]()
    for name, blocks in ((_first_name(document), _about(document)), *_sheets(document.sections)):
        sheet = workbook.create_sheet(sheet_name(name, names))
        names.add(sheet.title.lower())
        _fill(sheet, list(blocks))
    workbook.properties.creator = document.made_by
    workbook.properties.title = printable(document.title)[:MAX_TEXT]
    workbook.properties.created = datetime(*_EPOCH[:3], tzinfo=UTC).replace(tzinfo=None)
    written = io.BytesIO()
    workbook.save(written)
    return _without_times(written)


def sheet_name(title: str, taken: Iterable[str]) -> str:
    """A name that a sheet can have, at most 31 characters, and that none of `taken`, which are lower case, is.

    Example:
        >>> sheet_name("A/B: which is better, and by how much?", set())
        'A B  which is better, and by ho'
        >>> sheet_name("Pairs", {"pairs"})
        'Pairs 2'
    """
    plain = _NOT_IN_NAMES.sub(" ", printable(title)).strip(" '")
    plain = "Sheet" if not plain or plain.lower() == "history" else plain  # Excel has a sheet History of its own
    taken, name, number = set(taken), _cut_name(plain, ""), 1
    while name.lower() in taken:
        number += 1
        name = _cut_name(plain, f" {number}")
    return name


def _cut_name(name: str, end: str) -> str:
    """A name with its end, in as many UTF-16 units as Excel counts."""
    units = name.encode("utf-16-le", "replace")[: 2 * (MAX_NAME - len(end))]
    return units.decode("utf-16-le", "ignore").rstrip(" '") + end


def _first_name(document: Document) -> str:
    return "Report" if document.verdict is None else "Verdict"


def _sheets(sections: Iterable[Section]) -> Iterator[tuple[str, Sequence[Block]]]:
    return ((section.title, section.blocks) for section in sections)


def _about(document: Document) -> Iterator[Block]:
    """The first sheet: the verdict with its figures and what limits it, the question, the systems and the test set."""
    verdict = document.verdict
    if verdict is None and document.stamp:
        yield Paragraph(document.stamp)
    if verdict is not None:
        sentence = " · ".join(filter(None, (document.stamp, verdict.sentence)))
        facts = (
            ("verdict", verdict.name, ""),
            *((fact.label, fact.text, fact.note) for fact in verdict.facts),
        )
        yield Table((Column(""), Column(""), Column("note")), facts, sentence)
    yield Paragraph(document.title)
    yield from map(Paragraph, document.subtitle)
    if verdict is not None:
        for title, sentences in (
            ("Reasons", verdict.reasons),
            ("Caveats", verdict.caveats),
            ("Not everything agrees", verdict.disagreements),
        ):
            if sentences:
                yield Paragraph(title)
                yield Bullets(sentences)
    if document.made_by:
        yield Paragraph(document.made_by)


def _fill(sheet: WriteOnlyWorksheet, blocks: Iterable[Block]) -> None:
    """The first table leads, so that its heading stays in view; then all others in their order."""
    from openpyxl.utils import get_column_letter

    groups = list(_groups(blocks))
    first = next((group for group in groups if group[0]), None)
    if first is not None:
        groups = [first, *(group for group in groups if group is not first)]
        sheet.freeze_panes = f"A{first[0] + 1}"
    lines = [line for _, group in groups for line in (_Line(()), *group)][1:]
    for at, columns in enumerate(_widths(lines), start=1):
        sheet.column_dimensions[get_column_letter(at)].width = columns
    left_out = len(lines) - MAX_ROWS
    if left_out > 0:
        lines[MAX_ROWS - 1 :] = [_text(f"{format_count(left_out + 1)} more rows do not fit in a sheet")]
    for line in lines:
        sheet.append([_cell(sheet, *each, is_heading=line.is_heading) for each in line.cells[:MAX_COLUMNS]])


def _text(*texts: str, is_heading: bool = False) -> _Line:
    return _Line([(text, "General", "") for text in texts], is_heading)


def _groups(blocks: Iterable[Block]) -> Iterator[tuple[int, list[_Line]]]:
    """The rows of each block; of a table with the number of its heading."""
    for block in blocks:
        if isinstance(block, Table):
            yield 1 + bool(block.caption), list(_table(block))
        elif isinstance(block, Chart):
            if not block.table_follows:
                yield from _groups([replace(block.table, caption=block.title)])
        elif isinstance(block, HitLists):
            yield from _groups([_hits(block)])
        elif isinstance(block, Details):
            found = list(_groups(block.blocks))
            if len(found) != 1:
                yield 0, [_text(block.summary, is_heading=True)]
            yield from found
        else:
            yield 0, list(_texts(block))


def _texts(block: Paragraph | Bullets | KeyValues | Code) -> Iterator[_Line]:
    if isinstance(block, Paragraph):
        yield _text(block.text)
    elif isinstance(block, Bullets):
        yield from map(_text, block.items)
    elif isinstance(block, KeyValues):
        if block.title:
            yield _text(block.title, is_heading=True)
        yield from (_text(*item) for item in block.items)
    else:
        if block.caption:
            yield _text(block.caption, is_heading=True)
        yield from map(_text, printable_lines(block.text).split("\n"))


def _hits(block: HitLists) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for answer in block.lists:
        rows += [(answer.title, hit.rank, hit.id, hit.title, hit.note) for hit in answer.hits]
        rows += [] if answer.hits else [(answer.title, None, "", "", answer.note)]
    columns = (Column("system"), Column("rank", "count"), Column("result"), Column("title"), Column("judged"))
    return Table(columns, rows, f"Expected: {block.expected}" if block.expected else "")


def _table(table: Table) -> Iterator[_Line]:
    """Caption, headings and rows; an interval has a column for each end."""
    if table.caption:
        yield _text(f"{table.caption}. {table.marks}" if table.marks else table.caption)
    yield _text(
        *(
            f"{column.title}{end}"
            for column in table.columns
            for end in ((" low", " high") if column.kind in _INTERVALS else ("",))
        ),
        is_heading=True,
    )
    for row in table.rows:
        yield _row(table, row)
    if table.footer is not None:
        yield replace(_row(table, table.footer), is_heading=True)


_INTERVALS = {"interval", "delta interval"}


def _row(table: Table, row: Sequence[Cell]) -> _Line:
    cells: list[tuple[str | int | float | None, str, Mark]] = []
    for column, cell in zip(table.columns, row, strict=True):
        value, (mark, better_than) = cell_value(cell), table.marked(cell)
        shown = FORMATS.get(column.kind, "General")
        if better_than:
            shown += '" {}"'.format(",".join(better_than).replace('"', ""))
        if column.kind in _INTERVALS:
            ends = value if isinstance(value, tuple) else (None, None) if value is None else (value, None)
            cells += [(end, shown, mark) for end in ends]
        else:
            cells.append((column.text(cell) if isinstance(value, tuple) else value, shown, mark))
    return _Line(cells)


def _cell(sheet: WriteOnlyWorksheet, value: str | float | None, shown: str, mark: Mark, *, is_heading: bool) -> Any:
    """A cell of a sheet: a number in its format, or text that is text."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    if value is None and not is_heading:
        return None
    if isinstance(value, int | float) and isfinite(value):
        cell = WriteOnlyCell(sheet, value)
        cell.number_format = shown
    else:
        text = printable(str("" if value is None else value))
        text = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
        cell = WriteOnlyCell(sheet, text)
        cell.data_type = "s"  # the library takes a text that begins with = for a formula
        cell.quotePrefix = is_formula(text)  # and Excel would, once the cell is edited
    if is_heading or mark:
        cell.font = Font(bold=is_heading or mark == "best", underline="single" if mark == "second" else None)
    return cell


def _widths(lines: Sequence[_Line]) -> list[int]:
    """Width of each column; lines of one cell, which are sentences, run over the columns beside them."""
    widths: list[int] = []
    for line in (line for line in lines[:MEASURED_ROWS] if len(line.cells) > 1):
        widths += [8] * (len(line.cells) - len(widths))
        for at, (value, *_) in enumerate(line.cells):
            if isinstance(value, str):
                widths[at] = max(widths[at], min(width(value) + 2, WIDEST))
    return [max(each, 10) for each in widths]


def _without_times(written: io.BytesIO) -> bytes:
    """The archive without the time at which it was written."""
    out = io.BytesIO()
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "docProps/core.xml":
                content = _MODIFIED.sub(rb"\g<1>1980-01-01T00:00:00Z", content)
            fixed = zipfile.ZipInfo(entry.filename, _EPOCH)
            fixed.compress_type, fixed.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            target.writestr(fixed, content)
    return out.getvalue()
