"""The files of a refresh: the labelling sheet.

A sheet has a row for each new query and candidate document, with a column for each of two raters. Strata of the new
queries stand in columns too, `stratum:KEY`: a value in one row of a query is enough. A sheet with a row for each rating (`query_id`, `doc_id`, `rater`, `grade`) is read as well.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cranfield.base.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.formats.convert import fitted
from cranfield.formats.io.files import BYTE_ORDER_MARK, decode, opened, read_bytes, shown, write_text
from cranfield.formats.registry import Format
from cranfield.formats.splice.files import splice_text
from cranfield.formats.splice.parts import UnspliceableError
from cranfield.formats.testsets.storage import Saved, holds_meta, save_spliced
from cranfield.model import Entity, File, Meta, Pattern, Query, Rating, Span, Target, TestSet
from cranfield.ranking.matching.place import ENTITY_MARK

COLUMNS = ("query_id", "query", "doc_id")
LONG = ("rater", "grade")
"""Columns of a sheet with a row for each rating."""
STRATUM = "stratum:"
"""Begins the heading of a column of strata."""
N_RATERS = 2
_FORMULA = re.compile(r"'*[ ]*[=+\-@\t\r]")
"""What a spreadsheet would run, with any number of marks before it."""


@dataclass(frozen=True, slots=True)
class RatedDocument:
    """One document for one query, with the grade of each rater."""

    line: int
    query_id: str
    doc_id: str
    grades: tuple[float, ...]


@dataclass(frozen=True)
class Labels:
    """A sheet that was filled in."""

    path: str
    raters: tuple[str, str]
    rows: tuple[RatedDocument, ...]
    strata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Query id to its strata."""
    adjudicated: Mapping[str, tuple[Rating, ...]] = field(default_factory=dict)
    """Query id to grades by adjudication, of a book."""


def write_sheet(
    path: Path,
    queries: Sequence[Query],
    candidates: Mapping[str, Iterable[str]],
    raters: Sequence[str],
    keys: Sequence[str] = (),
) -> int:
    """Write a sheet; a query without candidates has one row without a document.

    A sheet that is there keeps its rows, its labels and its own columns: rows that it has not are added. Rows without a label
    of queries that are not drawn any more are taken out.

    Args:
        path: the file.
        queries: those that come.
        candidates: query id to the documents to label.
        raters: names of the two.
        keys: strata to fill in.

    Returns:
        Rows of the sheet.

    Raises:
        TestSetError: the sheet that is there is none, or has labels of queries that are not drawn any more.
    """
    names = (*COLUMNS, *raters, *(STRATUM + key for key in keys))
    rows = [(query, doc_id) for query in queries for doc_id in (tuple(candidates.get(query.id, ())) or ("",))]
    wanted = [[query.id, _guarded(query.text), _guarded(doc_id)] for query, doc_id in rows]
    if path.is_file():
        written, n = kept_sheet(path, names, wanted, {query.id for query in queries})
        write_text(path, [written])
        return n
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    empty = [""] * (len(names) - len(COLUMNS))
    writer.writerows((*cells, *empty) for cells in wanted)
    write_text(path, [text.getvalue()])
    return len(rows)


def _guarded(text: str) -> str:
    """Text that no spreadsheet runs as a formula; `_bare` takes the mark off again."""
    return "'" + text if _FORMULA.match(text) else text


def _bare(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text[1:]) else text


def read_sheet(path: Path, raters: Sequence[str] = ()) -> Labels:
    """Read a sheet: every row with a document, and a grade by each of the two raters.

    Args:
        path: the file.
        raters: names of the two, needed where the sheet has other columns too, as titles or remarks.

    Raises:
        TestSetError: with everything that is missing, each with its line.
    """
    with opened(path, TestSetError) as stream:
        try:
            text = stream.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise TestSetError("the sheet is not UTF-8", path=shown(path)) from None
    lines = csv.reader(io.StringIO(text, newline=""))
    problems = ProblemList(TestSetError)
    try:
        names = [cell.strip() for cell in next(lines, [])]
        filled = [(lines.line_num, cells) for cells in lines if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise TestSetError(f"no CSV: {error}", path=shown(path), line=lines.line_num) from None
    all_rows, columns = filled, {name: place for place, name in enumerate(names)}
    if {"query_id", "doc_id", *LONG} <= set(names):
        names, filled = _wide(names, filled, shown(path), problems)
    raters, places = _header(names, shown(path), raters)
    strata = _strata(all_rows, columns, shown(path), problems)
    made = [_row(cells, line, places, raters, shown(path), problems) for line, cells in filled]
    rows = [row for row in made if row is not None]
    first: dict[tuple[str, str], int] = {}
    for row in rows:
        if first.setdefault((row.query_id, row.doc_id), row.line) != row.line:
            problems.add(
                f"{row.doc_id} is labelled twice for {row.query_id}; it also occurs on line "
                f"{first[row.query_id, row.doc_id]}",
                path=shown(path),
                line=row.line,
            )
    problems.raise_if_any()
    return Labels(shown(path), raters, tuple(rows), strata)


def _wide(
    names: Sequence[str], filled: Sequence[tuple[int, list[str]]], path: str, problems: ProblemList
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """A sheet with a row for each rating as one with a column for each rater; columns that both have stand first."""
    places = {name: place for place, name in enumerate(names)}
    rater_place, grade_place = (places[name] for name in LONG)
    kept = [place for place, name in enumerate(names) if name not in LONG]
    raters: dict[str, None] = {}
    pairs: dict[tuple[str, str], tuple[int, list[str], dict[str, str]]] = {}
    for line, cells in filled:
        rater = _cell(cells, rater_place)
        query_id, doc_id = (_cell(cells, places[name]) for name in ("query_id", "doc_id"))
        if not rater:
            problems.add("no rater", path=path, line=line)
            continue
        _, _, grades = pairs.setdefault((query_id, doc_id), (line, [_cell(cells, place) for place in kept], {}))
        if rater in grades:
            problems.add(f"{rater} labels {doc_id} twice for {query_id}", path=path, line=line)
        raters.setdefault(rater)
        grades.setdefault(rater, _cell(cells, grade_place))
    rows = [(line, [*cells, *(grades.get(rater, "") for rater in raters)]) for line, cells, grades in pairs.values()]
    return [*(names[place] for place in kept), *raters], rows


def _header(names: Sequence[str], path: str, wanted: Sequence[str]) -> tuple[tuple[str, str], Mapping[str, int]]:
    raters = [name for name in names if name and name not in COLUMNS and not name.startswith(STRATUM)]
    if len(raters) > N_RATERS and set(wanted) <= set(raters):
        raters = [name for name in raters if name in wanted]
    if {"query_id", "doc_id"} - set(names) or len(raters) != N_RATERS or len(set(names)) != len(names):
        raise TestSetError(
            "not a labelling sheet for two raters",
            path=path,
            line=1,
            expected="columns query_id, query, doc_id and one column per rater; or query_id, doc_id, rater, grade",
            got=shorten(",".join(names)),
            hint="if the sheet has other columns too, name the raters with {raters=A,B}",
            parameters=("raters",),
        )
    return (raters[0], raters[1]), {name: place for place, name in enumerate(names) if name}


def _cell(cells: Sequence[str], place: int) -> str:
    return cells[place].strip() if place < len(cells) else ""


def _strata(
    filled: Sequence[tuple[int, Sequence[str]]], places: Mapping[str, int], path: str, problems: ProblemList
) -> dict[str, dict[str, str]]:
    """Query id to its strata, where any row of it says them; two values of one are a problem."""
    found: dict[str, dict[str, str]] = {}
    keys = {name.removeprefix(STRATUM): place for name, place in places.items() if name.startswith(STRATUM)}
    for line, cells in filled:
        query_id = _cell(cells, places["query_id"])
        for key, place in keys.items():
            value = _cell(cells, place)
            if value and found.setdefault(query_id, {}).setdefault(key, value) != value:
                before = found[query_id][key]
                problems.add(
                    f"query {query_id} has two values of {key}", path=path, line=line, expected=before, got=value
                )
    return found


def _row(
    cells: Sequence[str],
    line: int,
    places: Mapping[str, int],
    raters: Sequence[str],
    path: str,
    problems: ProblemList,
) -> RatedDocument | None:
    """One row, or None with its problems noted."""

    def cell(name: str) -> str:
        return _cell(cells, places[name])

    before = len(problems.problems)
    for name in ("query_id", "doc_id"):
        if not cell(name):
            problems.add(f"no {name}", path=path, line=line)
    grades = []
    for rater in raters:
        try:
            grade = float(cell(rater))
        except ValueError:
            grade = math.nan
        if not math.isfinite(grade) or grade < 0:
            what = f"no grade by {rater}" if not cell(rater) else f"the grade by {rater} is not valid"
            got = shorten(cell(rater)) if cell(rater) else None
            problems.add(what, path=path, line=line, expected="a number of 0 or more", got=got)
        grades.append(grade)
    if len(problems.problems) > before:
        return None
    return RatedDocument(line, cell("query_id"), _bare(cell("doc_id")), tuple(grades))


_N_KEYS = 3
"""Columns before the raters: query id, query, document."""


def kept_sheet(
    path: Path, names: Sequence[str], wanted: Sequence[Sequence[str]], query_ids: Collection[str]
) -> tuple[str, int]:
    """The text of a sheet with the rows that are missing, and its number of rows.

    Args:
        path: the sheet that is there.
        names: columns of a new sheet.
        wanted: query id, query and document of each row to label.
        query_ids: queries that are drawn.

    Raises:
        TestSetError: it is no such sheet, or has labels of queries that are not drawn.
    """
    data = read_bytes(path, TestSetError)
    text = decode(data, path, TestSetError)
    header, there = _rows(text, path, ("query_id", "doc_id", *names[_N_KEYS:]))
    keys = {"query_id", "query", "doc_id"}
    named = {cells[0] for cells in wanted if cells[2].strip()}
    empty = [row for row in there if not row["doc_id"].strip() and row["query_id"].strip() in named]
    gone = [row for row in there if row["query_id"].strip() not in query_ids]
    labelled = [row for row in gone if _is_labelled(row, keys)]
    gone += [row for row in empty if not _is_labelled(row, keys)]
    if labelled:
        raise TestSetError(
            [
                Problem(
                    f"the sheet has a label of query {row['query_id']}, which is not in the sample",
                    path=shown(path),
                    hint="use the seed, the log and the number of queries of the sheet, or name another file",
                )
                for row in labelled
            ]
        )
    known = {(row["query_id"].strip(), row["doc_id"].strip()) for row in there}
    more = [cells for cells in wanted if (cells[0], cells[2].strip()) not in known]
    if not more and not gone:
        return _with_mark(data, text), len(there)
    old = _written(header, there)
    new_rows = [dict(zip(("query_id", "query", "doc_id"), cells, strict=True)) for cells in more]
    new = _written(header, [row for row in there if row not in gone] + new_rows)
    try:
        return _with_mark(data, splice_text(text, old, new, "table")), len(there) - len(gone) + len(more)
    except UnspliceableError:
        raise TestSetError("rows cannot be added to the sheet", path=shown(path), hint="name another file") from None


def _rows(text: str, path: Path, needed: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Names of the columns, and the rows."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    header = [name.strip() for name in rows[0]] if rows else []
    missing = [name for name in needed if name not in header]
    if missing:
        raise TestSetError(
            f"the existing sheet has no column {missing[0]}",
            path=shown(path),
            got=", ".join(header) or "nothing",
            hint="name another file, or use the raters of the sheet",
        )
    return header, [dict(zip(header, row, strict=False)) for row in rows[1:] if any(row)]


def _is_labelled(row: Mapping[str, str], keys: Collection[str]) -> bool:
    return any(cell.strip() for name, cell in row.items() if name not in keys)


def _with_mark(data: bytes, text: str) -> str:
    return "\ufeff" + text if data.startswith(BYTE_ORDER_MARK) else text


def _written(header: Sequence[str], rows: Sequence[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, header, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


_SPAN = re.compile(r"(?P<path>.+):(?P<start>[1-9]\d{0,8})-(?P<end>[1-9]\d{0,8})")


def save_renewed(renewed: TestSet, new: Collection[str], source: Path, out: Path, entry: Format) -> Saved | None:
    """Save the next version of a test set in the text of the old one, as far as its format holds it.

    Args:
        renewed: the next version.
        new: ids of the queries that came.
        source: file of the old version.
        out: file of the next one.
        entry: the format of both.

    Returns:
        The files, and what the format does not hold of the labels; None where a query would be lost, or the text has no
        room.
    """
    kept = renewed if "grades" in entry.holds else with_targets(renewed, new, entry.holds)
    kept, losses = fitted(kept if holds_meta(entry) else replace(kept, meta=Meta()), entry, out)
    if len(kept.queries) < len(renewed.queries):
        return None
    saved = save_spliced(replace(kept, meta=renewed.meta), source, out, entry)
    return None if saved is None else Saved(saved.files, (*saved.notes, *losses))


def with_targets(testset: TestSet, query_ids: Collection[str], holds: frozenset[str]) -> TestSet:
    """The test set with the graded ids of some queries as targets of the kinds that a format holds.

    A grade of 0 is left out: what matches no target is not relevant.
    """
    targets = {
        query_id: tuple(
            target
            for doc_id, grade in testset.grades.get(query_id, {}).items()
            if grade > 0 and (target := _target(doc_id, grade, holds)) is not None
        )
        for query_id in query_ids
    }
    grades = {query_id: judged for query_id, judged in testset.grades.items() if query_id not in targets}
    ratings = {query_id: rated for query_id, rated in testset.ratings.items() if query_id not in targets}
    return replace(
        testset,
        targets={**testset.targets, **targets},
        grades=grades,
        ratings=ratings,
        consensus=testset.consensus if ratings else "",
    )


def _target(doc_id: str, grade: float, holds: frozenset[str]) -> Target | None:
    found = _SPAN.fullmatch(doc_id)
    if found is not None and "spans" in holds and int(found["start"]) <= int(found["end"]):
        return Span(found["path"], int(found["start"]), int(found["end"]), grade)
    if ENTITY_MARK in doc_id and "entities" in holds:
        return Entity(doc_id, grade)
    if "file targets" in holds:
        return File(doc_id, grade)
    return Pattern(f"^{re.escape(doc_id)}$", grade) if "patterns" in holds else None
