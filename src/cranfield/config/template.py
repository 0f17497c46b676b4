"""The placeholders of a command: what may stand in braces, and how an argv list is filled in.

`{query}`, `{k}`, `{python}` and `{params.NAME}` are placeholders. `{{word}}` is the literal text `{word}`; braces round
anything that is not a plain word (a JSON body, say) stay as they are. Nothing here starts a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cranfield.model import Scalar

PARAMS = "params."
PLACEHOLDERS = ("query", "k", "python", PARAMS + "NAME")
"""What a command may hold, for messages and documentation."""

_WORD = r"[A-Za-z_][\w.\-]*"
_BRACES = re.compile(rf"\{{\{{(?P<literal>{_WORD})\}}\}}|\{{(?P<name>{_WORD})\}}")
_PARAM_NAME = re.compile(r"params\.[A-Za-z_][\w.\-]*")
_NOT_FLAGS = frozenset({"-", "--"})


def placeholders(element: str) -> Iterator[str]:
    """Names in braces in one argv element, known or not, in order."""
    for match in _BRACES.finditer(element):
        if match["name"] is not None:
            yield match["name"]


def is_placeholder(name: str) -> bool:
    """True for a name that `fill` knows how to fill in."""
    return name in {"query", "k", "python"} or _PARAM_NAME.fullmatch(name) is not None


def as_argument(value: Scalar) -> str:
    """Spell a parameter the way a command line would: `true`, `17.0`, `ios`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def fill(command: Sequence[str], *, query: str, k: int, python: str, params: Mapping[str, Scalar]) -> list[str]:
    """Fill a command in, in a single pass: what comes from a query is never read again as a placeholder.

    An element that needs a parameter the query does not have is dropped; where that element does not start with `-`
    itself, the flag right before it goes as well.
    """
    values = {"query": query, "k": str(k), "python": python}
    values |= {PARAMS + name: as_argument(value) for name, value in params.items()}
    filled: list[str] = []
    flag_kept = False  # whether the last element of `filled` is a flag that waits for its value
    for element in command:
        absent = any(name.startswith(PARAMS) and name not in values for name in placeholders(element))
        if absent:
            if flag_kept and not element.startswith("-"):
                filled.pop()
            flag_kept = False
            continue
        filled.append(_BRACES.sub(lambda match: _replacement(match, values), element))
        # The flag is told by what the config says, never by what a query happens to start with.
        flag_kept = element.startswith("-") and "=" not in element and element not in _NOT_FLAGS
    return filled


def _replacement(match: re.Match[str], values: Mapping[str, str]) -> str:
    if match["literal"] is not None:
        return "{" + match["literal"] + "}"
    return values.get(match["name"], match[0])
