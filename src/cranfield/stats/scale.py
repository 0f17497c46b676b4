"""Scales that people judge on, maps between them, and several people's judgments of one result made into one.

Three scales: `binary` (0 or 1), `graded` (0 to 3) and `detail` (1 to 10). A slot is one person's judgment of one result;
None is a slot nobody filled. A map applies to each slot before the slots are made into one value.

Source: the aggregation and the transformers of SearchTweak, as its documentation states them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from cranfield.errors import UsageError

Scale = Literal["binary", "graded", "detail"]
Slots = Sequence[float | None]

LEVELS: Mapping[Scale, tuple[int, ...]] = {
    "binary": (0, 1),
    "graded": (0, 1, 2, 3),
    "detail": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
}
"""The grades of each scale."""

MAPS: Mapping[tuple[Scale, Scale], Mapping[float, int]] = {
    ("graded", "binary"): {0: 0, 1: 1, 2: 1, 3: 1},
    ("detail", "binary"): {1: 0, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 1, 10: 1},
    ("detail", "graded"): {1: 0, 2: 1, 3: 1, 4: 1, 5: 2, 6: 2, 7: 2, 8: 3, 9: 3, 10: 3},
    ("binary", "graded"): {0: 0, 1: 3},
}
"""From one scale to another, grade by grade."""


def mapped(grade: float, scale: Scale, to: Scale) -> int:
    """One grade on another scale.

    Raises:
        UsageError: there is no map between the two, or the grade is not on the scale.
    """
    if (scale, to) not in MAPS:
        known = ", ".join(f"{one} to {other}" for one, other in MAPS)
        raise UsageError(f"there is no map from {scale} to {to}", expected=f"one of {known}")
    rules = MAPS[scale, to]
    if grade not in rules:
        raise UsageError(
            f"a grade is not on the {scale} scale", expected=", ".join(map(str, LEVELS[scale])), got=f"{grade:g}"
        )
    return rules[grade]


def majority(slots: Slots) -> int | None:
    """1 where more of the filled slots are relevant than not, 0 where fewer; None for a tie, and where none is filled."""
    votes = [slot > 0 for slot in slots if slot is not None]
    balance = 2 * sum(votes) - len(votes)
    return None if balance == 0 else int(balance > 0)


def average(slots: Slots) -> float | None:
    """Mean of the filled slots; None where none is filled."""
    filled = [slot for slot in slots if slot is not None]
    return math.fsum(filled) / len(filled) if filled else None


def aggregate(slots: Slots, scale: Scale, *, to: Scale | None = None) -> float | None:
    """The slots of one result as one value: the majority on the binary scale, the mean on the others.

        >>> aggregate([1, 2, None], "detail", to="binary")  # 1 is 0 and 2 is 1: a tie
        >>> aggregate([1, 2, None], "detail")
        1.5

    Args:
        slots: grades on `scale`; None where nobody judged.
        scale: what the grades are on.
        to: the scale to map each slot to first; None keeps the scale.

    Raises:
        UsageError: there is no such map, or a grade is not on its scale.
    """
    if to is not None and to != scale:
        slots = [None if slot is None else mapped(slot, scale, to) for slot in slots]
        scale = to
    return majority(slots) if scale == "binary" else average(slots)
