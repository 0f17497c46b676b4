"""Opening, revisions of the schema, the append-only log, transactions."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, inspect, select, text
from sqlalchemy.exc import DBAPIError
from tests.unit.conftest import ENGINES, NAMES, execute

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.database import migrate
from cranfield.books.database.base import REVISION, Base
from cranfield.books.database.engine import Database, database_url
from cranfield.books.database.migrate import back_up, upgrade
from cranfield.books.settings import BookSettings
from cranfield.books.store import schema
from cranfield.books.store.store import Store, existing_database, open_store, read_revision
from cranfield.workbench.service.store import schema as service_schema

from .conftest import pool_of

MODELS = (schema, service_schema)
"""Modules whose tables the migrations make."""
LIMITED = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""A program that can write files of 300 kB."""
LATER = """
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("account", sa.Column("note", sa.Text))
"""
"""A revision that adds a column."""


@pytest.fixture(params=ENGINES)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Makes databases without tables."""
    made: list[str] = []

    def make() -> str:
        name = f"empty{next(NAMES)}"
        if request.param == "sqlite":
            return str(tmp_path / f"{name}.db")
        server = request.getfixturevalue("postgres_server")
        execute(server, f"CREATE DATABASE {name}")
        made.append(name)
        return str(server).replace("/postgres?", f"/{name}?")

    yield make
    for name in made:
        execute(request.getfixturevalue("postgres_server"), f"DROP DATABASE {name} WITH (FORCE)")


def schema_of(connection: Connection) -> dict[str, list[str]]:
    """Tables, columns, keys and indexes, with their names and types."""
    found = inspect(connection)
    parts = {
        "columns": found.get_multi_columns(),
        "primary keys": found.get_multi_pk_constraint(),
        "references": found.get_multi_foreign_keys(),
        "indexes": found.get_multi_indexes(),
        "unique": found.get_multi_unique_constraints(),
    }
    return {
        f"{part} of {table}": sorted(map(repr, value)) if isinstance(value, list) else [repr(value)]
        for part, tables in parts.items()
        for (_, table), value in tables.items()
        if table != "alembic_version"
    }


def test_the_revision_makes_the_tables_of_the_models(empty) -> None:
    with closing(open_store(empty())) as store, store.database.engine.connect() as connection:
        made = schema_of(connection)
        with store.database.write() as session:
            session.execute(text("ALTER TABLE event ADD COLUMN other INTEGER"))
    with closing(Database(database_url(empty()))) as database, database.write() as session:
        Base.metadata.create_all(session.connection())
        of_models = schema_of(session.connection())
    assert made == of_models
    assert {table.name for table in Base.metadata.tables.values()} == {key.split()[-1] for key in made}


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of this version from now on: a revision that adds a column."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrate.MIGRATIONS, folder)
    (folder / "versions" / "r0002_note.py").write_text(LATER)
    monkeypatch.setattr(migrate, "MIGRATIONS", folder)
    monkeypatch.setattr(migrate, "REVISION", "0002")
    return "0002"


def test_a_database_of_an_earlier_version_is_upgraded(empty, request) -> None:
    address = empty()
    with closing(open_store(address)) as store:
        account = store.people.add("ann")
    later = request.getfixturevalue("later")
    with existing_database(address) as database:
        assert [upgrade(database), upgrade(database)] == [REVISION, later]
        with database.read() as session:
            assert session.execute(text("SELECT id, name, note FROM account")).all() == [(account.id, "ann", None)]
    assert read_revision(address) == later
    with pytest.raises(
        UsageError, match=r"a different schema version; .* got 0002\.\nHint: run `cranfield db upgrade`"
    ):
        open_store(address)


def test_an_upgrade_that_fails_changes_nothing(empty, monkeypatch) -> None:
    from alembic.operations import Operations

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no room")

    address = empty()
    monkeypatch.setattr(Operations, "execute", fail)
    with pytest.raises(RuntimeError, match="no room"):
        open_store(address)
    assert read_revision(address) is None


def test_programs_that_open_a_new_database_at_once_take_turns(empty) -> None:
    address, ready = empty(), threading.Barrier(4)

    def opened(_: int) -> str | None:
        with closing(Database(database_url(address))) as database:
            ready.wait()
            return upgrade(database)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(opened, range(4)))
    assert sorted(map(str, found)) == [REVISION, REVISION, REVISION, "None"]


@pytest.mark.parametrize("number", [2**63, 10**25, -(10**25)])
def test_a_number_that_no_database_holds_is_that_of_nothing(store: Store, number: int) -> None:
    with pytest.raises(UnknownNameError, match=r"number out of range|no account"):
        store.people.get(number)
    with pytest.raises(UnknownNameError, match="number out of range"):
        store.people.join(store.books.create("b", pool_of(), BookSettings()).id, store.people.local().id, number)


def test_a_text_that_no_database_holds_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="cannot store a text"):
        store.sign_ins.begin({"\ud800": 1}, 0)


@pytest.mark.slow
def test_a_null_character_that_postgresql_does_not_hold_is_refused(postgres_store: Store) -> None:
    with pytest.raises(UsageError, match="cannot store a text"):
        postgres_store.sign_ins.begin({"a\0b": 1}, 0)


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_a_sqlite_file_and_its_copy_are_for_their_owner_from_the_first(tmp_path, mask) -> None:
    path = tmp_path / "books.db"
    seen: dict[str, set[int]] = {}

    def look() -> None:
        for file in tmp_path.iterdir():
            seen.setdefault(file.name, set()).add(stat.S_IMODE(file.stat().st_mode))

    before = os.umask(mask)
    try:
        with closing(open_store(path)) as store, store.database.write():
            look()
            back_up(store.database, tmp_path / "copy.db")
        look()
    finally:
        os.umask(before)
    assert {"books.db", "books.db-wal", "books.db-shm", "copy.db"} <= set(seen)
    assert {name: modes for name, modes in seen.items() if modes != {0o600}} == {}


def test_a_database_of_a_newer_version_is_refused(address) -> None:
    with closing(open_store(address)) as store, store.database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(
        UsageError, match=r"a different schema version; .* got 9999\.\nHint: run `cranfield db upgrade`"
    ):
        open_store(address)
    with (
        pytest.raises(UsageError, match=r"made by a newer version of Cranfield: its schema is 9999"),
        existing_database(address) as database,
    ):
        upgrade(database)
    assert read_revision(address) == "9999"


def test_another_database_is_refused_and_stays_as_it_is(tmp_path) -> None:
    path = tmp_path / "mine.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE mine (id)")
    before = path.read_bytes()
    with pytest.raises(UsageError, match="not a book database"):
        open_store(path)
    (tmp_path / "text.db").write_text("no database at all, but some text that is long enough to be read as one\n" * 20)
    with pytest.raises(UsageError, match="file is not a database"):
        open_store(tmp_path / "text.db")
    assert path.read_bytes()[100:] == before[100:]  # the header names the journal


def test_a_database_that_is_not_there(tmp_path) -> None:
    with pytest.raises(UsageError, match="no book database found"):
        open_store(tmp_path / "none.db", create=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="the folder of the database does not exist"):
        open_store(tmp_path / "none" / "x.db")
    assert read_revision(tmp_path / "none.db") is None


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o444), (0o555, 0o644)], ids=["file", "folder"])
@pytest.mark.parametrize(
    "words", [["judge", "shop", "--no-open", "--port", "0"], ["book", "close", "shop"]], ids=" ".join
)
def test_a_file_or_folder_that_cannot_be_written_is_a_message(tmp_path, words, folder, file) -> None:
    path = tmp_path / "there" / "books.db"
    path.parent.mkdir()
    with closing(open_store(path)) as store:
        store.books.create("shop", pool_of(), BookSettings())
    path.chmod(file)
    path.parent.chmod(folder)
    as_user = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"] if os.getuid() == 0 else []
    program = [*as_user, sys.executable, "-m", "cranfield"]  # not by a server, which has the rights of the tests
    done = subprocess.run([*program, *words, "--db", path], capture_output=True, text=True, timeout=30, check=False)
    path.parent.chmod(0o755)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(
        r"^error: .*(attempt to write a readonly database|this user has no write access to the database)",
        done.stderr,
        re.MULTILINE,
    )
    assert ("needs write access to the file and to its folder" in done.stderr) == (folder == 0o555)
    assert "Traceback" not in done.stderr


PLACES = [
    ("books.db", "sqlite", "books.db"),
    ("sqlite:books.db", "sqlite", "books.db"),
    ("sqlite:/data/b.db", "sqlite", "/data/b.db"),
    (
        "postgresql://ann:secret@db:5433/books?sslmode=require",
        "postgresql",
        "postgresql+psycopg://ann:***@db:5433/books",
    ),
    ("postgres://ann@db/books", "postgresql", "postgresql+psycopg://ann@db/books"),
]


@pytest.mark.parametrize(("place", "kind", "where"), PLACES)
def test_places_of_databases(place, kind, where) -> None:
    database = Database(database_url(place))
    assert (database.url.get_backend_name(), database.where) == (kind, where)


@pytest.mark.parametrize(
    "place", ["mysql://ann:secret@db/books", "http://secret.example/x", "postgresql://ann:secret@db:port/x"]
)
def test_a_place_that_cannot_be_read_is_not_quoted(place) -> None:
    with pytest.raises(UsageError, match="expected a path, sqlite:PATH or postgresql") as caught:
        database_url(place)
    assert "secret" not in str(caught.value)


def test_a_server_that_does_not_answer_is_a_message_without_the_password() -> None:
    with pytest.raises(UsageError, match="the database cannot be opened") as caught:
        open_store("postgresql://ann:hunter22@127.0.0.1:9/books?connect_timeout=2")
    assert "hunter22" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


NOT_NULL = "book_id, item_id, account_id, action, reason, at, method, client_key"
CHANGES = [
    "UPDATE event SET grade = 3",
    "DELETE FROM event",
    "TRUNCATE event CASCADE",
    f"INSERT OR REPLACE INTO event (id, {NOT_NULL}) SELECT id, {NOT_NULL} FROM (SELECT id, book_id, item_id, account_id, action, reason, at, method, 'x' AS client_key FROM event)",
    f"INSERT OR REPLACE INTO event ({NOT_NULL}) SELECT {NOT_NULL} FROM event",
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_log_is_append_only(desk_of, change) -> None:
    desk = desk_of()
    if change.startswith("TRUNCATE" if desk.store.database.is_sqlite else "INSERT OR"):
        return  # not of this engine
    desk.grade("ann", desk.item("q0", "a").id, 2)
    before = desk.store.log.events(desk.book.id)
    with pytest.raises(DBAPIError, match="append-only"), desk.store.database.write() as session:
        session.execute(text(change))
    assert desk.store.log.events(desk.book.id) == before


def test_a_transaction_that_fails_leaves_nothing(store) -> None:
    def fail() -> None:
        with store.database.write() as session:
            session.add(schema.Account(name="ann", kind="person", role="rater", active=True, created_at=1))
            session.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.people.all() == ()


def test_a_transaction_that_reads_sees_one_state(store) -> None:
    count = select(func.count()).select_from(schema.Account)
    with store.database.read() as session:
        before = session.scalar(count)
        store.people.add("ann")  # another server
        assert session.scalar(count) == before
    with store.database.read() as session:
        assert session.scalar(count) == before + 1


def test_sqlite_is_set_up_for_several_programs(sqlite_address) -> None:
    with closing(open_store(sqlite_address)) as store, store.database.read() as session:
        settings = {
            name: session.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
        }
    assert settings == {"journal_mode": "wal", "busy_timeout": 30_000, "foreign_keys": 1, "synchronous": 1}


def test_every_table_has_a_text_that_says_what_it_is() -> None:
    assert [mapper.class_.__name__ for mapper in Base.registry.mappers if not mapper.class_.__doc__] == []


def test_settings_of_a_book_are_kept_as_json(store) -> None:
    store.books.create("shop", pool_of(), BookSettings(raters_per_item=3))
    with store.database.read() as session:
        raw = session.scalar(select(schema.Book.settings))
    assert json.loads(json.dumps(raw))["raters_per_item"] == 3


@pytest.mark.slow
def test_a_disk_that_is_full_is_a_message_and_loses_nothing(tmp_path) -> None:
    rows = "".join(f"q{query},d{doc},1,ann\n" for query in range(20) for doc in range(50))
    (tmp_path / "j.csv").write_text("query_id,doc_id,grade,rater\n" + rows)
    command = [sys.executable, "-m", "cranfield", "book", "import", "shop", "j.csv", "--db", "books.db"]
    full = subprocess.run(
        [sys.executable, "-c", LIMITED, *command], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert full.returncode == 2, full.stderr
    assert "error: the database reported an error, and nothing was changed: " in full.stderr
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "imported into book shop: 1000 judgments" in again.stderr
