"""What commands over books share: the database, the book, and whose account records a change."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from cranfield.app.command import note
from cranfield.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.judging.settings import GradeScale
    from cranfield.judging.store.store import Store
    from cranfield.model import TestSet

Kind = TypeVar("Kind", bound=StrEnum)
DEFAULT_DATABASE = "cranfield-books.db"
BookArgument = Annotated[str, Argument("Name of the book.", metavar="BOOK")]
DbOption = Annotated[
    str,
    Option(
        "Database of books: a path, sqlite:PATH or postgresql://...", flag="--db", metavar="URL", env="CRANFIELD_DB"
    ),
]
WorkbenchOption = Annotated[
    Path | None,
    Option(
        "Operator's file: texts of documents, and how the server runs.",
        flag="--workbench",
        metavar="FILE",
        env="CRANFIELD_WORKBENCH",
    ),
]
ByOption = Annotated[
    str | None,
    Option("Account that the log records; default: the user of this machine.", flag="--by", metavar="NAME"),
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


def named(kind: type[Kind], what: str, given: str) -> Kind:
    """The value of this name.

    Raises:
        UnknownNameError: there is none.
    """
    from cranfield.errors import UnknownNameError

    if given not in list(kind):
        raise UnknownNameError.among(what, given, list(kind))
    return kind(given)


def acting_account(store: Store, name: str | None) -> int:
    """The id of the account that the log records for a command: one by name, or that of the user of this machine.

    Raises:
        UnknownNameError: there is no account of this name.
    """
    return (store.people.local() if name is None else store.people.get(name)).id


def note_scale(scale: GradeScale, judged: TestSet | None) -> None:
    """Say on stderr that a new book has other grades than the judgments of the test set, which declares none."""
    from cranfield.evaluation.joint import grades_of

    if judged is None or not judged.grades or judged.meta.scale:
        return
    own = grades_of(judged)
    if own != scale.grades:
        given, used = (", ".join(f"{grade:g}" for grade in grades) for grades in (own, scale.grades))
        note(
            f"note: the scale of the book is {scale.name} ({used}): the test set declares none; "
            f"`meta: {{scale: [{given}]}}` in it, before the book is made, gives the grades of its judgments"
        )
