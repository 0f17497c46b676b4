"""Empty databases on SQLite and on PostgreSQL, stores on them, and a clock that is set by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from cranfield.books.store.store import Store, open_store

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


@pytest.fixture(scope="session")
def shared_clock() -> HandClock:
    return HandClock()


@pytest.fixture
def clock(shared_clock: HandClock) -> HandClock:
    shared_clock.now = HandClock().now
    return shared_clock


@pytest.fixture(scope="session")
def empty_database(make_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A SQLite file with all tables: copy it."""
    return make_once("empty-books", lambda folder: open_store(folder / "books.db").close()) / "books.db"


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The address of a server with a database `books` to copy."""
    execute(postgres_server, "CREATE DATABASE books")
    open_store(postgres_server.replace("/postgres?", "/books?")).close()
    return postgres_server


def execute(address: str, statement: str) -> None:
    """Execute a statement that creates or drops a database of PostgreSQL."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture
def sqlite_address(empty_database: Path, tmp_path: Path) -> str:
    """A database without anything, on SQLite."""
    return shutil.copy(empty_database, tmp_path / "books.db").as_posix()


@pytest.fixture
def postgres_address(postgres_template: str) -> Iterator[str]:
    """A database without anything, on PostgreSQL."""
    name = f"books{next(NAMES)}"
    execute(postgres_template, f"CREATE DATABASE {name} TEMPLATE books")
    yield postgres_template.replace("/postgres?", f"/{name}?")
    execute(postgres_template, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=ENGINES)
def address(request: pytest.FixtureRequest) -> str:
    """A database without anything, on each engine."""
    return request.getfixturevalue("sqlite_address" if request.param == "sqlite" else "postgres_address")


@pytest.fixture(scope="session")
def renew_sqlite(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory, shared_clock: HandClock
) -> Callable[[], Store]:
    """Give the store, whose file is a new one: the engine stays, since it compiles each statement once."""
    path = tmp_path_factory.mktemp("books") / "books.db"
    store = open_store(shutil.copy(empty_database, path), clock=shared_clock)

    def renew() -> Store:
        store.close()
        shutil.copy(empty_database, path)
        return store

    return renew


@pytest.fixture(scope="session")
def renew_postgres(postgres_template: str, shared_clock: HandClock) -> Callable[[], Store]:
    """Give the store, whose database is a new one."""
    execute(postgres_template, "CREATE DATABASE one_test TEMPLATE books")
    store = open_store(postgres_template.replace("/postgres?", "/one_test?"), clock=shared_clock)

    def renew() -> Store:
        store.close()
        execute(postgres_template, "DROP DATABASE one_test WITH (FORCE)")
        execute(postgres_template, "CREATE DATABASE one_test TEMPLATE books")
        return store

    return renew


@pytest.fixture
def sqlite_store(renew_sqlite: Callable[[], Store], clock: HandClock) -> Iterator[Store]:
    """A store without anything, on SQLite; its time is that of `clock`."""
    opened = renew_sqlite()
    yield opened
    opened.close()


@pytest.fixture
def postgres_store(renew_postgres: Callable[[], Store], clock: HandClock) -> Iterator[Store]:
    """A store without anything, on PostgreSQL; its time is that of `clock`."""
    opened = renew_postgres()
    yield opened
    opened.close()


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest) -> Store:
    """A store without anything, on each engine."""
    return request.getfixturevalue("sqlite_store" if request.param == "sqlite" else "postgres_store")
