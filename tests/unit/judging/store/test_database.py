"""Opening, migrations from every earlier revision with data, the append-only log, transactions."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError
from tests.unit.conftest import ENGINES, NAMES, HandClock, execute

from cranfield.database.backup import back_up_database
from cranfield.database.base import REVISION, Base
from cranfield.database.engine import Database, database_url
from cranfield.database.migrate import differences, revisions, upgrade
from cranfield.errors import UnknownNameError, UsageError
from cranfield.judging.settings import BookSettings
from cranfield.judging.store import schema
from cranfield.judging.store.database import open_store, read_revision
from cranfield.judging.store.store import Store
from cranfield.service.store import schema as service_schema

from .conftest import Desk, pool_of

MODELS = (schema, service_schema)
"""Modules whose tables the migrations make."""
LIMITED = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""A program that can write files of 300 kB."""
EARLIER = ["0001", "0002", "0003", "0004", "0005"]
"""Revisions to upgrade from: a test that fails here names the one that is missing."""
AT_0001 = """
INSERT INTO account (id, name, kind, role, active, created_at, settings) VALUES (1, 'ann', 'person', 'rater', :yes, 1, '{}');
INSERT INTO account (id, name, kind, role, active, created_at, settings) VALUES (2, 'bob', 'person', 'lead', :yes, 1, '{}');
INSERT INTO book (id, name, state, settings, source, created_at) VALUES (1, 'shop', 'open', '{}', '{"name": "p"}', 1);
INSERT INTO guideline (book_id, version, text, created_at) VALUES (1, 1, 'Be kind', 1);
INSERT INTO member (book_id, account_id) VALUES (1, 1);
INSERT INTO book_query (id, book_id, name, text, need, notes, position, strata) VALUES (1, 1, 'q', 'socks', '', '', 0, '{}');
INSERT INTO item (id, book_id, query_id, doc_id, fields, origin, gold_reason, wanted, state, flagged, stratum, inclusion, runs)
VALUES (1, 1, 1, 'd1', '{"title": "Sock"}', 'pool', '', 1, 'done', :no, '', 1, '{"bm25": 3}');
INSERT INTO item (id, book_id, query_id, doc_id, fields, origin, gold_reason, wanted, state, flagged, stratum, inclusion, runs)
VALUES (2, 1, 1, 'd2', '{}', 'pool', '', 1, 'open', :no, '', 1, '{}');
INSERT INTO slot (item_id, number, account_id, state) VALUES (1, 1, 1, 'done');
INSERT INTO slot (item_id, number, state) VALUES (2, 1, 'open');
INSERT INTO event (id, book_id, item_id, account_id, action, grade, reason, at, guideline_version, method, client_key)
VALUES (1, 1, 1, 1, 'grade', 2, 'fits', 7, 1, 'key', 'k1');
INSERT INTO judgment (item_id, account_id, event_id, action, grade, stale) VALUES (1, 1, 1, 'grade', 2, :no);
"""


@pytest.fixture(params=ENGINES)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables."""
    if request.param == "sqlite":
        yield str(tmp_path / "new.db")
        return
    server, name = request.getfixturevalue("postgres_server"), f"empty{next(NAMES)}"
    execute(server, f"CREATE DATABASE {name}")
    yield server.replace("/postgres?", f"/{name}?")
    execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def filled_at(address: str, revision: str) -> Database:
    """A database of an earlier revision, with a book that has a judgment."""
    database = Database(database_url(address))
    upgrade(database, revision)
    yes, no = ("1", "0") if database.is_sqlite else ("true", "false")
    with database.write() as session:
        for statement in AT_0001.replace(":yes", yes).replace(":no", no).split(";\n"):
            if statement.strip():
                session.connection().exec_driver_sql(statement)
        if not database.is_sqlite:
            for table in ("account", "book", "book_query", "item", "event"):
                session.execute(text(f"SELECT setval('{table}_id_seq', 100)"))
    database.close()
    return database


def test_models_and_migrations_agree(empty) -> None:
    with closing(open_store(empty)) as store, store.database.engine.connect() as connection:
        assert differences(connection) == []


def test_a_difference_of_models_and_migrations_would_be_found(empty) -> None:
    database = Database(database_url(empty))
    upgrade(database, "0001")
    with database.engine.connect() as connection:
        found = str(differences(connection))
    database.close()
    assert "subject_id" in found
    assert "ix_slot_account_id" in found


def test_every_earlier_revision_is_upgraded_in_a_test() -> None:
    assert revisions() == (*EARLIER, REVISION)


@pytest.mark.parametrize("number", [2**63, 10**25, -(10**25)])
def test_a_number_that_no_database_holds_is_that_of_nothing(store: Store, number: int) -> None:
    with pytest.raises(UnknownNameError, match=r"no such number|no account"):
        store.people.get(number)
    with pytest.raises(UnknownNameError, match="no such number"):
        store.people.join(store.books.create("b", pool_of(), BookSettings()).id, store.people.local().id, number)


def test_a_text_that_no_database_holds_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="cannot hold a text"):
        store.sign_ins.begin({"\ud800": 1}, 0)


@pytest.mark.slow
def test_a_null_character_that_postgresql_does_not_hold_is_refused(postgres_store: Store) -> None:
    with pytest.raises(UsageError, match="cannot hold a text"):
        postgres_store.sign_ins.begin({"a\0b": 1}, 0)


@pytest.mark.parametrize("revision", EARLIER)
def test_a_database_with_data_is_upgraded(empty, revision) -> None:
    filled_at(empty, revision)
    clock = HandClock()
    with closing(open_store(empty, clock=clock)) as store:
        assert store.upgraded.before == revision
        with store.database.engine.connect() as connection:
            assert differences(connection) == []
        (row,) = store.reading.ratings(store.books.get("shop").id)
        assert (row.rater, row.grade, row.reason, row.at, row.stale) == ("ann", 2, "fits", 7, False)
        desk = Desk(store, clock, store.books.get("shop"), {"ann": store.people.get("ann")})
        assert [item.doc for item in desk.next("ann")] == ["d2"]
        assert store.books.reopen(desk.book.id, [1], store.people.get("bob").id) == 1
        assert [event.subject for event in store.log.events(desk.book.id)] == [None, "ann"]
        with pytest.raises(DBAPIError, match="append-only"), store.database.write() as session:
            session.execute(text("UPDATE event SET grade = 0"))
    assert read_revision(empty) == REVISION


def test_a_sqlite_file_is_copied_before_it_is_upgraded(tmp_path) -> None:
    path = tmp_path / "books.db"
    for name in (f"books.db.before-{REVISION}", f"books.db.before-{REVISION}-2"):
        path.unlink(missing_ok=True)
        filled_at(str(path), "0001")
        with closing(open_store(path)) as store:
            assert store.upgraded.backup == tmp_path / name
        assert read_revision(tmp_path / name) == "0001"
        with closing(sqlite3.connect(tmp_path / name)) as copy:
            assert copy.execute("SELECT reason FROM event").fetchall() == [("fits",)]
    with closing(open_store(path)) as store:
        assert store.upgraded.backup is None
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "books.db",
        f"books.db.before-{REVISION}",
        f"books.db.before-{REVISION}-2",
    ]


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_a_sqlite_file_and_its_copies_are_for_their_owner_from_the_first(tmp_path, mask) -> None:
    path = tmp_path / "books.db"
    seen: dict[str, set[int]] = {}

    def look() -> None:
        for file in tmp_path.iterdir():
            seen.setdefault(file.name, set()).add(stat.S_IMODE(file.stat().st_mode))

    before = os.umask(mask)
    try:
        filled_at(str(path), "0001")
        with closing(open_store(path)) as store, store.database.write():
            look()
            back_up_database(store.database, tmp_path / "backup")
        look()
    finally:
        os.umask(before)
    assert {"books.db", "books.db-wal", "books.db-shm", f"books.db.before-{REVISION}", "backup"} <= set(seen)
    assert {name: modes for name, modes in seen.items() if modes != {0o600}} == {}


@pytest.mark.parametrize("name", ["books.db.before-{}.part", "backup.part"])
def test_a_planted_link_is_not_followed(tmp_path, name) -> None:
    (tmp_path / "theirs").write_text("kept")
    (tmp_path / name.format(REVISION)).symlink_to(tmp_path / "theirs")
    (tmp_path / f".books.db.before-{REVISION}.1a2b3c4d.part").write_text("half, of a program that was killed")
    filled_at(str(tmp_path / "books.db"), "0001")
    with closing(open_store(tmp_path / "books.db")) as store:
        back_up_database(store.database, tmp_path / "backup")
    assert (tmp_path / "theirs").read_text() == "kept"
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_a_folder_or_a_link_in_the_place_of_a_copy_is_no_failure(tmp_path) -> None:
    (tmp_path / f".books.db.before-{REVISION}.1a2b3c4d.part").mkdir()
    (tmp_path / "backup").symlink_to(tmp_path / "nothing")
    filled_at(str(tmp_path / "books.db"), "0001")
    with closing(open_store(tmp_path / "books.db")) as store, pytest.raises(UsageError, match="the file exists"):
        back_up_database(store.database, tmp_path / "backup")
    assert not (tmp_path / "nothing").exists()


def test_programs_that_upgrade_one_file_at_once_take_turns(tmp_path) -> None:
    path = tmp_path / "books.db"
    filled_at(str(path), "0001")
    ready = threading.Barrier(4)

    def opened(_: int) -> str | None:
        database = Database(database_url(path))
        ready.wait()
        with closing(database):
            return upgrade(database).before

    with ThreadPoolExecutor(4) as threads:
        found = sorted(threads.map(opened, range(4)))
    assert found == ["0001", REVISION, REVISION, REVISION]
    (copy,) = tmp_path.glob("books.db.before-*")
    assert read_revision(copy) == "0001"


def test_an_upgrade_that_fails_changes_nothing(tmp_path, monkeypatch) -> None:
    from alembic.operations import Operations

    path = str(tmp_path / "books.db")
    filled_at(path, "0001")

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(Operations, "create_index", fail)
    with pytest.raises(RuntimeError, match="no room"):
        open_store(path)
    assert read_revision(path) == "0001"
    with closing(sqlite3.connect(path)) as file:
        assert "subject_id" not in [row[1] for row in file.execute("PRAGMA table_info(event)")]


def test_a_database_of_a_newer_version_is_refused(address) -> None:
    with closing(open_store(address)) as store, store.database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(
        UsageError, match=r"made by a newer version of Cranfield: its schema is 9999; expected a schema up to"
    ) as caught:
        open_store(address)
    assert "upgrade Cranfield" in str(caught.value)
    assert read_revision(address) == "9999"


def test_another_database_is_refused_and_stays_as_it_is(tmp_path) -> None:
    path = tmp_path / "mine.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE mine (id)")
    before = path.read_bytes()
    with pytest.raises(UsageError, match="no database of books"):
        open_store(path)
    (tmp_path / "text.db").write_text("no database at all, but some text that is long enough to be read as one\n" * 20)
    with pytest.raises(UsageError, match="file is not a database"):
        open_store(tmp_path / "text.db")
    assert path.read_bytes()[100:] == before[100:]  # the header names the journal


def test_a_database_that_is_not_there(tmp_path) -> None:
    with pytest.raises(UsageError, match="there is no database of books here"):
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
        r"^error: .*(attempt to write a readonly database|this user cannot write the database)",
        done.stderr,
        re.MULTILINE,
    )
    assert ("must be able to write the file and its folder" in done.stderr) == (folder == 0o555)
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
    assert "error: the database refused, and nothing was changed: " in full.stderr
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "imported into book shop: 1000 judgments" in again.stderr
