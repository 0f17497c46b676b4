"""Rows of the database as values, and the look-ups that several parts share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b, sha256
from itertools import pairwise
from typing import Any, TypeVar, cast
from unicodedata import name as character_name
from unicodedata import normalize

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


GOLD = "gold"
"""Who decided on a calibration item: the grade that it was made with."""
ADJUDICATOR = "adjudicator"
"""Who adjudicated, where that is not known."""
WITHOUT_PERSON = frozenset({RaterKind.CARRIED, RaterKind.RULE})
"""Kinds whose one account is called as they are."""
RESERVED = frozenset({GOLD, ADJUDICATOR, *RaterKind})
"""What exports and pages call something else than an account."""
INVISIBLE = frozenset(
    map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, *range(0xFE00, 0xFE10)))
) | {"\uffa0"}
"""Letters and marks without a picture, which `str.isprintable` lets pass."""
CAPITALS = str.maketrans("АВЕЅІЈКМНОРСТУХΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABESIJKMHOPCTYXABEZHIKMNOPTYX")  # noqa: RUF001
LETTERS = str.maketrans("аеорсухіјѕһԁԛԝκοανριυχτɑɡıȷᴄᴏᴠᴡᴢꜱ", "aeopcyxijshdqwkoavpiuxtagijcovwzs")
"""Letters of other alphabets, and of phonetics, to the Latin ones that they look like."""


def skeleton(name: str) -> str:
    """What names have in common that people take for one: without case, width, spaces and the alphabet of a letter."""
    folded = normalize("NFKC", name).translate(CAPITALS).casefold().translate(LETTERS)
    return " ".join(folded.split())


def new_name(name: str, taken: Iterable[str], kind: RaterKind = RaterKind.PERSON) -> str:
    """A name that a person chose, without spaces around it. What is no person may be called as its kind.

    Raises:
        UsageError: it is none, mixes alphabets in a word, has a meaning of its own, or is or looks like one that is taken.
    """
    name = checked_name(name)
    if not _is_visible(name):
        raise UsageError("not a name", path="name", expected="visible letters or digits", got=shorten(name))
    if any(first != second for word in name.split() for first, second in pairwise(_alphabets(word))):
        raise UsageError(
            "a word mixes letters of several alphabets",
            path="name",
            expected="letters of one alphabet",
            got=shorten(name),
        )
    if skeleton(name) in RESERVED and (kind is RaterKind.PERSON or name != kind):
        raise UsageError(f"the name {shorten(name)} is reserved", path="name", hint="choose another name")
    if skeleton(name) in map(skeleton, taken):
        raise UsageError(
            f"the name {shorten(name)} is taken, or too similar to an existing name",
            path="name",
            hint="choose another name",
        )
    return name


def name_of_file(name: str, kind: RaterKind) -> str:
    """The name of the account of a rater whom a file names: as it stands there, or another one where it is no name.

    Raters whose names differ have names that differ. No person signs in by them, so that they may look alike.
    """
    if kind in WITHOUT_PERSON:
        return name
    if skeleton(name) in RESERVED:
        return f"{name.strip()} (rater)"
    if name == name.strip() and len(name) <= NAME_CHARS and name.isprintable() and _is_visible(name):
        return name
    shown = "".join(each if each.isprintable() and each not in INVISIBLE else " " for each in name)
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{' '.join(shown.split())[: NAME_CHARS // 2] or 'rater'} #{digest}"


def _is_visible(name: str) -> bool:
    return not INVISIBLE & set(name) and any(each.isalnum() for each in name)


def _alphabets(word: str) -> list[str]:
    """Alphabet of each letter that has a case: ideographs and syllables stand beside any of them."""
    letters = (each for each in normalize("NFKC", word) if each.lower() != each.upper())
    return [character_name(each, "").split(" ")[0] for each in letters]
