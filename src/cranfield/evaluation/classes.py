"""Results by query class: each class has measures and a paired test of its own; the verdict follows from theirs.

The queries of a class are selected from an existing ranking; nothing is ranked again.

The verdict of a comparison whose queries have classes: one verdict a class, and a declared rule over them.

better   the test over all queries is significant upwards, at least one class is better, and none is worse
    worse    the same downwards
    mixed    at least one class is better, and at least one is worse
    else     equivalent, where the pooled verdict is that and no class is better or worse; else no significant difference

A class is better or worse by its own test, with Holm's adjustment over the classes that can decide. Where none can, the
test over all queries decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.base.numbers import format_p, format_value
from cranfield.base.words import count_noun, join_first
from cranfield.evaluation.evaluate import StratumSummary, clipped, difference_range, strata_of, summarise
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.pairing import pair_values
from cranfield.evaluation.unseen import Caveat, CaveatKind, ObservedEffect, Unseen, largest_difference, unseen_queries
from cranfield.evaluation.values import (
    CHANGED,
    NOT_ON_ITS_SCALE,
    WITHOUT,
    ClassRow,
    ClassVerdict,
    Comparison,
    Evaluation,
    MeasureComparison,
    Summary,
    Verdict,
    as_printed,
)
from cranfield.evaluation.verdict import numbers_of, verdict_of_interval, verdict_of_p
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure, compute, parse_all
from cranfield.measures.catalogue import is_composed, sign_of
from cranfield.measures.families.aspects import form_wins
from cranfield.model import QUERY_CLASSES, QueryClass, query_strata
from cranfield.model.query import CLASS, NEGATIVE, class_of
from cranfield.ranking.value import FloatQ, Ranking, only_queries
from cranfield.stats.describe import describe, differences, t_interval
from cranfield.stats.result import TestResult, holm
from cranfield.stats.stratified import WITHIN, stratified_t
from cranfield.stats.table import TESTS

if TYPE_CHECKING:
    from cranfield.model import TestSet


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
    needed = smallest_n(comparison.options.alpha)
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
        compared.append(_difference(before.measure, paired, (a, b), comparison.options.alpha, query_class, result))
    first = compared[0]
    return ClassComparison(
        query_class=query_class,
        query_ids=sides[0].query_ids,
        sides=sides,
        measures=tuple(compared),
        test=decided,
        too_few=too_few_note(first.n, first.n_nonzero, comparison.options.alpha),
    )


def run_test(test: str, a: FloatQ, b: FloatQ, comparison: Comparison, *, alpha: float | None = None) -> TestResult:
    """A test of the table of tests within a class; at the alpha of the comparison, unless another is given."""
    from cranfield.stats.table import DEFAULT_DRAWS, TESTS, Paired

    draws = comparison.n_draws or DEFAULT_DRAWS
    given = Paired(a, b, differences(a, b), alpha or comparison.options.alpha, comparison.options.seed, draws)
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
    what = f"{few} too few" if n < needed else f"{n_differ} of {n} queries differ, too few"
    return f"{what} for any p of {alpha:g} or less: {needed} must differ, all in one direction"


def decide_by_class(comparison: Comparison, options: CompareOptions) -> Comparison:
    """The comparison with the verdict of its classes; unchanged where one mean decides.

    One mean decides where it is declared (`verdict="pooled"`), where the comparison does not count, and where all queries
    are of one class. Negative queries are a class beside others; where they would be the only one, the verdict is of the
    other queries, and a reason of it says how the negative ones did.

    Raises:
        UnknownNameError: no query has the declared stratum.
        UsageError: the declared stratum has a different value for each query.
    """
    key = deciding_key(comparison.baseline.testset, options, comparison.primary)
    if comparison.verdict.code is VerdictCode.INVALID:
        return comparison
    if key != CLASS:
        comparison = _with_negatives(comparison)
    if not key:
        return comparison
    rows = _rows(comparison, key)
    if len(rows) < 2:
        if not options.strata:
            return comparison
        reason = f"every query has the same {key}: the mean over all queries decides"
        return replace(comparison, verdict=replace(comparison.verdict, reasons=(*comparison.verdict.reasons, reason)))
    overall = _overall(comparison, key)
    measures = _with_overall(comparison, overall)
    found = ClassVerdict(key, rows, overall, comparison.verdict.code)
    code = _code(found, measures[comparison.primary], options)
    verdict = Verdict(
        code,
        _sentence(found, code, comparison, numbers_of(measures[comparison.primary], options)),
        (*_reasons(found, code, comparison), *comparison.verdict.reasons),
    )
    return replace(comparison, measures=measures, verdict=verdict, by_class=found)


def claims(comparison: Comparison) -> frozenset[VerdictCode]:
    """The verdict, and with classes that of the declared test over all queries: what other measures and tests can contradict."""
    code, found = comparison.verdict.code, comparison.by_class
    return frozenset({code} if found is None else {code, _direction(comparison.primary, found.overall)})


def deciding_key(testset: TestSet, options: CompareOptions, primary: Measure | None = None) -> str:
    """The key of the classes that decide: the declared stratum, or `class` where queries have classes; empty for none.

    A weighted sum over strata has no value within a class: it decides over all queries.

    Raises:
        UnknownNameError: no query has the declared stratum.
        UsageError: it has a different value for each query, or the primary measure is a weighted sum.
    """
    if options.verdict == "pooled":
        return ""
    if primary is not None and is_composed(primary):
        if options.strata:
            expected = "another primary measure, or a verdict over all queries"
            raise UsageError(
                f"{primary} is a sum over strata, and has no verdict by {options.strata}", expected=expected
            )
        return ""
    strata = [query_strata(query) for query in testset.queries]
    if not options.strata:
        return CLASS if any(class_of(query) not in {"", NEGATIVE} for query in testset.queries) else ""
    values = [own[options.strata] for own in strata if options.strata in own]
    if not values:
        raise UnknownNameError.among("stratum", options.strata, sorted({key for own in strata for key in own}))
    if len(set(values)) == len(values) > 1:
        expected = "a stratum with several queries of one value"
        raise UsageError(f"stratum {options.strata} has a different value for each query", expected=expected)
    return options.strata


def _with_negatives(comparison: Comparison) -> Comparison:
    """The comparison with a line on its negative queries, which no other measure has a value for; a caveat where they changed."""
    found = next((each for each in compare_classes(comparison) if each.query_class.name == NEGATIVE), None)
    if found is None or (row := _class_row(found)).delta is None or row.result is None:
        return comparison
    p = row.result.p_two_sided if row.n >= smallest_n(comparison.options.alpha) else None
    code = verdict_of_p(p, row.delta * sign_of(row.measure), comparison.options.alpha)
    tested = "too few for a test" if p is None else f"p {format_p(p)}, {row.test}"
    means = f"{row.measure} {format_value(row.baseline)} to {format_value(row.candidate)}"
    text = f"negative queries, outside the verdict: {means}, {code.text} (n = {row.n}, {tested})"
    line = text if code in CHANGED else Caveat(text, CaveatKind.FINDING)
    return replace(comparison, verdict=replace(comparison.verdict, reasons=(*comparison.verdict.reasons, line)))


def _rows(comparison: Comparison, key: str) -> tuple[ClassRow, ...]:
    """A row for each class, p adjusted over those that can decide."""
    by_class = key == CLASS and bool(comparison.baseline.ranking.classes)
    rows = [_class_row(of_class) for of_class in compare_classes(comparison)] if by_class else []
    labels = _labels(comparison, key, by_class=by_class)
    paired = pair_values(comparison.evaluations, comparison.primary)
    groups: dict[str, list[int]] = {}
    for place, query_id in enumerate(paired.query_ids):
        groups.setdefault(labels[query_id], []).append(place)
    for label in sorted(groups, key=lambda label: (label == WITHOUT, label)):
        if label == WITHOUT or not by_class:
            query_ids = tuple(paired.query_ids[place] for place in groups[label])
            rows.append(_stratum_row(label, query_ids, paired.values[groups[label]], comparison))
    needed = smallest_n(comparison.options.alpha)
    adjusted = holm([None if row.result is None or row.n < needed else row.result.p_two_sided for row in rows])
    rows = [
        row if row.result is None else replace(row, result=replace(row.result, p_adjusted=p))
        for row, p in zip(rows, adjusted, strict=True)
    ]
    n_tested = sum(row.can_decide for row in rows)
    decided = [replace(row, code=_code_of_row(row, comparison, n_tested)) for row in rows]
    return tuple(replace(row, unseen=_unseen(row, comparison)) for row in decided)


def _unseen(row: ClassRow, comparison: Comparison) -> Unseen | None:
    """What stands beside the verdict of a class of few queries."""
    if not row.can_decide:
        return None
    low, high = (row.ci_low, row.ci_high) if row.estimate is None else (None, None)
    largest = largest_difference(row.measure, comparison.candidate.ranking)
    found = ObservedEffect(row.n, row.delta, low, high, sign_of(row.measure), largest)
    unseen = unseen_queries(row.code, found, comparison.options.alpha, comparison.options.margin)
    return None if unseen is None else replace(unseen, of=row.name, among="its queries")


def _class_row(compared: ClassComparison) -> ClassRow:
    about = compared.measures[0]
    return ClassRow(
        compared.query_class.name,
        about.measure,
        compared.query_class.test,
        tuple(about.differences),
        about.n_nonzero,
        about.baseline.mean,
        about.candidate.mean,
        about.delta,
        about.ci_low,
        about.ci_high,
        compared.test,
        too_few=compared.too_few,
    )


def _stratum_row(label: str, query_ids: tuple[str, ...], values: FloatQ, comparison: Comparison) -> ClassRow:
    """A class that the declared test decides on the primary measure."""
    a, b = values.T
    difference = differences(a, b)
    result = run_test(comparison.options.test, a, b, comparison)
    n_nonzero = int(np.count_nonzero(difference))
    return ClassRow(
        label,
        comparison.primary,
        comparison.options.test,
        query_ids,
        n_nonzero,
        float(a.mean()),
        float(b.mean()),
        float(difference.mean()),
        result.ci_low,
        result.ci_high,
        result,
        too_few=too_few_note(len(query_ids), n_nonzero, comparison.options.alpha),
        estimate=None if TESTS[comparison.options.test].is_of_mean else result.estimate,
    )


def _code_of_row(row: ClassRow, comparison: Comparison, n_tested: int) -> VerdictCode:
    """The verdict of a class: by its adjusted p, or by the margin of the primary measure."""
    result = row.result
    if result is None or result.p_adjusted is None or result.p_one_sided is None:
        return VerdictCode.NOT_SIGNIFICANT
    if comparison.options.margin is not None and row.measure == comparison.primary and row.ci_low is not None:
        alpha = comparison.options.alpha / n_tested  # an interval of each class at once
        values = np.array([comparison.measures[row.measure].differences[query_id] for query_id in row.query_ids])
        wide = run_test(row.test, np.zeros_like(values), values, comparison, alpha=alpha)
        margin = comparison.options.margin
        if verdict_of_interval(wide.ci_low, wide.ci_high, sign=1, margin=margin) is VerdictCode.EQUIVALENT:
            return VerdictCode.EQUIVALENT
    return verdict_of_p(result.p_adjusted, result.direction * sign_of(row.measure), comparison.options.alpha)


def _labels(comparison: Comparison, key: str, *, by_class: bool) -> Mapping[str, str]:
    """Query id to its class."""
    if by_class:
        ranking = comparison.baseline.ranking
        return dict(zip(ranking.query_ids, ranking.classes, strict=True))
    return {query.id: query_strata(query).get(key, WITHOUT) for query in comparison.baseline.testset.queries}


def _overall(comparison: Comparison, key: str) -> TestResult:
    """The declared test on the primary measure, over all queries, with the classes as strata."""
    if comparison.options.test != "t":  # the others are stratified as they are: see `cranfield.stats.stratified`
        return comparison.measures[comparison.primary].tests[comparison.options.test]
    labels = _labels(comparison, key, by_class=key == CLASS and bool(comparison.baseline.ranking.classes))
    paired = pair_values(comparison.evaluations, comparison.primary)
    of_queries = [labels[query_id] for query_id in paired.query_ids]
    result = stratified_t(differences(*paired.values.T), of_queries, alpha=comparison.options.alpha)
    return replace(result, p_adjusted=result.p_two_sided)


def _with_overall(comparison: Comparison, overall: TestResult) -> Mapping[Measure, MeasureComparison]:
    """The measures, with the stratified test in place of the declared one on the primary measure."""
    about = comparison.measures[comparison.primary]
    if overall == about.tests[comparison.options.test]:
        return comparison.measures
    changed = replace(
        about,
        ci_low=overall.ci_low,
        ci_high=overall.ci_high,
        interval_method=f"{about.interval_method}, {WITHIN}",
        tests={**about.tests, comparison.options.test: overall},
    )
    return {**comparison.measures, comparison.primary: changed}


def _code(found: ClassVerdict, overall: MeasureComparison, options: CompareOptions) -> VerdictCode:
    if not found.n_tested:
        sign = sign_of(overall.measure)
        return verdict_of_interval(overall.ci_low, overall.ci_high, sign=sign, margin=options.margin)
    better, worse = (bool(found.with_code(code)) for code in CHANGED)
    if better and worse:
        return VerdictCode.MIXED
    direction = _direction(overall.measure, found.overall)
    if (direction is VerdictCode.BETTER and better) or (direction is VerdictCode.WORSE and worse):
        return direction
    bounds = verdict_of_interval(overall.ci_low, overall.ci_high, sign=1, margin=options.margin)
    if bounds is VerdictCode.EQUIVALENT and not better and not worse:
        return VerdictCode.EQUIVALENT
    return VerdictCode.NOT_SIGNIFICANT


def _direction(measure: Measure, overall: TestResult) -> VerdictCode:
    """What the test over all queries says, without a margin."""
    return verdict_of_interval(overall.ci_low, overall.ci_high, sign=sign_of(measure))


def _sentence(found: ClassVerdict, code: VerdictCode, comparison: Comparison, numbers: str) -> str:
    """The verdict, the numbers over all queries, and the classes behind it."""
    baseline, candidate = comparison.baseline.name, comparison.candidate.name
    better, worse = (join_first(row.name for row in found.with_code(of)) for of in CHANGED)
    lead = {
        VerdictCode.MIXED: f"{candidate} against {baseline} is mixed: better in {better}, worse in {worse}",
        VerdictCode.BETTER: f"{candidate} is better than {baseline}",
        VerdictCode.WORSE: f"{candidate} is worse than {baseline}",
        VerdictCode.EQUIVALENT: f"{candidate} is equivalent to {baseline} within ±{comparison.options.margin or 0:g}",
        VerdictCode.NOT_SIGNIFICANT: f"No significant difference between {baseline} and {candidate}",
    }[code]
    if code is VerdictCode.NOT_SIGNIFICANT and _direction(comparison.primary, found.overall) is not code:
        lead = f"No class confirms the difference between {baseline} and {candidate}"
    elif code is VerdictCode.NOT_SIGNIFICANT and (better or worse):
        lead += f" over all queries, but {candidate} is " + (f"better in {better}" if better else f"worse in {worse}")
    return f"{lead}. {_class_counts(found)}. Over all queries {numbers}."


def _class_counts(found: ClassVerdict) -> str:
    """`Of 9 classes, 3 better (root, prose, fragment), none worse; 2 lower without significance (prose, attribute)`."""
    parts = []
    for code in CHANGED:
        rows = found.with_code(code)
        parts.append(
            f"{len(rows)} {code.text} ({join_first(row.name for row in rows)})" if rows else f"none {code.text}"
        )
    text = f"Of {count_noun(len(found.rows), 'classes')}, {', '.join(parts)}"
    if found.falling:
        text += f"; {len(found.falling)} lower without significance ({join_first(row.name for row in found.falling)})"
    return text


def _reasons(found: ClassVerdict, code: VerdictCode, comparison: Comparison) -> tuple[str, ...]:
    """Why the rule gives this verdict where the mean over all queries would give another."""
    reasons = []
    if code is not found.pooled:
        mean = f"the verdict by the mean over all queries would be: {found.pooled.text} (verdict: pooled)"
        better, worse = (found.with_code(of) for of in CHANGED)
        why = ""
        if found.pooled in CHANGED and code is VerdictCode.NOT_SIGNIFICANT:
            opposite = worse if found.pooled is VerdictCode.BETTER else better
            why = f"no class is {found.pooled.text}"
            if opposite:
                why += f", and {join_first(row.name for row in opposite)} {opposite[0].code.text}"
            else:
                why += f" on its own, by p adjusted over {count_noun(found.n_tested, 'classes')}"
        reasons.append(f"{why}; {mean}" if why else mean)
    if not found.n_tested:
        reasons.append("no class has enough queries to decide: the test over all queries decides")
    needed = smallest_n(comparison.options.alpha)
    silent = [row for row in found.rows if not row.can_decide]
    few = [row.name for row in silent if row.n < needed]
    if few:
        reasons.append(f"too few queries to decide, fewer than {needed}: {join_first(few)}")
    if len(few) < len(silent):
        untested = join_first(row.name for row in silent if row.n >= needed)
        reasons.append(f"too few queries that differ for the {comparison.options.test} test: {untested}")
    return tuple(reasons)
