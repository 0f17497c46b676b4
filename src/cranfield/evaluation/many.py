"""Three systems or more on one test set: which are best, and which pairs differ significantly.

Only queries count for which every system has a value, so that every pair is compared on the same queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from cranfield.errors import Problem, UnknownNameError, UsageError
from cranfield.evaluation.class_verdict import deciding_key
from cranfield.evaluation.evidence.values import void_sentences
from cranfield.evaluation.many_values import (
    ManyComparison,
    ManyVerdict,
    OrderAgreement,
    PairComparison,
    Ranks,
    StratumRow,
)
from cranfield.evaluation.pairing import (
    PairedValues,
    dropped_queries,
    pair_values,
    permute,
    primary_measure,
    shared_measures,
)
from cranfield.evaluation.values import Evaluation, Summary
from cranfield.evaluation.verdict import CompareOptions, sign_of
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import TestSet
from cranfield.numbers import format_p, format_value
from cranfield.stats.omnibus import cliques, critical_difference, friedman, mean_ranks, permutation_omnibus
from cranfield.stats.permutation import EXACT_UP_TO
from cranfield.stats.rank_correlation import kendall_tau
from cranfield.stats.result import TestResult, holm
from cranfield.stats.table import TESTS, Paired
from cranfield.stats.vectors import differences
from cranfield.words import and_list

FEWEST_SYSTEMS = 3


def compare_many(
    evaluations: Sequence[Evaluation], options: CompareOptions | None = None, *, baseline: str | None = None
) -> ManyComparison:
    """Compare three systems or more, every pair of them.

    Args:
        evaluations: on one test set, with different names.
        options: what was declared beforehand. The margin does not decide here; it is shown with the differences.
        baseline: name of the baseline system, if any: each of the others is also compared with it alone.

    Conventions:
        the p-values of all pairs are adjusted together (Holm); those against the baseline are a family of their own · the
        intervals are of each pair alone, and not adjusted · a system is best when no other is better by the adjusted p.

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
    if baseline is not None:
        first = names.index(baseline)
        against = _pairs(paired, [(first, other) for other in range(len(names)) if other != first], names, options)
    many = ManyComparison(
        evaluations=tuple(evaluations),
        primary=primary,
        options=options,
        verdict=ManyVerdict(VerdictCode.NOT_SIGNIFICANT, "", ()),
        query_ids=paired.query_ids,
        summaries=summaries,
        pairs=_pairs(paired, list(combinations(range(len(names)), 2)), names, options),
        omnibus={
            "permutation": permutation_omnibus(paired.values, seed=options.seed),
            "friedman": friedman(paired.values, higher_is_better=sign_of(primary) > 0),
        },
        ranks=_ranks(paired, names, options.alpha),
        agreements=_agreements(summaries),
        strata=tuple(
            StratumRow(key, value, len(part.query_ids), part.summaries(options.alpha))
            for key, value, part in paired.strata(evaluations[0].testset)
        ),
        baseline=baseline,
        against=against,
        dropped=dropped_queries(evaluations, paired),
        evidence=options.limits.inspect(evaluations, primary),
    )
    return replace(many, verdict=_with_class_note(_verdict(many), evaluations[0].testset, options))


def _with_class_note(verdict: ManyVerdict, testset: TestSet, options: CompareOptions) -> ManyVerdict:
    """The verdict, with a reason where classes of queries would decide between two systems."""
    if verdict.code is VerdictCode.INVALID or not deciding_key(testset, options):
        return verdict
    note = "of three systems or more the mean over all queries decides; of two, the classes of queries"
    return replace(verdict, reasons=(*verdict.reasons, note))


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


def _pairs(
    paired: PairedValues, places: Sequence[tuple[int, int]], names: Sequence[str], options: CompareOptions
) -> tuple[PairComparison, ...]:
    """The declared test on each pair, Holm-adjusted over them all."""
    if not paired.query_ids:
        return ()
    sides = [(paired.values[:, first], paired.values[:, second]) for first, second in places]
    deltas = [differences(a, b) for a, b in sides]
    if options.test == "permutation":
        results = permute(deltas, options)
    else:
        drawn = (options.alpha, options.seed, options.n_draws)
        run = TESTS[options.test].run
        results = [run(Paired(a, b, delta, *drawn)) for (a, b), delta in zip(sides, deltas, strict=True)]
    adjusted = holm([result.p_two_sided for result in results])
    sign = sign_of(paired.measure)
    rows = []
    for (first, second), delta, result, p in zip(places, deltas, results, adjusted, strict=True):
        wins, losses = int((delta * sign > 0).sum()), int((delta * sign < 0).sum())
        rows.append(
            PairComparison(
                first=names[first],
                second=names[second],
                delta=float(delta.mean()),
                result=replace(result, p_adjusted=p),
                wins=wins,
                ties=len(delta) - wins - losses,
                losses=losses,
                verdict=_verdict_of_p(result, p, sign, options.alpha),
            )
        )
    return tuple(rows)


def _verdict_of_p(result: TestResult, p_adjusted: float | None, sign: int, alpha: float) -> VerdictCode:
    """By the adjusted p-value; the direction is that of the one-sided p-value."""
    if p_adjusted is None or p_adjusted > alpha or result.p_one_sided is None:
        return VerdictCode.NOT_SIGNIFICANT
    up = result.p_one_sided < 0.5
    return VerdictCode.BETTER if up == (sign > 0) else VerdictCode.WORSE


def _ranks(paired: PairedValues, names: Sequence[str], alpha: float) -> Ranks | None:
    if not paired.query_ids:
        return None
    means = mean_ranks(paired.values, higher_is_better=sign_of(paired.measure) > 0).tolist()
    distance = critical_difference(len(paired.query_ids), len(names), alpha)
    groups = tuple(tuple(names[place] for place in group) for group in cliques(means, distance))
    return Ranks(tuple(means), distance, groups)


def _agreements(summaries: Mapping[Measure, Sequence[Summary]]) -> tuple[OrderAgreement, ...]:
    means = {
        measure: [(about.mean or 0.0) * sign_of(measure) for about in row]
        for measure, row in summaries.items()
        if not CATALOGUE[measure.name].diagnostic and all(about.mean is not None for about in row)
    }
    return tuple(OrderAgreement(a, b, kendall_tau(means[a], means[b])) for a, b in combinations(means, 2))


def _verdict(many: ManyComparison) -> ManyVerdict:
    k = len(many.evaluations)
    void = void_sentences(many.evidence)
    if void:
        return ManyVerdict(
            VerdictCode.INVALID, f"No verdict on these {k} systems: the comparison does not count.", (), void
        )
    beaten = {
        pair.first if pair.verdict is VerdictCode.BETTER else pair.second
        for pair in many.pairs
        if pair.verdict is not VerdictCode.NOT_SIGNIFICANT
    }
    names = many.names
    best = tuple(names[place] for place in many.best_first if names[place] not in beaten)
    how = f"({many.primary}, n = {len(many.query_ids)}, {many.options.test}, {len(many.pairs)} pairs, Holm)"
    if len(best) == k:
        sentence = f"No significant difference between any two of the {k} systems {how}."
        return ManyVerdict(
            VerdictCode.NOT_SIGNIFICANT, sentence, (), _why_not_significant(many), _disagreements(many, best)
        )
    means = dict(zip(names, many.summaries[many.primary], strict=True))
    shown = [f"{name} ({format_value(means[name].mean)})" for name in best]
    if not best:
        sentence = f"No system is best: each of the {k} is significantly worse than another {how}."
        return ManyVerdict(VerdictCode.SEVERAL_BEST, sentence, (), (), _disagreements(many, best))
    if len(best) == 1:
        over = sum(
            pair.verdict is not VerdictCode.NOT_SIGNIFICANT and best[0] in (pair.first, pair.second)
            for pair in many.pairs
        )
        others = (
            "each of the others"
            if over == k - 1
            else f"{over} of the {k - 1} others, which are not worse than the rest"
        )
        sentence = f"{shown[0]} is best of {k} systems: better than {others} {how}."
        return ManyVerdict(VerdictCode.ONE_BEST, sentence, best, _against_baseline(many), _disagreements(many, best))
    both = and_list(shown)
    sentence = f"{both} are best of {k} systems, with no significant difference between them {how}."
    return ManyVerdict(VerdictCode.SEVERAL_BEST, sentence, best, _against_baseline(many), _disagreements(many, best))


def _against_baseline(many: ManyComparison) -> tuple[str, ...]:
    """Each system against the baseline, by verdict; empty without a baseline."""
    found = {
        code: [pair.second for pair in many.against if pair.verdict is code]
        for code in (VerdictCode.BETTER, VerdictCode.WORSE, VerdictCode.NOT_SIGNIFICANT)
    }
    notes = [f"{code.text}: {', '.join(names)}" for code, names in found.items() if names]
    return (f"against {many.baseline}, {'; '.join(notes)}",) if notes else ()


def _why_not_significant(many: ManyComparison) -> tuple[str, ...]:
    notes = list(_against_baseline(many))
    if len(many.query_ids) < 2:
        notes.append("fewer than two queries have a value for every system: nothing can be tested")
    else:
        notes += _smallest_p_note(many)
    return tuple(notes)


def _smallest_p_note(many: ManyComparison) -> list[str]:
    """A note where no p-value of the permutation test can pass the first step of Holm's adjustment."""
    if many.options.test != "permutation":
        return []
    patterns = many.n_draws or 1 << len(many.query_ids)
    least, needed = 2 / patterns, many.options.alpha / len(many.pairs)  # the observed pattern and its mirror image
    if least <= needed:
        return []
    n = len(many.query_ids)
    what = f"{n} queries" if n <= EXACT_UP_TO else f"{patterns} draws"
    return [
        f"{what} give no p under {format_p(least)}, and one of {len(many.pairs)} pairs needs {format_p(needed)} to be significant"
    ]


def _disagreements(many: ManyComparison, best: Sequence[str]) -> tuple[str, ...]:
    """Omnibus tests and measures that disagree with the verdict, a sentence each."""
    notes = []
    some_pair = len(best) < len(many.evaluations)
    n_pairs = sum(pair.verdict is not VerdictCode.NOT_SIGNIFICANT for pair in many.pairs)
    pairs = {0: "no pair is", 1: "one pair is"}.get(n_pairs, f"{n_pairs} pairs are")
    for name, result in many.omnibus.items():
        p = result.p_two_sided
        if p is not None and (p <= many.options.alpha) != some_pair:
            word = "not significant" if some_pair else "significant"
            notes.append(f"{name.capitalize()} test of all systems {word} (p {format_p(p)}), although {pairs}")
    leader = many.names[many.best_first[0]]
    for measure, row in many.summaries.items():
        if measure == many.primary or CATALOGUE[measure.name].diagnostic:
            continue
        means = [(about.mean or 0.0) * sign_of(measure) for about in row]
        first = many.names[means.index(max(means))]
        if means[many.best_first[0]] < max(means) and first not in best:
            notes.append(f"{measure} puts {first} first, and {leader} is first by {many.primary}")
    if many.dropped:
        n = len(many.dropped)
        count = "1 query does not count" if n == 1 else f"{n} queries do not count"
        notes.append(f"{count}, as not every system has a value of {many.primary} there")
    return tuple(notes)
