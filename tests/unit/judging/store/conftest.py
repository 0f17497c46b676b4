"""A store on SQLite and on PostgreSQL, a clock that is set by hand, and a book with raters."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from cranfield.judging.pools.pool_file import Pool, PooledItem, PooledQuery
from cranfield.judging.settings import BookSettings
from cranfield.judging.store.accounts import AccountInfo
from cranfield.judging.store.database import open_store
from cranfield.judging.store.schema import Action, Role
from cranfield.judging.store.store import Store
from cranfield.judging.store.values import Assignment, BookInfo, ItemFilter, ItemView, Saved, SaveRequest

ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
NAMES = count(1)


class HandClock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


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

    def save(self, name: str, item: int, action: Action = Action.GRADE, key: str | None = None, **fields) -> Saved:
        key = key or f"key {next(NAMES)}"
        return self.store.log.save(SaveRequest(self.book.id, item, self.rater(name), action, key, **fields))

    def grade(self, name: str, item: int, grade: float, **fields) -> Saved:
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


@pytest.fixture(scope="session")
def shared_clock() -> HandClock:
    return HandClock()


@pytest.fixture
def clock(shared_clock: HandClock) -> HandClock:
    shared_clock.now = HandClock().now
    return shared_clock


@pytest.fixture(scope="session")
def empty_books(make_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A SQLite file with the tables of books: copy it."""
    return make_once("empty-books", lambda folder: open_store(folder / "books.db").close()) / "books.db"


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The address of a server with a database `books` to copy."""
    _postgres(postgres_server, "CREATE DATABASE books")
    open_store(postgres_server.replace("/postgres?", "/books?")).close()
    return postgres_server


def _postgres(address: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture
def sqlite_address(empty_books: Path, tmp_path: Path) -> str:
    return shutil.copy(empty_books, tmp_path / "books.db").as_posix()


@pytest.fixture(params=ENGINES)
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database of books."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_address")
        return
    server, name = request.getfixturevalue("postgres_template"), f"books{next(NAMES)}"
    _postgres(server, f"CREATE DATABASE {name} TEMPLATE books")
    yield server.replace("/postgres?", f"/{name}?")
    _postgres(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def sqlite_store(
    empty_books: Path, tmp_path_factory: pytest.TempPathFactory, shared_clock: HandClock
) -> Callable[[], Store]:
    """Give the store, whose file is a new one: the engine stays, since it compiles each statement once."""
    path = tmp_path_factory.mktemp("books") / "books.db"
    store = open_store(shutil.copy(empty_books, path), clock=shared_clock)

    def renew() -> Store:
        store.close()
        shutil.copy(empty_books, path)
        return store

    return renew


@pytest.fixture(scope="session")
def postgres_store(postgres_template: str, shared_clock: HandClock) -> Callable[[], Store]:
    """Give the store, whose database is a new one."""
    _postgres(postgres_template, "CREATE DATABASE one_test TEMPLATE books")
    store = open_store(postgres_template.replace("/postgres?", "/one_test?"), clock=shared_clock)

    def renew() -> Store:
        store.close()
        _postgres(postgres_template, "DROP DATABASE one_test WITH (FORCE)")
        _postgres(postgres_template, "CREATE DATABASE one_test TEMPLATE books")
        return store

    return renew


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, clock: HandClock) -> Iterator[Store]:
    """A store without books or accounts."""
    name = "sqlite_store" if request.param == "sqlite" else "postgres_store"
    opened = request.getfixturevalue(name)()
    yield opened
    opened.close()


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
