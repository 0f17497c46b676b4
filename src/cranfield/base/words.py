"""Counts, plurals and lists in words, and text that is safe to print. Numbers alone are formatted in `numbers`."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Sequence

_PLURAL = re.compile(r"\b(\w+?)(ies|sses|s)\b|\bstrata\b")
"""The first word of a phrase that is a plural."""

UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters except tab and line ends
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # writing-direction marks
    "\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff"  # line separators and noncharacters
    "\ud800-\udfff]"  # surrogates: bytes that were not UTF-8
)
"""Characters that a terminal or a browser would interpret instead of showing."""
_BLANKS = re.compile(r"[\t\r\n]+")
_ESCAPED_BYTES = range(0xDC80, 0xDD00)
"""Where Python puts the bytes 0x80 to 0xff of a name that is not UTF-8."""


HIDDEN = "\u200b"
"""A zero-width space: between `@` and a name it prevents a mention."""
_ACTIVE = re.compile(
    r"(?<![a-z0-9])@(?=\w)|(?<=[\w.+-])@(?=[\w-]+\.\w)"  # a mention; an e-mail address
    r"|[#!](?=\d)|\bGH-(?=\d)"  # issues and requests
    r"|\b(?:https?|ftp|mailto):(?=\S)|\bwww(?=\.)",
    re.IGNORECASE,
)
"""What a forge or a chat program turns into a mention, a reference or a link."""

NAME_CHARS = 100
"""Most characters of the name of a run or a test set that comes from a file."""


def short_name(name: str) -> str:
    """A name as it is shown and stored: the tag of a run file may be as long as its line."""
    return name if len(name) <= NAME_CHARS else name[: NAME_CHARS - 1] + "…"


def count_noun(n: int, things: str, number: Callable[[int], str] = str) -> str:
    """`3 spans of lines`, and `1 span of lines`: the first plural of `things` is put in the singular."""
    return f"{number(n)} {noun(n, things)}"


def noun(n: int, things: str) -> str:
    """`things`, or its singular where `n` is 1."""
    return _PLURAL.sub(_singular, things, count=1) if n == 1 else things


def _singular(found: re.Match[str]) -> str:
    if found[1] is None:
        return "stratum"
    return str(found[1]) + {"ies": "y", "sses": "ss", "s": ""}[found[2]]


def plural(word: str) -> str:
    """`queries` for `query`, `keys` for `key`, `classes` for `class`."""
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith("s") else "s")


def join_first(
    items: Iterable[object], limit: int = 5, *, separator: str = ", ", number: Callable[[int], str] = str
) -> str:
    """The first items, and how many more there are: `q1, q2, q3 and 7 more`."""
    texts = [str(item) for item in items]
    more = len(texts) - limit
    return separator.join(texts[:limit]) + (f" and {number(more)} more" if more > 0 else "")


def capitalised(text: str) -> str:
    """The text with a capital at its beginning, and otherwise as it is."""
    return text[:1].upper() + text[1:]


def and_list(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return _joined(names, "and")


def or_list(names: Sequence[str]) -> str:
    """`a, b or c`."""
    return _joined(names, "or")


def _joined(names: Sequence[str], word: str) -> str:
    """The names with commas, and a word before the last."""
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def printable(text: str) -> str:
    """`text` on one line, with every character that is not safe to print as its number."""
    return UNPRINTABLE.sub(_escape, _BLANKS.sub(" ", text))


def printable_lines(text: str) -> str:
    """As `printable`, keeping line ends and tabs."""
    return UNPRINTABLE.sub(_escape, text.replace("\r\n", "\n").replace("\r", "\n"))


def inert(text: str) -> str:
    """`text` that looks the same, in which no forge and no chat program finds a mention, a reference or an address."""
    return _ACTIVE.sub(lambda found: found[0] + HIDDEN, text)


def _escape(match: re.Match[str]) -> str:
    number = ord(match.group())
    if number in _ESCAPED_BYTES:
        return f"\\x{number - 0xDC00:02x}"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def shown_id(text: str, *, quoted: bool = True) -> str:
    r"""An id, escaped where another one looks the same: `'cafe\u0301'` beside `'café'`.

    It looks the same where there is a blank at an end, a character that is not shown, or one that could be composed.
    """
    if not (text.isprintable() and text == text.strip() and unicodedata.is_normalized("NFC", text)):
        return ascii(text)
    return repr(text) if quoted else text


def first_line(text: str) -> str:
    """The first line that is not blank; empty when there is none."""
    return next((printable(line).strip() for line in text.splitlines() if line.strip()), "")


def last_lines(text: str, limit: int) -> str:
    """The last lines that are not blank, on one line with ` / ` between them."""
    lines = [printable(line).strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-limit:])


def width(text: str) -> int:
    """Columns of `text` on a terminal: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def shorten_to(text: str, columns: int) -> str:
    """`text` in at most `columns` columns, with `…` where it was cut; of marks that take none, as many as three a column."""
    most = 4 * columns
    if len(text) <= most and width(text) <= columns:
        return text
    kept, used = [], 1
    for character in text[:most]:
        used += width(character)
        if used > columns:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet takes the text of a cell for a formula, and runs it."""
    return cell.lstrip(" ").startswith(FORMULA_STARTS) and not _PLAIN_NUMBER.fullmatch(cell)


def command_word(value: object) -> str:
    """A path or a name as one word of a command that a shell takes.

    Example:
        >>> command_word("my run")
        "'my run'"
    """
    return shlex.quote(str(value))
