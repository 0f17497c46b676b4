"""Text that came from systems and files, made safe to print: no control character, no half of a character.

A result id can hold an escape sequence that repaints a terminal, a direction mark that turns a line round, or bytes that
are no UTF-8. All of them are shown by their number instead of being obeyed.
"""

from __future__ import annotations

import re
import unicodedata

OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters, but for tab and line ends
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that set the direction of writing
    "\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff"  # line separators, marks that are no text
    "\ud800-\udfff]"  # halves of a character: bytes that were no UTF-8
)
"""What a terminal or a browser would obey instead of showing."""
_BLANKS = re.compile(r"[\t\r\n]+")
_ESCAPED_BYTES = range(0xDC80, 0xDD00)
"""Where Python puts the bytes 0x80 to 0xff of a name that is no UTF-8."""


def printable(text: str) -> str:
    """`text` on one line, with what a terminal or a browser would obey spelled by its number."""
    return OBEYED.sub(_spell, _BLANKS.sub(" ", text))


def printable_lines(text: str) -> str:
    """As `printable`, keeping line ends and tabs."""
    return OBEYED.sub(_spell, text.replace("\r\n", "\n").replace("\r", "\n"))


def first_line(text: str) -> str:
    """The first line that says something; empty when none does."""
    return next((printable(line).strip() for line in text.splitlines() if line.strip()), "")


def width(text: str) -> int:
    """Columns a terminal gives to `text`: wide characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def shorten_to(text: str, columns: int) -> str:
    """`text` in at most so many columns, with `…` where something was cut."""
    if width(text) <= columns:
        return text
    kept, used = [], 1
    for character in text:
        used += width(character)
        if used > columns:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def _spell(match: re.Match[str]) -> str:
    number = ord(match.group())
    if number in _ESCAPED_BYTES:
        return f"\\x{number - 0xDC00:02x}"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
