"""Texts of queries by the million, from the `queries.jsonl` of a BEIR folder: as columns, read a line at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cranfield.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.files import MAX_PROBLEMS, shown
from cranfield.formats.testsets.beir import describe_query, query_objects
from cranfield.formats.testsets.builder import UnknownFields
from cranfield.scale.judgment_rows import POOL

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


def read_query_texts(path: Path) -> QueryTexts:
    """Read the queries of a BEIR folder.

    Raises:
        TestSetError: with every bad line, and every id that stands twice.
    """
    problems, without_text = ProblemList(TestSetError), dict[int, Any]()
    ids: list[str] = []
    texts: list[str] = []
    parts: list[tuple[pa.LargeStringArray, pa.LargeStringArray, NDArray[np.int64]]] = []
    lines: list[int] = []
    records: dict[int, dict[str, Any]] = {}
    n_done = 0

    def flush() -> None:
        columns = (_array(ids, path), _array(texts, path), np.array(lines, dtype=np.int64))
        parts.append(columns)
        for column in (ids, texts, lines):
            column.clear()

    for line, record in query_objects(path, problems):
        text = record.get("text")
        if not isinstance(text, str):
            without_text[line] = text
            text = ""
        elif record.get("metadata") or not PLAIN_KEYS.issuperset(record):
            records[n_done] = {key: value for key, value in record.items() if key not in {"_id", "text"}}
        ids.append(record["_id"])
        texts.append(text)
        lines.append(line)
        n_done += 1
        if len(ids) == LINES_AT_ONCE:
            flush()
    flush()
    joined = [pa.concat_arrays([part[column] for part in parts], memory_pool=POOL) for column in (0, 1)]
    _report(path, joined[0], np.concatenate([part[2] for part in parts]), without_text, problems)
    return QueryTexts(joined[0], joined[1], records)


def _array(texts: list[str], path: Path) -> pa.LargeStringArray:
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError as cause:
        got = shorten(cause.object)
        raise TestSetError("text that is no Unicode", path=shown(path), expected="Unicode", got=got) from None


def _report(
    path: Path,
    ids: pa.LargeStringArray,
    lines: NDArray[np.int64],
    without_text: Mapping[int, Any],
    problems: ProblemList,
) -> None:
    """Raise what is wrong with the queries."""
    codes = np.asarray(pc.dictionary_encode(ids, memory_pool=POOL).indices)
    _, first, own = np.unique(codes, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[own] != np.arange(len(codes)))
    repeated = set(lines[again].tolist())
    for row in again[:MAX_PROBLEMS].tolist():
        problems.add(
            f"query {ids[row].as_py()!r} is there twice",
            path=shown(path),
            line=int(lines[row]),
            expected=f"it once: on line {lines[first[own[row]]]}",
        )
    for line, text in without_text.items():
        if line not in repeated and len(problems.problems) < MAX_PROBLEMS:
            query_id = ids[int(np.searchsorted(lines, line))].as_py()
            problems.add(
                f"query {query_id!r} has no text", path=shown(path), line=line, expected='a key "text"', got=shorten(text)
            )
    problems.raise_if_any()
