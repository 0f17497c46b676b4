"""The ratings of a set on the scale that agreement is measured on: declared, mapped, or split at a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cranfield.base.errors import Problem, UsageError
from cranfield.base.words import first_of
from cranfield.evaluation.testset.consensus import OnScale, slots_on_scale
from cranfield.stats.consensus import ConsensusRule, SlotTable, rule_named
from cranfield.stats.scale import LEVELS, GradeMap, binary_map, levels_of, map_grades, parse_levels, parse_target


@dataclass(frozen=True)
class ScaledRatings:
    """Ratings as agreement is measured on them."""

    slots: OnScale
    for_rule: OnScale
    """The same, as the consensus rule needs them."""
    levels: tuple[float, ...]
    """Grades of the scale, where it is declared or the ratings are mapped to it; else empty."""
    label: str
    """Name of the scale, or its grades; empty: none is known."""
    notes: tuple[str, ...]


def scaled_ratings(
    table: SlotTable,
    rule: ConsensusRule,
    *,
    scale: str | None = None,
    to: str | GradeMap | None = None,
    binary_at: float | None = None,
    declared: Sequence[float] = (),
) -> ScaledRatings:
    """Check ratings against their scale, and map them.

    Args:
        table: who gave which item what.
        rule: consensus rule.
        scale: a name, or grades as `parse_levels` reads them; None: the declared one, or the smallest that fits.
        to: scale, or map from grade to grade, that each rating is mapped to.
        binary_at: grade from which a document counts as relevant; each rating is mapped to 0 or 1 by it.
        declared: scale of the test set, used where all ratings are on it.

    Raises:
        UsageError: a grade that is not on its scale or not in the map; `to` beside `binary_at`; a map to a named scale, or a
            rule that needs one, where the scale has no name.
    """
    if to is not None and binary_at is not None:
        raise UsageError("{to_scale} and {binary_at} both map the ratings", expected="one", parameters=TO_AND_AT)
    to = parse_target(to) if isinstance(to, str) else to
    levels, notes = _levels(table, scale, declared)
    named = scale if scale in LEVELS else None
    if binary_at is not None:
        to = binary_map(given_grades(table, levels), binary_at)
        notes.append(f"relevant from grade {binary_at:g} on: each rating is mapped to 0 or 1 first")
    elif not has_binary_map(levels) and (isinstance(to, str) or rule.needs_binary):
        raise UsageError(_no_map(levels, rule, to))
    slots, for_rule = (
        slots_on_scale(table, row, to=to, scale=named, declared=levels) for row in (rule_named("mean"), rule)
    )
    if to is not None:
        levels = levels_of(to)
    label = next((name for name, known in LEVELS.items() if tuple(map(float, known)) == levels), "")
    label = label or ", ".join(f"{level:g}" for level in levels) or (slots.scale or "")
    mapped = () if binary_at is not None else (*slots.notes, *for_rule.notes)
    return ScaledRatings(slots, for_rule, levels, label, (*notes, *mapped))


KNOWN_LEVELS = frozenset(tuple(map(float, levels)) for levels in LEVELS.values())
TO_AND_AT = ("to_scale", "binary_at")


def has_binary_map(levels: Sequence[float]) -> bool:
    """Whether a named scale says which grades of these are relevant: all of its own, or some of the graded one with its 0."""
    return not levels or tuple(levels) in KNOWN_LEVELS or (levels[0] == 0 and set(levels) <= set(LEVELS["graded"]))


def given_grades(table: SlotTable, levels: Sequence[float]) -> tuple[float, ...]:
    """The grades of a scale, or those that were given where none is known."""
    return tuple(levels) or tuple(np.unique(table.grade).tolist())


def at_threshold(table: SlotTable, levels: Sequence[float], at: float) -> SlotTable:
    """Each rating as 1 from `at` on, and 0 below."""
    rules = binary_map(given_grades(table, levels), at)
    return replace(table, grade=map_grades(table.grade, rules, "on the scale"))


def _levels(table: SlotTable, scale: str | None, declared: Sequence[float]) -> tuple[tuple[float, ...], list[str]]:
    """Grades of the scale, with a note where the declared one is not that of the ratings."""
    if scale is not None:
        levels = parse_levels(scale)
        map_grades(table.grade, {level: level for level in levels}, f"on the scale {scale}")
        return levels, []
    outside = sorted(set(np.unique(table.grade).tolist()) - set(declared))
    if declared and outside:
        grades = first_of([f"{grade:g}" for grade in outside])
        return (), [f"the ratings are not on the declared scale {_listed(declared)}: {grades}"]
    return tuple(sorted(map(float, declared))), []


def _no_map(levels: Sequence[float], rule: ConsensusRule, to: str | GradeMap | None) -> Problem:
    what = f"there is no map from the scale {_listed(levels)} to {to}"
    if not isinstance(to, str):
        what = f"the rule {rule.name} needs binary ratings, and the scale is {_listed(levels)}"
    return Problem(what, hint="{binary_at=GRADE} maps each rating to 0 or 1", parameters=("binary_at",))


def _listed(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)
