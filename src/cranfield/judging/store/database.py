"""Open a database of books."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.exc import DBAPIError

from cranfield.errors import UsageError
from cranfield.judging.store.engine import Clock, Database, database_url, now_ms
from cranfield.judging.store.migrate import opening_problem, upgrade
from cranfield.judging.store.store import Store


def open_store(url: str | Path, *, create: bool = True, clock: Clock = now_ms) -> Store:
    """Open a database of books, and upgrade its schema where it is of an earlier version: a SQLite file is copied first.

    Args:
        url: a path, `sqlite:PATH` or `postgresql://...`.
        create: make the file of SQLite where there is none.
        clock: the time, in milliseconds since 1970 (UTC).

    Raises:
        UsageError: it is not there and `create` is false, cannot be opened, is no database of books, or is of a newer version.
        MissingExtraError: the driver of PostgreSQL is not installed.
    """
    database = Database(database_url(url))
    path = database.path
    if path is not None and not path.exists() and not create:
        raise UsageError("there is no database of books here", path=str(path), hint="`cranfield book create` makes one")
    if path is not None and not path.parent.is_dir():
        raise UsageError("the folder of the database does not exist", path=str(path))
    try:
        upgrade(database)
    except DBAPIError as error:
        database.close()
        raise opening_problem(error, database) from None
    except BaseException:
        database.close()
        raise
    return Store(database, clock)
