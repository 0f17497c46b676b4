"""Everything that a book holds, read once: the pure functions of this folder take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cranfield.books.store.schema import RaterKind
from cranfield.books.store.store import Store
from cranfield.books.store.values import (
    BookInfo,
    FrozenInfo,
    GuidelineInfo,
    ItemView,
    Json,
    QueryInfo,
)


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
