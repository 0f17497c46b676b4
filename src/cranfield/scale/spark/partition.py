"""What a worker of the cluster does with a partition: collect its judgments, keep its rows on disk, call the kernel.

A partition has all rows of its queries, in batches that cut through them. Nothing of Spark is imported here.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cranfield.measures import CATALOGUE, MeasureSpec, register
from cranfield.scale.judgments import ROW_SCHEMA, JudgmentTable
from cranfield.scale.kernel import result_schema, score_queries
from cranfield.scale.scoring import Scoring

IS_JUDGMENT = "is_judgment"
"""Column that tells judgments from rows of a run."""
VALUE = "value"
"""Column of the grades of judgments and of the scores of a run."""
SPOOL_BYTES = 64 << 20
"""Rows of a partition that are kept in memory; beyond them all are kept in a file."""
OUT_ROWS = 1 << 14
"""Rows of a batch that is handed back."""

PartitionFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def partition_function(scoring: Scoring, spool_bytes: int = SPOOL_BYTES) -> PartitionFunction:
    """The function that scores the batches of one partition; it is sent to the workers."""
    specs = tuple(CATALOGUE[measure.name] for measure in scoring.measures)

    def score(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _add_measures(specs)
        yield from score_partition(batches, scoring, spool_bytes)

    return score


def _add_measures(specs: Sequence[MeasureSpec]) -> None:
    """Add the measures that a program defined, which its workers do not know.

    Not a part of `score`, which travels to the workers with a copy of what it names: the catalogue must be theirs.
    """
    for spec in specs:
        if spec.name not in CATALOGUE:
            register(spec)


def score_partition(
    batches: Iterable[pa.RecordBatch], scoring: Scoring, spool_bytes: int = SPOOL_BYTES
) -> Iterator[pa.RecordBatch]:
    """Score the queries of one partition.

    Args:
        batches: columns `query_id`, `doc_id`, `value`, `is_judgment`, and `system` where there are several. A judgment
            without a document is a query without judgments.
        scoring: what to compute.
        spool_bytes: of rows that may be kept in memory.

    Yields:
        Batches of `kernel.result_schema`.
    """
    with ExitStack() as closing:
        rows = RowSpool(spool_bytes)
        closing.callback(rows.close)
        judged: list[pa.RecordBatch] = []
        for batch in batches:
            # Put the judgments of a batch with the others, and its rows with the others.
            marks = batch[IS_JUDGMENT]
            n_judged = marks.true_count
            if n_judged:
                part = batch if n_judged == batch.num_rows else batch.filter(marks)
                judged.append(
                    pa.RecordBatch.from_arrays([part["query_id"], part["doc_id"], part[VALUE]], names=ROW_SCHEMA.names)
                )
            if n_judged < batch.num_rows:
                part = batch.filter(pc.invert(marks)) if n_judged else batch
                names = ["query_id", "doc_id", "score", *(["system"] if "system" in batch.schema.names else [])]
                rows.add(
                    pa.RecordBatch.from_arrays(
                        [part[VALUE if name == "score" else name] for name in names], names=names
                    )
                )
        rows.finish()
        table = _sorted(judged)
        if wrong := _wrong_judgment(table):
            yield pa.RecordBatch.from_pylist([{"problem": wrong}], schema=result_schema(scoring))
            return
        judgments = JudgmentTable.from_rows(table["query_id"], table["doc_id"], table["grade"], name="", digest="")
        if not rows.n_rows and not judgments.n_queries:
            return
        for batch in score_queries(rows.read, judgments, scoring):
            yield from (batch.slice(first, OUT_ROWS) for first in range(0, len(batch), OUT_ROWS))


class RowSpool:
    """Record batches that can be read again and again: in memory while they are few, then in a file of the worker."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.n_rows = self.n_bytes = 0
        self._kept: list[pa.RecordBatch] = []
        self._path: Path | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._file: pa.OSFile | None = None

    @property
    def is_file(self) -> bool:
        """Whether the rows lie in a file."""
        return self._file is not None or self._writer is not None

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a batch."""
        self.n_rows += batch.num_rows
        self.n_bytes += batch.nbytes
        if self._writer is None and self.n_bytes <= self.most_bytes:
            self._kept.append(batch)
            return
        if self._writer is None:
            self._open(batch.schema)
        self._writer.write_batch(batch)  # type: ignore[union-attr]  # opened above

    def finish(self) -> None:
        """No more batches come."""
        if self._writer is not None and self._path is not None:
            self._writer.close()
            self._file = pa.OSFile(str(self._path))  # not mapped: mapped pages count as memory of the process
            self._writer = None
            self._path.unlink()  # the file lives as long as it is open, also where this process is killed

    def read(self) -> Iterator[pa.RecordBatch]:
        """All batches, in the order they came."""
        if self._file is None:
            yield from self._kept
            return
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)

    def close(self) -> None:
        """Give memory and file back."""
        self._kept = []
        if self._writer is not None:
            self._writer.close()
        if self._file is not None:
            self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _open(self, schema: pa.Schema) -> None:
        # The folder of an executor for such files, on the disk that it was given; Python's own elsewhere.
        folders = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
        handle, name = tempfile.mkstemp(
            ".arrow", "cranfield-", next((folder for folder in folders if folder and os.access(folder, os.W_OK)), None)
        )
        os.close(handle)
        self._path = Path(name)
        self._writer = pa.ipc.new_stream(name, schema)
        for batch in self._kept:
            self._writer.write_batch(batch)
        self._kept = []


def _sorted(batches: list[pa.RecordBatch]) -> pa.Table:
    """The judgments of a partition in an order that does not depend on how they came."""
    empty = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("grade", pa.float64())]).empty_table()
    table = pa.Table.from_batches(batches) if batches else empty
    return table.sort_by([("query_id", "ascending"), ("doc_id", "ascending")]).combine_chunks()


def _wrong_judgment(table: pa.Table) -> str | None:
    """A judgment without a query, without a finite grade, or of a document that is judged twice, in a message."""
    if table["query_id"].null_count:
        return "a judgment has no query_id"
    grade = np.asarray(pc.fill_null(table["grade"], np.nan))
    wrong = np.flatnonzero(~np.isfinite(grade) & np.asarray(table["doc_id"].is_valid()))
    if len(wrong):
        query, document = (table[name][int(wrong[0])].as_py() for name in ("query_id", "doc_id"))
        number = table["grade"][int(wrong[0])].as_py()
        what = "has no grade" if number is None else f"has the grade {number:g}, which is not a finite number"
        return f"document {document!r} of query {query!r} {what}"
    if len(table) < 2:
        return None
    same = pc.and_(*(pc.equal(table[name][1:], table[name][:-1]) for name in ("query_id", "doc_id")))
    place = pc.index(same.combine_chunks() if hasattr(same, "combine_chunks") else same, True).as_py()
    if place < 0:
        return None
    query, document = table["query_id"][place].as_py(), table["doc_id"][place].as_py()
    return f"document {document!r} of query {query!r} is judged twice"
