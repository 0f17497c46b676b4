"""Open a database of books."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from cranfield.base.errors import UsageError
from cranfield.books.database.base import REVISION
from cranfield.books.database.engine import Clock, Database, database_url, now_ms
from cranfield.books.database.migrate import current_revision, opening_problem, upgrade
from cranfield.books.store.store import Store


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
                "the database is of another version",
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
            "there is no database of books here",
            path=str(path),
            hint="`cranfield book create NAME --pool FILE` or `cranfield serve` makes one",
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
