"""A backup of SQLite is a copy of the file; for PostgreSQL there is a command to type."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.unit.conftest import NAMES, HandClock, execute

from cranfield.base.errors import UsageError
from cranfield.books.database.engine import Database, database_url
from cranfield.books.database.migrate import back_up
from cranfield.books.settings import BookSettings
from cranfield.books.store.store import Store, open_store
from cranfield.cli.main import run_command_line

from .conftest import pool_of


@pytest.fixture
def books(sqlite_address: str) -> Iterator[Store]:
    with closing(open_store(sqlite_address)) as store:
        store.books.create("shop", pool_of(), BookSettings())
        yield store


def test_a_backup_is_one_state_of_a_database_that_is_written(books: Store, tmp_path: Path) -> None:
    begun, stopping = threading.Event(), threading.Event()

    def write() -> None:
        """Two rows at a time."""
        n = 0
        while not stopping.is_set():
            with books.database.write() as session:
                for digest in (f"{n}", f"{n}b"):
                    row = {"digest": digest, "data": bytes(2000)}
                    session.execute(text("INSERT INTO blob (digest, data, size) VALUES (:digest, :data, 1)"), row)
            begun.set()
            n += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(60)
        for number in range(10):
            back_up(books.database, tmp_path / f"copy{number}.db")
    finally:
        stopping.set()
        writer.join()
    counts = []
    for number in range(10):
        with closing(sqlite3.connect(tmp_path / f"copy{number}.db")) as copy:
            assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            counts += [row[0] for row in copy.execute("SELECT count(*) FROM blob")]
    assert [count % 2 for count in counts] == [0] * 10
    assert counts == sorted(counts)
    assert counts[0] > 0


def test_what_is_not_committed_is_not_in_a_backup(books: Store, tmp_path: Path) -> None:
    with books.database.write() as session:
        session.execute(text("UPDATE book_query SET text = 'other'"))
        back_up(books.database, tmp_path / "copy.db")
        session.rollback()
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT count(*) FROM book_query WHERE text = 'other'").fetchone() == (0,)


def test_a_backup_replaces_nothing_and_leaves_nothing_half(books: Store, tmp_path: Path, file_limit) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / "theirs").write_text("kept")
    (folder / "link").symlink_to(folder / "nothing")
    for name in ("theirs", "link"):
        with pytest.raises(UsageError, match="the file exists"):
            back_up(books.database, folder / name)
    with pytest.raises(UsageError, match="cannot be written; got No such file or directory"):
        back_up(books.database, folder / "none" / "copy.db")
    with file_limit(1), pytest.raises(UsageError, match=r"cannot be written; got .*(full|I/O error)"):  # a full disk
        back_up(books.database, folder / "copy.db")
    assert sorted(path.name for path in folder.iterdir()) == ["link", "theirs"]
    assert (folder / "theirs").read_text() == "kept"


def test_a_backup_is_restored_by_copying_it_back(
    books: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, copy = str(books.database.path), tmp_path / "copy.db"
    assert run_command_line(["db", "backup", str(copy), "--db", place]) == 0
    assert capsys.readouterr().out == f"{copy}: backup of {place}\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    books.books.create("later", pool_of(), BookSettings())
    books.close()
    for suffix in ("-wal", "-shm"):
        Path(place + suffix).unlink(missing_ok=True)
    shutil.copyfile(copy, place)
    with closing(open_store(place, clock=HandClock())) as store:
        assert [book.name for book in store.books.all()] == ["shop"]
        assert store.books.create("later", pool_of(), BookSettings()).name == "later"


def test_there_is_nothing_to_back_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["db", "backup", str(tmp_path / "copy.db"), "--db", str(tmp_path / "none.db")]) == 2
    assert "no book database found" in capsys.readouterr().err
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE mine (id)")
    assert run_command_line(["db", "backup", str(tmp_path / "copy.db"), "--db", str(tmp_path / "other.db")]) == 2
    assert "not a book database" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["other.db"]


def command_in(message: str) -> list[str]:
    """The command in the hint of a message."""
    return shlex.split(message.split("`")[1])


def test_postgresql_has_a_tool_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    address = "postgresql://ann:hunter22@db:5433/books?sslmode=require&sslpassword=hunter22"
    assert run_command_line(["db", "backup", "the copy", "--db", address]) == 2
    error = capsys.readouterr().err
    assert "hunter22" not in error
    assert command_in(error) == [
        "pg_dump",
        "--format=custom",
        "--file=the copy",
        "postgresql://ann@db:5433/books?sslmode=require",
    ]


@pytest.mark.slow
def test_the_commands_for_postgresql_work(postgres_store: Store, postgres_server: str, tmp_path: Path) -> None:
    postgres_store.books.create("shop", pool_of(), BookSettings())
    with pytest.raises(UsageError, match="pg_dump") as caught:
        back_up(postgres_store.database, tmp_path / "copy")
    name = f"restored{next(NAMES)}"
    restored = postgres_server.replace("/postgres?", f"/{name}?")
    execute(postgres_server, f"CREATE DATABASE {name}")
    try:
        for command in (command_in(str(caught.value)), ["pg_restore", f"--dbname={restored}", tmp_path / "copy"]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")
        with closing(open_store(restored)) as store:
            assert store.books.get("shop").name == "shop"
    finally:
        execute(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


def test_a_database_of_another_version_can_be_backed_up(books: Store, tmp_path: Path) -> None:
    with books.database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    back_up(books.database, tmp_path / "copy.db")
    with closing(Database(database_url(tmp_path / "copy.db"))) as copy, copy.read() as session:
        assert session.scalar(text("SELECT version_num FROM alembic_version")) == "9999"
