"""Upgrade a database to the schema of this version, by the revisions in `migrations/versions`."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text
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
