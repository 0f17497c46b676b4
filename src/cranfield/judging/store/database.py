"""Open a database of books."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from cranfield.database.engine import Clock, Database, database_url, now_ms
from cranfield.database.migrate import current_revision, opening_problem, upgrade
from cranfield.errors import UsageError
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
        raise UsageError(
            "there is no database of books here",
            path=str(path),
            hint="`cranfield book create NAME --pool FILE` or `cranfield serve` makes one",
        )
    if path is not None and not path.parent.is_dir():
        raise UsageError("the folder of the database does not exist", path=str(path))
    with _closed_if_refused(database):
        done = upgrade(database)
    return Store(database, clock, done)


def read_revision(url: str | Path) -> str | None:
    """The revision of a database, which is not changed; None where there is none.

    Raises:
        UsageError: it cannot be opened, or is no database of books.
    """
    database = Database(database_url(url))
    if database.path is not None and not database.path.exists():
        return None
    with _closed_if_refused(database), database.engine.connect() as connection:
        found = current_revision(connection)
    database.close()
    return found


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
