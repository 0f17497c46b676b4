"""Upgrade a database to the schema of this version, by the revisions in `migrations/versions`."""

from __future__ import annotations

import os
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import mkstemp

from sqlalchemy import URL, Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from cranfield.base.errors import UsageError
from cranfield.books.database.base import REVISION
from cranfield.books.database.engine import Database

MIGRATIONS = Path(__file__).parent / "migrations"


def current_revision(connection: Connection) -> str | None:
    """The revision of a database; None where it has no tables.

    Raises:
        UsageError: it has tables, and they are not those of books.
    """
    tables = set(inspect(connection).get_table_names())
    if {"alembic_version", "event"} <= tables:
        return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())
    if tables:
        raise UsageError("this is not a book database: it has other tables", hint="give another path or address")
    return None


def stored_revision(database: Database) -> str | None:
    """The revision that a database of books has now, in one cheap look."""
    with database.engine.connect() as connection:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def check_write(database: Database, revision: str) -> None:
    """Write the revision of a database anew, and commit it: what is undone before the end would not notice a full disk.

    Raises:
        SQLAlchemyError: nothing can be written now.
    """
    change = text("UPDATE alembic_version SET version_num = :new WHERE version_num = :old")
    with database.write() as session:  # SQLite writes no page for a row that is as it was
        session.execute(change, {"new": f"{revision}+", "old": revision})
        session.execute(change, {"new": revision, "old": f"{revision}+"})


def upgrade(database: Database) -> str | None:
    """Upgrade a database to the schema of this version, in one transaction; its revision before, None where it had no tables.

    Raises:
        UsageError: the database is of a newer revision, or not one of books.
    """
    with database.write("schema") as session:  # programs that upgrade one database at once take turns
        connection = session.connection()
        found = current_revision(connection)
        if found != REVISION:
            _run_revisions(connection, found, database.where)
    return found


def _run_revisions(connection: Connection, found: str | None, where: str) -> None:
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    scripts, context = ScriptDirectory(str(MIGRATIONS)), MigrationContext.configure(connection)
    if found not in {None, *(script.revision for script in scripts.walk_revisions())}:
        raise UsageError(
            f"the database was made by a newer version of Cranfield: its schema is {found}",
            path=where,
            expected=f"a schema up to {REVISION}",
            hint="upgrade Cranfield",
        )
    steps = list(scripts.iterate_revisions(REVISION, found))
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
    context.stamp(scripts, REVISION)


def opening_problem(error: DBAPIError, database: Database) -> UsageError:
    """The error for a database that cannot be opened, without a password."""
    lines = str(error.orig).strip().splitlines()
    got = lines[0] if lines else type(error.orig).__name__
    if database.url.password:
        got = got.replace(str(database.url.password), "***")
    hint = (
        "this user needs write access to the file and to its folder, where SQLite creates two more files"
        if "readonly" in got
        else None
    )
    return UsageError("the database cannot be opened", path=database.where, got=got, hint=hint)


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
