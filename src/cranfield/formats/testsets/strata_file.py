"""Strata given on import: by position in the file, or by a table beside it.

`difficulty=standard:1-100,hard:101-127` names rows, counted from 1 in the order of the file. A table has a column of query
ids; every other column is a stratum.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cranfield.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.formats.io.delimited import Sheet, read_sheet
from cranfield.formats.io.files import shown
from cranfield.formats.testsets.overlay import some_ids
from cranfield.model import TestSet
from cranfield.model.note import info
from cranfield.words import n_of

RANGES = re.compile(r"(?P<key>[^=/\\]+)=(?P<ranges>[^=]*:\s*\d[\d\s:,\-]*.*)")
_RANGE = re.compile(r"\s*(?P<value>.*?\S)\s*:\s*(?P<start>\d{1,9})(?:\s*-\s*(?P<end>\d{1,9}))?\s*")
_ID_COLUMNS = ("query_id", "query id", "query-id", "queryid", "qid", "q_id", "id", "_id", "query", "topic")
_SPEC = "KEY=VALUE:FIRST-LAST,VALUE:FIRST-LAST, or a CSV or TSV file with a column of query ids"


def with_strata(testset: TestSet, spec: str | Path) -> TestSet:
    """A test set with more strata.

    Args:
        testset: what it says of a stratum that `spec` gives too is replaced where `spec` has a value.
        spec: `difficulty=standard:1-100,hard:101-127` (positions from 1, both ends included), or the path of a CSV or TSV
            file whose first line names its columns.

    Returns:
        A test set whose notes say how many queries have which stratum, and which have none.

    Raises:
        TestSetError: ranges that overlap or go beyond the queries; a table without a column of ids, with an id twice, or
            with ids that the set does not have at all.
    """
    found = RANGES.fullmatch(spec) if isinstance(spec, str) and not Path(spec).is_file() else None
    given = (
        _by_position(testset, found["key"].strip(), found["ranges"], str(spec)) if found else _by_table(testset, spec)
    )
    queries = tuple(
        replace(query, strata={**query.strata, **given.strata[query.id]}) if query.id in given.strata else query
        for query in testset.queries
    )
    without = [query.id for query in testset.queries if query.id not in given.strata]
    notes = [f"strata {', '.join(given.keys)}: given to {len(given.strata):,} of {len(queries):,} queries"]
    if without:
        notes.append(f"without {', '.join(given.keys)}: {some_ids(without)}")
    return replace(testset, queries=queries, notes=(*testset.notes, *info(*notes, *given.notes)))


@dataclass(frozen=True, slots=True)
class _Given:
    """Strata by query id."""

    keys: tuple[str, ...]
    strata: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...] = ()


def _by_position(testset: TestSet, key: str, ranges: str, spec: str) -> _Given:
    problems = ProblemList(TestSetError)
    taken: dict[int, str] = {}
    for part in ranges.split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            problems.add(f"{shorten(part)} is no range", path=spec, expected="VALUE:FIRST-LAST, as hard:101-127")
            continue
        start, end = int(found["start"]), int(found["end"] or found["start"])
        n = len(testset.queries)
        if not 1 <= start <= end <= n:
            problems.add(
                f"the rows {start}-{end} of {found['value']!r} are not in the test set",
                path=spec,
                expected=f"rows from 1 to {n}, the first not after the last",
            )
            continue
        twice = next((row for row in range(start, end + 1) if row in taken), None)
        if twice is not None:
            problems.add(
                f"row {twice} is in two ranges", path=spec, expected="one", got=f"{taken[twice]} and {found['value']}"
            )
            continue
        taken.update(dict.fromkeys(range(start, end + 1), found["value"]))
    problems.raise_if_any()
    return _Given((key,), {testset.query_ids[row - 1]: {key: value} for row, value in sorted(taken.items())})


def _by_table(testset: TestSet, spec: str | Path) -> _Given:
    path = Path(spec)
    if not path.exists() and "=" in str(spec):
        raise TestSetError("neither ranges nor a file", path=str(spec), expected=_SPEC)
    sheet = read_sheet(path, repeats=True)
    column = sheet.column(*_ID_COLUMNS)
    if column is None or len(sheet.names) < 2:
        raise TestSetError(
            Problem(
                "no column of query ids" if column is None else "no column beside the query ids",
                path=shown(path),
                line=sheet.line,
                expected="a first line like `query_id,difficulty`",
                got=shorten(", ".join(sheet.names)),
            )
        )
    keys = tuple(name for place, name in enumerate(sheet.names) if place != column)
    return _matched(testset, path, _table(sheet, column, keys), keys)


def _table(sheet: Sheet, column: int, keys: Sequence[str]) -> dict[str, dict[str, str]]:
    """Query id to its strata; an empty cell is none."""
    for key in sorted({key for key in keys if not key or keys.count(key) > 1}):
        message = f"column {key!r} is there twice" if key else "a column without a name"
        sheet.fault(sheet.line, None, message, expected="a name for each column")
    table: dict[str, dict[str, str]] = {}
    lines: dict[str, int] = {}
    for line, cells in sheet.stripped_rows():
        query_id = cells.pop(column)
        if not query_id:
            sheet.fault(line, column, "no query id", expected=f"one in column {sheet.names[column]}")
        elif lines.setdefault(query_id, line) != line:
            message = f"query {shorten(query_id)} is there twice; it also stands on line {lines[query_id]}"
            sheet.fault(line, column, message, expected="each query once")
        else:
            table[query_id] = {key: cell for key, cell in zip(keys, cells, strict=True) if cell}
    sheet.problems.raise_if_any()
    return table


def _matched(testset: TestSet, path: Path, table: Mapping[str, Mapping[str, str]], keys: tuple[str, ...]) -> _Given:
    known_ids = set(testset.query_ids)
    known = {query_id: strata for query_id, strata in table.items() if query_id in known_ids and strata}
    unknown = [query_id for query_id in table if query_id not in known_ids]
    if not known:
        raise TestSetError(
            "this table and the test set share no query",
            path=shown(path),
            expected=f"query ids like {some_ids(testset.query_ids[:3])}",
            got=some_ids(list(table)[:3]) or "none",
        )
    note = f"not in the test set: {n_of(len(unknown), 'queries')} of {path.name}, {some_ids(unknown)}"
    return _Given(keys, known, (note,) if unknown else ())
