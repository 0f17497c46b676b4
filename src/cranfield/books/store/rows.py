"""Rows of the database as values, and the look-ups that several parts share."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, TypeVar, cast

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cranfield.base.errors import UnknownNameError, UsageError, shorten
from cranfield.books.settings import BookSettings
from cranfield.books.store.accounts import AccountInfo, LinkInfo, TokenInfo
from cranfield.books.store.schema import Account, Book, Guideline, Item, JoinLink, RaterKind, Role, Token

NAME_CHARS = 200
Value = TypeVar("Value")


def as_value(value: type[Value], /, *rows: object, **more: object) -> Value:
    """A value of rows: a field that is not among `more` is that of the first row that has such a column."""
    places = _places(cast("Any", value), tuple(map(type, rows)))
    return value(**{name: getattr(rows[place], name) for name, place in places if name not in more}, **more)


@cache
def _places(value: Any, tables: tuple[type, ...]) -> tuple[tuple[str, int], ...]:
    """Field to the place of the first table that has it; those that no table has are left out."""
    names = {name: place for place, table in reversed(list(enumerate(tables))) for name in dir(table)}
    known = [field.name for field in fields(value)] if is_dataclass(value) else value.model_fields
    return tuple((name, names[name]) for name in known if name in names)


class ChangedMeanwhileError(UsageError):
    """What was to follow the latest version is not its successor any more."""

    @classmethod
    def of(cls, what: str) -> ChangedMeanwhileError:
        """The error for something of which another version was stored."""
        return cls(f"another version of {what} has been stored in the meantime", hint="try again")


def checked_name(name: str, refused: str = "") -> str:
    """The name of an account or a book, without spaces around it.

    Args:
        name: as it was given.
        refused: characters that it may not have.

    Raises:
        UsageError: it is empty, too long, or has characters that are not visible, or change what is next to them.
    """
    name = name.strip()
    if not 0 < len(name) <= NAME_CHARS:
        raise UsageError(f"a name must have 1 to {NAME_CHARS} characters", path="name", got=shorten(name))
    if not name.isprintable() or set(name) & set(refused) or name in {".", ".."}:
        others = f", without {' '.join(refused)}" if refused else ""
        raise UsageError("not a name", path="name", expected=f"visible characters{others}", got=shorten(name))
    return name


def seeded(seed: int, *parts: object) -> int:
    """A number of 64 bits that follows from the seed and the parts: sorting by it is a random order."""
    return int.from_bytes(blake2b(repr((seed, *parts)).encode(), digest_size=8).digest(), "big")


def book_row(session: Session, book: str | int, *, lock: bool = False) -> Book:
    """A book by name or id; with `lock`, one transaction at a time has it, and events get ids in the order of commits.

    Raises:
        UnknownNameError: there is none.
    """
    query = select(Book).where(Book.name == book if isinstance(book, str) else Book.id == book)
    found = session.scalar(query.with_for_update(key_share=True) if lock else query)
    if found is None:
        if isinstance(book, str):
            raise UnknownNameError.among("book", book, session.scalars(select(Book.name)))
        raise UnknownNameError(f"book {book} not found")
    return found


def account_row(session: Session, account: str | int) -> Account:
    """An account by name or id.

    Raises:
        UnknownNameError: there is none.
    """
    found = (
        session.scalar(select(Account).where(Account.name == account))
        if isinstance(account, str)
        else session.get(Account, account)
    )
    if found is None:
        raise UnknownNameError(f"account {shorten(account) if isinstance(account, str) else account} not found")
    return found


def item_row(session: Session, item_id: int, book_id: int | None = None) -> Item:
    """An item, of this book where one is given.

    Raises:
        UnknownNameError: there is none.
    """
    found = session.get(Item, item_id)
    if found is None or (book_id is not None and found.book_id != book_id):
        raise UnknownNameError(f"item {item_id} not found" + ("" if book_id is None else " in this book"))
    return found


def settings_of(book: Book) -> BookSettings:
    """The settings of a book."""
    return BookSettings.model_validate(book.settings)


def account_info(row: Account) -> AccountInfo:
    """An account as a value."""
    return as_value(AccountInfo, row, kind=RaterKind(row.kind), role=Role(row.role), settings=dict(row.settings))


def token_info(row: Token, account: Account) -> TokenInfo:
    """A token as a value."""
    return as_value(TokenInfo, row, account=account_info(account))


def link_info(row: JoinLink, book: str) -> LinkInfo:
    """A join link as a value."""
    return as_value(LinkInfo, row, book=book)


def guideline_version(session: Session, book_id: int) -> int:
    """The latest version of the guidelines of a book."""
    return session.scalar(select(func.max(Guideline.version)).where(Guideline.book_id == book_id)) or 0
