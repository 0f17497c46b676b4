"""The terms of a query, marked in sanitised HTML."""

from __future__ import annotations

import html
import re
import unicodedata

from markupsafe import Markup

MOST_TERMS = 40
MOST_MARKS = 500
"""Marks in one document: more help no reader."""
_LONGEST_TERM = 64
_TAG = re.compile(r'(<(?:[^<>"]|"[^"]*")*>)')
"""A tag as nh3 writes it: attributes are in double quotes."""
_WORD = re.compile(r"\w+")
_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts that write words without spaces between them: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_UNSPACED = re.compile(f"[{_NO_SPACES}]")
_FUNCTION_WORD_TEXT = (
    "a an and are as at be by can do does for from has have how i in is it my not of on or that the this to was what "
    "when where which who why will with you your"
)
_FUNCTION_WORDS = frozenset(_FUNCTION_WORD_TEXT.split())


def query_terms(query: str) -> list[str]:
    """The words of a query to mark, folded, the longest first; function words only where there is no other."""
    folded, _ = _folded(query[: 20 * _LONGEST_TERM])
    words = [word for word in dict.fromkeys(_WORD.findall(folded)) if len(word) <= _LONGEST_TERM]
    content = [word for word in words if word not in _FUNCTION_WORDS] or words
    return sorted(content[:MOST_TERMS], key=lambda word: (-len(word), word))


def highlight(markup: Markup, query: str) -> Markup:
    """Sanitised HTML with the terms of a query in `<mark>`, whatever their case and accents are.

    Args:
        markup: as nh3 or `escape` writes it. Tags are not changed, text is escaped anew.
        query: its text.
    """
    terms = query_terms(query)
    if not terms:
        return markup
    spaced = "|".join(re.escape(term) for term in terms if not _UNSPACED.search(term))
    unspaced = [re.escape(term) for term in terms if _UNSPACED.search(term)]
    alternatives = ([rf"(?<!\w)(?:{spaced})(?!\w)"] if spaced else []) + unspaced
    pattern = re.compile("|".join(alternatives))
    left = MOST_MARKS
    parts = _TAG.split(markup)
    for index in range(0, len(parts), 2):  # between two tags
        if left > 0 and parts[index]:
            parts[index], n_marks = _marked(html.unescape(parts[index]), pattern, left)
            left -= n_marks
    return Markup("".join(parts))  # noqa: S704  the tags of `markup`, and text that is escaped


def _marked(text: str, pattern: re.Pattern[str], most: int) -> tuple[str, int]:
    """A text with marks, escaped, and their number."""
    folded, places = _folded(text)
    pieces: list[str] = []
    end = n_marks = 0
    for found in pattern.finditer(folded):
        if n_marks == most:
            break
        start, stop = places[found.start()], places[found.end()]
        pieces += [html.escape(text[end:start]), "<mark>", html.escape(text[start:stop]), "</mark>"]
        end = stop
        n_marks += 1
    return "".join([*pieces, html.escape(text[end:])]), n_marks


def _folded(text: str) -> tuple[str, list[int]]:
    """A text without case and accents, and for each of its characters, and its end, the place in the original."""
    folded: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        plain = char.lower() if char.isascii() else _plain(char)
        folded.append(plain)
        places += [place] * len(plain)
    return "".join(folded), [*places, len(text)]


def _plain(char: str) -> str:
    """A character without its accents, in lower case; nothing for an accent by itself."""
    return "".join(part for part in unicodedata.normalize("NFKD", char).casefold() if not unicodedata.combining(part))
