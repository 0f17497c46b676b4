"""Patterns of paths: `*.py`, `src/**/test_*`, `*.{yml,yaml}`."""

from __future__ import annotations

import re

MAX_CHARS = 200
_PARTS = re.compile(
    r"(?P<folders>(?<![^/])\*\*/)|(?P<all>\*\*)|(?P<some>\*+)|(?P<one>\?)|(?P<set>\[[^\]/]+\])|(?P<text>.)", re.DOTALL
)
_RANGES = re.compile(r"(.)(?:-(.))?", re.DOTALL)
"""In brackets: `a-c`, or a character."""
_SIGNS = {"folders": "(?:[^/]+/)*", "all": ".*", "some": "[^/]*", "one": "[^/]"}


def glob_regex(glob: str) -> str:
    """A regular expression that a whole path matches.

    Args:
        glob: a pattern without `/` is one of the file's name, in any folder; one with `/`, at its beginning or inside, is one of the
            whole path; what ends in `/` stands for all files of a folder. `*` and `?` stand for anything but `/`, `**` for any folders,
            `[a-c]` and `[!a-c]` for a character, `{a,b}` for one of several texts.

    Raises:
        ValueError: it is too long, or braces are not closed.
    """
    if len(glob) > MAX_CHARS:
        raise ValueError(f"a pattern of paths has at most {MAX_CHARS} characters")
    pattern = glob.removeprefix("./")
    if "/" not in pattern.rstrip("/"):
        pattern = f"**/{pattern}"
    if pattern.endswith("/"):
        pattern += "**"
    found, depth = [], 0
    for part in _PARTS.finditer(pattern.removeprefix("/")):
        kind, text = str(part.lastgroup), part[0]
        if kind == "set":
            found.append(_characters(text[1:-1]))
        elif kind != "text":
            found.append(_SIGNS[kind])
        elif text == "{":
            found.append("(?:")
            depth += 1
        elif text == "}" and depth:
            found.append(")")
            depth -= 1
        else:
            found.append("|" if text == "," and depth else re.escape(text))
    if depth:
        raise ValueError(f"a brace of the pattern {glob!r} is not closed")
    return "".join(found)


def _characters(text: str) -> str:
    """Of `[a-c]`; a range that descends holds nothing, and is taken as its characters."""
    inverted, text = text.startswith(("!", "^")), text.lstrip("!^") or text
    escaped = (re.escape(low) + (f"-{re.escape(high)}" if high else "") for low, high in _RANGES.findall(text))
    expression = f"[{'^/' if inverted else ''}{''.join(escaped)}]"
    try:
        re.compile(expression)
    except re.error:
        return re.escape(f"[{text}]")
    return expression
