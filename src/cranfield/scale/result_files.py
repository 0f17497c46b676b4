"""Parquet files of results: which they are, and their rows in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = {"system", "query_id", "outcome", "n_rows", "n_returned", "n_judged", "n_duplicates"}
"""What each file of results has, of this version or another."""
OWN_FILE = re.compile(r"queries-\d{5}\.parquet|\.queries-\d{5}\.parquet\.[0-9a-f]{16}\.part")
ENGINE_FILE = re.compile(r"part-\d.*\.parquet")
"""What Spark calls its files, those of a table of the user too."""


def is_result(path: Path) -> bool:
    """Whether a Parquet file holds results: by its columns, since a name alone may be that of other data."""
    try:
        return COLUMNS.issubset(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):
        return OWN_FILE.fullmatch(path.name) is not None  # one that was not written to its end


def is_result_file(name: str, *, finished: bool) -> bool:
    """Whether a file is one of results by its name: an engine gives its files names of its own, where the folder was finished."""
    return bool(OWN_FILE.fullmatch(name) or (finished and ENGINE_FILE.fullmatch(name)))


def batches_of(file: pq.ParquetFile, rows: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a file; an iterator over all of its row groups would keep the packed bytes of those that it has left."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(rows, row_groups=[group], columns=columns)
