"""Commands that show books and change nothing: list, show, log."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from typing import Annotated

import typer

from cranfield.cli.book_options import DEFAULT_DATABASE, BookArgument, DbOption, open_books
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver

EVENTS_AT_ONCE = 5_000


@option_groups
def list_command(*, output: Output, db: DbOption = DEFAULT_DATABASE) -> None:
    """List all books with their progress."""
    from cranfield.judging.book.progress import all_books
    from cranfield.reporting.documents.book_progress import books_document

    with closing(open_books(db)) as store:
        deliver(books_document(all_books(store)), output)


@option_groups
def show_command(book: BookArgument, *, output: Output, db: DbOption = DEFAULT_DATABASE) -> None:
    """Show how far a book is: judged, judged 0 and unjudged documents, states, raters, queries."""
    from cranfield.judging.book.progress import book_progress
    from cranfield.reporting.documents.book_progress import book_document

    with closing(open_books(db)) as store:
        deliver(book_document(book_progress(store, book)), output)


def log_command(
    book: BookArgument,
    *,
    after: Annotated[int, typer.Option("--after", metavar="ID", min=0, help="Only events after this one.")] = 0,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Print the log as JSON lines: who gave which grade, when, after how long, under which guidelines."""
    with closing(open_books(db)) as store:
        number = store.books.get(book).id
        while events := store.log.events(number, after, EVENTS_AT_ONCE):
            for event in events:
                typer.echo(json.dumps(asdict(event), ensure_ascii=False))
            after = events[-1].id


@option_groups
def preference_command(book: BookArgument, *, output: Output, db: DbOption = DEFAULT_DATABASE) -> None:
    """Show which of two lists raters prefer: wins, ties, an exact sign test, an interval."""
    from cranfield.errors import UsageError
    from cranfield.judging.preference import book_preference
    from cranfield.judging.settings import Mode
    from cranfield.reporting.documents.preference import preference_document

    with closing(open_books(db)) as store:
        info = store.books.get(book)
        if info.settings.mode is not Mode.PREFERENCE:
            raise UsageError(
                f"book {info.name} has grades", expected="a book of preferences: `cranfield judge RUN RUN`"
            )
        result = book_preference(store, info)
    deliver(preference_document(result), output)
