"""One test set laid over another: judgments from qrels over a set with texts, or texts over a set of qrels.

Queries that only one of the two has are named and counted in the notes. Only query numbers are paired by position, and a
note says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cranfield.errors import Problem, TestSetError, shorten
from cranfield.model import TestSet
from cranfield.model.note import info
from cranfield.words import first_of, n_of

SHOWN_IDS = 10
"""So many query ids are named in a sentence; the rest are counted."""


_thousands = "{:,}".format


def with_judgments(testset: TestSet, qrels: TestSet) -> TestSet:
    """A test set whose judgments, of every kind, are those of another one.

    Args:
        testset: its texts, strata, params, weights, classes and negative queries stay, and so do its sources, legacy
            forms and files to cover.
        qrels: its judgments. Where none of its query ids is one of the set and all are whole numbers from 1 to the
            number of queries, they are positions in the set, in the order of its file.

    Returns:
        A test set whose notes say what became of queries that only one of the two has. A query that `qrels` does not
        judge has no judgment left.

    Raises:
        TestSetError: the two share no query and the numbers are no positions; or a negative query is judged.
    """
    names = _paired(testset, qrels)
    notes = [f"judgments of {qrels.name}: {_count(qrels, names)} for {n_of(len(names), 'queries', _thousands)}"]
    if names and any(other_id != own_id for other_id, own_id in names.items()):
        notes.append("its query numbers are positions in the test set, counted from 1")
    judged = set(names.values())
    without = [query.id for query in testset.queries if query.id not in judged and query.negative is None]
    unknown = [query_id for query_id in qrels.query_ids if query_id not in names]
    if without:
        notes.append(
            f"{n_of(len(without), 'queries', _thousands)} of the test set not judged there: {some_ids(without)}"
        )
    if unknown:
        notes.append(
            f"{n_of(len(unknown), 'queries', _thousands)} judged there and not in the test set: {some_ids(unknown)}"
        )
    _refuse_negative(testset, qrels, judged)
    return replace(
        testset,
        grades={own_id: qrels.grades[other_id] for other_id, own_id in names.items() if other_id in qrels.grades},
        targets={own_id: qrels.targets[other_id] for other_id, own_id in names.items() if other_id in qrels.targets},
        groups={own_id: qrels.groups[other_id] for other_id, own_id in names.items() if other_id in qrels.groups},
        ratings={own_id: qrels.ratings[other_id] for other_id, own_id in names.items() if other_id in qrels.ratings},
        grouping=qrels.grouping,
        consensus=qrels.consensus,
        notes=(*testset.notes, *qrels.notes, *info(*notes)),
    )


def with_queries(testset: TestSet, queries: TestSet) -> TestSet:
    """A test set with the texts of another one, paired by query id.

    Args:
        testset: its judgments, strata and all else stay.
        queries: what `formats.sniff.read_queries` read.

    Returns:
        A test set whose notes name the queries that have no text now, and count the texts of unjudged queries.

    Raises:
        TestSetError: the two share no query.
    """
    texts = {query.id: query.text for query in queries.queries}
    shared = [query.id for query in testset.queries if query.id in texts]
    if not shared:
        raise TestSetError(_nothing_shared(testset, queries, "a text for at least one query of the test set"))
    notes = [f"texts of {queries.name}: for {n_of(len(shared), 'queries', _thousands)}"]
    without = [query.id for query in testset.queries if query.id not in texts and not query.text]
    unused = len(texts.keys() - set(shared))
    if without:
        notes.append(f"{n_of(len(without), 'queries', _thousands)} without a text: {some_ids(without)}")
    if unused:
        notes.append(f"{n_of(unused, 'texts', _thousands)} of no query in the test set, not used")
    named = tuple(replace(query, text=texts.get(query.id, query.text)) for query in testset.queries)
    return replace(testset, queries=named, notes=(*testset.notes, *queries.notes, *info(*notes)))


def _paired(testset: TestSet, qrels: TestSet) -> dict[str, str]:
    """Query id of the qrels to that of the set."""
    own_ids = set(testset.query_ids)
    names = {query_id: query_id for query_id in qrels.query_ids if query_id in own_ids}
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
        got=f"{some_ids(other.query_ids[:3])} beside {some_ids(testset.query_ids[:3])}",
    )


def _refuse_negative(testset: TestSet, qrels: TestSet, judged: set[str]) -> None:
    """Nothing can be expected of a query that should find nothing."""
    wrong = [query for query in testset.queries if query.negative is not None and query.id in judged]
    if wrong:
        raise TestSetError(
            f"{qrels.name} judges queries that are negative in the test set: {some_ids([query.id for query in wrong])}",
            expected="no judgment where nothing should be found",
            hint="take the lines out, or `negative` out of the test set",
        )


def _count(testset: TestSet, query_ids: Iterable[str]) -> str:
    """How much is judged for these queries."""
    n = sum(len(testset.grades.get(q, ())) + len(testset.targets.get(q, ())) for q in query_ids)
    return (
        n_of(n, "judgments", _thousands) if n else n_of(sum(map(len, testset.ratings.values())), "ratings", _thousands)
    )


def some_ids(ids: Sequence[str]) -> str:
    """The first query ids of many, and how many more there are."""
    texts = (shorten(query_id)[1:-1] if query_id.isprintable() else shorten(query_id) for query_id in ids)
    return first_of(texts, SHOWN_IDS, number=_thousands)
