"""Manage the database of books: upgrade its schema, show its revision."""

from __future__ import annotations

from contextlib import closing

import typer

from cranfield.cli.book_options import DEFAULT_DATABASE, DbOption, open_books

SUBCOMMANDS = dict.fromkeys(("upgrade", "revision"), __name__)


def upgrade_command(*, db: DbOption = DEFAULT_DATABASE) -> None:
    """Upgrade the schema to that of this version, as every command does when it opens a database.

    A SQLite file is copied first, to a file beside it whose name ends in `.before-REVISION`.
    """
    from cranfield.judging.store.schema import REVISION

    with closing(open_books(db)) as store:
        done = store.upgraded
    if done is None or done.before == REVISION:
        typer.echo(f"{store.where} is of revision {REVISION}, the latest")
        return
    typer.echo(f"{store.where} was upgraded from revision {done.before} to {REVISION}")
    if done.backup is not None:
        typer.echo(f"the database before: {done.backup}")


def revision_command(*, db: DbOption = DEFAULT_DATABASE) -> None:
    """Show the revision of the schema, and that of this version. Nothing is changed."""
    from cranfield.judging.store.database import read_revision
    from cranfield.judging.store.schema import REVISION

    typer.echo(f"database: {read_revision(db) or 'none'}")
    typer.echo(f"this version: {REVISION}")
