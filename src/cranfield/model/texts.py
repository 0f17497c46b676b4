"""Results as text: intervals of documents, in characters, lines or pages, and the parts of expected passages that they hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
