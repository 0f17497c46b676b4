"""Texts of queries by the million, as columns, read a line at a time: `queries.jsonl` of a BEIR folder, lines of two columns, lines of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.files import MAX_PROBLEMS, decode, opened, read_bytes, shown
from cranfield.formats.sniff import detect_format
from cranfield.formats.testsets.beir import describe_query, query_objects
from cranfield.formats.testsets.topics import take_jsonl, take_tsv
from cranfield.formats.testsets.trec import TestSetBuilder, UnknownFields
from cranfield.model import Query
from cranfield.scale.judgment_rows import POOL, Progress

LINES_AT_ONCE = 1 << 16
PLAIN_KEYS = frozenset({"_id", "text", "metadata"})


@dataclass(frozen=True)
class OwnTexts:
    """What the file says of Q judged queries."""

    texts: pa.LargeStringArray  # [Q] empty where it has none
    strata: Mapping[int, Mapping[str, str]]
    """Place of a query to its strata, where it has some."""
    n_missing: int
    """Judged queries that are not in the file."""
    n_others: int
    """Queries of the file that are not judged."""


@dataclass(frozen=True)
class QueryTexts:
    """The queries of a file, each once."""

    ids: pa.LargeStringArray
    texts: pa.LargeStringArray
    records: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Place of a query to its line, where that says more than its text."""

    def of(self, query_ids: pa.LargeStringArray) -> OwnTexts:
        """Texts and strata of the judged queries."""
        place = pc.index_in(query_ids, value_set=self.ids, memory_pool=POOL)
        n_missing = place.null_count
        strata = self._strata(query_ids, place) if self.records else {}
        texts = pc.fill_null(self.texts.take(place), "")
        return OwnTexts(texts, strata, n_missing, len(self.ids) - (len(query_ids) - n_missing))

    def _strata(self, query_ids: pa.LargeStringArray, place: pa.Int32Array) -> dict[int, dict[str, str]]:
        own_place: NDArray[np.int64] = np.full(len(self.ids), -1)
        there = np.flatnonzero(np.asarray(place.is_valid()))
        own_place[np.asarray(place.drop_null())] = there
        unknown, named = UnknownFields(), dict[int, Mapping[str, str]]()
        keys: dict[int, str] = {}
        for row, record in self.records.items():
            own = int(own_place[row])
            if own >= 0:
                keys[own] = query_ids[own].as_py()
                strata = describe_query(keys[own], record, unknown)
                if strata:
                    named[own] = strata
        return {own: {**unknown.strata(key), **named.get(own, {})} for own, key in keys.items()}


class NotUnicodeError(Exception):
    """A text that cannot be in a column of Arrow: its set is read whole."""


@dataclass(eq=False)
class _Columns:
    """Queries as they are read."""

    progress: Progress | None
    n_done: int = 0
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    parts: list[tuple[pa.LargeStringArray, pa.LargeStringArray, NDArray[np.int64]]] = field(default_factory=list)

    def add(self, query_id: str, text: str, line: int) -> None:
        """Add a query."""
        self.ids.append(query_id)
        self.texts.append(text)
        self.lines.append(line)
        self.n_done += 1
        if len(self.ids) == LINES_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        try:
            columns = [pa.array(values, pa.large_string()) for values in (self.ids, self.texts)]
        except UnicodeEncodeError:
            raise NotUnicodeError from None
        self.parts.append((columns[0], columns[1], np.array(self.lines, dtype=np.int64)))
        for values in (self.ids, self.texts, self.lines):
            values.clear()
        if self.progress is not None:
            self.progress("queries", self.n_done)

    def all(self) -> tuple[pa.LargeStringArray, pa.LargeStringArray, NDArray[np.int64]]:
        """Ids, texts and lines."""
        self._flush()
        ids, texts = (pa.concat_arrays([part[column] for part in self.parts], memory_pool=POOL) for column in (0, 1))
        lines = np.concatenate([part[2] for part in self.parts])
        self.parts.clear()
        return ids, texts, lines


def _again(ids: pa.LargeStringArray, lines: NDArray[np.int64]) -> dict[int, tuple[str, int]]:
    """Line of each id that stood before, to the id and the line where it stood first."""
    codes = np.asarray(pc.dictionary_encode(ids, memory_pool=POOL).indices)
    _, first, own = np.unique(codes, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[own] != np.arange(len(codes))).tolist()
    return {int(lines[row]): (ids[row].as_py(), int(lines[first[own[row]]])) for row in again}


def read_beir_texts(path: Path, progress: Progress | None = None) -> QueryTexts:
    """Read the queries of a BEIR folder.

    Raises:
        TestSetError: with every bad line, and every id that stands twice.
        NotUnicodeError: a text cannot be in a column.
    """
    problems, without_text = ProblemList(TestSetError), dict[int, tuple[str, Any]]()
    columns = _Columns(progress)
    records: dict[int, dict[str, Any]] = {}
    for line, record in query_objects(path, problems):
        query_id, text = record["_id"], record.get("text")
        if not isinstance(text, str):
            without_text[line] = query_id, text
            text = ""
        elif record.get("metadata") or not PLAIN_KEYS.issuperset(record):
            records[columns.n_done] = {key: value for key, value in record.items() if key not in {"_id", "text"}}
        columns.add(query_id, text, line)
        if len(problems.problems) + len(without_text) >= MAX_PROBLEMS:
            break
    ids, texts, lines = columns.all()
    again = _again(ids, lines)
    for line, (query_id, first) in again.items():
        expected = f"one line per query; the first is line {first}"
        problems.add(f"query {query_id!r} occurs twice", path=shown(path), line=line, expected=expected)
    for line, (query_id, written) in without_text.items():
        if line not in again:
            got = shorten(written)
            problems.add(
                f"query {query_id!r} has no text", path=shown(path), line=line, expected='a key "text"', got=got
            )
    _raise_first(problems)
    return QueryTexts(ids, texts, records)


def _raise_first(problems: ProblemList) -> None:
    """Raise as many problems as a reader finds before it stops."""
    problems.problems.sort(key=lambda problem: problem.line or 0)
    del problems.problems[MAX_PROBLEMS:]
    problems.raise_if_any()


class _ColumnBuilder(TestSetBuilder):
    """Takes queries without keeping them."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        super().__init__(path)
        self.columns = _Columns(progress)

    def new_query(self, query: Query, at: int) -> bool:
        """Add a query; whether its id was used before is found out later."""
        self.columns.add(query.id, query.text, at)
        return True


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield line.removesuffix(b"\n").decode("utf-8" if number else "utf-8-sig")


_TAKE = {"queries-tsv": take_tsv, "queries-jsonl": take_jsonl}


def read_text_file(path: Path, progress: Progress | None = None) -> QueryTexts | None:
    """Read queries from lines of two columns or of JSON; None where they are topics, which are read whole.

    Raises:
        TestSetError: with everything that is wrong with them, as `read_queries` says it.
        NotUnicodeError: a text cannot be in a column.
    """
    take = _TAKE.get(detect_format(path, "queries", None, TestSetError).name)
    if take is None:
        return None
    builder = _ColumnBuilder(path, progress)
    with opened(path, TestSetError) as stream:
        try:
            take(_decoded(stream), builder)
        except UnicodeDecodeError:
            decode(read_bytes(path, TestSetError), path, TestSetError)
    ids, texts, lines = builder.columns.all()
    for line, (query_id, first) in _again(ids, lines).items():
        builder.problem(
            f"query id {shorten(query_id)} is used twice; it also occurs {builder.where(first, line)}", line
        )
    _raise_first(builder.problems)
    return QueryTexts(ids, texts) if len(ids) else None
