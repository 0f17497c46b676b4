"""Backup and restore: from either engine to either, all or nothing."""

from __future__ import annotations

import gzip
import json
import stat
import tracemalloc
from base64 import b64encode
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.unit.conftest import NAMES, execute

from cranfield.cli.main import run_command_line
from cranfield.database.backup import back_up_database, read_backup, restore_database
from cranfield.database.base import REVISION
from cranfield.database.engine import Database, database_url
from cranfield.errors import CranfieldError, InputError, UsageError
from cranfield.judging.settings import BookSettings
from cranfield.judging.store.database import open_store
from cranfield.judging.store.schema import Action
from cranfield.judging.store.values import SaveRequest

from .conftest import pool_of

BYTES = bytes(range(256))
BASE64 = b'"' + b64encode(BYTES) + b'"'


def fill(address: str) -> None:
    """A book, a judgment, bytes, and texts that sort differently by language and by bytes."""
    with closing(open_store(address)) as store:
        book = store.books.create("shop", pool_of(q0a={"fields": {"title": "Größe\u2028\U0001f9e6"}}), BookSettings())
        account = store.people.add("ann")
        store.people.join(book.id, account.id)
        item = store.reading.items(book.id)[0]
        store.queue.next_items(book.id, account.id, 1)
        store.log.save(SaveRequest(book.id, item.id, account.id, Action.GRADE, "k", grade=1.0))
        with store.database.write() as session:
            for name in ("B", "a", "_", "Ä", "z"):
                session.connection().execute(
                    text("INSERT INTO blob (digest, data, size) VALUES (:digest, :data, 1)"),
                    {"digest": name, "data": BYTES},
                )


@pytest.fixture
def empty(request: pytest.FixtureRequest, tmp_path: Path):
    """Make an address of an engine without any table."""
    made = []

    def make(engine: str) -> str:
        if engine == "sqlite":
            return str(tmp_path / f"empty{next(NAMES)}.db")
        server, name = request.getfixturevalue("postgres_template"), f"empty{next(NAMES)}"
        execute(server, f"CREATE DATABASE {name}")
        made.append((server, name))
        return server.replace("/postgres?", f"/{name}?")

    yield make
    for server, name in made:
        execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def database(address: str) -> Database:
    return Database(database_url(address))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("sqlite", "sqlite"),
        pytest.param("sqlite", "postgresql", marks=pytest.mark.slow),
        pytest.param("postgresql", "sqlite", marks=pytest.mark.slow),
        pytest.param("postgresql", "postgresql", marks=pytest.mark.slow),
    ],
)
def test_a_backup_restores_to_either_engine(source: str, target: str, empty, tmp_path: Path) -> None:
    first, second = empty(source), empty(target)
    fill(first)
    path = tmp_path / "books.backup"
    with closing(database(first)) as opened:
        made = back_up_database(opened, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (made.rows["account"], made.rows["blob"], made.rows["judgment"]) == (1, 5, 1)
    with closing(database(second)) as opened:
        assert restore_database(path, opened) == made
        with opened.read() as session:
            found = session.connection().execute(text("SELECT data FROM blob ORDER BY digest")).scalars().all()
            assert [bytes(each) for each in found] == [BYTES] * 5
    with closing(open_store(second)) as store:
        assert store.people.add("bob").id > store.people.get("ann").id  # new rows have numbers of their own
        assert store.reading.items(store.books.get("shop").id)[0].fields["title"] == "Größe\u2028\U0001f9e6"


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backup")
    fill(str(folder / "books.db"))
    with closing(database(str(folder / "books.db"))) as opened:
        back_up_database(opened, folder / "backup")
    return folder / "backup"


def test_a_backup_replaces_nothing(backed_up: Path) -> None:
    before = backed_up.read_bytes()
    with closing(database(str(backed_up.with_name("books.db")))) as opened, pytest.raises(UsageError, match="exists"):
        back_up_database(opened, backed_up)
    assert backed_up.read_bytes() == before
    with (
        closing(database(str(backed_up.with_name("books.db")))) as opened,
        pytest.raises(UsageError, match="not empty"),
    ):
        restore_database(backed_up, opened)


def changed_row(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"ann"', b'"eve"') for line in lines]


def without_a_row(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if not line.startswith(b'["')]


def newer(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(f'"{REVISION}"'.encode(), b'"9999"'), *lines[1:]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_row, "damaged"),
        (without_a_row, "damaged"),
        (lambda lines: lines[:-1], "damaged"),
        (lambda lines: [*lines[:3], b"[1,2\n"], "damaged"),
        (lambda lines: [line.replace(b'"columns"', b'"colunms"') for line in lines], "damaged"),
        (lambda lines: [line.replace(b'"table"', b'"tables"') for line in lines], "damaged"),
        (lambda lines: [line.replace(BASE64, b"7") for line in lines], "cannot store a row of blob"),
        (lambda lines: [b'{"format":"other"}\n', *lines[1:]], "not a backup"),
        (lambda _: [], "not a backup"),
        (newer, "newer version"),
    ],
)
def test_a_damaged_backup_leaves_nothing(backed_up: Path, tmp_path: Path, change, message: str) -> None:
    path = tmp_path / "changed"
    path.write_bytes(gzip.compress(b"".join(change(gzip.decompress(backed_up.read_bytes()).splitlines(keepends=True)))))
    with closing(database(str(tmp_path / "new.db"))) as opened, pytest.raises(CranfieldError, match=message):
        restore_database(path, opened)
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_file_that_ends_early_or_is_none(backed_up: Path, tmp_path: Path) -> None:
    for content in (backed_up.read_bytes()[:-20], b"text", b""):
        (tmp_path / "cut").write_bytes(content)
        with pytest.raises(InputError):
            read_backup(tmp_path / "cut")


@pytest.mark.slow
def test_a_backup_of_an_earlier_revision_is_upgraded(tmp_path: Path) -> None:
    from cranfield.database.migrate import revisions, upgrade

    old, new = database(str(tmp_path / "old.db")), database(str(tmp_path / "new.db"))
    upgrade(old, revisions()[0])
    with old.write() as session:
        session.connection().exec_driver_sql(
            "INSERT INTO account (id, name, kind, role, active, created_at, settings)"
            " VALUES (1, 'ann', 'person', 'rater', 1, 1, '{}')"
        )
    made = back_up_database(old, tmp_path / "backup")
    assert made.revision == revisions()[0]
    restore_database(tmp_path / "backup", new)
    old.close()
    new.close()
    with closing(open_store(tmp_path / "new.db")) as store:
        assert store.upgraded.before == REVISION
        assert store.people.get("ann").id == 1


def test_the_commands(backed_up: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["db", "restore", str(backed_up), "--db", str(tmp_path / "new.db")]) == 0
    restored = capsys.readouterr().out.splitlines()
    assert run_command_line(["db", "backup", str(tmp_path / "again"), "--db", str(tmp_path / "new.db")]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == restored[1:]
    assert json.loads(gzip.decompress(backed_up.read_bytes()).splitlines()[0])["format"] == "cranfield-backup-1"
    assert run_command_line(["db", "backup", str(tmp_path / "x"), "--db", str(tmp_path / "none.db")]) == 2
    assert not (tmp_path / "none.db").exists()
    assert run_command_line(["db", "restore", str(tmp_path / "none"), "--db", str(tmp_path / "x.db")]) == 2
    assert not (tmp_path / "x.db").exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_files(tmp_path: Path) -> None:
    size = 2_000_000
    with closing(open_store(tmp_path / "books.db")) as store, store.database.write() as session:
        for n in range(30):
            session.connection().execute(
                text("INSERT INTO blob (digest, data, size) VALUES (:digest, :data, :size)"),
                {"digest": str(n), "data": bytes(size), "size": size},
            )
    tracemalloc.start()
    try:
        with closing(Database(database_url(tmp_path / "books.db"))) as database:
            back_up_database(database, tmp_path / "file")
        with closing(Database(database_url(tmp_path / "new.db"))) as database:
            assert restore_database(tmp_path / "file", database).rows["blob"] == 30
        assert tracemalloc.get_traced_memory()[1] < 12 * size  # bytes, Base64, JSON and its line, each twice
    finally:
        tracemalloc.stop()
