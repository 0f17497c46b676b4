"""Connections and transactions: SQLite or PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, date, datetime
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import ArgumentError, DataError
from sqlalchemy.orm import Session

from cranfield.base.errors import MissingExtraError, UnknownNameError, UsageError

BUSY_TIMEOUT_MS = 30_000
CONNECTIONS = 40
"""Threads of a server that may be in the database at once."""
Clock = Callable[[], int]
"""Milliseconds since 1970 (UTC)."""
_WRITES = "cranfield_writes"
_OUT_OF_RANGE = "22003"
"""SQLSTATE of a number that is too large."""


def now_ms() -> int:
    """The time of this machine."""
    return time.time_ns() // 1_000_000


def day_of(ms: int) -> date:
    """The day of a time, UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).date()


def database_url(place: str | Path) -> URL:
    """`postgresql://...`, `sqlite:PATH` or a path, as an address.

    Raises:
        UsageError: an address of another kind; no part of it is in the message, since it may hold a password.
    """
    text = str(place)
    if text.startswith(("postgresql:", "postgres:", "postgresql+psycopg:")):
        try:
            return make_url("postgresql+psycopg:" + text.partition(":")[2])
        except (ArgumentError, ValueError):  # a port that is no number
            raise UsageError("the address of the database cannot be read", expected=PLACES) from None
    if "://" in text.removeprefix("sqlite:"):
        raise UsageError("this kind of database is not supported", expected=PLACES)
    return URL.create("sqlite", database=str(Path(text.removeprefix("sqlite:")).expanduser()))


PLACES = "a path, sqlite:PATH or postgresql://USER@HOST/NAME"


class Database:
    """A database: transactions that read, and transactions that write.

    A write transaction of SQLite begins as `BEGIN IMMEDIATE`: it waits for its turn instead of failing when it first writes.
    Threads of one process wait in a lock of this process, which is fair and wakes them at once.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.engine = _sqlite_engine(url) if self.is_sqlite else _postgres_engine(url)
        # PostgreSQL would show each statement of a transaction what was committed meanwhile.
        self._reading = self.engine.execution_options(
            **{} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        )
        self._writing = self.engine.execution_options(**{_WRITES: True})
        self._turn = threading.Lock()
        self._file: tuple[int, int] | None = None
        if self.is_sqlite:
            event.listen(self.engine, "connect", self._note_file)

    def _note_file(self, *_connection: object) -> None:
        self._file = self._file or self._file_now()

    def _file_now(self) -> tuple[int, int] | None:
        try:
            found = Path(self.url.database or "").stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @property
    def is_in_place(self) -> bool:
        """Whether the file of SQLite is the one that was opened: after it was moved or deleted, what is written is lost."""
        return self._file is None or self._file == self._file_now()

    @property
    def where(self) -> str:
        """The path or the address, without a password and without parameters."""
        return str(self.path) if self.is_sqlite else self.url.set(query={}).render_as_string(hide_password=True)

    @property
    def path(self) -> Path | None:
        """The file of SQLite."""
        return Path(self.url.database or "") if self.is_sqlite else None

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that sees one state of the database and writes nothing.

        Raises:
            CranfieldError: as `_refuse_unfit`.
        """
        with _refuse_unfit(), Session(self._reading, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def write(self, turn: str = "") -> Iterator[Session]:
        """A transaction that writes; undone where an error leaves the block.

        Args:
            turn: transactions of one name follow each other also where the database has no row for them to lock.

        Raises:
            CranfieldError: as `_refuse_unfit`.
        """
        own = self._turn if self.is_sqlite else nullcontext()
        with own, _refuse_unfit(), Session(self._writing, expire_on_commit=False) as session, session.begin():
            if turn and not self.is_sqlite:
                session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(turn, 0))))
            yield session

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()
        self._file = None


@contextmanager
def _refuse_unfit() -> Iterator[None]:
    """Refuse a value that the database cannot hold: each driver says so in an error of its own.

    Raises:
        UnknownNameError: a number of more than 64 bits: nothing has it.
        UsageError: a text that is not valid Unicode, has U+0000, or is too long.
    """
    try:
        yield
    except OverflowError:
        raise _no_such_number() from None
    except UnicodeEncodeError:
        raise _unfit_text() from None
    except DataError as error:
        is_number = getattr(error.orig, "sqlstate", None) == _OUT_OF_RANGE
        raise (_no_such_number() if is_number else _unfit_text()) from None


def _no_such_number() -> UnknownNameError:
    return UnknownNameError("number out of range", expected="a 64-bit integer")


def _unfit_text() -> UsageError:
    return UsageError(
        "the database cannot store a text of the request",
        expected="Unicode without U+0000, names of at most 200 characters",
        hint="send a shorter text without such characters",
    )


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000},
        hide_parameters=True,
    )

    @event.listens_for(engine, "do_connect")
    def _connecting(_dialect: object, _record: object, _args: object, _options: object) -> None:
        # SQLite would make the file for all to read; it gives `-wal` and `-shm` the mode of the file. One that is there is not
        # opened: closing it would end the locks of this process.
        with suppress(OSError):  # SQLite says better why it cannot be opened
            os.close(os.open(os.path.realpath(url.database or ""), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions begin below
        for setting in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=1"):
            connection.execute(f"PRAGMA {setting}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgres_engine(url: URL) -> Engine:
    try:
        return create_engine(url, pool_size=CONNECTIONS, max_overflow=0, pool_pre_ping=True, hide_parameters=True)
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("a PostgreSQL database", "postgres") from None


class Part:
    """A part of the store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
