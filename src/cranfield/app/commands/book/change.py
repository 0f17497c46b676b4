"""Commands that change a book: add-item, guideline, calibrate, reopen, close, open."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

from cranfield.app.command import say
from cranfield.app.commands.book.create import read_guideline
from cranfield.app.commands.book_options import (
    DEFAULT_DATABASE,
    BookArgument,
    ByOption,
    DbOption,
    acting_account,
    named,
    open_books,
)
from cranfield.options.declaration import Argument, Option
from cranfield.words import command_word


def add_item_command(
    book: BookArgument,
    query: Annotated[str, Argument("Id of a query of the book.", metavar="QUERY")],
    doc: Annotated[str, Argument("Id of the document.", metavar="DOC")],
    *,
    field: Annotated[
        list[str] | None,
        Option("What raters see, such as title=...; repeat for more.", metavar="NAME=TEXT"),
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
        say(f"item {item}: document {doc} of query {query}")


def guideline_command(
    book: BookArgument,
    file: Annotated[
        Path | None, Argument("New guidelines, as Markdown; default: show those that hold.", metavar="FILE")
    ] = None,
    *,
    by: ByOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Show the guidelines, or make a new version. Judgments note the version under which they were made."""
    with closing(open_books(db)) as store:
        info = store.books.get(book)
        if file is None:
            say(info.guideline.rstrip("\n"))
            return
        version = store.books.set_guideline(info.id, read_guideline(file), acting_account(store, by))
        if version == info.guideline_version:
            say(f"version {version} has this text already")
            return
        say(f"version {version} holds")
        say(
            f"judged under earlier versions: `cranfield book reopen {command_word(book)} --before-guideline {version} --dry-run`"
        )


def calibrate_command(
    book: BookArgument,
    file: Annotated[Path, Argument("CSV with the columns query, doc, grade and, if you like, reason.", metavar="FILE")],
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
        say(n_of(store.books.calibration(info.id, rows), "calibration items"))
        items = [item for item in store.reading.items(info.id) if item.origin is Origin.CALIBRATION]
        if n_bare := sum(not item.fields for item in items):
            say(f"{n_bare} without a title or text in the book: raters may tell these from the others")


def reopen_command(
    book: BookArgument,
    *,
    state: Annotated[str | None, Option("Items in this state: done, adjudicate, adjudicated.", metavar="STATE")] = None,
    query: Annotated[str | None, Option("Items of this query.", metavar="ID")] = None,
    stale: Annotated[bool, Option("Judgments of a text that has changed since.")] = False,
    flagged: Annotated[bool, Option("Items with a flag.")] = False,
    rater: Annotated[str | None, Option("Judgments of this rater.", metavar="NAME")] = None,
    before_guideline: Annotated[
        int | None,
        Option("Judgments under an earlier version than this.", metavar="VERSION"),
    ] = None,
    skipped: Annotated[str | None, Option("Items that were skipped for this reason.", metavar="REASON")] = None,
    reason: Annotated[str, Option("Reason, for the log.", metavar="TEXT")] = "",
    dry_run: Annotated[bool, Option("Count the items, and change nothing.")] = False,
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
            say(f"{n_of(store.reading.count(number, where), 'items')} would be open again")
            return
        say(f"{n_of(store.books.reopen(number, where, acting_account(store, by), reason), 'items')} open again")


def close_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> None:
    """Take no more judgments. Open items can still be adjudicated, and the book can be frozen."""
    with closing(open_books(db)) as store:
        store.books.close(store.books.get(book).id)
        say(f"book {book} is closed")


def open_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> None:
    """Take judgments again."""
    with closing(open_books(db)) as store:
        store.books.open(store.books.get(book).id)
        say(f"book {book} is open")
