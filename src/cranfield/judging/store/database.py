"""Open a database of books."""

from __future__ import annotations

from pathlib import Path

from cranfield.judging.store.engine import Clock, now_ms
from cranfield.judging.store.store import Store


def open_store(url: str | Path, *, create: bool = True, clock: Clock = now_ms) -> Store:
    """Open a database of books, and upgrade its schema where it is of an earlier version: a SQLite file is copied first.

    Args:
        url: a path, `sqlite:PATH` or `postgresql://...`.
        create: make the database where there is none.
        clock: the time, in milliseconds since 1970 (UTC).

    Raises:
        UsageError: it is not there and `create` is false, cannot be opened, is no database of books, or is of a newer version.
        MissingExtraError: SQLAlchemy, or the driver of PostgreSQL, is not installed.
    """
    raise NotImplementedError
