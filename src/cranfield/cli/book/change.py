"""Commands that change a book: add-item, guideline, calibrate, reopen, close, open."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.book.create import read_guideline
from cranfield.cli.book_options import (
    DEFAULT_DATABASE,
    BookArgument,
    ByOption,
    DbOption,
    acting_account,
    named,
    open_books,
)
from cranfield.words import command_word


def add_item_command(
    book: BookArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Id of a query of the book.")],
    doc: Annotated[str, typer.Argument(metavar="DOC", help="Id of the document.")],
    *,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME=TEXT", help="What raters see, such as title=...; repeat for more."),
    ] = None,
    by: ByOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Add a document that no system returned, to be judged."""
    from cranfield.errors import Problem, UsageError, shorten

    pairs = [text.partition("=") for text in field or ()]
    problems = [
        Problem(f"--field is {shorten(name)}", expected="NAME=TEXT such as title=Wool socks")
        for name, equals, _ in pairs
        if not equals or not name
    ]
    if problems:
        raise UsageError(problems)
    with closing(open_books(db)) as store:
        number = store.books.get(book).id
        item = store.books.add_item(
            number, query, doc, {name: text for name, _, text in pairs}, acting_account(store, by)
        )
        typer.echo(f"item {item}: document {doc} of query {query}")


def guideline_command(
    book: BookArgument,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="New guidelines, as Markdown; default: show those that hold.")
    ] = None,
    *,
    by: ByOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Show the guidelines, or make a new version. Judgments note the version under which they were made."""
    with closing(open_books(db)) as store:
        info = store.books.get(book)
        if file is None:
            typer.echo(info.guideline.rstrip("\n"))
            return
        version = store.books.set_guideline(info.id, read_guideline(file), acting_account(store, by))
        if version == info.guideline_version:
            typer.echo(f"version {version} has this text already")
            return
        typer.echo(f"version {version} holds")
        typer.echo(
            f"judged under earlier versions: `cranfield book reopen {command_word(book)} --before-guideline {version} --dry-run`"
        )


def calibrate_command(
    book: BookArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV with the columns query, doc, grade and, if you like, reason.")
    ],
    *,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Add documents with a known grade: raters judge them as others, and do not learn which they are."""
    from cranfield.judging.store.calibration_file import read_calibration
    from cranfield.judging.store.schema import Origin
    from cranfield.words import n_of

    rows = read_calibration(file)
    with closing(open_books(db)) as store:
        info = store.books.get(book)
        typer.echo(n_of(store.books.calibration(info.id, rows), "calibration items"))
        items = [item for item in store.reading.items(info.id) if item.origin is Origin.CALIBRATION]
        if n_bare := sum(not item.fields for item in items):
            typer.echo(f"{n_bare} without a title or text in the book: raters may tell these from the others")


def reopen_command(
    book: BookArgument,
    *,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="Items in this state: done, adjudicate, adjudicated.")
    ] = None,
    query: Annotated[str | None, typer.Option("--query", metavar="ID", help="Items of this query.")] = None,
    stale: Annotated[bool, typer.Option("--stale", help="Judgments of a text that has changed since.")] = False,
    flagged: Annotated[bool, typer.Option("--flagged", help="Items with a flag.")] = False,
    rater: Annotated[str | None, typer.Option("--rater", metavar="NAME", help="Judgments of this rater.")] = None,
    before_guideline: Annotated[
        int | None,
        typer.Option("--before-guideline", metavar="VERSION", help="Judgments under an earlier version than this."),
    ] = None,
    skipped: Annotated[
        str | None, typer.Option("--skipped", metavar="REASON", help="Items that were skipped for this reason.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, for the log.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the items, and change nothing.")] = False,
    by: ByOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Ask again for the items that match all options. The log keeps what is withdrawn."""
    from cranfield.errors import UsageError
    from cranfield.judging.store.schema import ItemState, SkipReason
    from cranfield.judging.store.values import ItemFilter
    from cranfield.words import n_of

    where = ItemFilter(
        state=None if state is None else named(ItemState, "state", state),
        query=query,
        stale=True if stale else None,
        flagged=True if flagged else None,
        rater=rater,
        before_guideline=before_guideline,
        skipped=None if skipped is None else named(SkipReason, "reason of a skip", skipped),
    )
    if where == ItemFilter():
        hint = "name what to ask again: --stale, --flagged, --rater, --query, --before-guideline, --skipped or --state"
        raise UsageError("nothing says which items", hint=hint)
    with closing(open_books(db)) as store:
        number = store.books.get(book).id
        if rater is not None:
            store.people.get(rater)
        if dry_run:
            typer.echo(f"{n_of(store.reading.count(number, where), 'items')} would be open again")
            return
        typer.echo(f"{n_of(store.books.reopen(number, where, acting_account(store, by), reason), 'items')} open again")


def close_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> None:
    """Take no more judgments. Open items can still be adjudicated, and the book can be frozen."""
    with closing(open_books(db)) as store:
        store.books.close(store.books.get(book).id)
        typer.echo(f"book {book} is closed")


def open_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> None:
    """Take judgments again."""
    with closing(open_books(db)) as store:
        store.books.open(store.books.get(book).id)
        typer.echo(f"book {book} is open")
