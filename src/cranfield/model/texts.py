"""Results as text: intervals of documents, in characters, lines or pages, and the parts of expected passages that they hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Interval = tuple[float, float]
"""First, and the one after the last."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of an expected passage that a result holds."""

    item: int
    """Which expected item."""
    region: str
    interval: Interval


@dataclass(frozen=True, slots=True)
class ResultText:
    """One result as text."""

    size: float
    """Units; NaN where they are not known."""
    again: float
    """Units that results before it hold too; NaN where that is not known."""
    tokens: float
    """Cost of reading it; NaN where it is not known."""
    characters: float
    """Characters of its text; NaN where they are not known."""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryTexts:
    """The results of one query as text, and what was expected."""

    expected: tuple[Part, ...] | None
    """All of each passage that is expected; None where something else is, or nothing."""
    results: tuple[ResultText, ...]
    """Rank 1 first."""


def covered(intervals: Sequence[Interval]) -> float:
    """Length of what intervals cover together.

    Example:
        >>> covered([(0, 10), (5, 12), (20, 21)])
        13.0
    """
    total, reached = 0.0, -math.inf
    for start, end in sorted(intervals):
        total += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return total


STARTS = (
    "start_char",
    "start_char_idx",  # LlamaIndex
    "start_index",  # splitters of LangChain
    "split_idx_start",  # Haystack
    "char_start",
    "start_offset",
)
ENDS = ("end_char", "end_char_idx", "end_index", "char_end", "end_offset")
"""Names of the first character of a result in its document, counted from 0, and of the one after its last."""


def char_range(values: Mapping[str, Any], text: str | None) -> tuple[int, int] | None:
    """The characters of its document that a result is, the end not included; None where it does not say, or they are none.

    Args:
        values: the fields of the result, with those of its metadata.
        text: of the result, from which the end follows where only the first character is stated.

    Example:
        >>> char_range({"start_index": 40}, "ten chars."), char_range({"start_char": 5, "end_char": 5}, None)
        ((40, 50), None)
    """

    def first(names: Sequence[str]) -> int | None:
        numbers = (values.get(name) for name in names)
        whole = (n for n in numbers if isinstance(n, int | float) and not isinstance(n, bool) and n == n // 1)
        return next((int(n) for n in whole if n >= 0), None)

    start, end = first(STARTS), first(ENDS)
    if start is None:
        return None
    if end is None:
        end = start + len(text or "")
    return (start, end) if start < end else None
