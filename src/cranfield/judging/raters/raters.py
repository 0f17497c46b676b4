"""The raters of a test set: coverage, agreement, where they differ most, and what a consensus makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield.base.display import Displayed, in_line
from cranfield.base.errors import Problem, TestSetError, UsageError
from cranfield.base.numbers import (
    format_delta,
    format_delta_interval,
    format_interval,
    format_level,
    format_p,
    format_value,
)
from cranfield.base.words import count_noun, join_first
from cranfield.evaluation.testset.consensus import OnScale, Pair, rated_pairs, ratings_of, slots_on_scale
from cranfield.evaluation.testset.split import cells, check_keys
from cranfield.formats.testsets.overlay import some_ids
from cranfield.model import Label, Query, Rating, TestSet
from cranfield.model.note import info
from cranfield.model.results import Record, TestSetRecord
from cranfield.stats.agreement import DEFAULT_DRAWS, Agreement, Coefficient, Misfit, RaterFit, agreement, misfit
from cranfield.stats.coefficients import MAX_RATERS
from cranfield.stats.confusion import ConfusionMatrix, confusion_matrices
from cranfield.stats.consensus import DEFAULT_RULE, ConsensusRule, SlotTable, combined, rule_named
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
        grades = join_first([f"{grade:g}" for grade in outside])
        return (), [f"the ratings are not on the declared scale {_listed(declared)}: {grades}"]
    return tuple(sorted(map(float, declared))), []


def _no_map(levels: Sequence[float], rule: ConsensusRule, to: str | GradeMap | None) -> Problem:
    what = f"the scale {_listed(levels)} cannot be mapped to {to}"
    if not isinstance(to, str):
        what = f"the rule {rule.name} requires binary ratings, but the scale is {_listed(levels)}"
    return Problem(what, hint="map each rating to 0 or 1 with {binary_at=GRADE}", parameters=("binary_at",))


def _listed(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)


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
    """Confusion matrix of each pair of raters with a pair of query and document in common."""
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
        confusion=confusion_matrices(table, scaled.levels, most_raters=MAX_RATERS),
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
        return f"No outlying rater can be determined: {found.note or 'agreement without each rater is not defined'}."
    if found.misfits:
        return " ".join(f"{rater.rater} is an outlier: {_change(found, rater)}." for rater in found.misfits)
    known = [rater for rater in found.raters if rater.change is not None]
    largest = max(known, key=lambda rater: rater.change or 0.0)
    if (largest.change or 0.0) <= 0:
        return "No outlier: leaving out a rater never increases the agreement of the others."
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
        return TieRate(0, rated, None, "unknown: the scale does not define which grades are relevant")
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


@dataclass(frozen=True, slots=True)
class RaterKappa:
    """Cohen's kappa of two raters, with its interval, over what both labelled."""

    raters: tuple[str, str]
    kappa: Coefficient

    def exceeds(self, bound: float) -> bool:
        """Whether the raters agree beyond a bound; not where kappa is not defined."""
        return self.kappa.value is not None and self.kappa.value > bound

    @property
    def sentence(self) -> str:
        """How far the raters agree, in a line."""
        kappa = self.kappa
        raters = " and ".join(self.raters)
        if kappa.value is None:
            return f"Cohen's kappa of {raters} is not defined (n={kappa.n}): {kappa.note}"
        note = f" ({kappa.note})" if kappa.note else ""
        return f"Cohen's kappa of {raters} is {format_value(kappa.value)}{self.interval}, n={kappa.n}{note}"

    @property
    def interval(self) -> str:
        """`, 95 % CI 0.3 to 0.7`; empty where there is none."""
        kappa = self.kappa
        return "" if kappa.ci_low is None else f", 95 % CI {format_interval((kappa.ci_low, kappa.ci_high))}"


def merge_raters(files: Mapping[str, TestSet]) -> TestSet:
    """A test set with the ratings of several files.

    Args:
        files: name of a rater to the judgments; the name is not used for a file whose ratings name their raters. Raters
            of one name are one rater.

    Returns:
        A set with the queries of all files; texts, strata and labels are those of the first file that has them. Grades under 0
        are no ratings. Its notes name the queries that only some files have.

    Raises:
        TestSetError: there is a file without graded ids, or no query is in two files.
    """
    first = next(iter(files.values()))
    queries: dict[str, Query] = {}
    ratings: dict[str, list[Rating]] = {}
    places: dict[str, int] = {}
    labels: dict[str, Label] = {}
    for name, testset in files.items():
        found = _ratings(name, testset)
        labels = {**testset.labels, **labels}
        for query in testset.queries:
            known = queries.setdefault(query.id, query)
            if query.text and not known.text:
                queries[query.id] = replace(known, text=query.text)
            if found.get(query.id):
                ratings.setdefault(query.id, []).extend(found[query.id])
                places[query.id] = places.get(query.id, 0) + 1
    if not any(n > 1 for n in places.values()):
        raise TestSetError(
            f"no query occurs in two of the files {', '.join(files)}",
            expected="judgments of the same queries",
            got="; ".join(some_ids(testset.query_ids[:2]) for testset in files.values()),
        )
    some = [query_id for query_id, n in places.items() if n < len(files)]
    notes = [f"{count_noun(len(some), 'queries')} missing from some files: {some_ids(some)}"] if some else []
    return TestSet(
        name=" + ".join(files),
        queries=tuple(queries.values()),
        ratings={query_id: tuple(found) for query_id, found in ratings.items()},
        consensus=next((testset.consensus for testset in files.values() if testset.consensus), ""),
        labels=labels,
        meta=first.meta,
        notes=(*(note for testset in files.values() for note in testset.notes), *info(*notes)),
    )


def _ratings(name: str, testset: TestSet) -> dict[str, tuple[Rating, ...]]:
    """Query id to the ratings of a file, or to its judgments as ratings of one rater."""
    rated = ratings_of(testset)
    if any(rated.values()):
        return {query_id: tuple(found) for query_id, found in rated.items()}
    if not any(testset.grades.values()):
        raise TestSetError(
            f"test set {testset.name!r} has neither ratings nor graded ids", expected="grades of documents by query"
        )
    return {
        query_id: tuple(Rating(doc_id, name, grade) for doc_id, grade in judged.items())
        for query_id, judged in testset.grades.items()
    }
