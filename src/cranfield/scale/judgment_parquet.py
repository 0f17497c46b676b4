"""Judgments in Parquet files, read row group by row group. What is wrong with one is worded by its usual reader."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cranfield.base.errors import Problem, ProblemList, TestSetError
from cranfield.formats.io.delimited import COLUMN_NAMES
from cranfield.formats.io.table import RequestedColumns, Role, column_names, read_table
from cranfield.formats.testsets.judgments import SUBTOPIC_HINT
from cranfield.formats.testsets.trec import TestSetBuilder
from cranfield.scale.judgment_rows import JudgmentBlock, Pair, RowCollector

ROLES: tuple[Role, ...] = ("query_id", "doc_id", "grade")
ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class ParquetJudgments:
    """Files whose rows are one table."""

    name: str
    files: tuple[Path, ...]

    def read(self, rows: RowCollector) -> None:
        """Collect the judgments.

        Raises:
            TestSetError: with what is wrong with each file.
        """
        problems = ProblemList(TestSetError)
        for path in self.files:
            try:
                for block in _blocks(path):
                    rows.add(block)
            except TestSetError as error:
                problems.problems += error.problems
        problems.raise_if_any()

    def report(self, pairs: Container[Pair]) -> None:
        """Read again, for what is wrong with pairs that are judged twice.

        Raises:
            TestSetError: with both rows of each, or because there is no row.
        """
        builder = TestSetBuilder(self.name, None, hint=SUBTOPIC_HINT)
        builder.judge_rows(row for row in self._rows() if row[:2] in pairs)
        builder.testset(expected="a row per judgment")

    def _rows(self) -> Iterator[tuple[str, str, float, Any]]:
        for path in self.files:
            row = 0
            for block in _blocks(path):
                columns = (block.query_ids.to_pylist(), block.doc_ids.to_pylist(), block.grade.tolist())
                for query_id, doc_id, grade in zip(*columns, strict=True):
                    yield query_id, doc_id, grade, row if len(self.files) == 1 else f"{row} of {path}"
                    row += 1


def is_plain(files: Sequence[Path]) -> bool:
    """Whether no file has a column of subtopics."""
    return not any(set(column_names(path, TestSetError)) & {*COLUMN_NAMES["subtopic"]} for path in files)


def _blocks(path: Path) -> Iterator[JudgmentBlock]:
    """The rows of a file.

    Raises:
        TestSetError: with what is wrong with it.
    """
    there = column_names(path, TestSetError)
    chosen = [next((name for name in COLUMN_NAMES[role] if name in there), "") for role in ROLES]
    if not all(chosen):
        _table(path)
    n_done = 0
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=list(dict.fromkeys(chosen)), use_threads=False):
                block = _block(*(batch[name] for name in chosen))
                if block is None:
                    break
                yield block
                n_done += len(block.grade)
            else:
                if not n_done:  # no value has shown yet that a column cannot be used
                    _table(path)
                return
    except (OSError, pa.ArrowException) as cause:
        _table(path)
        raise TestSetError(Problem("the file changed while it was read", path=str(path))) from cause
    yield from _slow_blocks(_table(path), n_done)


def _table(path: Path) -> RequestedColumns:
    return read_table(path, ROLES, TestSetError, name=str(path))


def _slow_blocks(table: RequestedColumns, first: int) -> Iterator[JudgmentBlock]:
    """Rows of columns of less usual types, which `read_table` makes text and numbers of."""
    for start in range(first, table.n_rows, ROWS_AT_ONCE):
        end = min(start + ROWS_AT_ONCE, table.n_rows)
        queries, documents = (table.ids[role].text(start, end) for role in ("query_id", "doc_id"))
        yield JudgmentBlock.of(queries, documents, table.numbers["grade"][start:end].tolist())


def _block(query_ids: pa.Array, doc_ids: pa.Array, grades: pa.Array) -> JudgmentBlock | None:
    """Columns as a block; None where a value is missing or of another type than usual."""
    if query_ids.null_count or doc_ids.null_count or grades.null_count:
        return None
    if not (_is_id(query_ids.type) and _is_id(doc_ids.type) and _is_number(grades.type)):
        return None
    numbers = np.asarray(grades.to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.isfinite(numbers).all():
        return None
    queries, documents = (pc.cast(ids, pa.string()) for ids in (query_ids, doc_ids))
    for ids in (queries, documents):
        ids.validate(full=True)
    return JudgmentBlock(queries.dictionary_encode(), documents, numbers)


def _is_id(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind))
