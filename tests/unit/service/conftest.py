"""A service on SQLite and on PostgreSQL, a clock that is set by hand, and a project with systems that count their calls."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from cranfield.judging.store.database import open_store
from cranfield.judging.store.store import Store
from cranfield.service.service import Service, open_service

ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
NUMBERS = count(1)
TESTSET = """cranfield_testset: 1
name: help
queries:
  - {id: q1, text: open file, strata: {kind: easy}, judgments: {p1: 1}}
  - {id: q2, text: sort list, strata: {kind: easy}, judgments: {p2: 1}}
  - {id: q3, text: parse json, strata: {kind: hard}, judgments: {p3: 1}}
"""
CONFIG = r"""testset: help.yaml
k: 3
measures: [RR, nDCG@10]
gate: {rules: [floor: {measure: RR, at_least: 0.6}, failures: {at_most: 0}]}
candidate: search
baseline: old
systems:
  old: {run: old.run}
  search:
    command: [sh, search.sh, "{query}", "{params.components}"]
    components: [title, body]
    extract: {regex: 'p\d'}
"""
SEARCH = """echo "$1" >> calls.txt
case "$2" in *title*) echo p1;; esac
echo p2
"""
OLD_RUN = "q1 Q0 p1 1 2.0 old\nq2 Q0 p9 1 2.0 old\nq3 Q0 p9 1 2.0 old\nq3 Q0 p3 2 1.0 old\n"


class HandClock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(scope="session")
def empty_database(make_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A SQLite file with all tables: copy it."""
    return make_once("empty-service", lambda folder: open_store(folder / "books.db").close()) / "books.db"


@pytest.fixture(scope="session")
def service_template(postgres_server: str) -> str:
    """The address of a server with a database `jobs` to copy."""
    _postgres(postgres_server, "CREATE DATABASE jobs")
    open_store(postgres_server.replace("/postgres?", "/jobs?")).close()
    return postgres_server


@pytest.fixture
def postgres_address(service_template: str) -> Iterator[str]:
    """An empty database on PostgreSQL."""
    name = f"jobs{next(NUMBERS)}"
    _postgres(service_template, f"CREATE DATABASE {name} TEMPLATE jobs")
    yield service_template.replace("/postgres?", f"/{name}?")
    _postgres(service_template, f"DROP DATABASE {name} WITH (FORCE)")


def _postgres(address: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture
def sqlite_address(empty_database: Path, tmp_path: Path) -> str:
    return shutil.copy(empty_database, tmp_path / "books.db").as_posix()


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, clock: HandClock) -> Iterator[Store]:
    """A database without anything."""
    kind = "sqlite_address" if request.param == "sqlite" else "postgres_address"
    opened = open_store(request.getfixturevalue(kind), clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def bare(store: Store) -> Service:
    """A service without a config, on each engine."""
    return open_service(store)


@dataclass
class Project:
    """A folder with a config, and the service of its database."""

    folder: Path
    service: Service
    clock: HandClock

    @property
    def calls(self) -> list[str]:
        """The queries that were sent to `search`, in order."""
        path = self.folder / "calls.txt"
        return path.read_text().splitlines() if path.exists() else []


def write_project(folder: Path) -> Path:
    """Write the files of the project; the config."""
    folder.mkdir(exist_ok=True)
    for name, text in (("help.yaml", TESTSET), ("search.sh", SEARCH), ("old.run", OLD_RUN), ("cranfield.yaml", CONFIG)):
        (folder / name).write_text(text)
    return folder / "cranfield.yaml"


@pytest.fixture
def project(sqlite_address: str, tmp_path: Path, clock: HandClock) -> Iterator[Project]:
    """A project on SQLite."""
    config = write_project(tmp_path / "project")
    store = open_store(sqlite_address, clock=clock)
    yield Project(config.parent, open_service(store, config), clock)
    store.close()
