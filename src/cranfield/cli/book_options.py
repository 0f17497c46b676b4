"""What commands over books share: the option that names the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cranfield.judging.store.store import Store

DEFAULT_DATABASE = "cranfield-books.db"
DbOption = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="CRANFIELD_DB",
        help="Database of books: a path, sqlite:PATH or postgresql://...",
    ),
]


def open_books(db: str = DEFAULT_DATABASE, *, create: bool = False) -> Store:
    """Open the database of books.

    Raises:
        MissingExtraError: SQLAlchemy is not installed.
        UsageError: it cannot be opened, or is not there and `create` is false.
    """
    try:
        from cranfield.judging.store.database import open_store
    except ModuleNotFoundError:
        from cranfield.errors import MissingExtraError

        raise MissingExtraError.for_extra("a database of books", "web") from None
    return open_store(db, create=create)
