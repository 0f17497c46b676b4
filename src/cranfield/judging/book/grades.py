"""The grades of a book as a test set with ratings.

Of each document one source decides: adjudication, else the persons' ratings by the consensus rule, else judgments carried
over, else the rule (a pattern, span, entity or predicate), else models, where they are asked for. What lower sources say
otherwise is listed. A document without a grade is pooled and unjudged (-1), never 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from cranfield.base.errors import UsageError
from cranfield.books.settings import Mode
from cranfield.books.store.names import ADJUDICATOR, GOLD
from cranfield.books.store.schema import Action, Origin, RaterKind
from cranfield.books.store.store import Store
from cranfield.books.store.values import BookInfo, FrozenInfo, GuidelineInfo, ItemView, Json, QueryInfo, RatingRow
from cranfield.evaluation.testset.consensus import on_other_scale, with_consensus
from cranfield.model import Hit, MatchingRules, Meta, Query, Rating, TestSet


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
