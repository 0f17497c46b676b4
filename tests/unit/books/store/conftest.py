"""A book with raters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.unit.conftest import NAMES, HandClock

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import BookSettings
from cranfield.books.store.accounts import AccountInfo
from cranfield.books.store.schema import Action, Role
from cranfield.books.store.store import Store
from cranfield.books.store.values import Assignment, BookInfo, ItemFilter, ItemView, SavedJudgment, SaveRequest


def pool_of(n_queries: int = 2, n_docs: int = 3, **fields: dict[str, dict[str, object]]) -> Pool:
    """Queries q0, q1, ... with documents a, b, ...; `fields` of items by `q0a`."""
    queries = tuple(PooledQuery(id=f"q{number}", text=f"text {number}") for number in range(n_queries))
    items = tuple(
        PooledItem(query=query.id, doc=doc, **fields.get(query.id + doc, {}))
        for query in queries
        for doc in (chr(97 + place) if place < 26 else f"d{place}" for place in range(n_docs))
    )
    return Pool(name="pool", method="depth", depth=10, runs=(), queries=queries, items=items)


@dataclass
class Desk:
    """A book and its raters, with short calls."""

    store: Store
    clock: HandClock
    book: BookInfo
    raters: dict[str, AccountInfo] = field(default_factory=dict)

    def rater(self, name: str, quota: int | None = None) -> int:
        if name not in self.raters:
            self.raters[name] = self.store.people.find(name) or self.store.people.add(name)
            self.store.people.join(self.book.id, self.raters[name].id, quota)
        return self.raters[name].id

    def next(self, name: str, n: int = 5, holding: tuple[int, ...] = ()) -> tuple[Assignment, ...]:
        return self.store.queue.next_items(self.book.id, self.rater(name), n, holding=holding)

    def save(
        self, name: str, item: int, action: Action = Action.GRADE, key: str | None = None, **fields
    ) -> SavedJudgment:
        key = key or f"key {next(NAMES)}"
        return self.store.log.save(SaveRequest(self.book.id, item, self.rater(name), action, key, **fields))

    def grade(self, name: str, item: int, grade: float, **fields) -> SavedJudgment:
        return self.save(name, item, grade=grade, **fields)

    def judge_all(self, name: str, grade: Callable[[Assignment], float] = lambda _: 1, most: int = 1000) -> list[int]:
        """What a rater is given, in order, until nothing is left."""
        seen: list[int] = []
        while len(seen) < most and (given := self.next(name, 1)):
            seen.append(given[0].item_id)
            self.grade(name, given[0].item_id, grade(given[0]))
        return seen

    def item(self, query: str, doc: str) -> ItemView:
        (found,) = [item for item in self.store.reading.items(self.book.id, ItemFilter(query=query)) if item.doc == doc]
        return found

    def state(self, item: int) -> str:
        return self.store.reading.item(item).state.value


@pytest.fixture
def address_of_store(store: Store) -> str:
    """Of the database of `store`, for another program."""
    return store.database.url.render_as_string(hide_password=False).replace("sqlite:///", "sqlite:")


@pytest.fixture
def desk_of(store: Store, clock: HandClock) -> Callable[..., Desk]:
    """A book of a pool, by default of two queries with three documents each, with settings."""

    def make(pool: Pool | None = None, **settings: object) -> Desk:
        book = store.books.create(f"book {next(NAMES)}", pool or pool_of(), BookSettings(**settings))
        return Desk(store, clock, book)

    return make


@pytest.fixture
def lead(store: Store) -> int:
    return store.people.add("lead", Role.LEAD).id
