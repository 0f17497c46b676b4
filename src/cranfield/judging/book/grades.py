"""The grades of a book as a test set with ratings.

Of each document one source decides: adjudication, else the persons' ratings by the consensus rule, else judgments carried
over, else the rule (a pattern, span, entity or predicate), else models, where they are asked for. What lower sources say
otherwise is listed. A document without a grade is pooled and unjudged (-1), never 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cranfield.base.errors import Problem, TestSetError, UsageError, shorten
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import BookSettings, Mode
from cranfield.books.store.rows import ADJUDICATOR, GOLD
from cranfield.books.store.schema import Action, BookState, Origin, RaterKind
from cranfield.books.store.store import Store
from cranfield.books.store.values import (
    BookInfo,
    Coverage,
    FrozenInfo,
    GuidelineInfo,
    ItemView,
    Json,
    JudgingProgress,
    QueryInfo,
    RatingRow,
)
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.testset.consensus import on_other_scale, with_consensus
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.book.imports import scale_for
from cranfield.judging.refresh.files import N_RATERS, Labels, RatedDocument
from cranfield.judging.refresh.refresh import RefreshPlan
from cranfield.measures import Measure
from cranfield.model import Hit, MatchingRules, Meta, Query, Rating, TestSet
from cranfield.model.results import Record, TestSetRecord


@dataclass(frozen=True)
class BookContents:
    """A book at one moment."""

    info: BookInfo
    queries: tuple[QueryInfo, ...]
    items: tuple[ItemView, ...]
    """Without hidden repeats, by query and document."""
    guidelines: tuple[GuidelineInfo, ...]
    models: Mapping[str, Json] = field(default_factory=dict)
    """Name of a model that rates to its settings."""
    frozen: tuple[FrozenInfo, ...] = ()


def contents_of(store: Store, book: str | int) -> BookContents:
    """Read a book.

    Raises:
        UnknownNameError: there is no such book.
    """
    info = store.books.get(book)
    items = store.reading.items(info.id)
    rows = [row for item in items for row in item.ratings]
    names = {row.rater for row in rows if row.kind is RaterKind.MODEL}
    return BookContents(
        info,
        store.reading.queries(info.id),
        items,
        store.books.guidelines(info.id),
        {name: store.people.get(name).settings for name in sorted(names)},
        store.books.frozen(info.id),
    )


UNJUDGED = -1.0
PRECEDENCE = (RaterKind.PERSON, RaterKind.CARRIED, RaterKind.RULE, RaterKind.MODEL)
"""Sources of a grade; the first that has one decides. An adjudicated grade is before them all."""


@dataclass(frozen=True, slots=True)
class SourceDifference:
    """A source that gives a document another grade than the one that decides."""

    query_id: str
    doc_id: str
    grade: float
    """The one that holds."""
    decided_by: str
    """`adjudicated`, or a kind of rater."""
    other: float
    rater: str
    kind: RaterKind


@dataclass(frozen=True)
class RatedBook:
    """A book as a test set."""

    testset: TestSet
    """Ratings of the sources that decide, grades by the rule, -1 for what is pooled and has none."""
    decided_by: Mapping[tuple[str, str], str]
    """Query and document to `adjudicated` or a kind of rater; without the documents that have no grade."""
    differences: tuple[SourceDifference, ...]
    left_out: int
    """Calibration items that are not in the pool."""


def require_grades(book: BookInfo) -> None:
    """Refuse a book of preferences or reviews.

    Raises:
        UsageError: its judgments are no grades of documents.
    """
    contents = {Mode.PREFERENCE: "preferences between lists", Mode.REVIEW: "reviews of records"}
    if book.settings.mode in contents:
        raise UsageError(f"book {book.name!r} contains {contents[book.settings.mode]}", expected="a book of grades")


def rated_book(
    contents: BookContents,
    *,
    rule: str | None = None,
    to: str | None = None,
    models: bool = False,
    without: Collection[str] = (),
    adjudicated: bool = True,
    reasons: bool = False,
) -> RatedBook:
    """Make the test set of a book.

    Args:
        contents: the book.
        rule: consensus rule of the persons' ratings; None is that of the book.
        to: scale or map that each rating is mapped to first.
        models: whether the grade of a model counts where nothing else gives one.
        without: raters who are left out.
        adjudicated: whether grades by adjudication count.
        reasons: whether reasons and times go along.

    Raises:
        UnknownNameError: there is no such rule.
        UsageError: a book of preferences or reviews, which have no grades of documents.
    """
    require_grades(contents.info)
    pooled = [item for item in contents.items if item.origin is not Origin.CALIBRATION]
    ratings: dict[str, list[Rating]] = {}
    sources: dict[tuple[str, str], str] = {}
    for item in pooled:
        rows = [row for row in item.ratings if row.rater not in without]
        found, source = _deciding(item, rows, models=models, adjudicated=adjudicated, reasons=reasons)
        if source:
            sources[item.query, item.doc] = source
            ratings.setdefault(item.query, []).extend(found)
    bare = TestSet(
        contents.info.name,
        tuple(Query(row.name, row.text, dict(row.strata)) for row in contents.queries),
        _all_unjudged(pooled),
        ratings={query_id: tuple(given) for query_id, given in ratings.items()},
        consensus=rule or contents.info.settings.consensus,
        matching=MatchingRules(places=any(hit_of(item).id != item.doc for item in pooled)),
        meta=Meta(scale=tuple(map(float, contents.info.settings.scale.grades))),
    )
    made = with_consensus(bare) if any(bare.ratings.values()) else bare
    testset = made if to is None else on_other_scale(bare, to)
    decided = {pair: source for pair, source in sources.items() if testset.grades[pair[0]][pair[1]] >= 0}
    differences = tuple(_differences(pooled, made, decided))
    return RatedBook(testset, decided, differences, len(contents.items) - len(pooled))


def hit_of(item: ItemView) -> Hit:
    """The result that a document of a pool was: of `src/a.rs:12-40` the file and its lines, where the run had them apart."""
    span = item.fields.get("span")
    lines = f":{span}" if isinstance(span, str) and span else ""
    if not lines or not item.doc.endswith(lines) or len(lines) == len(item.doc):
        return Hit(item.doc)
    return Hit(item.doc.removesuffix(lines), span=lines[1:])


def people_grades(contents: BookContents) -> dict[str, dict[str, float]]:
    """Query id to document id to the grade by persons, adjudicated where it is, by the book's rule; ties are left out."""
    rated = rated_book(contents)
    found: dict[str, dict[str, float]] = {}
    for (query_id, doc_id), source in rated.decided_by.items():
        if source in {Action.ADJUDICATE, RaterKind.PERSON}:
            found.setdefault(query_id, {})[doc_id] = rated.testset.grades[query_id][doc_id]
    return found


def _all_unjudged(items: Collection[ItemView]) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = {}
    for item in items:
        grades.setdefault(item.query, {})[item.doc] = UNJUDGED
    return grades


def _deciding(
    item: ItemView,
    rows: list[RatingRow],
    *,
    models: bool,
    adjudicated: bool,
    reasons: bool,
) -> tuple[list[Rating], str]:
    """The ratings of the source that decides, those of persons in any case, and the source; empty where there is none."""

    def rating(row: RatingRow) -> Rating:
        more = (row.reason, row.at) if reasons else ("", None)
        return Rating(item.doc, row.rater, row.grade, False, *more)

    persons = [row for row in rows if row.kind is RaterKind.PERSON and row.action in {Action.GRADE, Action.SKIP}]
    made = [rating(row) for row in persons]
    final = _final(item, reasons=reasons) if adjudicated else None
    if final is not None:
        return [*made, final], Action.ADJUDICATE
    kinds = PRECEDENCE if models else PRECEDENCE[:-1]
    for kind in kinds:
        graded = [row for row in rows if row.kind is kind and row.grade is not None]
        if graded:
            return (made if kind is RaterKind.PERSON else [*made, *map(rating, graded)]), kind
    return made, RaterKind.PERSON if made else ""


def _final(item: ItemView, *, reasons: bool) -> Rating | None:
    """The adjudicated grade of an item, or the known one of a calibration item that is in the pool."""
    if item.final is not None:
        more = (item.final_reason or "", item.final_at) if reasons else ("", None)
        return Rating(item.doc, item.final_by or ADJUDICATOR, item.final, True, *more)
    if item.gold is not None:
        return Rating(item.doc, GOLD, item.gold, final=True, reason=item.gold_reason if reasons else "")
    return None


def _differences(
    items: Collection[ItemView], testset: TestSet, decided: Mapping[tuple[str, str], str]
) -> Iterator[SourceDifference]:
    """What every source says otherwise than the one that decides; single persons are no sources."""
    for item in items:
        source = decided.get((item.query, item.doc))
        grade = testset.grades[item.query][item.doc]
        for row in item.ratings:
            if source is None or row.grade is None or row.kind in {RaterKind.PERSON, source} or row.grade == grade:
                continue
            yield SourceDifference(item.query, item.doc, grade, source, row.grade, row.rater, row.kind)


@dataclass(frozen=True, slots=True)
class BookRecord:
    """A book."""

    name: str
    state: BookState
    settings: BookSettings
    source: Json
    """Source of the pool: `name`, `method`, `depth`, `seed`, `testset`, `testset_digest`, `scale`, `runs`."""
    created_at: datetime
    n_queries: int
    guideline_version: int

    @classmethod
    def of(cls, book: BookInfo) -> BookRecord:
        """The record of a book."""
        made = datetime.fromtimestamp(book.created_at / 1000, UTC)
        return cls(book.name, book.state, book.settings, book.source, made, book.n_queries, book.guideline_version)


@dataclass(frozen=True, slots=True)
class RaterProgress:
    """How far a rater is."""

    name: str
    kind: RaterKind
    progress: JudgingProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class BookProgress(Record):
    """How far a book is."""

    book: BookRecord
    coverage: Coverage
    raters: tuple[RaterProgress, ...]


@dataclass(frozen=True, slots=True)
class CoveredBook:
    """A book in a list."""

    book: BookRecord
    coverage: Coverage


@dataclass(frozen=True, slots=True, kw_only=True)
class BookList(Record):
    """The books of a database."""

    database: str
    books: tuple[CoveredBook, ...]


def book_progress(store: Store, name: str) -> BookProgress:
    """How far a book is.

    Raises:
        UnknownNameError: there is no such book.
    """
    book = store.books.get(name)
    raters = (
        RaterProgress(each.account.name, each.account.kind, store.reading.progress(book.id, each.account.id))
        for each in store.people.members(book.id)
    )
    return BookProgress(book=BookRecord.of(book), coverage=store.reading.coverage(book.id), raters=tuple(raters))


def all_books(store: Store) -> BookList:
    """All books of a database."""
    books = tuple(CoveredBook(BookRecord.of(book), store.reading.coverage(book.id)) for book in store.books.all())
    return BookList(database=store.where, books=books)


@dataclass(frozen=True, slots=True)
class BothMeans:
    """The means of two runs."""

    baseline: float | None
    candidate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookSensitivity(Record):
    """The declared comparison, and it repeated."""

    testset: TestSetRecord
    """By the declared rule, with adjudicated grades and all raters."""
    rule: str
    baseline: str
    candidate: str
    measure: Measure
    verdict: VerdictCode
    sentence: str
    line: str
    """`Verdict unchanged under 8 of 8 (5 consensus rules, 3 without one of the raters)`."""
    n_unchanged: int
    sensitivity: Sensitivity
    """Each rule, the declared one among them, and each rater left out."""
    means: tuple[BothMeans, ...]
    """Means of each variation, in its order."""
    differences: tuple[SourceDifference, ...]


def refresh_pool(plan: RefreshPlan, candidates: Mapping[str, Sequence[str]], depth: int) -> Pool:
    """The new queries and the documents to grade for each.

    Raises:
        UsageError: a new query without a document to grade.
    """
    bare = [query.id for query in plan.new if not candidates.get(query.id)]
    if bare:
        raise UsageError(
            [Problem(f"no run has results for the new query {shorten(query_id)}") for query_id in bare],
        )
    return Pool(
        name=f"refresh of {plan.testset.name}",
        method="depth",
        depth=depth,
        seed=plan.seed,
        testset=plan.testset.name,
        testset_digest=plan.testset.digest,
        scale=plan.testset.meta.scale,
        runs=(),
        queries=tuple(PooledQuery(id=query.id, text=query.text) for query in plan.new),
        items=tuple(PooledItem(query=query.id, doc=doc) for query in plan.new for doc in candidates[query.id]),
    )


def refresh_settings(plan: RefreshPlan, kappa_limit: float, rule: str) -> BookSettings:
    """Two raters of each document, on the scale of the set."""
    return BookSettings(
        scale=scale_for(plan.testset),
        raters_per_item=N_RATERS,
        most_raters=N_RATERS,
        kappa_limit=kappa_limit,
        consensus=rule,
        seed=plan.seed,
    )


def labels_of(contents: BookContents, where: str) -> Labels:
    """The grades of a book as the labels of a refresh.

    Args:
        contents: the book.
        where: the database, for problems.

    Raises:
        TestSetError: it has no two raters, or a document that one of them did not grade; all at once.
    """
    items = [item for item in contents.items if item.origin is not Origin.CALIBRATION]
    grades = {
        item.id: {
            row.rater: row.grade for row in item.ratings if row.kind is RaterKind.PERSON and row.grade is not None
        }
        for item in items
    }
    raters = sorted({rater for given in grades.values() for rater in given})
    name = contents.info.name
    if len(raters) != N_RATERS:
        raise TestSetError(
            f"book {name!r} has the grades of {len(raters)} raters",
            path=where,
            expected=f"those of {N_RATERS}",
            got=", ".join(raters) or None,
        )
    problems = [
        Problem(f"no grade of document {shorten(item.doc)} of query {shorten(item.query)} by {rater}", path=where)
        for item in items
        for rater in raters
        if rater not in grades[item.id]
    ]
    if problems:
        raise TestSetError(problems)
    first, second = raters
    rows = tuple(
        RatedDocument(place, item.query, item.doc, tuple(grades[item.id][rater] for rater in raters))
        for place, item in enumerate(items, start=1)
    )
    final: dict[str, tuple[Rating, ...]] = {}
    for item in items:
        if item.final is not None:
            rating = Rating(item.doc, item.final_by or ADJUDICATOR, item.final, final=True)
            final[item.query] = (*final.get(item.query, ()), rating)
    return Labels(where, (first, second), rows, adjudicated=final)
