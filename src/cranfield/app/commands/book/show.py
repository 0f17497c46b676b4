"""Commands that show books and change nothing: list, show, log."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from typing import Annotated

from annotated_types import Ge

from cranfield.app.command import Report, say
from cranfield.app.commands.book_options import DEFAULT_DATABASE, BookArgument, DbOption, open_books
from cranfield.options.declaration import Option

EVENTS_AT_ONCE = 5_000


def list_command(*, db: DbOption = DEFAULT_DATABASE) -> Report:
    """List all books with their progress."""
    from cranfield.judging.book.progress import all_books
    from cranfield.reporting.documents.book_progress import books_document

    with closing(open_books(db)) as store:
        return Report(document=books_document(all_books(store)))


def show_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> Report:
    """Show how far a book is: judged, judged 0 and unjudged documents, states, raters, queries."""
    from cranfield.judging.book.progress import book_progress
    from cranfield.reporting.documents.book_progress import book_document

    with closing(open_books(db)) as store:
        return Report(document=book_document(book_progress(store, book)))


def log_command(
    book: BookArgument,
    *,
    after: Annotated[int, Option("Only events after this one.", metavar="ID"), Ge(0)] = 0,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Print the log as JSON lines: who gave which grade, when, after how long, under which guidelines."""
    with closing(open_books(db)) as store:
        number = store.books.get(book).id
        while events := store.log.events(number, after, EVENTS_AT_ONCE):
            for event in events:
                say(json.dumps(asdict(event), ensure_ascii=False))
            after = events[-1].id


def preference_command(book: BookArgument, *, db: DbOption = DEFAULT_DATABASE) -> Report:
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
    return Report(document=preference_document(result))
