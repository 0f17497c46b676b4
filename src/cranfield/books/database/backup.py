"""Back up a database: a copy of the file of SQLite. PostgreSQL has a tool of its own."""

from __future__ import annotations

import os
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import mkstemp

from sqlalchemy import URL

from cranfield.base.errors import UsageError
from cranfield.books.database.engine import Database
from cranfield.books.database.migrate import current_revision


def back_up(database: Database, path: Path) -> None:
    """Copy a SQLite database of books, with what programs that use it have committed.

    Args:
        database: of whatever revision; nothing in it is changed.
        path: a file that does not exist; only this user can read it.

    Raises:
        UsageError: the file exists or cannot be written; there are no books; or PostgreSQL has the database.
    """
    if database.path is None:
        command = shlex.join(["pg_dump", "--format=custom", f"--file={path}", _without_password(database.url)])
        raise UsageError(
            "this is a PostgreSQL database: use pg_dump for the backup", path=database.where, hint=f"`{command}`"
        )
    with database.engine.connect() as connection:
        if current_revision(connection) is None:
            raise UsageError("no book database found", path=database.where)
    taken = UsageError("the file exists", path=str(path), hint="a backup does not overwrite files: give another name")
    if os.path.lexists(path):  # also a link to nothing
        raise taken
    try:
        handle, name = mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
        os.close(handle)
        try:
            with closing(sqlite3.connect(database.path)) as from_file, closing(sqlite3.connect(name)) as to_file:
                from_file.backup(to_file)
            os.link(name, path)  # fails where another program has made the file meanwhile
        finally:
            Path(name).unlink()
    except FileExistsError:
        raise taken from None
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError("the backup cannot be written", path=str(path), got=reason) from None


def _without_password(url: URL) -> str:
    query = {name: value for name, value in url.query.items() if "password" not in name}
    plain = URL.create("postgresql", url.username, None, url.host, url.port, url.database, query)
    return plain.render_as_string()
