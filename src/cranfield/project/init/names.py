"""Names of systems and test sets that cranfield.yaml takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

MAX_CHARS = 40
_WORDS = (
    "old base baseline before main master current prod production plain previous prev reference control legacy v0 v1"
)
BEFORE = re.compile(rf"(?i)(?<![a-z0-9])(?:{_WORDS.replace(' ', '|')})(?![a-z0-9])")
"""A word in the name of the system that others are compared with."""
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def unique_names(proposals: Sequence[str], reserved: Collection[str] = ()) -> list[str]:
    """A name for each proposal: its letters, digits, dots and dashes; equal ones, in any case, get a number."""
    taken = {name.casefold() for name in reserved}
    names = []
    for proposal in proposals:
        base = _ODD.sub("-", proposal).strip("-._")[:MAX_CHARS].strip("-._") or "system"
        base = base.removesuffix(".log") or "system"
        name, number = base, 2
        while name.casefold() in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name.casefold())
        names.append(name)
    return names
