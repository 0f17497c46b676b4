"""Manage the database of books: upgrade it, back it up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import say
from cranfield.books.options import DEFAULT_DATABASE, DbOption
from cranfield.evaluation.options.declaration import Argument

if TYPE_CHECKING:
    from cranfield.books.database.engine import Database

SUBCOMMANDS = dict.fromkeys(("upgrade", "revision", "backup"), __name__)


def upgrade_command(*, db: DbOption = DEFAULT_DATABASE) -> None:
    """Upgrade the schema to this version, in one transaction. Back up the database first."""
    with open_database(db) as database:
        from cranfield.books.database.base import REVISION
        from cranfield.books.database.migrate import upgrade

        before = upgrade(database)
    where = database.where
    if before is None:
        say(f"{where} is a new database")
    elif before == REVISION:
        say(f"{where} is of revision {REVISION}, the latest")
    else:
        say(f"{where} was upgraded from revision {before} to {REVISION}")


def revision_command(*, db: DbOption = DEFAULT_DATABASE) -> None:
    """Show the revision of the schema, and the revision of this version. Changes nothing."""
    from cranfield.books.database.base import REVISION
    from cranfield.books.store.store import read_revision

    say(f"database: {read_revision(db) or 'none'}")
    say(f"this version: {REVISION}")


def backup_command(
    file: Annotated[Path, Argument("File to write, a SQLite database. It must not exist.", metavar="FILE")],
    *,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Copy a SQLite database, also while servers use it. For PostgreSQL, prints the `pg_dump` command.

    The copy has everything, hashes of passwords and tokens too: only this user can read it.
    """
    with open_database(db) as database:
        from cranfield.books.database.migrate import back_up

        back_up(database, file)
    say(f"{file}: backup of {database.where}")


@contextmanager
def open_database(db: str) -> Iterator[Database]:
    """A database of books that is there, of whatever version."""
    try:
        from cranfield.books.store.store import existing_database
    except ModuleNotFoundError:
        from cranfield.base.errors import MissingExtraError

        raise MissingExtraError.for_extra("a database of books", "web") from None
    with existing_database(db) as database:
        yield database
