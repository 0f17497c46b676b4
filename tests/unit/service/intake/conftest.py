"""Production queries in a database of their own, on both engines; the time is set by hand."""

import shutil
from itertools import count

import pytest

from cranfield.config.intake import Intake
from cranfield.judging.store.database import open_store
from cranfield.service.intake.intake import Taking
from cranfield.service.store.queries import Queries

NOON = 1_795_435_200_000  # 2026-11-23 12:00 UTC
NAMES = count(1)


@pytest.fixture(scope="session")
def empty_service(make_once):
    return make_once("empty-service", lambda folder: open_store(folder / "books.db").close()) / "books.db"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request, tmp_path):
    if request.param == "sqlite":
        place = str(shutil.copy(request.getfixturevalue("empty_service"), tmp_path / "books.db"))
    else:
        import psycopg

        server, name = request.getfixturevalue("postgres_server"), f"intake{next(NAMES)}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        place = server.replace("/postgres?", f"/{name}?")
    opened = open_store(place, clock=lambda: NOON)
    yield opened
    opened.close()


@pytest.fixture
def queries(store):
    return Queries(store.database, store.clock)


@pytest.fixture
def taking(queries):
    """An intake from a source; a new one for each call, as for each command."""
    return lambda source="shop", **config: Taking(queries, Intake(**config), source, lambda: NOON)
