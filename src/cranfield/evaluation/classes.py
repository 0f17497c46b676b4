"""Results by query class: each class has measures and a paired test of its own, from the table `QUERY_CLASSES`.

The queries of a class are selected from an existing ranking; nothing is ranked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cranfield.evaluation.class_values import WITHOUT
from cranfield.evaluation.columns import as_printed
from cranfield.evaluation.evaluate import clipped, difference_range, summarise
from cranfield.evaluation.strata import StratumSummary, strata_of
from cranfield.evaluation.values import NOT_ON_ITS_SCALE, Comparison, Evaluation, Summary
from cranfield.measures import Measure, compute, parse_all
from cranfield.measures.families.aspects import form_wins
from cranfield.model import QUERY_CLASSES, QueryClass
from cranfield.model.query import CLASS
from cranfield.ranking.transform import only_queries
from cranfield.ranking.value import FloatQ, Ranking
from cranfield.stats.describe import describe
from cranfield.stats.interval import t_interval
from cranfield.stats.result import TestResult
from cranfield.stats.vectors import differences

ALPHA = 0.05
"""Significance level of the test of one system."""


@dataclass(frozen=True, slots=True)
class ClassMeasure:
    """One measure over the queries of one class."""

    measure: Measure
    summary: Summary
    values: Mapping[str, float]
    """Query id to value, where it has one."""
    unscored: Mapping[str, str]
    """Query id to why it has none."""


@dataclass(frozen=True, slots=True)
class FormWins:
    """How often the modern form leads the legacy one in one system, and the sign test of that."""

    wins: int
    losses: int
    neither: int
    """Neither form was found: no win and no loss."""
    test: TestResult
    too_few: str = ""
    alpha: float = ALPHA


@dataclass(frozen=True, slots=True)
class ClassResult:
    """One system on the queries of one class."""

    query_class: QueryClass
    query_ids: tuple[str, ...]
    failed: tuple[str, ...]
    """Queries of the class that the system failed on."""
    measures: tuple[ClassMeasure, ...]
    """As the table has them: the first decides within the class."""
    forms: FormWins | None = None
    """For a class whose measure is `ModernFirst`."""


@dataclass(frozen=True, slots=True)
class ClassDifference:
    """One measure of one class on both sides, over the queries that both have a value for."""

    measure: Measure
    baseline: Summary
    candidate: Summary
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    """Interval of the mean difference: the permutation test's own where that is the test, else Student's t."""
    n: int
    n_nonzero: int
    differences: Mapping[str, float]
    values: tuple[Mapping[str, float], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """Two systems on the queries of one class."""

    query_class: QueryClass
    query_ids: tuple[str, ...]
    sides: tuple[ClassResult, ClassResult]
    measures: tuple[ClassDifference, ...]
    test: TestResult | None = None
    """The test of the table on the first measure, its p adjusted across the classes with enough queries to decide; None where
    no query has a pair."""
    too_few: str = ""
    """Why the test cannot be significant; empty where it can."""


def by_class(evaluation: Evaluation) -> tuple[ClassResult, ...]:
    """One system by query class, in the order of the table; empty where no query has a class."""
    return tuple(
        _class_result(query_class, evaluation, query_ids)
        for query_class, query_ids in _queries_by_class(evaluation.ranking)
    )


def class_measures_by_stratum(
    evaluation: Evaluation, always: Collection[str] = ()
) -> dict[Measure, tuple[StratumSummary, ...]]:
    """Measures of a query class that were not computed for all queries, within each stratum whose queries are all of that class.

    Args:
        evaluation: one system.
        always: keys of strata, as in `strata_of`.
    """
    classes = by_class(evaluation) if evaluation.ranking.classes else ()
    computed = {measure.canonical for measure in evaluation.measures}
    found: dict[Measure, tuple[StratumSummary, ...]] = {}
    for key, value, query_ids in strata_of(evaluation.testset, evaluation.query_ids, always) if classes else ():
        own = next((each.measures for each in classes if set(query_ids) <= set(each.query_ids)), ())
        for each in own:
            if each.measure.canonical not in computed:
                values = np.array([each.values[q] for q in query_ids if q in each.values], dtype=np.float64)
                summary = StratumSummary(key, value, summarise(values, measure=each.measure))
                found[each.measure] = (*found.get(each.measure, ()), summary)
    return found


def compare_classes(comparison: Comparison) -> tuple[ClassComparison, ...]:
    """Two systems by query class: each class with its own paired test, Holm-adjusted across the classes that can decide.

    A class with fewer than `smallest_n` queries cannot have a p of alpha or less: it is no member of the family, and its p is
    not adjusted.
    """
    from cranfield.stats.result import holm

    sides = [{result.query_class.name: result for result in by_class(side)} for side in comparison.evaluations]
    compared = [
        _compare_class((before[name], after[name]), comparison)
        for before, after in [sides]
        for name in before
        if name in after
    ]
    needed = smallest_n(comparison.alpha)
    of_classes = [
        None if result.test is None or result.measures[0].n < needed else result.test.p_two_sided for result in compared
    ]
    adjusted = holm([*of_classes, *_without_class(comparison)])[: len(compared)]
    return tuple(
        result if result.test is None else replace(result, test=replace(result.test, p_adjusted=p))
        for result, p in zip(compared, adjusted, strict=True)
    )


def _without_class(comparison: Comparison) -> list[float | None]:
    """The p of the queries without a class, where they are in the family."""
    rows = () if comparison.by_class is None or comparison.by_class.key != CLASS else comparison.by_class.rows
    return [row.result.p_two_sided for row in rows if row.label == WITHOUT and row.can_decide and row.result]


def smallest_n(alpha: float) -> int:
    """Queries that must differ, all in one direction, before a test of signs can have a two-sided p of alpha: 2 / 2^n <= alpha.

    Example:
        >>> smallest_n(0.05)  # 2 / 2^5 = .0625, 2 / 2^6 = .03125
        6
    """
    n = 1
    while 2.0 ** (1 - n) > alpha:
        n += 1
    return n


def _queries_by_class(ranking: Ranking) -> Iterator[tuple[QueryClass, tuple[str, ...]]]:
    for name, query_class in QUERY_CLASSES.items():
        found = tuple(q for q, of in zip(ranking.query_ids, ranking.classes, strict=False) if of == name)
        if found:
            yield query_class, found


def _class_result(query_class: QueryClass, evaluation: Evaluation, query_ids: tuple[str, ...]) -> ClassResult:
    ranking = evaluation.ranking
    members = set(query_ids)
    part = only_queries(ranking, np.array([query_id in members for query_id in ranking.query_ids], dtype=np.bool_))
    measures = as_printed(parse_all(query_class.measures), evaluation.ranking.convention)
    measured = tuple(_measure_class(measure, part, evaluation) for measure in measures)
    return ClassResult(
        query_class=query_class,
        query_ids=query_ids,
        failed=tuple(q for q, o in zip(part.query_ids, part.outcomes, strict=True) if o.is_failure),
        measures=measured,
        forms=_form_wins(part, measured[0]) if measured[0].measure.name == "ModernFirst" else None,
    )


def _measure_class(measure: Measure, part: Ranking, evaluation: Evaluation) -> ClassMeasure:
    """One measure of the queries of `part`, on the grades of its scale where each scale has its own."""
    own = evaluation.ranking_for(measure)
    if own is None:
        return ClassMeasure(measure, summarise(np.zeros(0)), {}, dict.fromkeys(part.query_ids, NOT_ON_ITS_SCALE))
    members = set(part.query_ids)
    ranking = part
    if own is not evaluation.ranking:
        ranking = only_queries(own, np.array([query_id in members for query_id in own.query_ids], dtype=np.bool_))
    values, scored, unscored = compute(measure, ranking)
    known = {q: v for q, v, s in zip(ranking.query_ids, values.tolist(), scored.tolist(), strict=True) if s}
    return ClassMeasure(measure, summarise(values[scored], measure=measure), known, unscored)


def _form_wins(ranking: Ranking, measured: ClassMeasure) -> FormWins:
    from cranfield.stats.paired import sign_test

    ways = dict(zip(ranking.query_ids, form_wins(ranking).tolist(), strict=True))
    counted = np.array([ways[query_id] for query_id in measured.values], dtype=np.float64)
    wins, losses = int((counted > 0).sum()), int((counted < 0).sum())
    few = too_few_note(len(counted), wins + losses, ALPHA)
    return FormWins(wins, losses, len(counted) - wins - losses, sign_test(counted), few)


def _compare_class(sides: tuple[ClassResult, ClassResult], comparison: Comparison) -> ClassComparison:
    query_class = sides[0].query_class
    compared: list[ClassDifference] = []
    decided: TestResult | None = None
    for before, after in zip(sides[0].measures, sides[1].measures, strict=True):
        paired = [query_id for query_id in before.values if query_id in after.values]
        a, b = (np.array([side.values[q] for q in paired], dtype=np.float64) for side in (before, after))
        result = run_test(query_class.test, a, b, comparison) if paired else None
        if not compared:
            decided = result
        compared.append(_difference(before.measure, paired, (a, b), comparison.alpha, query_class, result))
    first = compared[0]
    return ClassComparison(
        query_class=query_class,
        query_ids=sides[0].query_ids,
        sides=sides,
        measures=tuple(compared),
        test=decided,
        too_few=too_few_note(first.n, first.n_nonzero, comparison.alpha),
    )


def run_test(test: str, a: FloatQ, b: FloatQ, comparison: Comparison, *, alpha: float | None = None) -> TestResult:
    """A test of the table of tests within a class; at the alpha of the comparison, unless another is given."""
    from cranfield.stats.table import DEFAULT_DRAWS, TESTS, Paired

    draws = comparison.n_draws or DEFAULT_DRAWS
    given = Paired(a, b, differences(a, b), alpha or comparison.alpha, comparison.seed, draws)
    return TESTS[test].run(given)


def _difference(
    measure: Measure,
    paired: Sequence[str],
    values: tuple[FloatQ, FloatQ],
    alpha: float,
    query_class: QueryClass,
    result: TestResult | None,
) -> ClassDifference:
    difference = differences(*values)
    interval = clipped(t_interval(difference, 1 - alpha), difference, difference_range(measure))
    low, high = interval or (None, None)
    if query_class.test == "permutation" and result is not None:
        low, high = result.ci_low, result.ci_high
    before, after = (dict(zip(paired, side.tolist(), strict=True)) for side in values)
    return ClassDifference(
        measure=measure,
        baseline=summarise(values[0], 1 - alpha, measure=measure),
        candidate=summarise(values[1], 1 - alpha, measure=measure),
        delta=describe(difference).mean,
        ci_low=low,
        ci_high=high,
        n=len(paired),
        n_nonzero=int(np.count_nonzero(difference)),
        differences=dict(zip(paired, difference.tolist(), strict=True)),
        values=(before, after),
    )


def too_few_note(n: int, n_differ: int, alpha: float) -> str:
    """Why no test of signs of so many queries can have a p of alpha or less; empty where one can."""
    needed = smallest_n(alpha)
    if n_differ >= needed:
        return ""
    few = "1 query is" if n == 1 else f"{n} queries are"
    what = f"{few} too few" if n < needed else f"{n_differ} of {n} queries differ, which is too few"
    return f"{what} for any p of {alpha:g} or less: {needed} must differ, all in one direction"
