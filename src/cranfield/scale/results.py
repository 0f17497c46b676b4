"""The results of a large evaluation as a folder: `_evaluation.json`, and Parquet files of a row a query and system.

The JSON file is written last: a folder without it is incomplete. It holds no time and no path, so the same inputs give
the same bytes. Files that an engine wrote may also hold rows without a query, which are left out here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cranfield.base.errors import CranfieldError, InputError, NoCommonQueryError, Problem, UsageError
from cranfield.base.version import __version__
from cranfield.formats.io.files import new_part, read_bytes, refusal, remove_parts, write_text
from cranfield.model.results import from_jsonable, to_jsonable
from cranfield.ranking.join import no_common_query
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.scoring import Scoring

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


INFO_FILE = "_evaluation.json"
FORMAT = 1
"""Format version of the folder; it grows where older code could not read a newer folder."""
ROWS_AT_ONCE = 1 << 17
"""Rows of a row group, and of a block."""
ROWS_PER_FILE = 1 << 23
ROWS_OF_EXAMPLES = 1000
"""Rows whose query ids a message compares with those of a run."""
COUNTS = ("n_rows", "n_returned", "n_judged", "n_duplicates")
SHARE = "judged_share"
MISSING = "missing"
"""Outcome of a judged query that a run does not answer."""

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
FloatNS = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ResultsInfo:
    """What was computed of which inputs."""

    scoring: Scoring
    testset: str
    """Its name."""
    digest: str
    """Digest of its content."""
    n_queries: int
    n_judgments: int
    engine: str = "local"
    n_rows: int = 0
    """Rows of the runs, all of them."""
    n_rows_unjudged: int = 0
    """Those of queries that have no judgment."""
    n_duplicates: int = 0
    """Results dropped because their list had them before."""
    extra_queries: tuple[str, ...] = ()
    """Some queries of the runs that are not in the test set."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """Name of each run to the SHA-256 of its files; none where an engine read them."""

    @classmethod
    def of(cls, judgments: JudgmentTable, scoring: Scoring, **counts: Any) -> Self:
        """The same of judgments, with the other fields by name."""
        return cls(scoring, judgments.name, judgments.digest, judgments.n_queries, len(judgments), **counts)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some queries with the results of all S systems."""

    query_ids: pa.LargeStringArray
    values: Mapping[str, FloatNS]
    """Measure to float64[n, S]; NaN where a query has no value."""
    answered: Flags
    """bool[n, S]."""
    counts: Mapping[str, Counts]
    """Name of `COUNTS` to int64[n, S]."""
    judged: FloatNS
    """float64[n, S]: share of the first results that is judged."""

    def __len__(self) -> int:
        """N."""
        return len(self.query_ids)


@dataclass(frozen=True)
class Results:
    """A folder of results."""

    folder: Path
    about: ResultsInfo
    version: str
    """Version of the Cranfield that made it."""
    files: tuple[Path, ...]
    n_queries: int
    """Queries with results."""

    def blocks(self, rows: int = ROWS_AT_ONCE) -> Iterator[Block]:
        """All queries in the order of the files, some at a time.

        Raises:
            InputError: a file is damaged, or its rows are not those of whole queries.
        """
        names = [str(measure) for measure in self.about.scoring.measures]
        for path in self.files:
            rest: pa.Table | None = None
            for table in _tables(path, ["system", "query_id", "outcome", *COUNTS, SHARE, *names], rows):
                whole = table if rest is None else pa.concat_tables([rest, table])
                cut = len(whole) - len(whole) % len(self.about.scoring.systems)
                rest = whole.slice(cut)
                if cut:
                    yield self._block(path, whole.slice(0, cut), names)
            if rest is not None and len(rest):
                raise InputError(_not_whole(path, len(self.about.scoring.systems)))

    def _block(self, path: Path, table: pa.Table, names: list[str]) -> Block:
        systems = self.about.scoring.systems
        n, shape = len(table) // len(systems), (len(table) // len(systems), len(systems))
        ids = pc.cast(table["query_id"], pa.large_string()).combine_chunks()
        order = np.asarray(pc.index_in(table["system"], pa.array(systems, table["system"].type)).fill_null(-1))
        same = np.asarray(pc.equal(ids[1:], ids[:-1])) if len(ids) > 1 else np.zeros(0, dtype=np.bool_)
        ends = np.arange(1, len(ids)) % len(systems) == 0
        if (order.reshape(shape) != np.arange(len(systems))).any() or (same == ends).any():
            raise InputError(_not_whole(path, len(systems)))
        numbers = {name: _floats(table[name]).reshape(shape) for name in [SHARE, *names]}
        counts = {name: np.asarray(table[name]).astype(np.int64).reshape(shape) for name in COUNTS}
        answered = np.asarray(pc.not_equal(table["outcome"], MISSING)).reshape(shape)
        judged = numbers.pop(SHARE)
        return Block(ids.take(pa.array(np.arange(n) * len(systems))), numbers, answered, counts, judged)


class _UnfinishedError(Exception):
    """A file was not written to its end."""


class ResultsWriter:
    """Writes the rows of a kernel, and at the end what they are; a context manager that removes what it did not finish."""

    def __init__(self, folder: Path, scoring: Scoring) -> None:
        self.folder, self.scoring = folder, scoring
        self._writer: pq.ParquetWriter | None = None
        self._part = ExitStack()
        self._waiting: list[pa.RecordBatch] = []
        self._n_waiting = self._n_files = self._n_in_file = 0
        folder.mkdir(parents=True, exist_ok=True)
        clear_results(folder)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows of whole queries; rows without a query are left out.

        Raises:
            OSError: the system would not take them.
        """
        kept = batch.select([name for name in batch.schema.names if name != "problem"])
        if kept["query_id"].null_count:
            kept = kept.filter(pc.is_valid(kept["query_id"]))
        self._waiting.append(kept)
        self._n_waiting += len(kept)
        if self._n_waiting >= ROWS_AT_ONCE:
            self._flush()

    def finish(self, about: ResultsInfo) -> Results:
        """Close the files and write `_evaluation.json`."""
        self._flush()
        self._close()
        try:
            finish_results(self.folder, about)
        except NoCommonQueryError:
            clear_results(self.folder)
            raise
        return read_results(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            with suppress(_UnfinishedError), self._part:
                self._writer.close()
                raise _UnfinishedError

    @property
    def _path(self) -> Path:
        return self.folder / f"queries-{self._n_files:05d}.parquet"

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        self._waiting, self._n_waiting = [], 0
        if self._writer is None:
            part = self._part.enter_context(new_part(self._path))
            self._writer = pq.ParquetWriter(part, table.schema, compression="zstd", store_schema=False)
        self._writer.write_table(table, row_group_size=ROWS_AT_ONCE)
        self._n_in_file += len(table)
        if self._n_in_file >= ROWS_PER_FILE:
            self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._part.close()
            self._writer, self._n_in_file, self._n_files = None, 0, self._n_files + 1


def finish_results(folder: Path, about: ResultsInfo) -> None:
    """Write `_evaluation.json` beside the Parquet files of a folder, which an engine may have written.

    Raises:
        NoCommonQueryError: no row of the runs is of a query of the test set.
    """
    if about.n_rows and about.n_rows_unjudged == about.n_rows:
        ids: list[str] = []
        for path in _parquet(folder)[:1]:
            ids = next(_tables(path, ["query_id"], ROWS_OF_EXAMPLES))["query_id"].to_pylist()
        raise no_common_query(about.testset, list(dict.fromkeys(ids)), about.extra_queries)
    rows = sum(_query_rows(path) for path in _parquet(folder))
    record = {"format": FORMAT, "cranfield": __version__, **to_jsonable(about), "result_rows": rows}
    write_text(folder / INFO_FILE, [json.dumps(record, indent=1, ensure_ascii=False), "\n"])


def read_results(folder: Path) -> Results:
    """Open a folder of results; nothing but counts is read yet.

    Raises:
        InputError: it is no such folder, incomplete, or written by code that this one cannot read.
    """
    path = folder / INFO_FILE
    if not path.is_file():
        parts = _parquet(folder) if folder.is_dir() else []
        message = "the results in this folder are incomplete" if parts else "no results in this folder"
        hint = "evaluate again" if parts else "`cranfield evaluate … --out DIR` writes such a folder"
        raise InputError(Problem(message, path=str(folder), expected=INFO_FILE, hint=hint))
    about, version, rows = _read_info(path)
    files = tuple(_parquet(folder))
    found = sum(_query_rows(each) for each in files)
    if found != rows or found % len(about.scoring.systems):
        problem = Problem(
            "the results in this folder are incomplete, or of two evaluations",
            path=str(folder),
            expected=f"{rows} rows",
            got=str(found),
            hint="evaluate again",
        )
        raise InputError(problem)
    return Results(folder, about, version, files, found // len(about.scoring.systems))


def _read_info(path: Path) -> tuple[ResultsInfo, str, int]:
    """What a folder holds, the version that wrote it, and its rows."""
    try:
        record = json.loads(read_bytes(path, InputError))
        if record["format"] != FORMAT:
            hint = f"it was written by Cranfield {record['cranfield']}: evaluate again with this one"
            problem = Problem(
                "results of another format", str(path), expected=str(FORMAT), got=str(record["format"]), hint=hint
            )
            raise InputError(problem)
        about = from_jsonable(ResultsInfo, {name: record[name] for name in ResultsInfo.__dataclass_fields__})
        return about, record["cranfield"], record["result_rows"]
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        problem = Problem(
            "this is not a description of results", str(path), got=repr(cause)[:80], hint="evaluate again"
        )
        raise InputError(problem) from cause


def clear_results(folder: Path) -> None:
    """Remove earlier results, and refuse a folder that holds other Parquet files."""
    found = _parquet(folder)
    if others := [path for path in found if not is_result(path)]:
        raise UsageError(
            "this folder holds other Parquet files",
            path=str(folder),
            expected="an empty folder, or earlier results",
            got=others[0].name,
            hint="name another folder for the results",
        )
    (folder / INFO_FILE).unlink(missing_ok=True)
    for path in found:
        path.unlink(missing_ok=True)
    remove_parts(folder, "queries-*.parquet")


def _parquet(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.parquet") if path.is_file())


def _query_rows(path: Path) -> int:
    """Rows of a file that are of a query."""
    with _opened(path) as file:
        about = file.metadata
        place = file.schema_arrow.names.index("query_id")
        groups = [about.row_group(number).column(place).statistics for number in range(about.num_row_groups)]
        if all(group is not None and group.has_null_count for group in groups):
            return int(about.num_rows - sum(group.null_count for group in groups))
        return sum(len(batch) - batch["query_id"].null_count for batch in file.iter_batches(columns=["query_id"]))


def _tables(path: Path, columns: list[str], rows: int) -> Iterator[pa.Table]:
    """The rows of a file that are of a query."""
    with _opened(path) as file:
        for batch in batches_of(file, rows, columns):
            table = pa.Table.from_batches([batch]).select(columns)
            yield table.filter(pc.is_valid(table["query_id"])) if table["query_id"].null_count else table


class _opened:  # noqa: N801 - used like a function
    """A Parquet file; what goes wrong while it is read is an InputError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> pq.ParquetFile:
        try:
            self.file = pq.ParquetFile(self.path)
        except (OSError, pa.ArrowException) as cause:
            raise self._error(cause) from cause
        return self.file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()
        if isinstance(error, (OSError, pa.ArrowException, KeyError, ValueError)) and not isinstance(
            error, CranfieldError
        ):
            raise self._error(error) from error

    def _error(self, cause: BaseException) -> InputError:
        if isinstance(cause, OSError) and cause.errno is not None:
            return InputError(refusal(self.path, cause))
        hint = "evaluate again"
        return InputError(
            Problem("this is not a file of results, or it is damaged", str(self.path), got=str(cause)[:80], hint=hint)
        )


def _not_whole(path: Path, n_systems: int) -> Problem:
    expected = f"{n_systems} rows of each query, in the order of the systems"
    return Problem("rows of results that are not of whole queries", str(path), expected=expected, hint="evaluate again")


def _floats(column: pa.ChunkedArray) -> FloatNS:
    return np.asarray(pc.fill_null(column.cast(pa.float64()), float("nan")))
