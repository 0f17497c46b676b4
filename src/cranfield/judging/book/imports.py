"""Judgments of a file into a book: by the raters that the file names, or carried over where it names none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from cranfield.base.errors import Problem, UsageError, shorten
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import SCALES, BookSettings, GradeScale, scale_of
from cranfield.books.store.accounts import AccountInfo
from cranfield.books.store.rows import WITHOUT_PERSON
from cranfield.books.store.schema import Action, RaterKind
from cranfield.books.store.store import Store
from cranfield.books.store.values import BookInfo, ImportedJudgment
from cranfield.evaluation.testset.consensus import ratings_of
from cranfield.evaluation.testset.declared import scale_to_judge
from cranfield.formats.io.files import shown
from cranfield.formats.splice.trees import place_of_item
from cranfield.model import Query, Rating, TestSet
from cranfield.stats.consensus import CONSENSUS, DEFAULT_RULE

Unknown = Literal["error", "add", "skip"]
"""What is done with a document that the book does not have."""
CARRIED = RaterKind.CARRIED.value
NO_GUIDELINE = 0
"""The version of an imported judgment: no guidelines of this book."""
MAX_RATERS = 10
"""Most raters of an item that a book may ask for."""
DEFAULT_MOST = BookSettings.model_fields["most_raters"].default
WITHOUT_REASON = "adjudicated before the import"


@dataclass(frozen=True)
class Imported:
    """What an import came to."""

    n_new: int
    n_known: int
    """Judgments and adjudicated grades that an earlier import recorded."""
    n_added: int
    """Documents that were not in the book."""
    skipped: tuple[str, ...]
    """Queries and documents that the book does not have and that were left out."""
    n_final: int
    """Adjudicated grades."""


@dataclass(frozen=True, slots=True)
class _Judged:
    query: str
    """As the book calls it."""
    doc: str
    rater: str
    """Empty: not known."""
    rating: Rating


def import_judgments(
    store: Store, book: str | int, testset: TestSet, path: Path, *, by: int, unknown: Unknown = "error"
) -> Imported:
    """Record the judgments of a test set in a book, all or none; a second import of the same adds nothing.

    Args:
        store: the database.
        book: of the same queries, by id or text.
        testset: ratings by rater are those of persons; graded ids without a rater are carried over.
        path: of the test set, for problems.
        by: account that adds documents.
        unknown: what is done with documents that the book does not have; a query that it does not have is skipped with
            `skip`, else an error.

    Raises:
        UsageError: with every query, document and grade that the book does not have, each at its line.
    """
    info, testset = store.books.get(book), replace(testset, ratings=ratings_of(testset))
    names = _query_names(store, info, testset)
    known = {(item.query, item.doc): item.id for item in store.reading.items(info.id)}
    judged = list(_judged(testset, names))
    missing = dict.fromkeys((row.query, row.doc) for row in judged if (row.query, row.doc) not in known)
    problems = list(_problems(info.settings, testset, path, judged, names, missing, unknown))
    if problems:
        raise UsageError(problems)
    if unknown == "add":
        known |= {(query, doc): store.books.add_item(info.id, query, doc, {}, by) for query, doc in missing}
    kept = [row for row in judged if (row.query, row.doc) in known]
    accounts = _accounts(store, kept)
    rows = [_row(info.id, row, known, accounts[row.rater]) for row in kept]
    new = store.log.import_many(info.id, rows)
    n_final = sum(row.action is Action.ADJUDICATE for row in new)
    skipped = [] if unknown != "skip" else [query.id for query in testset.queries if query.id not in names]
    skipped += [f"{query} {doc}" for query, doc in missing] if unknown == "skip" else []
    n_added = len(missing) if unknown == "add" else 0
    return Imported(len(new) - n_final, len(rows) - len(new), n_added, tuple(skipped), n_final)


def _problems(
    settings: BookSettings,
    testset: TestSet,
    path: Path,
    judged: list[_Judged],
    names: Mapping[str, str],
    missing: Iterable[tuple[str, str]],
    unknown: Unknown,
) -> Iterator[Problem]:
    """Queries, documents and grades that the book does not have, and raters who adjudicate what they rate, at their lines."""
    texts = {query.id: (query.id, query.text) for query in testset.queries}
    ids = {name: query_id for query_id, name in names.items()}

    def problem(message: str, query_id: str, doc: str, **more: Any) -> Problem:
        return Problem(message, shown(path), *place_of_item(path, texts[query_id], doc), **more)

    for query in testset.queries:
        if query.id not in names and unknown != "skip":
            yield problem(f"query {shorten(query.id)} is not in the book", query.id, _first(testset, query.id))
    hint = {"hint": "{unknown=add} adds it, {unknown=skip} leaves it out", "parameters": ("unknown",)}
    for query_name, doc in missing if unknown == "error" else ():
        message = f"document {shorten(doc)} of query {shorten(query_name)} is not in the book"
        yield problem(message, ids[query_name], doc, **hint)
    grades = set(settings.scale.grades)
    rated = {(row.query, row.doc, row.rater) for row in judged if not row.rating.final}
    for row in judged:
        what = f"document {shorten(row.doc)} of query {shorten(row.query)}"
        if row.rating.grade not in grades:
            scale = ", ".join(map(str, settings.scale.grades))
            message = f"the grade of {what} is not on the scale of the book"
            yield problem(message, ids[row.query], row.doc, expected=scale, got=f"{row.rating.grade:g}")
        if row.rating.final and (row.query, row.doc, row.rater) in rated:
            yield problem(f"{shorten(row.rater)} both rates and adjudicates {what}", ids[row.query], row.doc)


def _first(testset: TestSet, query_id: str) -> str:
    """A document of a query."""
    rated = (rating.doc_id for rating in testset.ratings.get(query_id, ()))
    return next(iter((*testset.grades.get(query_id, {}), *rated)), "")


def _query_names(store: Store, info: BookInfo, testset: TestSet) -> dict[str, str]:
    """Query id in the file to the name in the book: by id, else by a text that one query has."""
    queries = store.reading.queries(info.id)
    by_text: dict[str, list[str]] = {}
    for query in queries:
        by_text.setdefault(query.text.strip(), []).append(query.name)
    names = {query.name for query in queries}

    def found(query: Query) -> str | None:
        if query.id in names:
            return query.id
        same = by_text.get(query.text.strip(), []) if query.text.strip() else []
        return same[0] if len(same) == 1 else None

    return {query.id: name for query in testset.queries if (name := found(query)) is not None}


def _judged(testset: TestSet, names: Mapping[str, str]) -> Iterator[_Judged]:
    """Ratings, and the grades of documents that have none; a grade under 0 is no judgment."""
    for query_id, name in names.items():
        rated = set()
        for rating in testset.ratings.get(query_id, ()):
            rated.add(rating.doc_id)
            if rating.grade is not None and rating.grade >= 0:
                yield _Judged(name, rating.doc_id, rating.rater, rating)
        for doc_id, grade in testset.grades.get(query_id, {}).items():
            if doc_id not in rated and grade >= 0:
                yield _Judged(name, doc_id, "", Rating(doc_id, "", grade))


def _accounts(store: Store, judged: list[_Judged]) -> dict[str, AccountInfo]:
    """Rater to account, of the kind that it has here; those that are not there are persons, without a password."""
    kinds = {kind.value: kind for kind in WITHOUT_PERSON}
    raters = dict.fromkeys(row.rater for row in judged)
    return {
        rater: store.people.of_file(rater or CARRIED, kinds.get(rater or CARRIED, RaterKind.PERSON)) for rater in raters
    }


def _row(book_id: int, row: _Judged, items: Mapping[tuple[str, str], int], account: AccountInfo) -> ImportedJudgment:
    carried = account.kind in {RaterKind.CARRIED, RaterKind.RULE}
    text = repr((book_id, row.query, row.doc, row.rater, row.rating.grade, row.rating.final))
    return ImportedJudgment(
        items[row.query, row.doc],
        account.id,
        f"import:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}",
        row.rating.grade,
        Action.ADJUDICATE if row.rating.final else Action.CARRY if carried else Action.GRADE,
        reason=row.rating.reason or (WITHOUT_REASON if row.rating.final else ""),
        at=row.rating.at,
        guideline_version=NO_GUIDELINE,
    )


def book_of(store: Store, name: str, testset: TestSet) -> BookInfo:
    """A new book of the queries and documents of a test set, for its judgments to be imported."""
    testset = replace(testset, ratings=ratings_of(testset))
    judged = {
        query.id: dict.fromkeys(
            (*testset.grades.get(query.id, {}), *(rating.doc_id for rating in testset.ratings.get(query.id, ())))
        )
        for query in testset.queries
    }
    pool = Pool(
        name=testset.name,
        method="depth",
        depth=max(1, *map(len, judged.values())),
        testset=testset.name,
        testset_digest=testset.digest,
        runs=(),
        queries=tuple(
            PooledQuery(id=query.id, text=query.text, strata={k: str(v) for k, v in query.strata.items()})
            for query in testset.queries
        ),
        items=tuple(PooledItem(query=query_id, doc=doc) for query_id, docs in judged.items() for doc in sorted(docs)),
    )
    rule = testset.consensus if testset.consensus in CONSENSUS else DEFAULT_RULE
    counts = Counter((query_id, r.doc_id) for query_id, given in testset.ratings.items() for r in given if not r.final)
    raters = min(max(counts.values(), default=1), MAX_RATERS)
    settings = BookSettings(
        scale=scale_for(testset), consensus=rule, raters_per_item=raters, most_raters=max(raters, DEFAULT_MOST)
    )
    return store.books.create(name, pool, settings)


def scale_for(testset: TestSet) -> GradeScale:
    """The declared scale of a test set, or the smallest named one with all its grades.

    Raises:
        UsageError: no scale of a book has them.
    """
    rated = {r.grade for given in testset.ratings.values() for r in given if r.grade is not None}
    graded = {grade for judged in testset.grades.values() for grade in judged.values()}
    given = {grade for grade in rated or graded if grade >= 0}
    if scale := scale_to_judge(testset):
        return scale_of(scale)
    fitting = (scale for scale in SCALES.values() if given <= set(scale.grades))
    return next(fitting, None) or scale_of(sorted(given))
