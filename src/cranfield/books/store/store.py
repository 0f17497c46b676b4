"""The store of books: a part for each task, over one database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from cranfield.base.errors import UsageError
from cranfield.books.database.base import REVISION
from cranfield.books.database.engine import Clock, Database, Part, database_url, now_ms
from cranfield.books.database.migrate import current_revision, opening_problem, upgrade
from cranfield.books.store.books import Books
from cranfield.books.store.log import Log
from cranfield.books.store.people import People, SignIns
from cranfield.books.store.queue import Queue
from cranfield.books.store.reading import BookReading
from cranfield.books.store.rows import as_value
from cranfield.books.store.schema import ModelCall
from cranfield.books.store.transfer import Transfer
from cranfield.books.store.values import CallRow


class Calls(Part):
    """Calls of models."""

    def add(self, call: CallRow) -> int:
        """Record a call; its id."""
        with self._database.write() as session:
            at = self._clock() if call.at is None else call.at
            row = ModelCall(**asdict(call) | {"id": None, "item_ids": {"items": list(call.item_ids)}, "at": at})
            session.add(row)
            session.flush()
            return row.id

    def answered(self, book_id: int, cache_key: str) -> CallRow | None:
        """The last call with this key whose answer was `ok`."""
        query = select(ModelCall).where(
            ModelCall.book_id == book_id, ModelCall.cache_key == cache_key, ModelCall.outcome == "ok"
        )
        with self._database.read() as session:
            row = session.scalar(query.order_by(ModelCall.id.desc()).limit(1))
            return None if row is None else _call(row)

    def all(
        self,
        book_id: int,
        *,
        outcome: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> tuple[CallRow, ...]:
        """The calls of a book, of one outcome where one is given, with a larger id than `after`."""
        query = select(ModelCall).where(ModelCall.book_id == book_id, ModelCall.id > after)
        if outcome is not None:
            query = query.where(ModelCall.outcome == outcome)
        with self._database.read() as session:
            return tuple(_call(row) for row in session.scalars(query.order_by(ModelCall.id).limit(limit)))

    def get(self, call_id: int) -> CallRow | None:
        """A call."""
        with self._database.read() as session:
            row = session.get(ModelCall, call_id)
            return None if row is None else _call(row)


def _call(row: ModelCall) -> CallRow:
    items = row.item_ids.get("items", [])
    return as_value(CallRow, row, item_ids=tuple(items) if isinstance(items, list) else ())


class Store:
    """A database of books. Use it from any thread; `close()` at the end.

    Attributes:
        books: books, their items, guidelines and frozen versions.
        people: accounts, sessions, tokens, join links, members.
        sign_ins: attempts to sign in.
        queue: what a rater judges next; leases.
        log: saves, adjudication, imports, events.
        reading: progress, coverage, ratings, items.
        calls: calls of models.
        transfer: whole books out of the database and into it.
        is_new: whether opening the database made its tables.
    """

    def __init__(self, database: Database, clock: Clock = now_ms, *, is_new: bool = False) -> None:
        self.database = database
        self.clock = clock
        self.is_new = is_new
        self.books = Books(database, clock)
        self.people = People(database, clock)
        self.sign_ins = SignIns(database, clock)
        self.queue = Queue(database, clock)
        self.log = Log(database, clock)
        self.reading = BookReading(database, clock)
        self.calls = Calls(database, clock)
        self.transfer = Transfer(database, clock)

    @property
    def where(self) -> str:
        """The database, without a password."""
        return self.database.where

    def close(self) -> None:
        """Close all connections."""
        self.database.close()


def open_store(url: str | Path, *, create: bool = True, clock: Clock = now_ms) -> Store:
    """Open a database of books; one without tables gets them.

    Args:
        url: a path, `sqlite:PATH` or `postgresql://...`.
        create: make the file of SQLite where there is none.
        clock: the time, in milliseconds since 1970 (UTC).

    Raises:
        UsageError: it is not there and `create` is false, cannot be opened, is no database of books, or is of another version.
        MissingExtraError: the driver of PostgreSQL is not installed.
    """
    database = _database(url, create=create)
    with _closed_if_refused(database):
        with database.engine.connect() as connection:
            found = current_revision(connection)
        if found not in {None, REVISION}:
            raise UsageError(
                "the database has a different schema version",
                path=database.where,
                expected=f"schema {REVISION}",
                got=found,
                hint="run `cranfield db upgrade`",
            )
        is_new = found is None and upgrade(database) is None
    return Store(database, clock, is_new=is_new)


@contextmanager
def existing_database(url: str | Path) -> Iterator[Database]:
    """A database of books, of whatever version, for the time of a block.

    Raises:
        UsageError: it is not there, or cannot be opened.
    """
    database = _database(url, create=False)
    with _closed_if_refused(database):
        yield database
    database.close()


def read_revision(url: str | Path) -> str | None:
    """The revision of a database, which is not changed; None where there is none.

    Raises:
        UsageError: it cannot be opened, or is no database of books.
    """
    path = Database(database_url(url)).path
    if path is not None and not path.exists():
        return None
    with existing_database(url) as database, database.engine.connect() as connection:
        return current_revision(connection)


def _database(url: str | Path, *, create: bool) -> Database:
    database = Database(database_url(url))
    path = database.path
    if path is not None and not path.exists() and not create:
        raise UsageError(
            "no book database found",
            path=str(path),
            hint="`cranfield book create NAME --pool FILE` or `cranfield serve` creates one",
        )
    if path is not None and not path.parent.is_dir():
        raise UsageError("the folder of the database does not exist", path=str(path))
    return database


@contextmanager
def _closed_if_refused(database: Database) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        database.close()
        raise opening_problem(error, database) from None
    except BaseException:
        database.close()
        raise
