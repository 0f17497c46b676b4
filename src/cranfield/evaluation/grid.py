"""A grid of settings: the best point on the tuning queries, compared on the held-out queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cranfield.errors import UsageError
from cranfield.evaluation.compare import compare
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.evaluation.verdict import sign_of
from cranfield.measures import Measure, parse
from cranfield.numbers import subtract
from cranfield.options.compare import CompareOptions


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One setting of a system, scored on both parts of a test set."""

    name: str
    """Of its run; the system's own name where it is the config as written."""
    settings: Mapping[str, Any]
    """Dotted place in the system's config to value; empty for a config as written that is no point of the grid."""
    tuning: Evaluation
    held_out: Evaluation
    same: tuple[Mapping[str, Any], ...] = ()
    """Other points that give the same system."""
    void_reasons: tuple[str, ...] = ()
    """Why it cannot be chosen."""


@dataclass(frozen=True)
class GridResult:
    """A grid, its winner, and the comparison of the winner on the held-out queries."""

    system: str
    primary: Measure
    keys: tuple[str, ...]
    """The dotted places that were varied."""
    points: tuple[GridPoint, ...]
    """By their mean on the tuning queries, the winner first; those that cannot be chosen last."""
    written: GridPoint
    """The config as written; one of `points` where the grid holds it."""
    comparison: Comparison | None
    """The config as written against the winner, on the held-out queries; None where it is the winner."""
    split: str
    """How the queries were parted, a sentence."""
    options: CompareOptions
    notes: tuple[str, ...] = ()

    @property
    def winner(self) -> GridPoint:
        """The best point on the tuning queries."""
        return self.points[0]

    @property
    def all_points(self) -> tuple[GridPoint, ...]:
        """The points, and the config as written where it is none of them."""
        is_point = any(point.name == self.written.name for point in self.points)
        return self.points if is_point else (*self.points, self.written)

    @property
    def optimism(self) -> float | None:
        """The winner's mean on the tuning queries minus that on the held-out ones.

        The selection bias; of a measure where less is better, an optimistic choice has a value below 0.
        """
        return subtract(self.tuning_mean(self.winner), self.held_out_mean(self.winner))

    @property
    def tuning_gain(self) -> float | None:
        """Winner minus config as written, in means on the tuning queries; the choice was made on these."""
        return subtract(self.tuning_mean(self.winner), self.tuning_mean(self.written))

    @property
    def pilot(self) -> bool:
        """True when any point is not for the record."""
        return any(point.tuning.pilot for point in self.all_points)

    def tuning_mean(self, point: GridPoint) -> float | None:
        """Mean of the primary measure on the tuning queries."""
        return point.tuning.summaries[self.primary].mean

    def held_out_mean(self, point: GridPoint) -> float | None:
        """Mean of the primary measure on the held-out queries."""
        return point.held_out.summaries[self.primary].mean


def choose_point(
    system: str,
    points: Sequence[GridPoint],
    written: GridPoint,
    options: CompareOptions,
    *,
    split: str,
    keys: Sequence[str],
    notes: Sequence[str] = (),
) -> GridResult:
    """Choose by the tuning queries, and compare the winner with the config as written on the held-out ones.

    A point that breaks a limit on the tuning queries is not chosen. Of equal means the config as written wins, then the
    first point.

    Args:
        system: name of the system.
        points: in the order of the grid, each system once.
        written: the config as written.
        options: what was declared beforehand; the primary measure is the first one where none is.
        split: how the queries were parted, a sentence.
        keys: what was varied.
        notes: sentences for people.

    Raises:
        UsageError: no point can be chosen; the two parts share a query.
    """
    primary = written.tuning.measures[0] if options.primary is None else parse(options.primary)
    options = replace(options, primary=primary.canonical)
    shared = set(written.tuning.query_ids) & set(written.held_out.query_ids)
    if shared:
        raise UsageError("a query is in both parts", got=", ".join(sorted(shared)[:3]))
    checked = [
        replace(point, void_reasons=void_sentences(inspect_systems([point.tuning], primary, options.limits)))
        for point in points
    ]
    sign = sign_of(primary)

    def rank(point: GridPoint) -> tuple[bool, float]:
        mean = point.tuning.summaries[primary].mean
        return bool(point.void_reasons) or mean is None, -sign * (mean or 0.0)

    ordered = sorted(checked, key=lambda point: (*rank(point), point.name != written.name))
    if rank(ordered[0])[0]:
        reasons = list(dict.fromkeys(reason for point in ordered for reason in point.void_reasons))
        raise UsageError("no point of the grid can be chosen", got=reasons[0] if reasons else "no query has a value")
    best = [point for point in ordered if rank(point) == rank(ordered[0])]
    all_notes = list(notes)
    if len(best) > 1:
        chosen = (
            "the config as written" if best[0].name == written.name else "the first of them in the order of the grid"
        )
        all_notes.append(f"{len(best)} points share the best mean on the tuning queries; {chosen} is chosen")
    winner = ordered[0]
    comparison = compare(written.held_out, winner.held_out, options) if winner.name != written.name else None
    return GridResult(
        system, primary, tuple(keys), tuple(ordered), written, comparison, split, options, notes=tuple(all_notes)
    )
