"""Counts of things in words."""

from __future__ import annotations

import re

_PLURAL = re.compile(r"\b(\w+?)(ies|sses|s)\b|\bstrata\b")
"""The first word of a phrase that is a plural."""


def n_of(n: int, things: str) -> str:
    """`3 spans of lines`, and `1 span of lines`: the first plural of `things` is what is counted."""
    return f"{n} {_PLURAL.sub(_singular, things, count=1) if n == 1 else things}"


def _singular(found: re.Match[str]) -> str:
    if found[1] is None:
        return "stratum"
    return str(found[1]) + {"ies": "y", "sses": "ss", "s": ""}[found[2]]
