"""Books and their progress, as Documents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cranfield.reporting.document import Cell, Column, Document, KeyValues, Section, Table, tidy_table
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.judging.store.accounts import MemberInfo
    from cranfield.judging.store.values import BookInfo, Coverage, Progress

QUERIES_SHOWN = 20


def books_document(where: str, books: Sequence[tuple[BookInfo, Coverage]]) -> Document:
    """All books of a database, a row each."""
    heading = ("book", "state", "queries", "documents", "judged", "unjudged", "to adjudicate")
    rows: list[tuple[Cell, ...]] = [
        (
            book.name,
            book.state.value,
            book.n_queries,
            coverage.n_items,
            coverage.judged_lowest + coverage.judged_higher,
            coverage.unjudged,
            sum(query.n_adjudicate for query in coverage.queries),
        )
        for book, coverage in books
    ]
    kinds = (Column("book", "code"), Column("state"), *(Column(title, "count") for title in heading[2:]))
    return Document(
        title="Books",
        subtitle=(f"{where}: {n_of(len(books), 'books')}",),
        sections=(Section("books", "Books", (Table(kinds, rows, "All", shown=None),)),) if rows else (),
        tidy=lambda: tidy_table(heading, rows),
        payload=lambda: {"schema_version": 1, "books": [_about(book) | _counts(coverage) for book, coverage in books]},
    )


def book_document(book: BookInfo, coverage: Coverage, raters: Sequence[tuple[MemberInfo, Progress]]) -> Document:
    """How far a book is."""
    headings = ("query", "text", "documents", "judged", "done", "to adjudicate")
    rows: list[tuple[Cell, ...]] = [
        (query.query, query.text, query.n_items, query.n_judged, query.n_done, query.n_adjudicate)
        for query in coverage.queries
    ]
    kinds = (Column("query", "query id"), Column("text"), *(Column(title, "count") for title in headings[2:]))
    queries = Section("queries", "Queries", (Table(kinds, rows, "Documents of each query", shown=QUERIES_SHOWN),))
    scale, made = book.settings.scale, datetime.fromtimestamp(book.created_at / 1000, UTC)
    return Document(
        title=f"Book {book.name}",
        subtitle=(
            (
                f"{book.state.value}, {book.settings.mode.value}, scale {scale.name} ({', '.join(map(str, scale.grades))}), "
                f"guidelines version {book.guideline_version}, made on {made:%Y-%m-%d}"
            ),
        ),
        sections=(Section("coverage", "Coverage", (_coverage(coverage),)), *_raters(raters), queries),
        tidy=lambda: tidy_table(headings, rows),
        payload=lambda: {"schema_version": 1, **_about(book), **_counts(coverage), "raters": _rater_records(raters)},
    )


def _coverage(coverage: Coverage) -> KeyValues:
    states = ", ".join(f"{n} {state.value}" for state, n in coverage.states.items() if n)
    grades = ", ".join(f"{n} by {persons}" for persons, n in coverage.by_persons.items())
    kinds = ", ".join(f"{n} {kind.value}" for kind, n in coverage.by_kind.items() if n)
    counts = {
        "skipped": coverage.n_skipped,
        "flagged items": coverage.n_flagged,
        "stale judgments": coverage.n_stale,
        "judgments without a slot": coverage.n_extra,
        "no rater is left for": coverage.n_needs_rater,
    }
    return KeyValues(
        (
            ("documents", str(coverage.n_items)),
            ("judged higher than lowest", str(coverage.judged_higher)),
            ("judged the lowest grade", str(coverage.judged_lowest)),
            ("unjudged", str(coverage.unjudged)),
            ("states", states or "none"),
            ("by number of persons", grades or "none"),
            ("grades by kind", kinds or "none"),
            ("slots filled", f"{coverage.n_slots_done} of {coverage.n_slots}; {coverage.n_leased} leased"),
            *((name, str(n)) for name, n in counts.items() if n),
        )
    )


def _raters(raters: Sequence[tuple[MemberInfo, Progress]]) -> tuple[Section, ...]:
    rows: list[tuple[Cell, ...]] = [
        (
            member.account.name,
            progress.n_done,
            progress.n_left,
            progress.n_skipped,
            progress.n_later,
            progress.median_ms,
        )
        for member, progress in raters
    ]
    counts = (Column(title, "count") for title in ("done", "left", "skipped", "later"))
    columns = (Column("rater"), *counts, Column("median time", "ms"))
    return (Section("raters", "Raters", (Table(columns, rows, "Items of each rater", shown=None),)),) if rows else ()


def _about(book: BookInfo) -> dict[str, Any]:
    return {
        "name": book.name,
        "state": book.state.value,
        "guideline_version": book.guideline_version,
        "settings": book.settings.model_dump(mode="json"),
        "source": book.source,
    }


def _counts(coverage: Coverage) -> dict[str, Any]:
    names = ("n_slots", "n_slots_done", "n_leased", "n_extra", "n_skipped", "n_flagged", "n_stale", "n_needs_rater")
    return {
        "n_documents": coverage.n_items,
        "judged_lowest": coverage.judged_lowest,
        "judged_higher": coverage.judged_higher,
        "unjudged": coverage.unjudged,
        "states": {state.value: n for state, n in coverage.states.items()},
        "by_persons": {str(persons): n for persons, n in coverage.by_persons.items()},
        "by_kind": {kind.value: n for kind, n in coverage.by_kind.items()},
        **{name: getattr(coverage, name) for name in names},
        "queries": [
            {"query": query.query, "n_documents": query.n_items, "n_judged": query.n_judged, "n_done": query.n_done}
            for query in coverage.queries
        ],
    }


def _rater_records(raters: Sequence[tuple[MemberInfo, Progress]]) -> list[dict[str, Any]]:
    return [
        {
            "name": member.account.name,
            "kind": member.account.kind.value,
            "n_done": progress.n_done,
            "n_left": progress.n_left,
            "n_skipped": progress.n_skipped,
            "n_later": progress.n_later,
            "median_ms": progress.median_ms,
        }
        for member, progress in raters
    ]
