"""Upgrade a database to the schema of this version, by the revisions in `migrations/versions`."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from tempfile import mkstemp

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from cranfield.database.base import REVISION, Base
from cranfield.database.engine import Database
from cranfield.errors import InternalError, UsageError

MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x6372616E
"""Of PostgreSQL: two programs that open a database at once upgrade it in turn."""


def revisions() -> tuple[str, ...]:
    """All revisions, the earliest first."""
    from alembic.script import ScriptDirectory

    return tuple(reversed([script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]))


def current_revision(connection: Connection) -> str | None:
    """The revision of a database; None where it has no tables.

    Raises:
        UsageError: it has tables, and they are not those of books.
    """
    tables = set(inspect(connection).get_table_names())
    if {"alembic_version", "event"} <= tables:
        return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())
    if tables:
        raise UsageError("this is no database of books: it has other tables", hint="give another path or address")
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


@dataclass(frozen=True)
class Upgrade:
    """What opening a database came to."""

    before: str | None
    """Its revision before; None where it was new."""
    backup: Path | None = None
    """The copy of a SQLite file that was upgraded."""


def upgrade(database: Database, to: str = REVISION) -> Upgrade:
    """Upgrade a database, if it is of an earlier revision.

    A SQLite file that has tables is copied first, to `PATH.before-REVISION`. All is one transaction.

    Raises:
        UsageError: the database is of a newer revision, or not one of books.
    """
    with database.engine.connect() as connection:
        found = _known_revision(connection, database)
    if found == to:
        return Upgrade(found)
    backup = None
    with database.migrating() as connection:  # of SQLite, it waits here for other programs that write
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        found = _known_revision(connection, database)
        if found == to:  # another program has upgraded it meanwhile
            return Upgrade(found)
        if found is not None and database.path is not None:
            backup = back_up(database.path, Path(f"{database.path}.before-{to}"))
        run_revisions(connection, to)
        if database.is_sqlite and connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
            raise InternalError("the upgrade left a reference to a row that is not there", path=database.where)
    return Upgrade(found, backup)


def _known_revision(connection: Connection, database: Database) -> str | None:
    found = current_revision(connection)
    if found not in {None, REVISION} and found not in (known := revisions()):
        raise UsageError(
            f"the database was made by a newer version of Cranfield: its schema is {found}",
            path=database.where,
            expected=f"a schema up to {known[-1]}",
            hint="upgrade Cranfield, or open the copy that was made before the upgrade of the database",
        )
    return found


def run_revisions(connection: Connection, to: str) -> None:
    """Apply the revisions between that of the database and another."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    scripts, context = ScriptDirectory(str(MIGRATIONS)), MigrationContext.configure(connection)
    steps = list(scripts.iterate_revisions(to, context.get_current_revision()))
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
    context.stamp(scripts, to)


def back_up(source: Path, target: Path) -> Path:
    """Copy a SQLite database, with what other programs have written to it; only this user can read the copy.

    A copy that is there stays: the new one gets a number. The caller holds the lock of writers, so no other program copies.
    """
    prefix = f".{target.name[:100]}."
    for left in target.parent.glob(f"{escape(prefix)}{'?' * 8}.part"):  # by a program that was killed
        with suppress(OSError):  # or something else of this name
            left.unlink()
    handle, name = mkstemp(prefix=prefix, suffix=".part", dir=target.parent)
    os.close(handle)
    try:
        with closing(sqlite3.connect(source)) as from_file, closing(sqlite3.connect(name)) as to_file:
            from_file.backup(to_file)
        copy, number = target, 1
        while not linked(name, copy):
            number += 1
            copy = Path(f"{target}-{number}")
    finally:
        Path(name).unlink()
    return copy


def linked(name: str | Path, path: Path) -> bool:
    """Give a file a second name, unless that is taken."""
    try:
        os.link(name, path)
    except FileExistsError:
        return False
    return True


def differences(connection: Connection) -> list[object]:
    """What Alembic would change to make a database like the models: nothing, after an upgrade."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    return list(compare_metadata(context, Base.metadata))


def opening_problem(error: DBAPIError, database: Database) -> UsageError:
    """The error for a database that cannot be opened, without a password."""
    lines = str(error.orig).strip().splitlines()
    got = lines[0] if lines else type(error.orig).__name__
    if database.url.password:
        got = got.replace(str(database.url.password), "***")
    hint = (
        "this user must be able to write the file and its folder, where SQLite keeps two more"
        if "readonly" in got
        else None
    )
    return UsageError("the database cannot be opened", path=database.where, got=got, hint=hint)
