"""More for a test set: judgments of qrels, texts of queries, or strata by position or from a table.

Queries that only one side has are named and counted in the notes. Only query numbers are paired by position, and a note
says so. `difficulty=standard:1-100,hard:101-127` names rows, counted from 1 in the order of the file; a table has a column
of query ids, and every other column is a stratum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.base.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.delimited import Sheet, read_sheet
from cranfield.formats.io.files import shown
from cranfield.model import Absence, Note, OtherJudgments, Query, TestSet
from cranfield.model.note import NoteKind, info
from cranfield.model.query_ids import BY_TEXT, ids_by_text

SHOWN_IDS = 10
"""So many query ids are named in a sentence; the rest are counted."""
_Given = tuple[Sequence[str], Mapping[str, Mapping[str, str]], Sequence[str]]
"""Names of strata, query id to its strata, and notes."""
RANGES = re.compile(r"(?P<key>[^=/\\]+)=(?P<ranges>[^=]*:\s*\d[\d\s:,\-]*.*)")
_RANGE = re.compile(r"\s*(?P<value>.*?\S)\s*:\s*(?P<start>\d{1,9})(?:\s*-\s*(?P<end>\d{1,9}))?\s*")
_ID_COLUMNS = ("query_id", "query id", "query-id", "queryid", "qid", "q_id", "id", "_id", "query", "topic")
_SPEC = "KEY=VALUE:FIRST-LAST,VALUE:FIRST-LAST, or a CSV or TSV file with a column of query ids"


_thousands = "{:,}".format


def with_judgments(testset: TestSet, qrels: TestSet, *, fallback: bool = False) -> TestSet:
    """A test set whose judgments, of every kind, are those of another one.

    Args:
        testset: its texts, strata, params, weights, classes and negative queries stay, and so do its sources, legacy
            forms and files to cover.
        qrels: its judgments. Where none of its query ids is one of the set and all are whole numbers from 1 to the
            number of queries, they are positions in the set, in the order of its file.
        fallback: whether a query that `qrels` does not judge keeps its own judgments; it has none left otherwise, and
            is out of every mean.

    Returns:
        A test set whose notes and `other_judgments` say what became of queries that only one of the two has.

    Raises:
        TestSetError: the two share no query and the numbers are no positions; a negative query is judged; or own
            judgments would stand beside others of another kind of group.
    """
    names = _paired(testset, qrels)
    judged = {canonical_query_id for other_id, canonical_query_id in names.items() if _has_judgment(qrels, other_id)}
    _refuse_negative(testset, qrels, judged)
    own = [q.id for q in testset.queries if fallback and q.id not in judged and q.negative is None]
    own = [query_id for query_id in own if _has_judgment(testset, query_id)]
    if own:
        _refuse_mixed_groups(testset, qrels)
    kept = set(own)

    def taken(attribute: str) -> dict[str, Any]:
        mine, others = getattr(testset, attribute), getattr(qrels, attribute)
        found = {
            canonical_query_id: others[other_id] for other_id, canonical_query_id in names.items() if other_id in others
        }
        return found | {query_id: mine[query_id] for query_id in mine if query_id in kept}

    complete = {canonical for other_id, canonical in names.items() if qrels.by_id[other_id].exhaustive}
    queries = tuple(
        query
        if query.id in kept or query.exhaustive == (query.id in complete)
        else replace(query, exhaustive=query.id in complete)
        for query in testset.queries
    )
    unjudged = [q.id for q in testset.queries if q.id not in judged and q.id not in kept and q.negative is None]
    source = OtherJudgments(qrels.name, qrels.digest, fallback, len(judged), len(own), len(unjudged))
    by_text = bool(ids_by_text(testset, qrels.query_ids))
    notes = _overlay_notes(qrels, names, source, (own, unjudged), by_text=by_text)
    return replace(
        testset,
        queries=queries,
        grades=taken("grades"),
        targets=taken("targets"),
        groups=taken("groups"),
        ratings=taken("ratings"),
        grouping=qrels.grouping or (testset.grouping if kept else None),
        consensus=qrels.consensus or (testset.consensus if kept else ""),
        other_judgments=source,
        notes=(*testset.notes, *qrels.notes, *info(*notes)),
    )


def _overlay_notes(
    qrels: TestSet,
    names: Mapping[str, str],
    source: OtherJudgments,
    without: tuple[Sequence[str], Sequence[str]],
    *,
    by_text: bool,
) -> Iterator[str]:
    """What became of the queries that only one of the two has; `without` are those with own judgments, and without any."""
    own, unjudged = without
    yield f"judgments of {qrels.name}: {_count(qrels, names)} for {count_noun(len(names), 'queries', _thousands)}"
    if by_text:
        yield f"the file of judgments {BY_TEXT}"
    elif names and any(other_id != canonical_query_id for other_id, canonical_query_id in names.items()):
        yield "its query numbers are positions in the test set, counted from 1"
    if own:
        queries = count_noun(len(own), "queries", _thousands)
        yield f"{queries} not judged in {qrels.name}: scored by the judgments of the test set ({some_ids(own)})"
    if unjudged:
        queries = count_noun(len(unjudged), "queries", _thousands)
        alternative = "" if source.fallback else "; qrels_fallback scores them by the judgments of the test set"
        yield f"{Absence.NEVER_JUDGED} in {qrels.name}, excluded from the means: {queries} ({some_ids(unjudged)}){alternative}"
    unknown = [query_id for query_id in qrels.query_ids if query_id not in names]
    if unknown:
        queries = count_noun(len(unknown), "queries", _thousands)
        yield f"{queries} judged there and not in the test set: {some_ids(unknown)}"


def _has_judgment(testset: TestSet, query_id: str) -> bool:
    """Whether a query has a judgment, or a rating that becomes one."""
    return testset.is_judged(query_id) or any(r.grade is not None for r in testset.ratings.get(query_id, ()))


def _refuse_mixed_groups(testset: TestSet, qrels: TestSet) -> None:
    """Refuse own judgments by one kind of group beside others by another kind, or by none."""
    kinds = [side.grouping or "none" for side in (testset, qrels)]
    if kinds[0] != kinds[1]:
        raise TestSetError(
            f"the judgments of {testset.name} and {qrels.name} cannot be combined",
            expected=f"judgments by the same kind of group ({kinds[0]})",
            got=kinds[1],
            hint="leave out {qrels_fallback}",
            parameters=("qrels_fallback",),
        )


def with_queries(testset: TestSet, queries: TestSet) -> TestSet:
    """A test set with the texts, information needs and notes of another one, paired by query id.

    Args:
        testset: its judgments, strata and all else stay.
        queries: what `formats.sniff.read_queries` read.

    Returns:
        A test set whose notes name the queries that have no text now, and count the texts of unjudged queries.

    Raises:
        TestSetError: the two share no query.
    """
    texts = queries.by_id
    shared = [query.id for query in testset.queries if query.id in texts]
    if not shared:
        raise TestSetError(_nothing_shared(testset, queries, "a text for at least one query of the test set"))
    set_of_shared = set(shared)
    notes = [f"read text from {queries.name} for {count_noun(len(shared), 'queries', _thousands)}"]
    without = [query.id for query in testset.queries if query.id not in texts and not query.text]
    unused = [query_id for query_id in texts if query_id not in set_of_shared]
    if without:
        notes.append(f"{count_noun(len(without), 'queries', _thousands)} without a text: {some_ids(without)}")
    left_out: tuple[Note, ...] = ()
    if unused:
        text = (
            f"{count_noun(len(unused), 'texts', _thousands)} without a query in the test set, not used: {some_ids(unused)}; "
            "a query with nothing to find is `negative: true` in a YAML test set, `yes` under `negative` in a table"
        )
        left_out = (Note(NoteKind.UNUSED, text, tuple(unused)),)
    named = tuple(_with_texts(query, texts.get(query.id)) for query in testset.queries)
    return replace(testset, queries=named, notes=(*testset.notes, *queries.notes, *info(*notes), *left_out))


def _with_texts(query: Query, other: Query | None) -> Query:
    if other is None:
        return query
    return replace(query, text=other.text, need=other.need or query.need, notes=other.notes or query.notes)


def _paired(testset: TestSet, qrels: TestSet) -> dict[str, str]:
    """Query id of the qrels to that of the set."""
    own_ids = set(testset.query_ids)
    names = {query_id: query_id for query_id in qrels.query_ids if query_id in own_ids}
    if names:
        return names
    names = ids_by_text(testset, qrels.query_ids)
    if names:
        return names
    positions = {query_id: _position(query_id) for query_id in qrels.query_ids}
    if all(position is not None and 1 <= position <= len(testset.queries) for position in positions.values()):
        return {query_id: testset.query_ids[position - 1] for query_id, position in positions.items() if position}
    raise TestSetError(
        _nothing_shared(testset, qrels, f"its query ids, or positions from 1 to {len(testset.queries)} throughout")
    )


def _position(query_id: str) -> int | None:
    """A whole number as it is usually written."""
    is_number = query_id.isascii() and query_id.isdigit() and len(query_id) < len("1000000000") and query_id[0] != "0"
    return int(query_id) if is_number else None


def _nothing_shared(testset: TestSet, other: TestSet, expected: str) -> Problem:
    return Problem(
        f"{other.name} and the test set {testset.name} share no query",
        expected=expected,
        got=f"{some_ids(other.query_ids[:3])} in the file, {some_ids(testset.query_ids[:3])} in the test set",
    )


def _refuse_negative(testset: TestSet, qrels: TestSet, judged: set[str]) -> None:
    """Nothing can be expected of a query that should find nothing."""
    wrong = [query for query in testset.queries if query.negative is not None and query.id in judged]
    if wrong:
        raise TestSetError(
            f"{qrels.name} judges queries that are negative in the test set: {some_ids([query.id for query in wrong])}",
            expected="no relevant document for a query of this class",
            hint="remove these lines, or remove `negative` from the test set",
        )


def _count(testset: TestSet, query_ids: Iterable[str]) -> str:
    """How much is judged for these queries."""
    n = sum(len(testset.grades.get(q, ())) + len(testset.targets.get(q, ())) for q in query_ids)
    return (
        count_noun(n, "judgments", _thousands)
        if n
        else count_noun(sum(map(len, testset.ratings.values())), "ratings", _thousands)
    )


def some_ids(ids: Sequence[str]) -> str:
    """The first query ids of many, and how many more there are."""
    texts = (shorten(query_id)[1:-1] if query_id.isprintable() else shorten(query_id) for query_id in ids)
    return join_first(texts, SHOWN_IDS, number=_thousands)


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
    keys, given, found_notes = (
        _by_position(testset, found["key"].strip(), found["ranges"], str(spec)) if found else _by_table(testset, spec)
    )
    queries = tuple(
        replace(query, strata={**query.strata, **given[query.id]}) if query.id in given else query
        for query in testset.queries
    )
    without = [query.id for query in testset.queries if query.id not in given]
    notes = [f"strata {', '.join(keys)}: set for {len(given):,} of {len(queries):,} queries"]
    if without:
        notes.append(f"without {', '.join(keys)}: {some_ids(without)}")
    return replace(testset, queries=queries, notes=(*testset.notes, *info(*notes, *found_notes)))


def _by_position(testset: TestSet, key: str, ranges: str, spec: str) -> _Given:
    problems = ProblemList(TestSetError)
    taken: dict[int, str] = {}
    for part in ranges.split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            problems.add(f"{shorten(part)} is not a range", path=spec, expected="VALUE:FIRST-LAST, as hard:101-127")
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
    return (key,), {testset.query_ids[row - 1]: {key: value} for row, value in sorted(taken.items())}, ()


def _by_table(testset: TestSet, spec: str | Path) -> _Given:
    path = Path(spec)
    if not path.exists() and "=" in str(spec):
        raise TestSetError("neither ranges nor a file", path=str(spec), expected=_SPEC)
    sheet = read_sheet(path, repeats=True)
    column = sheet.column(*_ID_COLUMNS)
    if column is None or len(sheet.names) < 2:
        raise TestSetError(
            Problem(
                "no column of query ids" if column is None else "no column other than the query ids",
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
        message = f"column {key!r} occurs twice" if key else "a column without a name"
        sheet.fault(sheet.line, None, message, expected="a name for each column")
    table: dict[str, dict[str, str]] = {}
    lines: dict[str, int] = {}
    for line, cells in sheet.stripped_rows():
        query_id = cells.pop(column)
        if not query_id:
            sheet.fault(line, column, "no query id", expected=f"one in column {sheet.names[column]}")
        elif lines.setdefault(query_id, line) != line:
            message = f"query {shorten(query_id)} occurs twice; it also occurs on line {lines[query_id]}"
            sheet.fault(line, column, message, expected="each query once")
        else:
            table[query_id] = {key: cell for key, cell in zip(keys, cells, strict=True) if cell}
    sheet.problems.raise_if_any()
    return table


def _matched(testset: TestSet, path: Path, table: Mapping[str, Mapping[str, str]], keys: tuple[str, ...]) -> _Given:
    names = ids_by_text(testset, table)
    notes = (f"the table {BY_TEXT}",) if names else ()
    table = {names.get(query_id, query_id): strata for query_id, strata in table.items()}
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
    note = f"not in the test set: {count_noun(len(unknown), 'queries')} of {path.name}, {some_ids(unknown)}"
    return keys, known, (*notes, note) if unknown else notes
