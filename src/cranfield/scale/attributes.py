"""A table of what is known of queries: the user or session of each, its strata and its weight.

It is read in parts, from Parquet or from delimited text, and kept as arrays: ids as one block of bytes behind the hash
table of the kernel, clusters as numbers. A cluster is the unit of all statistics; where there are more clusters than units,
whole clusters share one, by a seeded hash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cranfield.base.errors import InputError, Problem, unknown_name
from cranfield.formats.io.delimited import COLUMN_NAMES
from cranfield.formats.io.files import refusal, suffix_of
from cranfield.formats.io.table import is_parquet
from cranfield.ranking.counting import Counting, JudgedTexts, Texts, new_seed
from cranfield.ranking.scan import ScanOptions
from cranfield.scale.kernel import texts_of
from cranfield.scale.results import batches_of

N_UNITS = 1 << 14
"""More queries, or clusters, than this are summed in so many groups of them."""
MAX_STRATA = 200
"""Values of a column of strata."""
NO_VALUE = "(no value)"
"""The stratum of a query without a value, or without a row."""
UNKNOWN = -1
ROWS_AT_ONCE = 1 << 16

Units = NDArray[np.int64]
Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class AttributeColumns:
    """Columns of the table that are used."""

    cluster: str | None = None
    strata: tuple[str, ...] = ()
    weight: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys([*([self.cluster] if self.cluster else ()), *self.strata, *self._weights]))

    @property
    def _weights(self) -> tuple[str, ...]:
        return (self.weight,) if self.weight else ()


@dataclass(frozen=True, eq=False)
class Attributes:
    """What is known of N queries."""

    name: str
    columns: AttributeColumns
    places: Counting
    """Finds the row of an id."""
    unit: NDArray[np.int32] | None
    """int32[N + 1]: the unit of each query's cluster, -1 for no cluster; None without a column of clusters."""
    n_clusters: int
    largest: int
    """Queries of the largest cluster."""
    strata: tuple[tuple[str, ...], ...]
    """Values of each column of strata; the last is `NO_VALUE`."""
    codes: tuple[NDArray[np.int16], ...]
    """Codes of each column of strata: int16[N + 1], places in `strata`."""
    weight: NDArray[np.float64] | None
    """float64[N + 1]; the last of each column is that of a query without a row, which is row -1."""

    def rows(self, query_ids: pa.LargeStringArray) -> NDArray[np.int32]:
        """int32[n]: the row of each query, -1 where it has none."""
        return self.places.places(texts_of(query_ids))


def hash_texts(column: pa.Array, seed: int) -> Keys:
    """uint64[n]: a seeded hash of each text, the same on every machine; 0 for none."""
    texts = texts_of(column)
    offsets, lengths = texts.offsets[:-1], np.diff(texts.offsets)
    data = np.frombuffer(texts.data, dtype=np.uint8)[int(texts.offsets[0]) : int(texts.offsets[-1])]
    keys = np.zeros(len(lengths), dtype=np.uint64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        with np.errstate(over="ignore"):
            powers = np.cumprod(np.full(int(lengths.max()), 0x9E3779B97F4A7C15, dtype=np.uint64), dtype=np.uint64)
            place = np.arange(len(data)) - np.repeat(offsets - texts.offsets[0], lengths)
            terms = (data.astype(np.uint64) + np.uint64(1)) * powers[place]
            keys[filled] = np.add.reduceat(terms, (offsets - texts.offsets[0])[filled])
    return _mixed(keys, seed)


def groups_of(keys: Keys, n_groups: int) -> Units:
    """The group of each key."""
    return np.asarray(keys % np.uint64(n_groups), dtype=np.int64)


def _mixed(keys: Keys, seed: int) -> Keys:
    """Steele & Vigna's splitmix64, of which every bit depends on every bit of the key and of the seed."""
    with np.errstate(over="ignore"):
        keys = keys + np.uint64((seed * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(keys ^ (keys >> np.uint64(31)), dtype=np.uint64)


def read_attributes(path: Path, columns: AttributeColumns, *, seed: int = 0, n_units: int = N_UNITS) -> Attributes:
    """Read a table with a row a query.

    Args:
        path: Parquet, or text of columns with a header: commas, or tabs in a `.tsv`.
        columns: which are used; the ids of queries are found by name.
        seed: by which clusters share a unit where there are more than units.
        n_units: most units.

    Raises:
        InputError: the file cannot be read, lacks a column, or has a query twice; a weight under 0; too many strata.
    """
    parts = _Parts(path, columns, seed)
    for batch in _batches(path, columns):
        parts.add(batch)
    unit, n_clusters, largest = _units(parts.clusters, n_units) if columns.cluster else (None, 0, 0)
    codes = tuple(parts.codes_of(key) for key in range(len(columns.strata)))
    weight = np.concatenate([*parts.weights, np.ones(1)]) if columns.weight else None
    parts.weights.clear()
    return Attributes(
        path.name,
        columns,
        parts.finder(),
        unit,
        n_clusters,
        largest,
        strata=tuple((*values, NO_VALUE) for values in parts.values),
        codes=codes,
        weight=weight,
    )


def _units(clusters: list[Keys], n_units: int) -> tuple[NDArray[np.int32], int, int]:
    """The unit of each row, the number of clusters and the size of the largest; key 0 is no cluster."""
    keys = np.concatenate([*clusters, np.zeros(1, dtype=np.uint64)])
    clusters.clear()
    ordered = np.sort(keys)
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))[1:]  # the first of all is key 0
    largest = int(np.diff(first, append=len(ordered)).max(initial=0))
    known = ordered[first] if len(first) <= n_units else None
    del ordered
    unit = np.empty(len(keys), dtype=np.int32)
    for start in range(0, len(keys), ROWS_AT_ONCE):
        part = keys[start : start + ROWS_AT_ONCE]
        units = groups_of(part, n_units) if known is None else np.searchsorted(known, part)
        unit[start : start + ROWS_AT_ONCE] = np.where(part == 0, UNKNOWN, units)
    return unit, len(first), largest


@dataclass(eq=False)
class _Parts:
    """What was read of a table so far."""

    path: Path
    columns: AttributeColumns
    seed: int
    n_rows: int = 0
    ids: bytearray = field(default_factory=bytearray)
    """One after another."""
    lengths: list[NDArray[np.int32]] = field(default_factory=list)
    clusters: list[Keys] = field(default_factory=list)
    codes: list[list[NDArray[np.int16]]] = field(init=False)
    values: list[list[str]] = field(init=False)
    weights: list[NDArray[np.float64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.codes, self.values = [[] for _ in self.columns.strata], [[] for _ in self.columns.strata]

    def add(self, batch: pa.RecordBatch) -> None:
        """Add some rows; the first column has the ids."""
        ids = _texts(batch.column(0))
        if ids.null_count:
            self._refuse("a row has no query", "an id in each row", "nothing there")
        texts = texts_of(ids)
        self.ids += memoryview(texts.data)[int(texts.offsets[0]) : int(texts.offsets[-1])]
        self.lengths.append(np.diff(texts.offsets).astype(np.int32))
        if self.columns.cluster:
            cluster = _texts(batch[self.columns.cluster])
            keys = hash_texts(cluster.fill_null(""), self.seed)
            none = np.asarray(pc.equal(cluster.fill_null(""), ""))
            self.clusters.append(np.where(none, np.uint64(0), np.maximum(keys, np.uint64(1))))
        for key, name in enumerate(self.columns.strata):
            self._add_stratum(key, name, _texts(batch[name]))
        if self.columns.weight:
            self._add_weights(batch[self.columns.weight])
        self.n_rows += len(batch)

    def _add_stratum(self, key: int, name: str, column: pa.LargeStringArray) -> None:
        encoded = pc.if_else(pc.equal(column, ""), None, column).dictionary_encode()
        values = self.values[key]
        met = encoded.dictionary.to_pylist()
        values += [value for value in met if value not in values][: MAX_STRATA + 1]
        if len(values) > MAX_STRATA:
            hint = "a column with a value for each user or session is a cluster"
            self._refuse(
                f"column {name} has more than {MAX_STRATA} values", "strata of many queries each", values[-1], hint
            )
        places = np.array([*(values.index(value) for value in met), UNKNOWN], dtype=np.int16)
        self.codes[key].append(places[np.asarray(encoded.indices.fill_null(UNKNOWN))])

    def _add_weights(self, column: pa.Array) -> None:
        try:
            weights = np.asarray(pc.cast(column, pa.float64()).fill_null(1.0), dtype=np.float64)
        except pa.ArrowException as cause:
            self._refuse(f"column {self.columns.weight} is not numeric", "weights of 0 or more", str(cause))
        wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(wrong):
            self._refuse(
                f"a weight in row {self.n_rows + int(wrong[0])}", "a number of 0 or more", f"{weights[wrong[0]]:g}"
            )
        self.weights.append(weights)

    def codes_of(self, key: int) -> NDArray[np.int16]:
        """Codes of all rows, and of a row that is not there."""
        codes = np.concatenate([*self.codes[key], np.full(1, UNKNOWN, dtype=np.int16)])
        self.codes[key].clear()
        codes[codes < 0] = len(self.values[key])
        return codes

    def finder(self) -> Counting:
        """Finds the row of an id."""
        offsets = np.zeros(self.n_rows + 1, dtype=np.int64)
        np.cumsum(np.concatenate([*self.lengths, np.zeros(0, np.int32)]), out=offsets[1:])
        self.lengths.clear()
        texts, none = Texts(offsets, self.ids), Texts(np.zeros(1, dtype=np.int64), b"")
        try:
            start = np.zeros(self.n_rows + 1, dtype=np.int64)
            return Counting(JudgedTexts(texts, start, none), 1, ScanOptions(), 0, new_seed())
        except ValueError:
            every = [texts[row] for row in range(self.n_rows)]
            twice = next(text for text, n in Counter(every).items() if n > 1)
            problem = Problem("a query has more than one row", str(self.path), got=repr(twice.decode()))
            raise InputError(problem) from None

    def _refuse(self, message: str, expected: str, got: str, hint: str | None = None) -> None:
        raise InputError(Problem(message, str(self.path), expected=expected, got=got[:80], hint=hint))


def _texts(column: pa.Array) -> pa.LargeStringArray:
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if pa.types.is_floating(plain.type):  # NaN is no value
        plain = pc.if_else(pc.is_nan(plain), None, plain)
    return pc.cast(plain, pa.large_string())


def _batches(path: Path, columns: AttributeColumns) -> Iterator[pa.RecordBatch]:
    """The rows of the table, the column of ids first."""
    try:
        if is_parquet(path, InputError):
            with pq.ParquetFile(path) as file:
                names = _chosen(path, file.schema_arrow.names, columns)
                for batch in batches_of(file, ROWS_AT_ONCE, list(dict.fromkeys(names))):
                    yield batch.select(names)
            return
        delimiter = "\t" if suffix_of(path) == ".tsv" else ","
        with pv.open_csv(path, parse_options=pv.ParseOptions(delimiter=delimiter)) as head:
            names = _chosen(path, head.schema.names, columns)
        kinds = {name: pa.string() for name in names if name != columns.weight}
        options = pv.ConvertOptions(column_types=kinds, include_columns=list(dict.fromkeys(names)))
        with pv.open_csv(path, parse_options=pv.ParseOptions(delimiter=delimiter), convert_options=options) as rows:
            for batch in rows:
                yield batch.select(names)
    except (OSError, pa.ArrowException) as cause:
        if isinstance(cause, OSError) and cause.errno is not None:
            raise InputError(refusal(path, cause)) from cause
        problem = Problem("this table cannot be read", str(path), expected="Parquet or CSV", got=str(cause)[:80])
        raise InputError(problem) from cause


def _chosen(path: Path, there: Sequence[str], columns: AttributeColumns) -> list[str]:
    """The column of ids, and the others."""
    ids = next((name for name in COLUMN_NAMES["query_id"] if name in there), None)
    problems = [unknown_name("column", name, there, path=str(path)) for name in columns.names if name not in there]
    if ids is None:
        known = " or ".join(COLUMN_NAMES["query_id"])
        problems.append(Problem("no column of query ids", str(path), expected=known, got=", ".join(there)[:80]))
    if problems or ids is None:
        raise InputError(problems)
    return [ids, *columns.names]
