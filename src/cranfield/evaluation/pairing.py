"""Systems paired by query id: the engine under `compare` (two systems) and `compare_many` (three or more)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.evaluation.evaluate import groups_of, strata_of, summarise
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.values import Evaluation, Summary, find_measure
from cranfield.measures import CATALOGUE, Measure, compute, parse
from cranfield.measures.catalogue import is_composed
from cranfield.model import TestSet
from cranfield.ranking.value import FloatQ, only_queries
from cranfield.stats.permutation import is_enumerated, permutations
from cranfield.stats.result import TestResult

FloatQS = NDArray[np.float64]
"""Queries by systems."""
Column = tuple[Sequence[str], FloatQ, NDArray[np.bool_]]
"""Query ids, values and which are scored, of one system."""


@dataclass(frozen=True, slots=True, eq=False)
class PairedValues:
    """One measure of S systems on the Q queries for which every system has a value."""

    measure: Measure
    query_ids: tuple[str, ...]
    """In the order of the first system."""
    values: FloatQS
    groups: NDArray[np.intp] | None = None
    """intp[Q]: the strata of a weighted sum, whose numbers of queries the interval of a system takes as given."""

    def summaries(self, alpha: float) -> tuple[Summary, ...]:
        """Every system's mean and interval at 1 - alpha."""
        return tuple(summarise(column, 1 - alpha, measure=self.measure, groups=self.groups) for column in self.values.T)

    def strata(self, testset: TestSet) -> Iterator[tuple[str, str, PairedValues]]:
        """(key, value, values) of every stratum; none of a weighted sum, which is one number over the strata."""
        if is_composed(self.measure):
            return
        places = {query_id: row for row, query_id in enumerate(self.query_ids)}
        for key, value, query_ids in strata_of(testset, self.query_ids):
            yield key, value, self._at(sorted(places[query_id] for query_id in query_ids))

    def without(self, query_ids: Sequence[str]) -> PairedValues:
        """The values without those of some queries."""
        return self._only(set(self.query_ids) - set(query_ids))

    def _only(self, kept: set[str]) -> PairedValues:
        return self._at([row for row, query_id in enumerate(self.query_ids) if query_id in kept])

    def _at(self, rows: Sequence[int]) -> PairedValues:
        groups = None if self.groups is None else self.groups[rows]
        return PairedValues(self.measure, tuple(self.query_ids[row] for row in rows), self.values[rows], groups)


def pair_values(evaluations: Sequence[Evaluation], measure: Measure) -> PairedValues:
    """The values of a measure on the queries for which every system has one.

    Those of a weighted sum are its contributions when only these queries are evaluated.
    """
    paired = pair_columns(measure, [(e.query_ids, e.values[measure], e.scored[measure]) for e in evaluations])
    if not is_composed(measure):
        return paired
    kept = frozenset(paired.query_ids)
    if any(kept != {q for q in each.query_ids if has_value(each, measure, q)} for each in evaluations):
        rankings = [
            only_queries(each.ranking, np.array([query_id in kept for query_id in each.query_ids], dtype=np.bool_))
            for each in evaluations
        ]
        paired = pair_columns(measure, [(ranking.query_ids, *compute(measure, ranking)[:2]) for ranking in rankings])
    return replace(paired, groups=groups_of(measure, evaluations[0].ranking, paired.query_ids))


def pair_columns(measure: Measure, columns: Sequence[Column]) -> PairedValues:
    """The values of every system on the queries that are scored in every column."""
    known = [
        {
            query_id: value
            for query_id, value, is_scored in zip(ids, values.tolist(), scored.tolist(), strict=True)
            if is_scored
        }
        for ids, values, scored in columns
    ]
    query_ids = tuple(query_id for query_id in known[0] if all(query_id in column for column in known))
    rows = [[column[query_id] for column in known] for query_id in query_ids]
    return PairedValues(measure, query_ids, np.array(rows, dtype=np.float64).reshape(len(rows), len(known)))


def has_value(evaluation: Evaluation, measure: Measure, query_id: str) -> bool:
    """Whether the system answers the query and has a value of the measure for it."""
    return query_id in evaluation.index and bool(evaluation.scored[measure][evaluation.index[query_id]])


def shared_measures(evaluations: Sequence[Evaluation]) -> tuple[Measure, ...]:
    """Measures that every system was evaluated on, in the first one's order.

    Raises:
        UsageError: the systems do not belong together: other test sets, conventions, depths or scales, no measure in
            common, or a measure that is one number over all queries.
    """
    for two in pairwise(evaluations):
        _check_comparable(*two)
    shared = tuple(measure for measure in evaluations[0].measures if all(measure in e.measures for e in evaluations))
    if not shared:
        raise UsageError("the evaluations share no measure")
    return shared


def _check_comparable(first: Evaluation, second: Evaluation) -> None:
    if first.testset.digest != second.testset.digest:
        judging, other = first.testset.meta.judging, second.testset.meta.judging
        by = ", judged by different guidelines" if judging and judging.has_other_guidelines(other) else ""
        raise UsageError(
            f"the two systems were evaluated on different test sets{by}",
            expected=first.testset.digest,
            got=second.testset.digest,
            hint="test sets differ if judgments, targets, classes, strata, or the rule or scale of the grades differ",
        )
    conventions = first.ranking.convention, second.ranking.convention
    if conventions[0] != conventions[1]:
        names = " and ".join(convention.name for convention in conventions)
        raise UsageError("the two systems were scored under different conventions", got=names)
    depths = [evaluation.reading.get("depth") for evaluation in (first, second)]
    if depths[0] != depths[1]:
        raise UsageError("the two runs were read to different depths", got=f"{depths[0]} and {depths[1]}")
    shared = tuple(measure for measure in first.measures if measure in second.measures)
    if not shared and not any(first.testset.is_judged(query_id) for query_id in first.testset.query_ids):
        raise UsageError(f"no query of the test set {first.testset.name} is judged", expected="judgments to compare by")
    if not shared:
        raise UsageError("the two evaluations share no measure")
    for measure in shared:
        scales = first.scales.get(measure), second.scales.get(measure)
        if scales[0] != scales[1]:
            raise UsageError(
                f"{measure} is on two scales, {scales[0]} and {scales[1]}", expected="the same scale on both sides"
            )
    pooled = [str(measure) for measure in shared if CATALOGUE[measure.name].aggregate != "mean"]
    if pooled:
        raise UsageError(
            f"{', '.join(pooled)}: one number over all queries, without a difference per query",
            hint="compare measures that are averaged over queries, such as AP; `cranfield evaluate TESTSET RUN` prints these",
        )


def primary_measure(shared: Sequence[Measure], options: CompareOptions) -> Measure:
    """The measure of the verdict.

    Raises:
        UsageError: it was not evaluated on every system, or is a diagnostic measure.
    """
    primary = find_measure(shared[0] if options.primary is None else parse(options.primary), shared)
    if primary not in shared:
        known = ", ".join(map(str, shared))
        raise UsageError(f"primary measure {primary} was not evaluated on every system", expected=f"one of {known}")
    if CATALOGUE[primary.name].diagnostic:
        raise UsageError(f"{primary} is a diagnostic measure and cannot decide a verdict", expected="a quality measure")
    return primary


def dropped_queries(evaluations: Sequence[Evaluation], paired: PairedValues) -> dict[str, str]:
    """Query id to why it cannot be paired: the first system without a value for it."""
    kept = set(paired.query_ids)
    dropped: dict[str, str] = {}
    for query_id in dict.fromkeys(q for each in evaluations for q in each.query_ids if q not in kept):
        lacking = next(each for each in evaluations if not has_value(each, paired.measure, query_id))
        if query_id not in lacking.index:
            dropped[query_id] = f"{lacking.name} has no answer for it"
        else:
            dropped[query_id] = f"no value: {lacking.unscored[paired.measure].get(query_id, '')}"
    return dropped


def permute(differences: Sequence[FloatQ], options: CompareOptions) -> list[TestResult]:
    """The permutation test of several vectors of differences on the same queries, with the same sign patterns."""
    if not differences:
        return []
    drawn = options.draws
    return permutations(np.column_stack(differences), alpha=options.alpha, seed=options.seed, n_draws=drawn)


def random_draws(n_queries: int, n_nonzero: int, options: CompareOptions) -> int:
    """Random sign patterns of the permutation test; 0 where all of them are counted."""
    return 0 if is_enumerated(n_queries, n_nonzero) else options.draws
