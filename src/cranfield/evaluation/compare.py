"""Compare two evaluations: the tests, the verdict, and what narrows the difference down."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cranfield.base.numbers import format_value
from cranfield.base.words import count_noun, join_first
from cranfield.evaluation.classes import claims, decide_by_class
from cranfield.evaluation.evaluate import clipped, difference_range
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.explain import differ
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.pairing import (
    PairedValues,
    dropped_queries,
    has_value,
    pair_values,
    permute,
    primary_measure,
    random_draws,
    shared_measures,
)
from cranfield.evaluation.requirements import requirements_of
from cranfield.evaluation.unjudged import unjudged_of_pair
from cranfield.evaluation.unseen import Caveat, CaveatKind, ObservedEffect, Unseen, largest_difference, unseen_queries
from cranfield.evaluation.values import (
    Comparison,
    Evaluation,
    MeasureComparison,
    StratumComparison,
    Verdict,
    known_mean,
)
from cranfield.evaluation.verdict import NONINFERIORITY, decide, disagreements, too_few_draws
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure, compute
from cranfield.measures.catalogue import sign_of
from cranfield.measures.kernels import first_relevant_rank
from cranfield.measures.measure import only_its_grades
from cranfield.model import Convention, Run, TestSet
from cranfield.ranking.value import FloatQ, Ranking
from cranfield.stats.describe import describe, differences, t_interval
from cranfield.stats.paired import mcnemar, noninferiority
from cranfield.stats.power import USUAL_POWER, cohens_dz, minimal_detectable_effect
from cranfield.stats.result import TestResult, holm
from cranfield.stats.table import TESTS, run_tests

BUCKETS = (
    "failed in both",
    "failed in baseline",
    "failed in candidate",
    "never found",
    "newly found",
    "lost",
    "improved",
    "worsened",
    "unchanged",
)
"""In order of precedence, on the primary measure. `Found` is a relevant result within its cutoff; where nothing should be
found, a query improved, worsened or is unchanged."""

MOVES = (
    "failed",
    "stayed at rank 1",
    "moved to rank 1",
    "moved from rank 1",
    "newly found below rank 1",
    "lost from below rank 1",
    "rose below rank 1",
    "fell below rank 1",
    "same rank below 1",
    "never found",
)
"""In order of precedence, by the first relevant rank in the whole list kept. `NOTHING_TO_FIND` is after them where there
are such queries."""

NOTHING_TO_FIND = "nothing to find"
"""The move of a query where nothing should be found, and neither system failed."""

SHOWN = 3
"""Measures that a sentence names."""


def narrow_queries(run: Run) -> tuple[str, ...]:
    """Queries of a run ordered by score in which two different scores are equal as 32-bit floats."""
    if run.order == "given":
        return ()
    found = []
    for query_id, answer in run.answers.items():
        scores = np.unique([hit.score for hit in answer.hits if hit.score is not None])  # sorted, each once
        with np.errstate(over="ignore", under="ignore"):
            if len(scores) > 1 and len(np.unique(scores.astype(np.float32))) < len(scores):
                found.append(query_id)
    return tuple(found)


def narrow_caveat(evaluation: Evaluation, rank: Callable[[Convention], Ranking]) -> tuple[str, ...]:
    """A sentence on the measures that would differ where scores are compared as 32-bit floats; none where none would.

    Args:
        evaluation: at 64 bits.
        rank: the same run under another convention.
    """
    convention = evaluation.ranking.convention
    if convention.score_width == 32 or not evaluation.measures:
        return ()
    narrow = rank(replace(convention, score_width=32))
    if narrow.query_ids != evaluation.query_ids:
        return ()
    changes, changed = [], np.zeros(len(evaluation.query_ids), dtype=np.bool_)
    for measure in evaluation.measures:
        values, scored, _ = compute(measure, replace(narrow, convention=convention))
        here = np.where(evaluation.scored[measure], evaluation.values[measure], np.nan)
        there = np.where(scored, values, np.nan)
        differs = differ(here, there)
        if differs.any():
            changed |= differs
            changes.append(f"{measure} {format_value(known_mean(there))} instead of {format_value(known_mean(here))}")
    if not changes:
        return ()
    named = join_first(
        [query for query, differs in zip(evaluation.query_ids, changed.tolist(), strict=True) if differs]
    )
    sentence = (
        "scores that differ at 64 bits are equal at 32 bits, and tie in trec_eval 9 and pytrec_eval (convention trec9): "
        f"{join_first(changes, SHOWN)} in {count_noun(int(changed.sum()), 'queries')} ({named})"
    )
    return (Caveat(sentence, CaveatKind.NARROW_SCORES),)


Sides = tuple[Evaluation, Evaluation]


def compare(baseline: Evaluation, candidate: Evaluation, options: CompareOptions | None = None) -> Comparison:
    """Compare two systems on the queries both were evaluated on.

    Args:
        baseline: the current system.
        candidate: the system that would replace it; differences are candidate minus baseline.
        options: what was declared beforehand.

    Raises:
        UsageError: the two were scored on different test sets or conventions, or the primary measure is not among
            theirs.
    """
    options = options or CompareOptions()
    sides = (baseline, candidate)
    shared = shared_measures(sides)
    primary = primary_measure(shared, options)
    paired = {measure: pair_values(sides, measure) for measure in shared}
    compared = adjust([_compare_measures(paired, primary, options)], primary, options.test)[0]
    query_ids = paired[primary].query_ids
    dropped = dropped_queries(sides, paired[primary])
    evidence = inspect_systems(sides, primary, options.limits)
    void = (*void_sentences(evidence), *too_few_draws(compared[primary], options))
    code, sentence, reasons = decide(compared[primary], options, names=(baseline.name, candidate.name), void=void)
    strata = {m: _strata(values, baseline.testset, 1 - options.alpha) for m, values in paired.items()}
    comparison = Comparison(
        baseline=baseline,
        candidate=candidate,
        primary=primary,
        options=options,
        measures=compared,
        verdict=Verdict(code, sentence, reasons),
        buckets=bucket_queries(baseline, candidate, primary, compared[primary].differences),
        moves=move_queries(baseline, candidate, query_ids),
        rank_one=_rank_one(sides, query_ids),
        strata=strata[primary],
        strata_by_measure=strata,
        n_draws=random_draws(len(query_ids), compared[primary].n_nonzero, options),
        dropped=dropped,
        evidence=evidence,
        find_unjudged=unjudged_of_pair,
    )
    return _with_notes(_with_requirements(decide_by_class(comparison, options)), options)


def _with_requirements(comparison: Comparison) -> Comparison:
    """The comparison, whose verdict names at once what the candidate breaks of the test set's own requirements, and the baseline meets."""
    if comparison.verdict.code is VerdictCode.INVALID:
        return comparison
    then, now = (requirements_of(side.testset, side.ranking) for side in (comparison.baseline, comparison.candidate))
    met = {(each.query_id, each.rule) for each in then if each.is_met}
    broken = [each for each in now if not each.is_met and (each.query_id, each.rule) in met]
    if not broken:
        return comparison
    named = join_first([f"{each.query_id} ({each.rule}, got {each.got})" for each in broken], SHOWN)
    sentence = (
        f"{comparison.verdict.sentence} It breaks {count_noun(len(broken), 'requirements')} of single queries that "
        f"{comparison.baseline.name} meets: {named}."
    )
    return replace(comparison, verdict=replace(comparison.verdict, sentence=sentence))


def _with_notes(decided: Comparison, options: CompareOptions) -> Comparison:
    """The comparison with what stands beside its verdict: what disagrees with it, and what would turn it."""
    notes = (
        *_unpaired(decided.evaluations, decided.primary, tuple(decided.dropped)),
        *disagreements(claims(decided), decided.measures, decided.primary, options),
    )
    unseen = unseen_of_pair(decided, decided.verdict.code)
    return replace(decided, verdict=replace(decided.verdict, disagreements=notes, unseen=unseen))


def unseen_of_pair(comparison: Comparison, code: VerdictCode) -> Unseen | None:
    """What stands beside a verdict on these numbers: queries of a kind that is not among them; None from 50 queries on."""
    about, ranking = comparison.measures[comparison.primary], comparison.candidate.ranking
    is_of_mean = TESTS[comparison.options.test].is_of_mean
    low, high = (about.ci_low, about.ci_high) if is_of_mean else (None, None)
    largest = largest_difference(about.measure, ranking, about.differences.values())
    found = ObservedEffect(about.n, about.delta, low, high, sign_of(about.measure), largest)
    return unseen_queries(code, found, comparison.options.alpha, comparison.options.margin)


def _compare_measures(
    paired: Mapping[Measure, PairedValues], primary: Measure, options: CompareOptions
) -> dict[Measure, MeasureComparison]:
    """Every measure; those on the same queries share the sign patterns of the permutation test."""
    delta = {measure: differences(*values.values.T) for measure, values in paired.items()}
    by_queries: dict[tuple[str, ...], list[Measure]] = {}
    for measure, values in paired.items():
        by_queries.setdefault(values.query_ids, []).append(measure)
    permuted: dict[Measure, TestResult] = {}
    for measures in by_queries.values():
        permuted |= zip(measures, permute([delta[measure] for measure in measures], options), strict=True)
    return {
        measure: _compare_measure(
            values, delta[measure], permuted[measure], options, options.margin if measure == primary else None
        )
        for measure, values in paired.items()
    }


def _compare_measure(
    paired: PairedValues, difference: FloatQ, permuted: TestResult, options: CompareOptions, margin: float | None
) -> MeasureComparison:
    measure, (a, b) = paired.measure, paired.values.T
    about = describe(difference)
    tests = run_tests(
        a, b, alpha=options.alpha, seed=options.seed, n_draws=options.draws, margin=margin, permuted=permuted
    )
    if margin is not None:
        tests[NONINFERIORITY] = _noninferiority(difference, measure, margin, options.alpha)
    declared = tests.get(options.test)
    baseline, candidate = paired.summaries(options.alpha)
    return MeasureComparison(
        measure=measure,
        baseline=baseline,
        candidate=candidate,
        delta=about.mean,
        ci_low=declared.ci_low if declared else None,
        ci_high=declared.ci_high if declared else None,
        interval_method=TESTS[options.test].interval_method,
        effect_size=cohens_dz(difference),
        n=len(difference),
        n_nonzero=int(np.count_nonzero(difference)),
        mde=minimal_detectable_effect(about.std, about.n, options.alpha)
        if about.std and options.alpha < USUAL_POWER
        else None,
        tests=tests,
        delta_median=about.median,
        delta_std=about.std,
        differences=dict(zip(paired.query_ids, difference.tolist(), strict=True)),
        estimate=declared.estimate if declared else None,
        estimates=TESTS[options.test].estimate,
    )


def _noninferiority(difference: FloatQ, measure: Measure, margin: float, alpha: float) -> TestResult:
    """Whether a loss of the margin or more is ruled out; its interval is of candidate minus baseline."""
    if sign_of(measure) > 0:
        return noninferiority(difference, margin, alpha=alpha)
    result = noninferiority(-difference, margin, alpha=alpha)
    low, high = (None if end is None else -end for end in (result.ci_high, result.ci_low))
    return replace(result, ci_low=low, ci_high=high)


def adjust(
    systems: Sequence[Mapping[Measure, MeasureComparison]], primary: Measure, declared: str
) -> list[dict[Measure, MeasureComparison]]:
    """Give every p-value its Holm adjustment, over all systems that are compared with one baseline.

    Families: the declared test on the primary measure (of one system it stands as it is); each test over the quality
    measures other than the primary; and, on the primary measure, the tests other than the declared one. Diagnostics stand
    as they are; so does the test of equivalence, which asks another question.
    """
    of_difference = [name for name, spec in TESTS.items() if not spec.needs_margin]
    known = [
        (place, measure, name)
        for place, compared in enumerate(systems)
        for measure, comparison in compared.items()
        for name in of_difference
        if name in comparison.tests and (measure == primary or not CATALOGUE[measure.name].diagnostic)
    ]
    families: dict[object, list[tuple[int, Measure, str]]] = {}
    for key in known:
        _, measure, name = key
        families.setdefault(name == declared if measure == primary else name, []).append(key)
    adjusted: dict[tuple[int, Measure, str], float | None] = {}
    for family in families.values():
        p_values = holm([systems[place][measure].tests[name].p_two_sided for place, measure, name in family])
        adjusted.update(zip(family, p_values, strict=True))
    return [
        {
            measure: replace(
                comparison,
                tests={
                    name: replace(result, p_adjusted=adjusted.get((place, measure, name), result.p_two_sided))
                    for name, result in comparison.tests.items()
                },
            )
            for measure, comparison in compared.items()
        }
        for place, compared in enumerate(systems)
    ]


def _unpaired(sides: Sides, primary: Measure, dropped: Sequence[str]) -> tuple[str, ...]:
    """How many queries have a value on one side only; no verdict rests on them."""
    only = [sum(has_value(side, primary, query_id) for query_id in dropped) for side in sides]
    if not any(only):
        return ()
    counts = ", ".join(f"{n} on {side.name} only" for n, side in zip(only, sides, strict=True) if n)
    return (f"queries with a value of {primary} on one side cannot be paired: {counts}",)


def _rank_one(sides: Sides, query_ids: Sequence[str]) -> TestResult:
    """Exact McNemar on "the first result is relevant"."""
    right = []
    for side in sides:
        first = first_relevant_rank(side.ranking) == 1
        right.append(first[np.array([side.index[query_id] for query_id in query_ids], dtype=np.int64)])
    return mcnemar(*(side.astype(np.float64) for side in right))


def _strata(paired: PairedValues, testset: TestSet, level: float) -> tuple[StratumComparison, ...]:
    rows = []
    for key, value, part in paired.strata(testset):
        a, b = part.values.T
        difference = differences(a, b)
        low, high = clipped(t_interval(difference, level), difference, difference_range(paired.measure)) or (None, None)
        means = describe(a).mean, describe(b).mean, describe(difference).mean
        rows.append(StratumComparison(key, value, len(part.query_ids), *means, low, high))
    return tuple(rows)


def bucket_queries(
    baseline: Evaluation, candidate: Evaluation, primary: Measure, differences: Mapping[str, float]
) -> dict[str, tuple[str, ...]]:
    """Put every paired query in exactly one of `BUCKETS`; empty buckets are kept."""
    rel = primary.whole("rel", 1)
    ranks = [
        first_relevant_rank(only_its_grades(primary, evaluation.ranking), rel=rel, cutoff=primary.depth)
        for evaluation in (baseline, candidate)
    ]
    sign = sign_of(primary)
    buckets: dict[str, list[str]] = {name: [] for name in BUCKETS}
    for query_id, difference in differences.items():
        failed = (_failed(baseline, query_id), _failed(candidate, query_id))
        before, after = _ranks(baseline, candidate, ranks, query_id)
        found = (math.isfinite(before), math.isfinite(after))
        if _is_negative(baseline, query_id):
            found = (True, True)  # nothing should be: only the value moves
        buckets[_bucket(failed, found, sign * difference)].append(query_id)
    return {name: tuple(query_ids) for name, query_ids in buckets.items()}


def move_queries(baseline: Evaluation, candidate: Evaluation, query_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Put every paired query in exactly one of `MOVES`, or in `NOTHING_TO_FIND`; empty ones of `MOVES` are kept."""
    ranks = [first_relevant_rank(evaluation.ranking) for evaluation in (baseline, candidate)]
    moves: dict[str, list[str]] = {name: [] for name in MOVES}
    for query_id in query_ids:
        if _failed(baseline, query_id) or _failed(candidate, query_id):
            moves["failed"].append(query_id)
        elif _is_negative(baseline, query_id):
            moves.setdefault(NOTHING_TO_FIND, []).append(query_id)
        else:
            moves[_move(*_ranks(baseline, candidate, ranks, query_id))].append(query_id)
    return {name: tuple(ids) for name, ids in moves.items()}


def _bucket(failed: tuple[bool, bool], found: tuple[bool, bool], gain: float) -> str:
    if any(failed):
        return {(True, True): "failed in both", (True, False): "failed in baseline"}.get(failed, "failed in candidate")
    # nDCG also pays grades between 0 and 1, which no rank of a relevant result shows.
    if found != (True, True) and (any(found) or gain == 0):
        return {(False, False): "never found", (False, True): "newly found"}.get(found, "lost")
    if gain == 0:
        return "unchanged"
    return "improved" if gain > 0 else "worsened"


def _move(before: float, after: float) -> str:
    if before == 1 or after == 1:
        return "stayed at rank 1" if before == after else "moved to rank 1" if after == 1 else "moved from rank 1"
    if math.isinf(before) or math.isinf(after):
        if before == after:
            return "never found"
        return "newly found below rank 1" if math.isinf(before) else "lost from below rank 1"
    if before == after:
        return "same rank below 1"
    return "rose below rank 1" if after < before else "fell below rank 1"


def _failed(evaluation: Evaluation, query_id: str) -> bool:
    return evaluation.ranking.outcomes[evaluation.index[query_id]].is_failure


def _is_negative(evaluation: Evaluation, query_id: str) -> bool:
    """Whether nothing should be found."""
    return bool(evaluation.ranking.is_negative[evaluation.index[query_id]])


def _ranks(baseline: Evaluation, candidate: Evaluation, ranks: Sequence[FloatQ], query_id: str) -> tuple[float, float]:
    return float(ranks[0][baseline.index[query_id]]), float(ranks[1][candidate.index[query_id]])
