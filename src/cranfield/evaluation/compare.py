"""Two evaluations of one test set, paired by query id: a Comparison with its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cranfield.errors import Problem, UnknownNameError, UsageError
from cranfield.evaluation.buckets import bucket_queries, move_queries
from cranfield.evaluation.evaluate import clipped, difference_range, summarise
from cranfield.evaluation.strata import strata_of
from cranfield.evaluation.values import Comparison, Evaluation, Limits, MeasureComparison, StratumComparison, Verdict
from cranfield.evaluation.verdict import (
    NONINFERIORITY,
    broken_limits,
    broken_pairs,
    decide,
    disagreements,
    sign_of,
    unpaired,
)
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.kernels import first_relevant_rank
from cranfield.ranking.value import FloatQ
from cranfield.stats.describe import describe
from cranfield.stats.effect import USUAL_POWER, cohens_dz, minimal_detectable_effect
from cranfield.stats.interval import t_interval
from cranfield.stats.multiplicity import holm
from cranfield.stats.noise import differences
from cranfield.stats.paired import mcnemar, noninferiority
from cranfield.stats.permutation import EXACT_UP_TO
from cranfield.stats.result import TestResult
from cranfield.stats.table import DEFAULT_DRAWS, MEAN_DIFFERENCE, TESTS, run_tests

DEFAULT_TEST = "permutation"
SMALLEST_ALPHA = 1e-12
"""Nobody asks for less, and 1 - alpha still has digits."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What is declared before the numbers are seen."""

    primary: Measure | None = None
    """Measure of the verdict; None is the first measure of the evaluations."""
    test: str = DEFAULT_TEST
    """Procedure of the verdict and its interval: a name of `cranfield.stats.table.TESTS`."""
    alpha: float = 0.05
    margin: float | None = None
    """Largest difference that does not matter; without one nothing is called equivalent."""
    seed: int = 0
    n_draws: int = DEFAULT_DRAWS
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        problems = []
        if self.test not in TESTS:
            raise UnknownNameError.among("test", self.test, [name for name, spec in TESTS.items() if spec.can_declare])
        if not TESTS[self.test].can_declare:
            able = ", ".join(name for name, spec in TESTS.items() if spec.can_declare)
            problems.append(Problem(f"test {self.test} gives no interval to decide by", expected=f"one of {able}"))
        if not SMALLEST_ALPHA <= self.alpha < 1:
            problems.append(Problem(f"alpha is {self.alpha:g}", expected="a number between 0 and 1, such as 0.05"))
        if self.margin is not None and not 0 < self.margin < np.inf:
            problems.append(Problem(f"margin is {self.margin:g}", expected="a number above 0, in units of the measure"))
        if self.margin is not None and TESTS[self.test].estimates not in {"", MEAN_DIFFERENCE}:
            problems.append(
                Problem(
                    f"a margin is about the mean difference, and test {self.test} about the {TESTS[self.test].estimates}",
                    hint="choose permutation, t or bootstrap, or leave the margin out",
                )
            )
        if self.seed < 0:
            problems.append(Problem(f"seed is {self.seed}", expected="a whole number of 0 or more"))
        if problems:
            raise UsageError(problems)


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
    shared = shared_measures(baseline, candidate)
    primary = options.primary or shared[0]
    if primary not in shared:
        known = ", ".join(str(measure) for measure in shared)
        raise UsageError(f"primary measure {primary} was not evaluated on both sides", expected=f"one of {known}")
    if CATALOGUE[primary.name].diagnostic:
        raise UsageError(f"{primary} is a diagnostic measure and cannot decide a verdict", expected="a quality measure")
    compared = {
        measure: _compare_measure(measure, baseline, candidate, options, is_primary=measure == primary)
        for measure in shared
    }
    compared = _adjust(compared, primary, options.test)
    broken = [
        *broken_limits((baseline, candidate), primary, options.limits),
        *broken_pairs((baseline, candidate), primary, options.limits),
    ]
    name, sentence, reasons = decide(
        compared[primary],
        options.test,
        alpha=options.alpha,
        margin=options.margin,
        names=(baseline.name, candidate.name),
        broken_limits=broken,
    )
    otherwise = (
        *unpaired((baseline, candidate), primary),
        *disagreements(name, compared, primary, options.test, options.alpha),
    )
    paired = tuple(compared[primary].differences)
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        primary=primary,
        test=options.test,
        alpha=options.alpha,
        margin=options.margin,
        seed=options.seed,
        limits=options.limits,
        measures=compared,
        verdict=Verdict(name, sentence, reasons, otherwise),
        buckets=bucket_queries(baseline, candidate, primary, compared[primary].differences),
        moves=move_queries(baseline, candidate, paired),
        rank_one=_rank_one(baseline, candidate, paired),
        strata=_strata(baseline, candidate, primary, compared[primary].differences, 1 - options.alpha),
        n_draws=options.n_draws if len(paired) > EXACT_UP_TO else 0,
        dropped=_dropped(baseline, candidate, primary, paired),
    )


def shared_measures(baseline: Evaluation, candidate: Evaluation) -> tuple[Measure, ...]:
    """Measures that both were evaluated on, in the baseline's order.

    Raises:
        UsageError: they do not belong together: other test sets, conventions, depths or scales, or a measure that is one
            number over all queries.
    """
    if baseline.testset.digest != candidate.testset.digest:
        raise UsageError(
            "the two systems were evaluated on different test sets",
            expected=baseline.testset.digest,
            got=candidate.testset.digest,
            hint="other judgments, targets, classes or strata, or grades made by another rule or on another scale, make "
            "another test set",
        )
    conventions = (baseline.ranking.convention.name, candidate.ranking.convention.name)
    if conventions[0] != conventions[1]:
        raise UsageError("the two systems were scored under different conventions", got=" and ".join(conventions))
    depths = [evaluation.reading.get("depth") for evaluation in (baseline, candidate)]
    if depths[0] != depths[1]:
        raise UsageError("the two runs were read to different depths", got=f"{depths[0]} and {depths[1]}")
    shared = tuple(measure for measure in baseline.measures if measure in candidate.measures)
    if not shared:
        raise UsageError("the two evaluations share no measure")
    scales = [tuple(evaluation.scales.get(measure) for measure in shared) for evaluation in (baseline, candidate)]
    for measure, one, other in zip(shared, *scales, strict=True):
        if one != other:
            raise UsageError(f"{measure} is on two scales, {one} and {other}", expected="the same scale on both sides")
    pooled = [str(measure) for measure in shared if CATALOGUE[measure.name].aggregate != "mean"]
    if pooled:
        raise UsageError(
            f"{', '.join(pooled)}: one number over all queries, which has no difference query by query",
            hint="compare measures that are averaged over queries, such as AP; `cranfield evaluate` prints these",
        )
    return shared


def _compare_measure(
    measure: Measure, baseline: Evaluation, candidate: Evaluation, options: CompareOptions, *, is_primary: bool
) -> MeasureComparison:
    query_ids = [
        query_id
        for query_id in baseline.query_ids
        if query_id in candidate.index
        and baseline.scored[measure][baseline.index[query_id]]
        and candidate.scored[measure][candidate.index[query_id]]
    ]
    a, b = (_values(evaluation, measure, query_ids) for evaluation in (baseline, candidate))
    difference = differences(a, b)
    about = describe(difference)
    margin = options.margin if is_primary else None
    tests = run_tests(a, b, alpha=options.alpha, seed=options.seed, n_draws=options.n_draws, margin=margin)
    if margin is not None:
        tests[NONINFERIORITY] = _not_worse(difference, measure, margin, options.alpha)
    declared = tests.get(options.test)
    return MeasureComparison(
        measure=measure,
        baseline=summarise(a, 1 - options.alpha, measure=measure),
        candidate=summarise(b, 1 - options.alpha, measure=measure),
        delta=about.mean,
        ci_low=declared.ci_low if declared else None,
        ci_high=declared.ci_high if declared else None,
        interval_method=TESTS[options.test].interval_method,
        effect_size=cohens_dz(difference),
        n=len(query_ids),
        n_nonzero=int(np.count_nonzero(difference)),
        mde=minimal_detectable_effect(about.std, about.n, options.alpha)
        if about.std and options.alpha < USUAL_POWER
        else None,
        tests=tests,
        delta_median=about.median,
        delta_std=about.std,
        differences=dict(zip(query_ids, difference.tolist(), strict=True)),
    )


def _not_worse(difference: FloatQ, measure: Measure, margin: float, alpha: float) -> TestResult:
    """Whether a loss of the margin or more is ruled out, whichever way is up; its interval is of candidate minus baseline."""
    if sign_of(measure) > 0:
        return noninferiority(difference, margin, alpha=alpha)
    result = noninferiority(-difference, margin, alpha=alpha)
    low, high = (None if end is None else -end for end in (result.ci_high, result.ci_low))
    return replace(result, ci_low=low, ci_high=high)


def _values(evaluation: Evaluation, measure: Measure, query_ids: Sequence[str]) -> FloatQ:
    rows = np.array([evaluation.index[query_id] for query_id in query_ids], dtype=np.int64)
    return np.asarray(evaluation.values[measure][rows], dtype=np.float64)


def _adjust(
    compared: Mapping[Measure, MeasureComparison], primary: Measure, declared: str
) -> dict[Measure, MeasureComparison]:
    """Give every p-value but the declared one its Holm adjustment.

    Families: each test over the quality measures other than the primary; and, on the primary measure, the tests other
    than the declared one. The declared test on the primary measure stands as it is; so do diagnostics, and the test of
    equivalence, which asks another question.
    """
    others = [m for m in compared if m != primary and not CATALOGUE[m.name].diagnostic]
    of_difference = [name for name, spec in TESTS.items() if not spec.needs_margin]
    families = [[(measure, name) for measure in others if name in compared[measure].tests] for name in of_difference]
    families.append([(primary, name) for name in of_difference if name in compared[primary].tests and name != declared])
    adjusted: dict[tuple[Measure, str], float | None] = {}
    for family in families:
        p_values = holm([compared[measure].tests[name].p_two_sided for measure, name in family])
        adjusted.update(zip(family, p_values, strict=True))
    return {
        measure: replace(
            comparison,
            tests={
                name: replace(result, p_adjusted=adjusted.get((measure, name), result.p_two_sided))
                for name, result in comparison.tests.items()
            },
        )
        for measure, comparison in compared.items()
    }


def _rank_one(baseline: Evaluation, candidate: Evaluation, query_ids: Sequence[str]) -> TestResult:
    first = [first_relevant_rank(evaluation.ranking) == 1 for evaluation in (baseline, candidate)]
    rows = [
        np.array([evaluation.index[query_id] for query_id in query_ids], dtype=np.int64)
        for evaluation in (baseline, candidate)
    ]
    return mcnemar(*(side[index].astype(np.float64) for side, index in zip(first, rows, strict=True)))


def _strata(
    baseline: Evaluation, candidate: Evaluation, primary: Measure, differences: Mapping[str, float], level: float
) -> tuple[StratumComparison, ...]:
    rows = []
    for key, value, query_ids in strata_of(baseline.testset, tuple(differences)):
        difference = np.array([differences[query_id] for query_id in query_ids])
        interval = clipped(t_interval(difference, level), difference, difference_range(primary))
        low, high = interval or (None, None)
        means = [describe(_values(side, primary, query_ids)).mean for side in (baseline, candidate)]
        rows.append(
            StratumComparison(key, value, len(query_ids), means[0], means[1], describe(difference).mean, low, high)
        )
    return tuple(rows)


def _dropped(baseline: Evaluation, candidate: Evaluation, primary: Measure, paired: Sequence[str]) -> dict[str, str]:
    kept = set(paired)
    dropped: dict[str, str] = {}
    for side, other in ((baseline, candidate), (candidate, baseline)):
        for query_id in side.query_ids:
            if query_id in kept or query_id in dropped:
                continue
            if query_id not in other.index:
                dropped[query_id] = f"only {side.name} answers it"
            else:
                reason = side.unscored[primary].get(query_id) or other.unscored[primary].get(query_id, "")
                dropped[query_id] = f"no value: {reason}"
    return dropped
