"""How far books are, and their raters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import BookState, RaterKind
from cranfield.books.store.store import Store
from cranfield.books.store.values import BookInfo, Coverage, Json, JudgingProgress
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.book.grades import SourceDifference
from cranfield.measures import Measure
from cranfield.model.results import Record, TestSetRecord


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
