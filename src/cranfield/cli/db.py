"""Manage the database of books: upgrade, back up, restore."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.book_options import DEFAULT_DATABASE, DbOption, open_books, upgrade_sentences

if TYPE_CHECKING:
    from cranfield.database.backup import BackupInfo
    from cranfield.database.engine import Database

SUBCOMMANDS = dict.fromkeys(("upgrade", "revision", "backup", "restore"), __name__)


def upgrade_command(*, db: DbOption = DEFAULT_DATABASE) -> None:
    """Upgrade the schema to that of this version, as every command does when it opens a database.

    A SQLite file is copied first, to a file beside it whose name ends in `.before-REVISION`.
    """
    from cranfield.database.base import REVISION

    with closing(open_books(db)) as store:
        sentences = upgrade_sentences(store) or [f"{store.where} is of revision {REVISION}, the latest"]
    typer.echo("\n".join(sentences))


def revision_command(*, db: DbOption = DEFAULT_DATABASE) -> None:
    """Show the revision of the schema, and that of this version. Nothing is changed."""
    from cranfield.database.base import REVISION
    from cranfield.judging.store.database import read_revision

    typer.echo(f"database: {read_revision(db) or 'none'}")
    typer.echo(f"this version: {REVISION}")


def backup_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write: gzipped JSON lines. It must not exist.")],
    *,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Back up the whole database, while servers use it, to a file that SQLite and PostgreSQL can be restored from.

    The file is read again and checked. It has everything, hashes of passwords and tokens too: only this user can read it.
    """
    from cranfield.database.backup import back_up_database

    with closing(open_database(db, must_exist=True)) as database:
        show_backup(f"{file}: backup of {database.where}", back_up_database(database, file))


def restore_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Backup that `cranfield db backup` wrote.")],
    *,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Restore a backup to an empty database, of either engine, and upgrade its schema to that of this version.

    What was restored is compared with the backup; where anything differs, nothing is kept.
    """
    from cranfield.database.backup import restore_database

    with closing(open_database(db)) as database:
        show_backup(f"{database.where}: restored from {file}", restore_database(file, database))


def open_database(db: str, *, must_exist: bool = False) -> Database:
    """A database of which nothing is changed: no schema is upgraded.

    Raises:
        UsageError: there is none, or no folder for one.
    """
    from cranfield.errors import MissingExtraError, UsageError

    try:
        from cranfield.database.engine import Database, database_url
    except ModuleNotFoundError:
        raise MissingExtraError.for_extra("a database of books", "web") from None
    database = Database(database_url(db))
    if database.path is not None and must_exist and not database.path.exists():
        raise UsageError("there is no database of books here", path=str(database.path))
    if database.path is not None and not database.path.parent.is_dir():
        raise UsageError("the folder of the database does not exist", path=str(database.path))
    return database


def show_backup(headline: str, found: BackupInfo) -> None:
    """Print the contents of a backup."""
    typer.echo(headline)
    typer.echo(f"revision {found.revision}, {sum(found.rows.values())} rows, sha256 {found.digest}")
    for table, rows in sorted(found.rows.items()):
        if rows:
            typer.echo(f"  {table}: {rows}")
