"""Grades as text: read in decimal notation, written without a needless point."""

from __future__ import annotations

import math

WHOLE_UNDER = 1e15
"""Above it, a whole number written without its exponent is longer than with it."""


def number_of(text: str) -> float | None:
    """A finite number in decimal notation, with or without blanks around it; Python's own `1_000` is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number + 0.0 if math.isfinite(number) and "_" not in text else None


def whole(grade: float) -> float:
    """A whole grade as an int, as people write it; any other as it is."""
    is_whole = math.isfinite(grade) and grade == int(grade) and abs(grade) < WHOLE_UNDER
    return int(grade) if is_whole else grade


def short(grade: float) -> str:
    """A grade as people write it: `2`, `0.5`."""
    return repr(whole(grade))
