"""Redaction of what people typed: what may identify a person, or is a secret, is replaced by its kind.

These are patterns: they find no names and no addresses. Queries are redacted before they are stored or become queries of a test set.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from html import unescape
from typing import Literal, get_args
from urllib.parse import unquote

RedactionName = Literal["url", "secret", "email", "iban", "card", "phone", "ssn", "digits"]
REDACTION_NAMES: tuple[RedactionName, ...] = get_args(RedactionName)
"""Patterns that are part of Cranfield, in the order in which they are applied."""
PLACEHOLDER_NAME = r"[a-z][a-z0-9_]{0,29}"
MIN_DIGITS = 9
"""`digits` are so many in a row, or more, by default."""
ENCODINGS = 3
"""Encodings, one in the other, that hide nothing."""
_PLACEHOLDER = re.compile(rf"<{PLACEHOLDER_NAME}>")
_JSON_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_SUSPECT = re.compile(r"[\d@=\[({]|[\w-]{16}")
"""Without it there is nothing to remove: most queries are words."""
_SHORTEST_PHONE = 9
_SHORTEST_CARD = 13
_SHORTEST_IBAN = 15
Span = tuple[int, int]


def redact_text(
    text: str,
    kinds: Collection[RedactionName] = REDACTION_NAMES,
    min_digits: int = MIN_DIGITS,
    custom: Mapping[str, Callable[[str], Sequence[str]]] | None = None,
) -> tuple[str, Counter[str]]:
    """A text with blanks run together and what is removed replaced by `<KIND>`, and the number of places of each kind.

    Escapes, digits and signs of other alphabets, and characters that are not seen, hide nothing: where something is
    removed, the text is in its plain form.

    Args:
        text: what was typed.
        kinds: what is removed.
        min_digits: `digits` are so many in a row, or more.
        custom: name of a pattern to a function that gives what it finds, the longest first; applied before the others.

    Example:
        >>> redact_text("results of jane.roe@example.org")
        ('results of <email>', Counter({'email': 1}))
    """
    redacted, found = _plain(text), Counter[str]()
    for name, find in (custom or {}).items():
        for part in find(redacted):
            found[name] += redacted.count(part)
            redacted = redacted.replace(part, f"<{name}>")
    for kind, rules in REDACTIONS.items() if _SUSPECT.search(redacted) else ():
        if kind in kinds:
            for rule in rules:
                redacted = rule.replaced(redacted, kind, found)
    if "digits" in kinds:
        redacted = _digits(min_digits).replaced(redacted, "digits", found)
    return (redacted if found.total() else _with_blanks(text)), found


def is_only_placeholders(redacted: str) -> bool:
    """Whether nothing of a query is left."""
    return not re.search(r"\w", _PLACEHOLDER.sub("", redacted))


def _with_blanks(text: str) -> str:
    return " ".join("".join(" " if unicodedata.category(char) == "Cc" else char for char in text).split())


def _plain(text: str) -> str:
    """A query without escapes of JSON, HTML and addresses, in NFKC, with one kind of dash and of digits."""
    for _ in range(ENCODINGS):
        decoded = unquote(unescape(_JSON_ESCAPES.sub(_decoded, text)))
        if decoded == text:
            break
        text = decoded
    return _with_blanks("".join(map(_plain_char, unicodedata.normalize("NFKC", text))))


def _decoded(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("\\u", "")).decode("utf-16-be", "replace")


def _plain_char(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    return "" if category == "Cf" else "-" if category == "Pd" or char == "\N{MINUS SIGN}" else char


def _whole(match: re.Match[str]) -> Span | None:
    """The match, or its group where it has one."""
    return match.span(match.lastindex or 0)


def _long_enough(match: re.Match[str]) -> Span | None:
    return match.span() if sum(char.isdecimal() for char in match[0]) >= _SHORTEST_PHONE else None


def _card(match: re.Match[str]) -> Span | None:
    """The longest card number whose last digits are a whole group."""
    places = [place for place in range(*match.span()) if match.string[place].isdecimal()]
    digits = [int(match.string[place]) for place in places]
    for length in range(len(digits), _SHORTEST_CARD - 1, -1):
        end = places[length - 1] + 1
        if not match.string[end : end + 1].isdecimal() and is_luhn(digits[:length]):
            return match.start(), end
    return None


def is_luhn(digits: list[int]) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1)."""
    doubled = (
        2 * digit - 9 if digit > 4 else 2 * digit for digit in digits[-2::-2]
    )  # 2 * 5 is 10, whose digits sum to 1
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _iban(match: re.Match[str]) -> Span | None:
    """The longest account number: words may follow it."""
    places = [place for place in range(*match.span()) if match.string[place].isalnum()]
    for length in range(len(places), _SHORTEST_IBAN - 1, -1):
        if is_iban("".join(match.string[place] for place in places[:length])):
            return match.start(), places[length - 1] + 1
    return None


def is_iban(number: str) -> bool:
    """Whether the check digits of an account number fit (ISO 13616: the rest of the division by 97 is 1)."""
    moved = number[4:] + number[:4]
    return number.isascii() and number.isalnum() and int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


class _Rule:
    """A pattern, and which part of a match is removed; None: none of it."""

    def __init__(self, pattern: str, part: Callable[[re.Match[str]], Span | None] = _whole) -> None:
        self._pattern, self._part = re.compile(pattern), part

    def replaced(self, text: str, name: str, found: Counter[str]) -> str:
        """The text with `<NAME>` in the place of each part."""
        parts, done, place = [], 0, 0
        while match := self._pattern.search(text, place):
            span = self._part(match)
            if span is None:
                place = match.start() + 1
                continue
            parts += [text[done : span[0]], f"<{name}>"]
            found[name] += 1
            done = place = span[1]
        return "".join([*parts, text[done:]])


_AT = r"(?:@|\s?[\[({]\s?(?:at|@)\s?[\])}]\s?)"
_DOT = r"(?:\.|\s?[\[({]\s?(?:dot|punkt|\.)\s?[\])}]\s?)"
_CALLED = r"(?i:\b(?:tel|telephone|telefon|call|fax|whatsapp|sms)\b[ .:#]{0,3})"
REDACTIONS: Mapping[RedactionName, Sequence[_Rule]] = {
    "url": (
        _Rule(r"://([^\s/@]{1,200})@"),
        _Rule(r"(?<![\w.-])[\w.-]{1,64}=[^\s&]*&[\w.-]{1,64}=\S*"),
        _Rule(r"[?#&][\w.\[\]-]{1,64}=\S*"),
    ),
    "secret": (
        _Rule(r"\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"),  # a JSON Web Token
        _Rule(r"(?<![^\W_])(?:[sprk]k[-_][\w-]{16,}|gh[a-z]_\w{20,}|AKIA[0-9A-Z]{16})"),
        _Rule(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{32,}"),
        _Rule(
            r"(?i)(?<![^\W_])(?:pass(?:word|wd|phrase|wort)?|pwd|kennwort|secret|token|bearer|(?:api|access)[_-]?key|session[_-]?id)"
            r"(?:\s?[:=]\s?|\s)((?=\S*\d)[^\s&]{6,})"
        ),
    ),
    "email": (
        _Rule(
            rf"(?i)(?:\"[^\"]{{1,64}}\"|[^\s@<>(),;:=&?\"\[\]{{}}/]{{1,64}}){_AT}(?:[\w-]{{1,63}}{_DOT}){{1,8}}"
            r"(?:xn--[\w-]{2,59}|[^\W\d_]{2,24})\b"
        ),
    ),
    "iban": (_Rule(r"(?<![^\W_])[A-Za-z]{2}\d{2}(?:[ ./-]{0,2}[A-Za-z0-9]){11,30}", _iban),),
    "card": (_Rule(r"(?<![\d+])[2-6](?:[ ./_+-]{0,3}\d){12,18}", _card),),
    "phone": (
        _Rule(r"(?<!\w)(?:\+|00)[ ]?[1-9](?:[ ()./-]{0,3}\d){6,14}(?!\d)"),
        _Rule(rf"{_CALLED}(\+?\(?\d(?:[ ()./+-]{{0,3}}\d){{6,14}})(?!\d)"),
        _Rule(r"(?<![\w.])(?<!\d[ ])\(?0[1-9]\d{0,4}\)?(?:[ ./+-]{1,3}\d{2,}){1,5}(?!\d)", _long_enough),
        _Rule(r"(?<!\d)\(\d{2,5}\)[ .-]?\d{2,5}(?:[ .-]?\d{2,5}){1,3}(?!\d)", _long_enough),
        _Rule(r"(?<!\d)\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?!\d)"),
        _Rule(
            r"(?<![\w.-])(?:1[3-9]\d[ -]\d{4}[ -]\d{4}|8[ -]9\d\d[ -]\d{3}[ -]\d\d[ -]\d\d|[6-9]\d{4} \d{5})(?![\w-])"
        ),
    ),
    "ssn": (_Rule(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"),),
}
"""In the order in which they are applied: addresses hold secrets, account numbers are full of digits."""


@lru_cache
def _digits(least: int) -> _Rule:
    """Long runs of digits, but for decimal fractions and the end of a UUID."""
    return _Rule(rf"(?<!\d)(?<!\b\d[.,])(?<!-[0-9a-f]{{4}}-[0-9a-f]{{4}}-)\d{{{least},}}")
