"""Tables: data frames, Arrow tables, Parquet files and arrays, as columns of ids and numbers.

Columns are found by name and their values checked here; what they mean is not decided here. Frames come in
through narwhals, so any that it knows will do. Axis: N rows, counted from 0 in messages, as frames count them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import (
    SHOWN_PROBLEMS,
    CranfieldError,
    MissingExtraError,
    Problem,
    ProblemList,
    UsageError,
    shorten,
    unknown_name,
)
from cranfield.formats.io.delimited import COLUMN_NAMES, ID_KINDS, as_number, id_texts, is_id, short
from cranfield.formats.io.files import opened, refusal

if TYPE_CHECKING:
    import narwhals as nw

Role = Literal["query_id", "doc_id", "score", "grade", "subtopic", "rank"]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PARQUET_MAGIC = b"PAR1"


class Ids(Protocol):
    """A column of ids."""

    def run_starts(self) -> Ints:
        """First row of each run of equal ids."""

    def text(self, start: int, end: int) -> list[str]:
        """Ids of some rows; whole numbers as their decimal digits."""

    def take(self, order: Ints) -> Ids:
        """The same ids in another order."""


@dataclass(frozen=True, eq=False)
class RequestedColumns:
    """The requested columns of a table, without a missing id or an impossible number."""

    name: str
    """What messages call it: a path, or `run`."""
    taken: Mapping[Role, str]
    """What each column is called in the table."""
    ids: Mapping[Role, Ids]
    numbers: Mapping[Role, Floats]
    n_rows: int
    unused: tuple[str, ...] = ()
    """Columns of the table that were not requested, or hold what is no number."""


def is_parquet(path: Path, error: type[CranfieldError]) -> bool:
    """Tell a Parquet file by its first bytes.

    Raises:
        CranfieldError: of type `error`, when the file cannot be read.
    """
    with opened(path, error) as stream:
        return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def is_frame(value: object) -> bool:
    """Whether a value is a data frame, an Arrow table, or anything else that hands out Arrow columns."""
    import narwhals as nw

    native = nw.from_native(value, pass_through=True)
    return isinstance(native, nw.DataFrame | nw.LazyFrame) or hasattr(value, "__arrow_c_stream__")


def read_table(
    source: Any,
    required: Sequence[Role],
    error: type[CranfieldError],
    *,
    optional: Sequence[Role] = (),
    lenient: Sequence[Role] = (),
    columns: Mapping[str, str] | None = None,
    name: str = "the table",
) -> RequestedColumns:
    """Find the columns of a data frame, an Arrow table or a Parquet file, and check their values.

    Args:
        source: a frame that narwhals knows, an object with `__arrow_c_stream__`, or the path of a Parquet file.
        required: columns it must have.
        error: what to raise when it cannot be used.
        optional: columns it may have.
        lenient: columns it may have, which are left out where they hold what is no number.
        columns: names of columns that are not among `COLUMN_NAMES`: `{"score": "bm25"}`.
        name: what messages call it.

    Raises:
        CranfieldError: of type `error`, when a file cannot be read, or with each column that is missing, or the first
            rows without a value.
        MissingExtraError: a Parquet file, without pyarrow.
        UsageError: `columns` names what is no column of it, or `source` is no table.
    """
    name = str(source) if isinstance(source, str | Path) else name
    frame = _opened(source, error)
    there = frame.names()
    taken = _choose(there, required, (*optional, *lenient), columns or {}, name, error)
    series = frame.select(list(taken.values()))
    checks = _Checks(name, ProblemList(error))
    ids: dict[Role, Ids] = {}
    numbers: dict[Role, Floats] = {}
    for role, column in taken.items():
        if role in {"query_id", "doc_id", "subtopic"}:
            ids[role] = checks.ids(series[column], column)
        elif role not in lenient:
            numbers[role] = checks.numbers(series[column], column)
        else:
            trial = _Checks(name, ProblemList(error))
            values = trial.numbers(series[column], column)
            if not trial.found.problems:
                numbers[role] = values
    checks.found.raise_if_any()
    used = {taken[role] for role in (*ids, *numbers)}
    unused = tuple(str(column) for column in there if column not in used)
    return RequestedColumns(name, taken, ids, numbers, len(series[taken[required[0]]]), unused)


def column_names(source: Any, error: type[CranfieldError]) -> list[str]:
    """What the columns of a table are called. Raises as `read_table`."""
    return _opened(source, error).names()


def text_columns(source: Any, names: Sequence[str], error: type[CranfieldError]) -> dict[str, list[str] | None]:
    """Columns of a table as text, empty where nothing is there; None for a column of lists or structures."""
    if not names:
        return {}
    series = _opened(source, error).select(names)
    return {
        name: None if column.dtype.is_nested() else list(map(_text, column.to_list()))
        for name, column in series.items()
    }


def _text(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124 - NaN is what pandas has for nothing
        return ""
    return short(value) if isinstance(value, float) else str(value)


def rows_where(source: Any, keep: Sequence[bool], error: type[CranfieldError]) -> Any:
    """Some rows of a table, as a frame."""
    opened_table = _opened(source, error)
    return opened_table.collect(opened_table.names()).filter(list(keep))


def read_arrays(
    columns: Mapping[Role, Any], error: type[CranfieldError], *, name: str = "the arrays"
) -> RequestedColumns:
    """The same of arrays, one a column: text or whole numbers for ids, numbers for the rest.

    Raises:
        CranfieldError: of type `error`, with the first elements that have no value.
        UsageError: the arrays are not of one length and one dimension.
    """
    arrays = {role: np.asarray(values) for role, values in columns.items()}
    if {array.ndim for array in arrays.values()} != {1} or len({array.shape for array in arrays.values()}) != 1:
        shapes = ", ".join(f"{role} {array.shape}" for role, array in arrays.items())
        raise UsageError(f"{name} do not match in length", expected="one dimension and one length", got=shapes)
    checks = _Checks(name, ProblemList(error))
    ids: dict[Role, Ids] = {}
    numbers: dict[Role, Floats] = {}
    for role, array in arrays.items():
        if role in {"query_id", "doc_id", "subtopic"}:
            ids[role] = checks.array_ids(array, role)
        else:
            numbers[role] = checks.array_numbers(array, role)
    checks.found.raise_if_any()
    return RequestedColumns(name, {role: role for role in arrays}, ids, numbers, len(next(iter(arrays.values()))))


@dataclass(frozen=True)
class _Frame:
    """A frame of narwhals."""

    frame: nw.DataFrame[Any] | nw.LazyFrame[Any]

    def names(self) -> list[str]:
        return list(self.frame.collect_schema().names())

    def select(self, names: Sequence[str]) -> Mapping[str, nw.Series[Any]]:
        collected = self.collect(names)
        return {column: collected[column] for column in collected.columns}

    def collect(self, names: Sequence[str]) -> nw.DataFrame[Any]:
        import narwhals as nw

        chosen = self.frame.select(list(dict.fromkeys(names)))
        return chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen


@dataclass(frozen=True)
class _ParquetFile:
    """A Parquet file whose columns are read when they are chosen."""

    path: Path
    error: type[CranfieldError]

    def names(self) -> list[str]:
        with self._opened() as file:
            return list(file.schema_arrow.names)

    def select(self, names: Sequence[str]) -> Mapping[str, nw.Series[Any]]:
        table = self.collect(names)
        return {column: table[column] for column in table.columns}

    def collect(self, names: Sequence[str]) -> nw.DataFrame[Any]:
        import narwhals as nw

        with self._opened() as file:
            arrow = file.read(list(dict.fromkeys(names)))
            arrow.validate(full=True)  # text that is not UTF-8 would come out later, as an error of no file
            return nw.from_native(arrow, eager_only=True)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtraError.for_extra("reading a Parquet file", "parquet") from None
        try:
            with self.path.open("rb") as stream, pq.ParquetFile(stream) as file:
                yield file
        except (OSError, pa.ArrowException, UnicodeDecodeError) as cause:
            if isinstance(cause, OSError) and cause.errno is not None:  # the system's; pyarrow's own have none
                raise self.error(refusal(self.path, cause)) from cause
            message, got = "this Parquet file is damaged or cut short", shorten(str(cause))
            raise self.error(Problem(message, path=str(self.path), got=got)) from cause


def _opened(source: Any, error: type[CranfieldError]) -> _Frame | _ParquetFile:
    return _ParquetFile(Path(source), error) if isinstance(source, str | Path) else _as_frame(source)


def _as_frame(source: Any) -> _Frame:
    import narwhals as nw

    try:
        native = nw.from_native(source, pass_through=True)
    except nw.exceptions.NarwhalsError as cause:
        raise UsageError("this frame cannot be used", got=shorten(str(cause))) from None
    if isinstance(native, nw.DataFrame | nw.LazyFrame):
        return _Frame(native)
    if hasattr(source, "__arrow_c_stream__"):
        try:
            import pyarrow as pa
        except ImportError:
            raise MissingExtraError.for_extra("reading Arrow columns", "parquet") from None
        return _Frame(nw.from_native(pa.table(source), eager_only=True))
    raise UsageError(
        f"a {type(source).__name__} is not a table",
        expected="a data frame, an Arrow table, or the path of a Parquet file",
    )


def _choose(
    there: Sequence[str],
    required: Sequence[Role],
    optional: Sequence[Role],
    named: Mapping[str, str],
    name: str,
    error: type[CranfieldError],
) -> dict[Role, str]:
    """Which column holds what."""
    roles = (*required, *optional)
    wrong = [unknown_name("column role", role, roles) for role in named if role not in roles]
    wrong += [unknown_name("column", column, there, path=name) for column in named.values() if column not in there]
    if wrong:
        raise UsageError(wrong)
    taken: dict[Role, str] = {}
    missing = ProblemList(error)
    for role in roles:
        found = named.get(role) or next((known_name for known_name in COLUMN_NAMES[role] if known_name in there), None)
        if found is not None:
            taken[role] = found
        elif role in required:
            missing.add(
                f"no column {role}",
                path=name,
                expected=" or ".join(COLUMN_NAMES[role]),
                got="columns " + shorten(", ".join(map(str, there))),
                hint=f'rename it to {role}, or name it: columns={{"{role}": …}}',
            )
    missing.raise_if_any()
    return taken


@dataclass
class _Checks:
    """Looks for values that cannot be used."""

    name: str
    found: ProblemList

    def ids(self, series: nw.Series[Any], column: str) -> Ids:
        import narwhals as nw

        missing = np.flatnonzero(series.is_null().to_numpy())
        self._rows(missing, f"no {column}", "an id in each row", lambda _: "nothing there")
        kind = series.dtype
        if kind.is_integer() or kind == nw.String:
            return _SeriesIds(series, is_text=not kind.is_integer())
        if kind in {nw.Object, nw.Categorical, nw.Enum, nw.Unknown} and not len(missing):
            return self.array_ids(_objects(series), column)
        if not len(missing):
            self._kind(column, str(kind), ID_KINDS, is_float=kind.is_float())
        return _SeriesIds(series, is_text=True)

    def numbers(self, series: nw.Series[Any], column: str) -> Floats:
        import narwhals as nw

        kind = series.dtype
        if kind in {nw.Object, nw.Unknown} or kind.is_decimal():
            return self.array_numbers(_objects(series), column)
        if not kind.is_numeric():
            self._kind(column, str(kind), "numbers", is_float=False)
            return np.zeros(len(series))
        missing = series.is_null().to_numpy().astype(np.bool_)
        if not missing.any():
            return self.array_numbers(np.asarray(series.to_numpy()), column)
        return self.array_numbers(_objects(series), column)

    def array_ids(self, array: NDArray[Any], column: str) -> Ids:
        if array.dtype.kind == "O":
            bad = np.array([not is_id(value) for value in array.tolist()], dtype=np.bool_)
            rows = np.flatnonzero(bad)
            self._rows(rows, f"{column} is not an id", ID_KINDS, lambda row: shorten(array[row]))
            text = [] if len(rows) else id_texts(array.tolist())
            array = np.empty(len(text), dtype=object)
            array[:] = text
        elif array.dtype.kind == "T":  # numpy's own variable-width text
            array = array.astype(object)
        elif array.dtype.kind not in "Uiu":
            self._kind(column, str(array.dtype), ID_KINDS, is_float=array.dtype.kind == "f")
        return _ArrayIds(array)

    def array_numbers(self, array: NDArray[Any], column: str) -> Floats:
        if array.dtype.kind == "O":
            numbers = np.array([as_number(value) for value in array.tolist()], dtype=np.float64)  # None is NaN
        elif array.dtype.kind in "iuf":
            numbers = np.ascontiguousarray(array, dtype=np.float64)
        else:
            self._kind(column, str(array.dtype), "numbers", is_float=False)
            return np.zeros(len(array))
        rows = np.flatnonzero(~np.isfinite(numbers))
        self._rows(
            rows, f"{column} is not a finite number", "a number", lambda row: shorten(array[row : row + 1].tolist()[0])
        )
        return numbers

    def _rows(self, rows: Ints, message: str, expected: str, got: Any) -> None:
        for row in rows[:SHOWN_PROBLEMS].tolist():
            self.found.add(f"row {row}: {message}", path=self.name, expected=expected, got=got(row))
        if len(rows) > SHOWN_PROBLEMS:
            self.found.add(f"{message} in {len(rows)} rows in total", path=self.name, expected=expected)

    def _kind(self, column: str, kind: str, expected: str, *, is_float: bool) -> None:
        hint = "pandas turns whole numbers into fractions where one is missing: drop those rows, then astype(int)"
        self.found.add(
            f"column {column} cannot be used",
            path=self.name,
            expected=expected,
            got=kind,
            hint=hint if is_float else None,
        )


def _objects(series: nw.Series[Any]) -> NDArray[Any]:
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()
    return values


@dataclass(frozen=True, eq=False)
class _ArrayIds:
    """Ids in an array: text, whole numbers, or objects that are text."""

    array: NDArray[Any]

    def run_starts(self) -> Ints:
        if not len(self.array):
            return np.zeros(0, dtype=np.int64)
        return np.concatenate(([0], np.flatnonzero(self.array[1:] != self.array[:-1]) + 1))

    def text(self, start: int, end: int) -> list[str]:
        values = self.array[start:end].tolist()
        return list(map(str, values)) if self.array.dtype.kind in "iu" else values

    def take(self, order: Ints) -> Ids:
        return _ArrayIds(self.array[order])


@dataclass(frozen=True)
class _SeriesIds:
    """Ids in a series of narwhals, of text or of whole numbers."""

    series: nw.Series[Any]
    is_text: bool

    def run_starts(self) -> Ints:
        if not len(self.series):
            return np.zeros(0, dtype=np.int64)
        changes = (self.series != self.series.shift(1)).fill_null(value=True).to_numpy().astype(np.bool_)
        changes[0] = True
        return np.flatnonzero(changes)

    def text(self, start: int, end: int) -> list[str]:
        values = self.series[start:end].to_list()
        return values if self.is_text else list(map(str, values))

    def take(self, order: Ints) -> Ids:
        return _SeriesIds(self.series[order], self.is_text)
