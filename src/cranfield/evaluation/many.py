"""Three systems or more on one test set: which are best, and which pairs differ significantly.

Only queries count for which every system has a value, so that every pair is compared on the same queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from cranfield.errors import Problem, UnknownNameError, UsageError
from cranfield.evaluation.class_verdict import deciding_key
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.many_pairs import Progress, all_pairs, compare_pairs, tukey_of_pairs
from cranfield.evaluation.many_values import (
    ManyComparison,
    ManyVerdict,
    OrderAgreement,
    PairComparison,
    Ranks,
    StratumRow,
)
from cranfield.evaluation.many_verdict import unseen_of_many, verdict_of_many
from cranfield.evaluation.pairing import (
    PairedValues,
    dropped_queries,
    pair_values,
    primary_measure,
    shared_measures,
)
from cranfield.evaluation.procedure import procedure_of
from cranfield.evaluation.unjudged_many import unjudged_of_many
from cranfield.evaluation.unseen import largest_difference
from cranfield.evaluation.values import Evaluation, Summary
from cranfield.evaluation.verdict import sign_of
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.options.compare import CompareOptions
from cranfield.stats.omnibus import cliques, critical_difference, friedman, mean_ranks, permutation_omnibus
from cranfield.stats.rank_correlation import kendall_tau
from cranfield.words import first_of, n_of

FEWEST_SYSTEMS = 3


def compare_many(
    evaluations: Sequence[Evaluation],
    options: CompareOptions | None = None,
    *,
    baseline: str | None = None,
    progress: Progress | None = None,
) -> ManyComparison:
    """Compare three systems or more, every pair of them.

    Args:
        evaluations: on one test set, with different names.
        options: what was declared beforehand. The margin does not decide here; it is shown with the differences.
        baseline: name of the baseline system, if any: each of the others is also compared with it alone.
        progress: called with the number of pairs that are done, and of all, where they are tested one by one.

    Conventions:
        the p-values of all pairs are adjusted together, by single-step max-T or Holm; those against the baseline are a family of
        their own · the intervals of max-T hold for all pairs together, others are of each pair alone · a system is best when
        no other is better by the adjusted p · where queries, pairs and draws cannot give a p-value of alpha or less, the
        comparison is invalid, and nothing is called not significant.

    Raises:
        UsageError: fewer than three systems, two of the same name, or systems that do not belong together.
        UnknownNameError: the baseline is none of them.
    """
    options = options or CompareOptions()
    names = _check_names(evaluations, baseline)
    measures = shared_measures(evaluations)
    primary = primary_measure(measures, options)
    by_measure = {measure: pair_values(evaluations, measure) for measure in measures}
    paired = by_measure[primary]
    summaries = {measure: values.summaries(options.alpha) for measure, values in by_measure.items()}
    against: tuple[PairComparison, ...] = ()
    largest = largest_difference(primary, evaluations[0].ranking)
    tukey = tukey_of_pairs(paired)  # an integral for each pair: the longest part of all where pairs are few
    if baseline is not None:
        first = names.index(baseline)
        others = [(first, other) for other in range(len(names)) if other != first]
        against = compare_pairs(paired, others, names, options, tukey, progress, largest)
    places = all_pairs(len(names))
    many = ManyComparison(
        evaluations=tuple(evaluations),
        primary=primary,
        options=options,
        verdict=ManyVerdict(VerdictCode.NOT_SIGNIFICANT, ""),
        query_ids=paired.query_ids,
        summaries=summaries,
        pairs=compare_pairs(paired, places, names, options, tukey, progress, largest),
        omnibus={
            "permutation": permutation_omnibus(paired.values, seed=options.seed),
            "friedman": friedman(paired.values, higher_is_better=sign_of(primary) > 0),
        },
        ranks=_ranks(paired, names, options.alpha),
        agreements=_agreements(summaries),
        strata=tuple(
            StratumRow(
                key,
                value,
                len(part.query_ids),
                dict(zip(names, part.summaries(options.alpha), strict=True)),
            )
            for key, value, part in paired.strata(evaluations[0].testset)
        ),
        procedure=procedure_of(paired.values, len(places), options),
        baseline=baseline,
        against=against,
        dropped=dropped_queries(evaluations, paired),
        evidence=inspect_systems(evaluations, primary, options.limits),
        find_unjudged=unjudged_of_many,
    )
    verdict = verdict_of_many(many)
    key = "" if verdict.code is VerdictCode.INVALID else deciding_key(evaluations[0].testset, options)
    reasons = (*verdict.reasons, *(_class_note(many, verdict, key) if key else ()))
    return replace(many, verdict=replace(verdict, reasons=reasons, unseen=unseen_of_many(many, verdict)))


def _class_note(many: ManyComparison, verdict: ManyVerdict, key: str) -> tuple[str, ...]:
    """That the classes do not decide here, and the classes in which the first of the best systems is not first."""
    rows, sign = [row for row in many.strata if row.key == key], sign_of(many.primary)
    overtaken = []
    for row in rows:
        means = [sign * about.mean for about in row.summaries.values() if about.mean is not None]
        if verdict.best and (mean := row.summaries[verdict.best[0]].mean) is not None and sign * mean < max(means):
            overtaken.append(row.value)
    note = "the mean over all queries decides here; compare two of the systems for a verdict by class"
    if overtaken:
        note += f" ({verdict.best[0]} is not first in {len(overtaken)} of {n_of(len(rows), 'classes')}: {first_of(overtaken)})"
    return (note,)


def _check_names(evaluations: Sequence[Evaluation], baseline: str | None) -> list[str]:
    names = [evaluation.name for evaluation in evaluations]
    problems = []
    if len(names) < FEWEST_SYSTEMS:
        problems.append(Problem(f"{len(names)} systems", expected="three or more", hint="`compare` takes two"))
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        problems.append(Problem(f"more than one system is called {', '.join(twice)}", expected="a name for each"))
    if problems:
        raise UsageError(problems)
    if baseline is not None and baseline not in names:
        raise UnknownNameError.among("system", baseline, names)
    return names


def _ranks(paired: PairedValues, names: Sequence[str], alpha: float) -> Ranks | None:
    if not paired.query_ids:
        return None
    means = mean_ranks(paired.values, higher_is_better=sign_of(paired.measure) > 0).tolist()
    distance = critical_difference(len(paired.query_ids), len(names), alpha)
    groups = tuple(tuple(names[place] for place in group) for group in cliques(means, distance))
    return Ranks(dict(zip(names, map(float, means), strict=True)), distance, groups)


def _agreements(summaries: Mapping[Measure, Sequence[Summary]]) -> tuple[OrderAgreement, ...]:
    means = {
        measure: [(about.mean or 0.0) * sign_of(measure) for about in row]
        for measure, row in summaries.items()
        if not CATALOGUE[measure.name].diagnostic and all(about.mean is not None for about in row)
    }
    return tuple(OrderAgreement(a, b, kendall_tau(means[a], means[b])) for a, b in combinations(means, 2))
