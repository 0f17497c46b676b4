"""Names of accounts: which ones a person may choose, and what becomes of those that files bring."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from itertools import pairwise
from unicodedata import name as character_name
from unicodedata import normalize

from cranfield.base.errors import UsageError, shorten
from cranfield.books.store.rows import NAME_CHARS, checked_name
from cranfield.books.store.schema import RaterKind

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
