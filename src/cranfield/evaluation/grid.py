"""A grid of settings: the best point on the tuning queries, compared on the held-out queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from cranfield.base.errors import UsageError
from cranfield.base.numbers import subtract
from cranfield.evaluation.compare import compare
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.result import ComparisonResult, result_of
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.measures import Measure, parse
from cranfield.measures.catalogue import sign_of
from cranfield.model.results import Record


@dataclass(frozen=True, slots=True)
class ScoredPoint:
    """One setting of a system, scored on both parts of a test set."""

    name: str
    """Name of its run; the system's own name where it is the config as written."""
    settings: Mapping[str, Any]
    """Dotted place in the system's config to value; empty for a config as written that is no point of the grid."""
    tuning: Evaluation
    held_out: Evaluation
    same: tuple[Mapping[str, Any], ...] = ()
    """Other points that give the same system."""
    void_reasons: tuple[str, ...] = ()
    """Why it cannot be chosen."""


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One setting of a system, and what it scored."""

    name: str
    settings: Mapping[str, Any]
    same: tuple[Mapping[str, Any], ...]
    tuning_mean: float | None
    """Mean of the primary measure on the tuning queries."""
    n_tuning: int
    """Number of tuning queries with a value."""
    held_out_mean: float | None
    n_held_out: int
    broken_limits: tuple[str, ...]
    """Why it cannot be chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridResult(Record):
    """A grid, its winner, and the comparison of the winner on the held-out queries."""

    kind: Literal["grid"] = "grid"
    system: str
    primary: Measure
    test: str
    over: tuple[str, ...]
    """The dotted places that were varied."""
    split: str
    """How the queries were parted, a sentence."""
    tuning_queries: tuple[str, ...]
    held_out_queries: tuple[str, ...]
    winner: str
    """The best point on the tuning queries."""
    as_written: str
    """The point that is the config as written."""
    optimism: float | None
    """The winner's mean on the tuning queries minus that on the held-out ones: the selection bias. Of a measure where less
    is better, an optimistic choice has a value below 0."""
    tuning_gain: float | None
    """Winner minus config as written, in means on the tuning queries; the choice was made on these."""
    pilot: bool
    """Whether any point is not for the record."""
    notes: tuple[str, ...]
    points: tuple[GridPoint, ...]
    """By their mean on the tuning queries, the winner first; then those that cannot be chosen; last the config as written,
    without settings, where it is none of the grid."""
    comparison: ComparisonResult | None
    """The config as written against the winner, on the held-out queries; None where it is the winner."""


@dataclass(frozen=True)
class GridChoice:
    """The result of a grid, and what it is judged by."""

    result: GridResult
    judged: Comparison | tuple[Evaluation, ...]
    """On the held-out queries: the config as written against the winner, or it alone where it is the winner."""


def choose_point(
    system: str,
    points: Sequence[ScoredPoint],
    written: ScoredPoint,
    options: CompareOptions,
    *,
    split: str,
    keys: Sequence[str],
    notes: Sequence[str] = (),
) -> GridChoice:
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

    def rank(point: ScoredPoint) -> tuple[bool, float]:
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
    judged = compare(written.held_out, winner.held_out, options) if winner.name != written.name else (written.held_out,)
    is_point = any(point.name == written.name for point in ordered)
    records = [_record(point, primary) for point in (ordered if is_point else (*ordered, written))]
    first, as_written = records[0], next(each for each in records if each.name == written.name)
    result = GridResult(
        system=system,
        primary=primary,
        test=options.test,
        over=tuple(keys),
        split=split,
        tuning_queries=written.tuning.query_ids,
        held_out_queries=written.held_out.query_ids,
        winner=winner.name,
        as_written=written.name,
        optimism=subtract(first.tuning_mean, first.held_out_mean),
        tuning_gain=subtract(first.tuning_mean, as_written.tuning_mean),
        pilot=any(point.tuning.pilot for point in (*ordered, written)),
        notes=tuple(all_notes),
        points=tuple(records),
        comparison=cast("ComparisonResult", result_of(judged)) if isinstance(judged, Comparison) else None,
    )
    return GridChoice(result, judged)


def _record(point: ScoredPoint, primary: Measure) -> GridPoint:
    tuning, held_out = point.tuning.summaries[primary], point.held_out.summaries[primary]
    means = (tuning.mean, tuning.n, held_out.mean, held_out.n)
    return GridPoint(point.name, point.settings, point.same, *means, point.void_reasons)
