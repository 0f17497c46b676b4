"""The raters of a test set: coverage, agreement, where they differ most, and what a consensus makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.base.display import Displayed, in_line
from cranfield.base.errors import UsageError
from cranfield.base.numbers import format_delta, format_delta_interval, format_level, format_p, format_value
from cranfield.evaluation.testset.consensus import OnScale, Pair, rated_pairs, slots_on_scale
from cranfield.evaluation.testset.drawing import cells, check_keys
from cranfield.judging.raters.scale import at_threshold, has_binary_map, scaled_ratings
from cranfield.model import TestSet
from cranfield.model.results import Record, TestSetRecord
from cranfield.stats.agreement import DEFAULT_DRAWS, Agreement, agreement
from cranfield.stats.coefficients import MOST_RATERS
from cranfield.stats.confusion import ConfusionMatrix, confusion_matrices
from cranfield.stats.consensus import DEFAULT_RULE, SlotTable, combined, rule_named
from cranfield.stats.misfit import Misfit, RaterFit, misfit
from cranfield.stats.scale import GradeMap

LARGEST = 10
"""Disagreements that are shown."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One pair of query and document, with the grade of each rater."""

    query_id: str
    doc_id: str
    ratings: Mapping[str, float]
    """Rater to grade."""


@dataclass(frozen=True)
class ConsensusOutcome:
    """What a consensus rule makes of the rated pairs."""

    rule: str
    grades: Mapping[float, int]
    """Grade to pairs, from the lowest."""
    n_ties: int
    n_unfilled: int


@dataclass(frozen=True, slots=True)
class TieRate:
    """Pairs whose votes are even on the binary scale."""

    n_ties: int
    n_rated: int
    share: float | None
    """None without a rated pair."""
    note: str = ""
    """Why it is not known."""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class RaterReport(Displayed, Record):
    """Everything that `cranfield agreement` shows."""

    testset: TestSetRecord
    agreement: Agreement
    by_key: str
    """Stratum that the queries are grouped by; empty: not grouped."""
    by: Mapping[str, Agreement]
    """Its values to the agreement on their queries."""
    tie_rate: TieRate
    outcome: ConsensusOutcome
    disagreements: tuple[Disagreement, ...]
    """The largest, at most `LARGEST`; widest first."""
    n_disagreements: int
    """Pairs on which two raters differ."""
    scale: str
    """Scale the grades are on; empty: none that is known."""
    notes: tuple[str, ...]
    levels: tuple[float, ...]
    """Grades of the scale, where it is declared or the ratings are mapped to it; else empty."""
    confusion: tuple[ConfusionMatrix, ...]
    """Of each pair of raters with a pair of query and document in common."""
    misfit: Misfit
    """Agreement without each rater."""
    misfit_sentence: str
    """Who does not fit, and how sure that is."""
    thresholds: Mapping[float, Agreement]
    """Grade from which a document counts as relevant to the agreement on that, where several are compared."""

    def _summary(self) -> str:
        return f"{in_line(self.testset.name)}: {self.agreement._summary()}"  # noqa: SLF001 - of the same base


def rater_report(  # noqa: PLR0913 - keyword options that change the numbers
    testset: TestSet,
    *,
    rule: str | None = None,
    scale: str | None = None,
    to: str | GradeMap | None = None,
    binary_at: Sequence[float] = (),
    by: str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    n_draws: int = DEFAULT_DRAWS,
) -> RaterReport:
    """Say how the raters of a test set agree.

    Args:
        testset: with ratings, or with judgments by judge.
        rule: consensus rule to show; None is the set's own, or else the median.
        scale: what the ratings are on: a name, or grades as `stats.scale.parse_levels` reads them; None is the set's scale,
            or else the smallest one that fits.
        to: scale, or map from grade to grade, that each rating is mapped to first.
        binary_at: grade from which a document counts as relevant. One: each rating is mapped to 0 or 1 by it first. Several:
            the agreement at each is reported beside that on the grades.
        by: stratum to show the agreement by.
        alpha: intervals cover 1 - alpha.
        seed: of the resamples.
        n_draws: resamples of the pairs.

    Raises:
        TestSetError: there are no ratings.
        UsageError: an unknown rule, scale or stratum, a grade that is not on its scale or not in the map.
    """
    row = rule_named(rule or testset.consensus or DEFAULT_RULE)
    rated = rated_pairs(testset)
    at = binary_at[0] if len(binary_at) == 1 else None
    scaled = scaled_ratings(rated.table, row, scale=scale, to=to, binary_at=at, declared=testset.meta.scale)
    table = scaled.slots.table
    check_keys(testset, [] if by is None else [by])

    def measured(some: SlotTable, *, pairwise: bool = False) -> Agreement:
        return agreement(some, alpha=alpha, seed=seed, n_draws=n_draws, pairwise=pairwise)

    found = measured(table, pairwise=True)
    by_value = {} if by is None else cells(testset, [by])
    fits = misfit(table, _query_of(rated.pairs), alpha=alpha, seed=seed, n_draws=n_draws)
    worst, differing = largest_disagreements(rated.pairs, table)
    several = binary_at if at is None else ()
    return RaterReport(
        testset=TestSetRecord.of(testset),
        agreement=found,
        by_key=by or "",
        by={value: measured(_of_queries(table, rated.pairs, set(ids))) for value, ids in by_value.items()},
        tie_rate=_tie_rate(scaled.slots, scaled.levels),
        outcome=_outcome(row.name, scaled.for_rule),
        disagreements=worst,
        n_disagreements=differing,
        scale=scaled.label,
        notes=tuple(dict.fromkeys((*map(str, testset.notes), *rated.notes, *scaled.notes, *found.notes))),
        levels=scaled.levels,
        confusion=confusion_matrices(table, scaled.levels, most_raters=MOST_RATERS),
        misfit=fits,
        misfit_sentence=_misfit_sentence(fits),
        thresholds={grade: measured(at_threshold(table, scaled.levels, grade)) for grade in several},
    )


def _query_of(pairs: Sequence[Pair]) -> NDArray[np.int64]:
    """Position of the query of each pair."""
    places = {query_id: place for place, query_id in enumerate(dict.fromkeys(query_id for query_id, _ in pairs))}
    return np.array([places[query_id] for query_id, _ in pairs], dtype=np.int64)


def largest_disagreements(
    pairs: Sequence[Pair], table: SlotTable, limit: int = LARGEST
) -> tuple[tuple[Disagreement, ...], int]:
    """The pairs whose grades lie furthest apart, the widest spread among equals first, and how many differ at all."""
    grades = table.packed()
    several = np.flatnonzero(table.filled >= 2)
    if not len(several):
        return (), 0
    width = np.nanmax(grades[several], axis=1) - np.nanmin(grades[several], axis=1)
    order = np.lexsort((several, -np.nanstd(grades[several], axis=1).round(12), -width))
    differing = int(np.count_nonzero(width > 0))
    found = []
    for place in several[order[: min(limit, differing)]].tolist():
        rows = np.flatnonzero(table.item == place)
        ratings = {
            table.raters[rater]: grade
            for rater, grade in zip(table.rater[rows], table.grade[rows].tolist(), strict=True)
        }
        found.append(Disagreement(pairs[place][0], pairs[place][1], ratings))
    return tuple(found), differing


def _of_queries(table: SlotTable, pairs: Sequence[Pair], query_ids: Collection[str]) -> SlotTable:
    """The slots of some queries; the slots that are not filled are not counted here."""
    kept = np.array([query_id in query_ids for query_id, _ in pairs], dtype=np.bool_)
    rows = kept[table.item]
    place = np.cumsum(kept) - 1
    return SlotTable(
        place[table.item[rows]],
        table.rater[rows],
        table.grade[rows],
        int(np.count_nonzero(kept)),
        int(np.count_nonzero(rows)),
        table.raters,
    )


def _misfit_sentence(found: Misfit) -> str:
    if not found.raters or all(rater.p_value is None for rater in found.raters):
        return f"No rater can be named: {found.note or 'agreement without each rater is not defined'}."
    if found.misfits:
        return " ".join(f"{rater.rater} does not fit: {_change(found, rater)}." for rater in found.misfits)
    known = [rater for rater in found.raters if rater.change is not None]
    largest = max(known, key=lambda rater: rater.change or 0.0)
    if (largest.change or 0.0) <= 0:
        return "Every rater fits: the others agree no better without any of them."
    return f"No rater differs significantly. The largest change: {_change(found, largest)}."


def _change(found: Misfit, rater: RaterFit) -> str:
    interval = None if rater.ci_low is None or rater.ci_high is None else (rater.ci_low, rater.ci_high)
    ci = f", {format_level(found.level)} CI {format_delta_interval(interval)}" if interval else ""
    return (
        f"alpha is {format_value(rater.alpha_without)} without {rater.rater} and {format_value(found.alpha_all)} with all "
        f"raters ({format_delta(rater.change)}{ci}; p {format_p(rater.p_value)})"
    )


def _tie_rate(slots: OnScale, levels: Sequence[float]) -> TieRate:
    """How often as many raters say relevant as say not."""
    rated = int(np.count_nonzero(slots.table.filled))
    if not has_binary_map(levels):
        return TieRate(0, rated, None, "unknown: the scale does not say which of its grades are relevant")
    try:
        binary = slots_on_scale(slots.table, rule_named("majority"), scale=slots.scale)
    except UsageError as error:
        return TieRate(0, rated, None, error.problems[0].message)
    values = combined(binary.table.packed(), "majority")
    ties = int(np.count_nonzero(np.isnan(values) & (slots.table.filled > 0)))
    return TieRate(ties, rated, ties / rated if rated else None)


def _outcome(rule: str, slots: OnScale) -> ConsensusOutcome:
    values = combined(slots.table.packed(), rule, scale=slots.scale)
    some = ~np.isnan(values)
    filled = slots.table.filled > 0
    grades = Counter(values[some].tolist())
    return ConsensusOutcome(
        rule,
        {grade: grades[grade] for grade in sorted(grades)},
        int(np.count_nonzero(~some & filled)),
        int(np.count_nonzero(~filled)),
    )
