"""Judgments by the million: read from a file straight into columns, without a value of Python for each.

TREC qrels, tables of judgments in CSV and TSV, BEIR folders, and Parquet files are read so; the answer, and the errors,
are those of the test set that the usual reader makes. Faults are found in columns and worded by a second reading that
keeps nothing but them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Protocol

from cranfield.base.errors import Problem, RunFormatError, TestSetError
from cranfield.formats.io.delimited import Sheet, read_sheet, sheet_of
from cranfield.formats.io.files import STDIN, meta_path, opened, stem, unpacked_name
from cranfield.formats.sniff import detect_format
from cranfield.formats.testsets.beir import HEADER, beir_files, is_trec
from cranfield.formats.testsets.judgment_table import REQUIRED, SheetSource, judgment_rows
from cranfield.formats.testsets.trec import KEEP_EITHER, PLAIN, TestSetBuilder
from cranfield.formats.testsets.trec import judgment_rows as qrels_rows
from cranfield.scale.judgment_parquet import ParquetJudgments, is_plain
from cranfield.scale.judgment_rows import CollectedRows, Pair, Progress, RowCollector
from cranfield.scale.judgment_text import (
    LONGEST_ROW,
    TextFaults,
    blocks,
    is_utf8,
    longest_line,
    read_qrels_blocks,
    read_sheet_blocks,
)
from cranfield.scale.judgments import JudgmentTable, digest_of
from cranfield.scale.query_texts import NotUnicodeError, QueryTexts, read_beir_texts
from cranfield.scale.source import find_runs, is_large_run


class JudgmentReader(Protocol):
    """Where judgments come from."""

    def read(self, rows: RowCollector) -> TextFaults | None:
        """Collect them, and say what is wrong with those that were left out."""

    def report(self, pairs: Container[Pair]) -> None:
        """Read again, and raise what is wrong with the file and with pairs that are judged twice."""


@dataclass(frozen=True)
class JudgmentSource:
    """A test set that is read in parts."""

    name: str
    reader: JudgmentReader
    queries: Path | None = None
    """Texts of the queries, of a BEIR folder."""


@dataclass(frozen=True)
class _Qrels:
    path: Path

    def read(self, rows: RowCollector) -> TextFaults:
        return read_qrels_blocks(self.path, rows)

    def report(self, pairs: Container[Pair]) -> None:
        builder = TestSetBuilder(self.path, hint=KEEP_EITHER)
        builder.judge_rows(row for row in qrels_rows(self.path, builder) if row[:2] in pairs)
        builder.testset(expected=f"lines `{PLAIN.columns}`")


@dataclass(frozen=True)
class _Table:
    path: Path

    def read(self, rows: RowCollector) -> TextFaults:
        with opened(self.path, TestSetError) as stream:
            parts = blocks(stream)
            first = next(parts, b"")
            sheet = sheet_of(first.decode(), self.path)
            body = first[len(sheet.text[: sheet.body].encode()) :]
            return read_sheet_blocks(replace(sheet, text=""), chain([body], parts), rows)

    def report(self, pairs: Container[Pair]) -> None:
        source = SheetSource(read_sheet(self.path))
        builder = TestSetBuilder(self.path, source.mark, source.problems)
        builder.judge_rows(row for row in judgment_rows(source, builder, {}) if row[:2] in pairs)
        builder.testset(expected="a row per judgment")


def find_source(path: Path, format: str | None = None) -> JudgmentSource | None:  # noqa: A002 - as `read_testset`
    """How a test set is read in parts; None where it is not: another format, or more than plain judgments.

    Raises:
        TestSetError: it cannot be read, or is no test set.
    """
    if format in {None, "parquet-qrels"} and str(path) != STDIN and is_large_run(str(path)):
        try:
            found = find_runs([str(path)])[0]
        except RunFormatError as error:
            raise TestSetError(error.problems) from None
        return JudgmentSource(found.name, ParquetJudgments(found.name, found.files)) if is_plain(found.files) else None
    name = detect_format(path, "testset", format, TestSetError).name
    if name not in _PLANS or meta_path(path).exists():
        return None
    return _PLANS[name](path)


def _qrels(path: Path) -> JudgmentSource:
    return JudgmentSource(stem(path), _Qrels(path))


def _table(path: Path) -> JudgmentSource | None:
    return JudgmentSource(stem(path), _Table(path)) if _is_plain_table(path) else None


def _parquet_file(path: Path) -> JudgmentSource | None:
    if not path.is_file() or unpacked_name(path) != path.name or not is_plain([path]):
        return None
    return JudgmentSource(stem(path), ParquetJudgments(stem(path), (path,)))


def _beir(path: Path) -> JudgmentSource | None:
    files = beir_files(path)
    if is_trec(files.qrels):
        return JudgmentSource(files.name, _Qrels(files.qrels), files.queries)
    sheet = _header(files.qrels)
    if sheet is None or sheet.names[:3] != HEADER or not _is_plain_table(files.qrels):
        return None
    return JudgmentSource(files.name, _Table(files.qrels), files.queries)


_PLANS: Mapping[str, Callable[[Path], JudgmentSource | None]] = {
    "qrels": _qrels,
    "parquet-qrels": _parquet_file,
    "beir": _beir,
    "table": _table,
}
"""How a set in each format is read in parts."""


def _is_plain_table(path: Path) -> bool:
    """Whether a table in text has the three columns alone that matter, and a header that can be read on its own."""
    sheet = _header(path)
    if sheet is None or sheet.problems.problems:
        return False
    source = SheetSource(sheet)
    return {*source.place} == {*REQUIRED} and not source.strata and not sheet.problems.problems


def _header(path: Path) -> Sheet | None:
    with opened(path, TestSetError) as stream:
        first = next(blocks(stream), b"")
    if longest_line(first) > LONGEST_ROW or not is_utf8(first) or first.lstrip().startswith(b"{"):
        return None
    try:
        return sheet_of(first.decode(), path)
    except TestSetError:
        return None


def read_rows(source: JudgmentSource, progress: Progress | None = None) -> CollectedRows:
    """The judgments of a source, each once.

    Raises:
        TestSetError: with everything that is wrong with them, as the usual reader of the format says it.
    """
    rows = RowCollector(progress)
    faults = source.reader.read(rows) or TextFaults()
    collected = rows.rows()
    _, pairs = collected.drop_repeated()
    is_empty = not len(collected.query_ids) and faults.not_utf8 is None
    if faults.any or pairs or is_empty:
        source.reader.report(pairs)
        raise TestSetError("the judgments changed while they were read", path=source.name)
    if faults.not_utf8 is not None:
        message = f"test set {source.name!r} has an id that is not UTF-8, which Arrow cannot store"
        raise TestSetError(Problem(message, got=repr(faults.not_utf8)))
    return collected


def read_judgments(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002 - as `read_testset`
    progress: Progress | None = None,
) -> JudgmentTable | None:
    """Read the judgments of a test set of graded document ids, by the million in bounded memory.

    Args:
        path: TREC qrels, a table in CSV or TSV, a BEIR folder, a Parquet file, or a folder or pattern of Parquet files,
            whose rows are one table; gzip and Zstandard are recognised in text.
        format: name of the format, where the content does not tell.
        progress: called with the number of judgments, and of texts, read so far.

    Returns:
        The table that `JudgmentTable.of_testset` makes of the test set, with the same digest; None where the set has to be
        read whole, because it is in another format, holds more than such judgments, or has metadata beside it.

    Raises:
        TestSetError: with every problem of the file, each at its place.
    """
    path = Path(path)
    source = find_source(path, format)
    if source is None:
        return None
    try:
        table, texts = read_set(source, progress)
    except NotUnicodeError:
        return None
    if texts is None:
        return replace(table, digest=digest_of(table))
    own = texts.of(table.query_ids)
    return replace(table, digest=digest_of(table, own.texts, own.strata))


def read_set(source: JudgmentSource, progress: Progress | None = None) -> tuple[JudgmentTable, QueryTexts | None]:
    """Judgments, without a digest, and texts of a source.

    Raises:
        TestSetError: with everything that is wrong with either.
        NotUnicodeError: a text cannot be in a column.
    """
    found: list[Problem] = []
    table: JudgmentTable | None = None
    texts: QueryTexts | None = None
    try:
        collected = read_rows(source, progress)
        table = collected.table(source.name)
        del collected
    except TestSetError as error:
        found += error.problems
    if source.queries is not None:
        try:
            texts = read_beir_texts(source.queries, progress)
        except TestSetError as error:
            found += error.problems
    if found or table is None:
        raise TestSetError(found)
    return table, texts
