"""Options of commands that open a database of books."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.evaluation.options.declaration import Option

if TYPE_CHECKING:
    from cranfield.books.store.store import Store


DEFAULT_DATABASE = "cranfield-books.db"
DbOption = Annotated[
    str,
    Option("Book database: a path, sqlite:PATH or postgresql://...", flag="--db", metavar="URL", env="CRANFIELD_DB"),
]
WorkbenchOption = Annotated[
    Path | None,
    Option(
        "Operator's file: sources of document texts, and settings of the server.",
        flag="--workbench",
        metavar="FILE",
        env="CRANFIELD_WORKBENCH",
    ),
]


def open_books(db: str = DEFAULT_DATABASE, *, create: bool = False) -> Store:
    """Open the database of books.

    Raises:
        MissingExtraError: SQLAlchemy is not installed.
        UsageError: it cannot be opened, or is not there and `create` is false.
    """
    try:
        from cranfield.books.store.store import open_store
    except ModuleNotFoundError:
        from cranfield.base.errors import MissingExtraError

        raise MissingExtraError.for_extra("a database of books", "web") from None
    return open_store(db, create=create)
