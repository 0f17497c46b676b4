"""Rating scales and the maps between them.

Three scales: `binary` (0 or 1), `graded` (0 to 3) and `detail` (1 to 10). A map applies to each slot before the slots are
combined: the majority of mapped votes is not the mapped mean.

Source: the aggregation and the transformers of SearchTweak, as its documentation states them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, TypeGuard

import numpy as np

from cranfield.base.errors import ProblemList, UnknownNameError, UsageError, shorten, unknown_name
from cranfield.stats.describe import FloatN

Scale = Literal["binary", "graded", "detail"]
GradeMap = Mapping[float, float]
"""Grade to grade."""

EXAMPLE = "0=0,1=0,2=1,3=1"
"""A map of your own."""
_RANGE = re.compile(r"\s*(\d{1,4})\s*-\s*(\d{1,4})\s*")

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


def scale_named(name: str) -> Scale:
    """Look a scale up.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if not _is_scale(name):
        raise UnknownNameError.among("scale", name, LEVELS)
    return name


def parse_levels(text: str) -> tuple[float, ...]:
    """The grades of a scale: a name in `LEVELS`, a list (`0,1,2,4`), or a range of whole numbers (`1-5`).

    Raises:
        UsageError: it is none of them, or has fewer than two grades.

    Example:
        >>> parse_levels("0-3"), parse_levels("0, 0.5, 1")
        ((0.0, 1.0, 2.0, 3.0), (0.0, 0.5, 1.0))
    """
    if _is_scale(text):
        return tuple(map(float, LEVELS[text]))
    bounds = _RANGE.fullmatch(text)
    try:
        grades = range(int(bounds[1]), int(bounds[2]) + 1) if bounds else map(float, text.split(","))
        levels = tuple(sorted({float(grade) for grade in grades}))
    except ValueError:
        levels = ()
    if len(levels) < 2 or not all(map(math.isfinite, levels)):
        expected = f"{', '.join(LEVELS)}, a list such as 0,1,2,4 or a range such as 1-5"
        raise UsageError(f"scale is {shorten(text)}", expected=expected)
    return levels


def parse_target(text: str) -> Scale | GradeMap:
    """What grades are mapped to: a scale by name, or the image of each grade (`0=0,1=0,2=1,3=1`).

    Raises:
        UnknownNameError: there is no scale of this name.
        UsageError: with every problem of a map: a grade twice or that is no number from 0 on, images that fall.

    Example:
        >>> parse_target("binary"), parse_target("1=0, 2=1")
        ('binary', {1.0: 0.0, 2.0: 1.0})
    """
    if "=" not in text:
        if _is_scale(text):
            return text
        known = f"{', '.join(LEVELS)}, or a map such as {EXAMPLE}"
        raise UnknownNameError(replace(unknown_name("scale", text, LEVELS), expected=known))
    problems, rules = ProblemList(UsageError), dict[float, float]()
    for part in text.split(","):
        grade, image = map(_grade, part.partition("=")[::2])
        if grade is None or image is None:
            problems.add(
                f"{shorten(part.strip())} is not a mapping of grades",
                expected=f"GRADE=GRADE with grades of 0 or more, as in {EXAMPLE}",
            )
        elif grade in rules:
            problems.add(f"grade {grade:g} is mapped twice", got=shorten(text))
        else:
            rules[grade] = image
    for lower, upper in pairwise(sorted(rules)):
        if rules[lower] > rules[upper]:
            message = (
                f"grade {upper:g} becomes {rules[upper]:g}, less than grade {lower:g}, which becomes {rules[lower]:g}"
            )
            problems.add(message, expected="grades whose order the map keeps")
    problems.raise_if_any()
    return rules


def levels_of(target: Scale | GradeMap) -> tuple[float, ...]:
    """The grades that there are after a mapping."""
    return tuple(map(float, LEVELS[target] if isinstance(target, str) else sorted(set(target.values()))))


def format_map(rules: GradeMap) -> str:
    """A map as `parse_target` reads it."""
    return ",".join(f"{grade:g}={rules[grade]:g}" for grade in sorted(rules))


def _grade(text: str) -> float | None:
    try:
        grade = float(text)
    except ValueError:
        return None
    return grade if math.isfinite(grade) and grade >= 0 else None


def binary_map(grades: Sequence[float], at: float) -> GradeMap:
    """Each grade to 1 from `at` on, and to 0 below.

    Raises:
        UsageError: no grade is below `at`, or none is not.
    """
    rules = {grade: float(grade >= at) for grade in grades}
    if len(set(rules.values())) < 2:
        message = f"at a threshold of {at:g}, all grades are {'relevant' if at <= min(grades) else 'not relevant'}"
        raise UsageError(message, expected=f"a grade above {min(grades):g}, up to {max(grades):g}")
    return rules


def scale_of(grades: FloatN) -> Scale | None:
    """The smallest scale with all these grades; None where there is none, or no grade."""
    given = set(np.unique(grades).tolist())
    return next((scale for scale, levels in LEVELS.items() if given and given <= set(levels)), None)


def rules_between(scale: Scale, to: Scale) -> GradeMap:
    """The map from one scale to another.

    Raises:
        UsageError: there is no map between the two.
    """
    if scale == to:
        return {level: level for level in LEVELS[scale]}
    if (scale, to) not in MAPS:
        known = ", ".join(f"{source} to {target}" for source, target in MAPS)
        raise UsageError(f"there is no map from {scale} to {to}", expected=f"one of {known}")
    return MAPS[scale, to]


def map_grades(grades: FloatN, rules: GradeMap, what: str) -> FloatN:
    """Map every grade.

    Args:
        grades: float64, any shape.
        rules: grade to grade.
        what: end of the error message: `on the graded scale`, `in the map`.

    Raises:
        UsageError: a grade has no rule; names each.
    """
    given, place = np.unique(grades, return_inverse=True)
    without = [f"{grade:g}" for grade in given.tolist() if grade not in rules]
    if without:
        subject = f"grade {without[0]} is" if len(without) == 1 else f"grades {', '.join(without)} are"
        raise UsageError(f"{subject} not {what}", expected=", ".join(f"{grade:g}" for grade in sorted(rules)))
    new = np.array([rules[grade] for grade in given.tolist()], dtype=np.float64)
    return new[place].reshape(np.shape(grades))


def _is_scale(name: str) -> TypeGuard[Scale]:
    return name in LEVELS
