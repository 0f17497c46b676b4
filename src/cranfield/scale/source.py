"""Parquet files of one or more runs: which files, which columns, and their rows in pieces.

A run is a file, a folder or a pattern of files; a column `system` makes several runs of one. Rows are numbered over all
files, from 0.
"""

from __future__ import annotations

import bisect
import glob
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cranfield.base.errors import Problem, ProblemList, RunFormatError, UsageError, shorten, unknown_name
from cranfield.formats.io.delimited import COLUMN_NAMES, note_unused
from cranfield.formats.io.files import refusal
from cranfield.formats.io.table import PARQUET_MAGIC
from cranfield.ranking.scan import BLOCK_BYTES, BlockDigests, FileOrder, scan_digest

SYSTEM_COLUMNS = ("system", "system_id", "run_id", "run")
"""What the column of the system may be called."""
ROWS_AT_ONCE = 1 << 16
"""Rows in memory at a time, of each thread."""
BUFFER_BYTES = 1 << 20
"""Bytes of a column that are read at a time."""
MAGIC = "*?["
PART = re.compile(r"part-?\d+.*", re.IGNORECASE)
"""Names that engines give to the files of one table."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """One argument: a run, or several in a column of their own."""

    name: str
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A row group of a file."""

    file: int
    row_group: int
    ordinal: int
    """Number of its first row."""
    n_rows: int
    run: int | None
    """Which run its rows are of; None where a column says which system."""


def is_large_run(text: str) -> bool:
    """Whether an argument is a folder or a pattern of Parquet files."""
    path = Path(text)
    if path.is_dir():
        return bool(_in_folder(path))
    return not path.exists() and any(sign in text for sign in MAGIC) and text.lower().endswith((".parquet", "*"))


def has_several_systems(path: Path) -> bool:
    """Whether a Parquet file has a column of systems with more than one name; False where it cannot be read."""
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            name = next((name for name in SYSTEM_COLUMNS if name in file.schema_arrow.names), None)
            names: set[Any] = set()
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=[name]) if name is not None else ():
                names.update(pc.unique(batch.column(0)).to_pylist())
                if len(names) > 1:
                    return True
    except (OSError, ValueError, pa.ArrowException):
        return False
    return False


def find_runs(texts: Sequence[str]) -> list[RunFiles]:
    """The files of each run, which is a file, a folder or a pattern.

    Raises:
        RunFormatError: with each argument that names no Parquet file.
        UsageError: the arguments look like the parts of one run.
    """
    refuse_parts(texts)
    problems = ProblemList(RunFormatError)
    found = []
    for text in texts:
        path = Path(text)
        files = _in_folder(path) if path.is_dir() else [path] if path.exists() else _matching(text)
        if not files:
            problems.add("no Parquet file here", path=text, expected="a file, a folder or a pattern of Parquet files")
        found.append(RunFiles(_name_of(path) or "run", tuple(files)))
    problems.raise_if_any()
    names = [run.name for run in found]
    if len(set(names)) == len(names):
        return found
    return [RunFiles(f"{run.name}-{number}", run.files) for number, run in enumerate(found, start=1)]


def _name_of(path: Path) -> str:
    """The name of a run: of its file or folder, or of the last folder of a pattern that is not one itself."""
    parts = [path] if path.exists() else [part for part in path.parents if not any(sign in part.name for sign in MAGIC)]
    return re.sub(r"\.parquet$", "", next((part.name for part in parts if part.name not in {"", ".", ".."}), ""))


def refuse_parts(texts: Sequence[str]) -> None:
    """Refuse what a shell makes of a pattern without quotes: each part of a run would count as a system of its own.

    Raises:
        UsageError: several files of one folder have names that engines give to the parts of a table.
    """
    paths = [Path(text) for text in texts]
    if (
        len(paths) > 1
        and len({path.parent for path in paths}) == 1
        and all(PART.fullmatch(path.name) for path in paths)
    ):
        folder = paths[0].parent
        raise UsageError(
            f"{len(paths)} files of one folder look like the parts of one run",
            expected="a run each: its file, its folder or a pattern in quotes",
            got=", ".join(path.name for path in paths[:3]),
            hint=f"give the folder, {folder}, or the pattern in quotes, '{folder}/part-*.parquet'",
        )


def _in_folder(folder: Path) -> list[Path]:
    """Parquet files of a folder and those below it; names that begin with a dot or `_` are not data."""
    found = (path for path in folder.rglob("*.parquet") if path.is_file())
    return sorted(path for path in found if not any(part[0] in "._" for part in path.relative_to(folder).parts))


def _matching(pattern: str) -> list[Path]:
    return sorted(path for path in map(Path, glob.glob(pattern, recursive=True)) if path.is_file())  # noqa: PTH207


class ParquetRuns:
    """The rows of all runs.

    Args:
        runs: of `find_runs`.
        order: of the results: `rank` needs a column of ranks, `score` one of scores, or of ranks where there is none.
        columns: names of columns that are not among those known: `{"score": "bm25", "system": "variant"}`.

    Raises:
        RunFormatError: with each file that cannot be read, and each column that is missing or of another type.
        UsageError: `columns` names what no run has.
    """

    def __init__(self, runs: Sequence[RunFiles], order: FileOrder, columns: Mapping[str, str] | None = None) -> None:
        self.runs = runs
        self.files = tuple(path for run in runs for path in run.files)
        self._roles = ("query_id", "doc_id", *(() if order == "given" else (order,)))
        self._metadata: list[pq.FileMetaData] = []
        self._columns: list[dict[str, str]] = []
        """Columns of each file: role to the name of the column; ranks are the score of a file that has no scores."""
        self._ranks_are_scores: list[bool] = []
        problems, unused = ProblemList(RunFormatError), dict[Path, list[str]]()
        for path in self.files:
            try:
                with opened_parquet(path) as file:
                    self._metadata.append(file.metadata)
                    self._columns.append(self._choose(path, file.schema_arrow, columns or {}, problems))
                    used = {*self._columns[-1].values()}
                    score = self._columns[-1].get("score")
                    self._ranks_are_scores.append(score in COLUMN_NAMES["rank"] and "score" not in (columns or {}))
                    unused[path] = [name for name in file.schema_arrow.names if name not in used]
            except RunFormatError as error:
                problems.problems += error.problems
        problems.raise_if_any()
        for run in runs:
            note_unused(run.name, dict.fromkeys(name for path in run.files for name in unused.get(path, ())))
        self._check_names(columns or {})
        self.has_systems = any("system" in chosen for chosen in self._columns)
        if self.has_systems and not all("system" in chosen for chosen in self._columns):
            bare = next(path for path, chosen in zip(self.files, self._columns, strict=True) if "system" not in chosen)
            raise RunFormatError(
                "no column `system`, although other files have it", path=str(bare), expected="one in all files"
            )
        self.n_rows = sum(about.num_rows for about in self._metadata)
        if not self.n_rows:
            raise RunFormatError("no row in these runs", path=str(self.files[0]), expected="a row per result")

    @property
    def reading(self) -> tuple[object, ...]:
        """Which files are of which run, and the columns that are read of each."""
        return [(run.name, len(run.files)) for run in self.runs], self._columns

    def systems(self) -> tuple[str, ...]:
        """Names of the systems: of the runs, or sorted, of their column, which is read for that."""
        if not self.has_systems:
            return tuple(run.name for run in self.runs)
        found: set[str] = set()
        for chunk in self.chunks():
            with self._opened(chunk.file, ("system",)) as file:
                for batch in file.iter_batches(ROWS_AT_ONCE, [chunk.row_group], [self._columns[chunk.file]["system"]]):
                    found.update(pc.unique(batch.column(0)).cast(pa.string()).drop_null().to_pylist())
        return tuple(sorted(found))

    def digest(self, file: int, stopped: Callable[[], bool] = lambda: False) -> str:
        """SHA-256 of a file, as of a run file: of the digests of its blocks."""
        digests = BlockDigests(BLOCK_BYTES)
        try:
            with self.files[file].open("rb") as stream:
                while not stopped() and (data := stream.read(BUFFER_BYTES)):
                    digests.update(data)
        except OSError as cause:
            raise RunFormatError(refusal(self.files[file], cause)) from cause
        return scan_digest(digests.digests())

    def run_digests(self, of_files: Sequence[str]) -> dict[str, str]:
        """Name of each run to its digest: of those of its files, whatever these are called."""
        ends = list(itertools.accumulate(len(run.files) for run in self.runs))
        parts = (of_files[begin:end] for begin, end in itertools.pairwise([0, *ends]))
        digests = (scan_digest(digest.encode() for digest in sorted(part)) for part in parts)
        return {run.name: digest for run, digest in zip(self.runs, digests, strict=True)}

    def chunks(self) -> list[Chunk]:
        """All row groups, in order."""
        chunks = []
        ordinal = 0
        owners = itertools.chain.from_iterable([place] * len(run.files) for place, run in enumerate(self.runs))
        for file, (about, run) in enumerate(zip(self._metadata, owners, strict=True)):
            for number in range(about.num_row_groups):
                n_rows = about.row_group(number).num_rows
                chunks.append(Chunk(file, number, ordinal, n_rows, None if self.has_systems else run))
                ordinal += n_rows
        return chunks

    def batches(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """The rows of a row group, with columns named as the kernel has them.

        Raises:
            RunFormatError: the file is damaged, or changed since it was opened first.
        """
        chosen = self._columns[chunk.file]
        with self._opened(chunk.file, ("query_id", "system")) as file:
            names = list(dict.fromkeys(chosen.values()))
            for batch in file.iter_batches(ROWS_AT_ONCE, [chunk.row_group], names, use_threads=False):
                arrays = [
                    _number(batch[name]) if role in {"score", "rank"} else batch[name] for role, name in chosen.items()
                ]
                if self._ranks_are_scores[chunk.file]:
                    place = list(chosen).index("score")
                    arrays[place] = pc.negate(pc.cast(arrays[place], pa.float64()))
                yield pa.RecordBatch.from_arrays(arrays, names=list(chosen))

    def place(self, ordinal: int) -> tuple[Path, int]:
        """The file of a row, and its number there."""
        ends = list(itertools.accumulate(about.num_rows for about in self._metadata))
        file = bisect.bisect_right(ends, ordinal)
        return self.files[file], ordinal - (ends[file - 1] if file else 0)

    def _opened(self, file: int, dictionaries: tuple[str, ...]) -> Any:
        chosen = self._columns[file]
        return opened_parquet(
            self.files[file],
            metadata=self._metadata[file],
            read_dictionary=[chosen[role] for role in dictionaries if role in chosen],
            buffer_size=BUFFER_BYTES,
        )

    def _choose(self, path: Path, schema: pa.Schema, named: Mapping[str, str], problems: ProblemList) -> dict[str, str]:
        """Which column of a file holds what."""
        chosen: dict[str, str] = {}
        for role in (*self._roles, "system"):
            known = SYSTEM_COLUMNS if role == "system" else COLUMN_NAMES[role]
            names = (named[role],) if role in named else (*known, *(COLUMN_NAMES["rank"] if role == "score" else ()))
            found = next((name for name in names if name in schema.names), None)
            if found is not None:
                chosen[role] = found
                self._check_type(path, role, schema.field(found), problems)
            elif role != "system" or role in named:
                got = "columns " + shorten(", ".join(schema.names))
                hint = f"name it: --columns {role}=…"
                problems.add(f"no column {role}", path=str(path), expected=" or ".join(names), got=got, hint=hint)
        return chosen

    @staticmethod
    def _check_type(path: Path, role: str, field: pa.Field, problems: ProblemList) -> None:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if role in {"score", "rank"}:
            good = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
            expected = "numbers"
        else:
            good = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
            expected = "text or whole numbers"
        if not good:
            problems.add(f"column {field.name} cannot be used", path=str(path), expected=expected, got=str(kind))

    def _check_names(self, named: Mapping[str, str]) -> None:
        roles = (*self._roles, "system")
        unknown = [unknown_name("column role", role, roles) for role in named if role not in roles]
        if unknown:
            raise UsageError(unknown)


@contextmanager
def opened_parquet(path: Path, **options: Any) -> Iterator[pq.ParquetFile]:
    """A Parquet file; what goes wrong while it is read is a RunFormatError."""
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream, **options) as file:
            yield file
    except (OSError, pa.ArrowException) as cause:
        if isinstance(cause, OSError) and cause.errno is not None:
            raise RunFormatError(refusal(path, cause)) from cause
        if not _begins_as_parquet(path):
            hint = "run files of text are evaluated without the options of large runs, such as --memory and --out"
            problem = Problem("this is not a Parquet file", path=str(path), expected="a Parquet file", hint=hint)
            raise RunFormatError(problem) from cause
        message = "this Parquet file is damaged, cut short or changed while it was read"
        raise RunFormatError(Problem(message, path=str(path), got=shorten(str(cause)))) from cause


def _begins_as_parquet(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _number(column: pa.Array) -> pa.Array:
    return column if column.type == pa.float64() else pc.cast(column, pa.float64(), safe=False)
