"""Judgments in text, read in blocks of whole lines: TREC qrels, and tables with a header row.

A block of plain lines is cut into columns at once. Any other (odd white space, comments, quotes, faults) goes through the
reader of the format, which decides what a line is; faults are only counted here, and worded by a second reading.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from cranfield.base.errors import TestSetError
from cranfield.formats.io.delimited import Sheet, id_text, number_of
from cranfield.formats.io.files import BYTE_ORDER_MARK, MAX_LINE_BYTES, opened
from cranfield.formats.testsets.judgment_table import REQUIRED, SheetSource, judgment_rows
from cranfield.formats.testsets.trec import PLAIN, TestSetBuilder, column_rows
from cranfield.scale.judgment_rows import POOL, JudgmentBlock, RowCollector

BLOCK_BYTES = 1 << 22
LONGEST_ROW = 1 << 16
"""Bytes of a row of a table that is cut without the `csv` module, whose cells have a limit."""
BLANKS = bytes.maketrans(b"\t\r\x0b\x0c", b"    ")
_COMMENT = re.compile(rb"(?m)^#[^\n]*\n?")
_BLANKS = re.compile(rb" {2,}")
_EDGES = re.compile(rb"(?m)^ | $")
_REPEATING = pa.dictionary(pa.int32(), pa.string())
PART_ROWS = 1 << 16


@dataclass
class TextFaults:
    """What is wrong with the rows that were read."""

    any: bool = False
    """Some have to be reported by the reader of the format."""
    not_utf8: str | None = None
    """The first id that is not UTF-8."""


def blocks(stream: BinaryIO, most: float = math.inf) -> Iterator[bytes]:
    """A file in blocks of whole lines, without a byte order mark; a line of more than `most` bytes is its last block."""
    rest, is_first = b"", True
    while data := stream.read(BLOCK_BYTES):
        if is_first:
            data, is_first = data.removeprefix(BYTE_ORDER_MARK), False
        end = data.rfind(b"\n") + 1
        if end:
            yield rest + data[:end]
            rest = b""
        rest += data[end:]
        if len(rest) > most:
            break
    if rest:
        yield rest


def read_qrels_blocks(path: Path, rows: RowCollector) -> TextFaults:
    """Collect the judgments of TREC qrels.

    Raises:
        TestSetError: the file cannot be read.
    """
    faults = TextFaults()
    with opened(path, TestSetError) as stream:
        for number, data in enumerate(blocks(stream, MAX_LINE_BYTES)):
            if longest_line(data) > MAX_LINE_BYTES:
                faults.any = True
                break
            block = _qrels_block(data)
            if block is None:
                # The rows of a block, line by line, as far as they can be used.
                is_first = not number
                builder = TestSetBuilder(path)
                lines = column_rows(io.BytesIO(data), PLAIN, builder, first=1 if is_first else 2)
                found = [(id_text(columns[0]), id_text(columns[2]), grade) for _, columns, grade in lines]
                faults.any |= bool(builder.problems.problems)
                block = usable_block(found, faults)
            rows.add(block)
    return faults


def longest_line(data: bytes) -> int:
    """Bytes of the longest line, without its line feed."""
    if len(data) <= LONGEST_ROW:
        return len(data)
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    return int(np.diff(ends, prepend=-1, append=len(data)).max()) - 1


def _qrels_block(data: bytes) -> JudgmentBlock | None:
    """The rows of a block; None where a line is not four columns with a number at the end."""
    if data.startswith(b"#") or b"\n#" in data:
        data = _COMMENT.sub(b"", data)
    data = data.translate(BLANKS)
    if b"  " in data:
        data = _BLANKS.sub(b" ", data)
    if b" \n" in data or b"\n " in data or data[:1] == b" " or data[-1:] == b" ":
        data = _EDGES.sub(b"", data)
    if not data.strip():
        return _NO_ROWS
    return _cut(data, " ", 4, (0, 2, 3), lambda text: number_of(text.encode()))  # bytes: ASCII digits alone


def _cut(
    data: bytes, separator: str, n_columns: int, places: Sequence[int], number: Callable[[str], float | None]
) -> JudgmentBlock | None:
    """Cut plain lines into columns: query, document and grade stand at `places`. None where a line is not plain."""
    if b"\x00" in data:
        return None
    names = [str(place) for place in range(n_columns)]
    query, document, grade = (names[place] for place in places)
    types = {query: _REPEATING, document: pa.string(), grade: _REPEATING}
    try:
        table = pacsv.read_csv(
            pa.BufferReader(data),
            pacsv.ReadOptions(use_threads=False, block_size=2 * len(data) + 1, column_names=names),
            pacsv.ParseOptions(delimiter=separator, quote_char=False, double_quote=False, escape_char=False),
            pacsv.ConvertOptions(column_types=types, include_columns=[query, document, grade]),
            memory_pool=POOL,
        ).combine_chunks()
    except pa.ArrowInvalid:  # a line with other columns, or text that is not UTF-8
        return None
    queries, documents, grades = (_only(table[name]) for name in (query, document, grade))
    numbers = [number(text) for text in grades.dictionary.to_pylist()]
    if None in numbers or _has_empty(queries.dictionary) or _has_empty(documents):
        return None
    values = np.array(numbers, dtype=np.float64)[np.asarray(grades.indices)]
    return JudgmentBlock(queries, documents, values)


def _only(column: pa.ChunkedArray) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _has_empty(texts: Any) -> bool:
    return bool(pc.any(pc.equal(texts, "")).as_py())


_NO_ROWS = JudgmentBlock.of((), (), ())


def usable_block(found: Sequence[tuple[str, str, float]], faults: TextFaults) -> JudgmentBlock:
    """Rows as a block, without those whose ids are not UTF-8."""
    kept = [row for row in found if _is_utf8(row[0]) and _is_utf8(row[1])]
    if len(kept) < len(found) and faults.not_utf8 is None:
        query_id, doc_id, _ = next(row for row in found if not (_is_utf8(row[0]) and _is_utf8(row[1])))
        faults.not_utf8 = query_id if _is_utf8(doc_id) else doc_id
    return JudgmentBlock.of((row[0] for row in kept), (row[1] for row in kept), (row[2] for row in kept))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _StreamedSheet(Sheet):
    """A table whose rows come from elsewhere than its text."""

    source: Iterator[str] = iter(())

    def body_lines(self) -> Iterator[str]:
        """What is left of the file."""
        return self.source

    def mark(self, at: tuple[int, int | None]) -> tuple[int, int | None]:
        """The line alone: the second reading finds the column."""
        return at[0], None


def read_sheet_blocks(sheet: Sheet, parts: Iterator[bytes], rows: RowCollector) -> TextFaults:
    """Collect the judgments of a table: blocks of plain lines at once, and from the first other block on row by row.

    Args:
        sheet: the header; see `SheetSource`.
        parts: blocks of the lines below it.
        rows: gets the judgments.
    """
    place = SheetSource(sheet).place
    places = [place[role] for role in REQUIRED]
    for data in parts:
        if not data.strip(b"\r\n"):
            continue
        needs_csv = _needs_csv(data, sheet)
        block = None if needs_csv else _cut(data, sheet.separator, len(sheet.names), places, number_of)
        if block is None:
            return _read_rows(sheet, _text_lines(data, parts), rows)
        rows.add(block)
    return TextFaults()


def _needs_csv(data: bytes, sheet: Sheet) -> bool:
    """Whether a block holds what the `csv` module has to look at, or what is not UTF-8."""
    quoted = sheet.separator != "\t" and b'"' in data
    if quoted or sheet.spaced or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
        return True
    return longest_line(data) > LONGEST_ROW or not is_utf8(data)


def is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text_lines(data: bytes, parts: Iterator[bytes]) -> Iterator[str]:
    """Lines of a block and of those behind it; a line may end at a carriage return alone."""
    for part in chain((data,), parts):
        yield from io.StringIO(part.decode(), newline="")


def _read_rows(sheet: Sheet, lines: Iterator[str], rows: RowCollector) -> TextFaults:
    streamed = _StreamedSheet(sheet.path, "", (), 1, names=sheet.names, separator=sheet.separator, spaced=sheet.spaced)
    streamed.first, streamed.source = 1, lines
    faults = TextFaults()
    builder = TestSetBuilder(sheet.path, None, streamed.problems)
    found = judgment_rows(SheetSource(streamed), builder, {})
    try:
        while part := [row[:3] for row in islice(found, PART_ROWS)]:
            rows.add(usable_block(part, faults))
    except UnicodeDecodeError:
        faults.any = True
    faults.any |= bool(streamed.problems.problems)
    return faults
