"""All rules of one system on one test set, and the evidence: a GateResult."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from cranfield.base.numbers import format_count, format_percent, format_value
from cranfield.base.words import count_noun, noun
from cranfield.evaluation.absence import forced_zeros
from cranfield.evaluation.evaluate import strata_of
from cranfield.evaluation.evidence.values import Finding, void_sentences
from cranfield.evaluation.options.blocks import DEFAULT_TEST, Limits
from cranfield.evaluation.result import result_of
from cranfield.gate.config import Drop, Rule
from cranfield.gate.decimals import as_text, exact, mean
from cranfield.gate.gate_input import GateInput
from cranfield.gate.judge import interval_of, is_silent
from cranfield.gate.result import (
    BaselineFacts,
    EarlierSource,
    GateResult,
    GateStatus,
    ListedResult,
    MeasureChange,
    QueryChange,
    RuleResult,
    StratumChange,
)
from cranfield.gate.rules import RULES, measure_of, words
from cranfield.measures import CATALOGUE, Measure, parse
from cranfield.measures.catalogue import is_composed
from cranfield.model import query_strata
from cranfield.stats.power import minimal_detectable_effect
from cranfield.stats.table import MEAN_DIFFERENCE, TESTS

LISTED_RESULTS = 5
"""First results of a failing query that a report lists."""


def failing_queries(
    given: GateInput, primary: str, rules: Sequence[Rule], results: Sequence[RuleResult]
) -> Iterator[QueryChange]:
    """Queries that lost on the measure of a broken rule or on the primary one, that a broken rule names, or that failed."""
    broken = [pair for pair in zip(rules, results, strict=True) if pair[1].status != "passed"]
    named_by = [(rule, result, frozenset(result.queries)) for rule, result in broken]
    outcomes, by_id = given.outcomes, given.evaluation.testset.by_id
    shown: set[str] = set()
    for measure, named in _ranked_by(primary, broken).items():
        found = set(named) | _lost(given, measure)
        if measure == primary:
            found |= {query for _, result in broken for query in result.queries} | set(given.unanswered)
        now, before = given.values(measure), given.before(measure)
        for query_id in sorted((found - shown) & set(outcomes), key=_badness(given, measure)):
            current, then = (float(side[query_id]) if query_id in side else None for side in (now, before))
            why = _why(given, measure, query_id, [(rule, result) for rule, result, of in named_by if query_id in of])
            listed = _first_results(given, query_id)
            query = by_id[query_id]
            outcome = outcomes[query_id]
            yield QueryChange(query_id, query.text, current, then, outcome, why, measure, listed, query.params)
        shown |= found


def _better_queries(given: GateInput, primary: str, shown: AbstractSet[str]) -> Iterator[QueryChange]:
    """Queries with a higher value than in the baseline; none by a diagnostic measure."""
    if CATALOGUE[parse(primary).name].diagnostic:
        return
    now, before, sign = given.sides(primary)
    gains = {query: sign * (now[query] - before[query]) for query in now if query in before and query not in shown}
    by_id, outcomes = given.evaluation.testset.by_id, given.outcomes
    for query_id in sorted(
        (query for query, gain in gains.items() if gain > 0), key=lambda query: (-gains[query], query)
    ):
        current, then, listed = float(now[query_id]), float(before[query_id]), _first_results(given, query_id)
        query, outcome = by_id[query_id], outcomes[query_id]
        yield QueryChange(query_id, query.text, current, then, outcome, "", primary, listed, query.params)


def _first_results(given: GateInput, query_id: str) -> tuple[ListedResult, ...]:
    hits = given.evaluation.ranking.top.get(query_id, ())[:LISTED_RESULTS]
    return tuple(ListedResult(hit.rank, hit.id, hit.grade_text, hit.title) for hit in hits)


def _ranked_by(primary: str, broken: Sequence[tuple[Rule, RuleResult]]) -> Mapping[str, Sequence[str]]:
    """Measure to the queries that broken rules on it name; the primary measure is last, unless a rule on it is broken."""
    found: dict[str, list[str]] = {}
    for rule, result in broken:
        if (spelled := measure_of(rule)) is not None:
            found.setdefault(str(parse(spelled)), []).extend(result.queries)
    return {**found, primary: found.get(primary, [])}


def _lost(given: GateInput, measure: str) -> set[str]:
    """Queries with a lower value than in the baseline, or with none now; none by a diagnostic measure."""
    if CATALOGUE[parse(measure).name].diagnostic:
        return set()
    now, before, sign = given.sides(measure)
    return {query for query in before if query not in now or sign * now[query] < sign * before[query]}


def _badness(given: GateInput, measure: str) -> Callable[[str], tuple[bool, float, str]]:
    """Sorts by the loss; without a value in the baseline by the value, after those."""
    now, before, sign = given.sides(measure)

    def badness(query_id: str) -> tuple[bool, float, str]:
        if query_id not in now:
            return (query_id not in before, float("-inf"), query_id)
        gained = now[query_id] - before[query_id] if query_id in before else now[query_id]
        return (query_id not in before, float(sign * gained), query_id)

    return badness


def _why(given: GateInput, primary: str, query_id: str, broken: Sequence[tuple[Rule, RuleResult]]) -> str:
    """The values of a query under the broken rules that name it, or on the primary measure."""
    rules: dict[str, list[str]] = {}
    for rule, result in broken:
        measure = measure_of(rule)
        outcome = result.reasons.get(query_id) or given.outcomes[query_id]
        value = outcome if measure is None else _value_text(given, measure, query_id)
        rules.setdefault(value, []).append(result.rule)
    if not rules:
        return _value_text(given, primary, query_id)
    return "; ".join(f"{value} ({noun(len(of), 'rules')}: {'; '.join(of)})" for value, of in rules.items())


def _value_text(given: GateInput, measure: str, query_id: str) -> str:
    """`AP 0.3333, baseline 0.6667`."""
    now, before = given.values(measure), given.before(measure)
    value = as_text(now[query_id], before.get(query_id)) if query_id in now else "no value"
    return f"{measure} {value}" + (f", baseline {as_text(before[query_id])}" if query_id in before else "")


@dataclass(frozen=True, slots=True)
class GateTerms:
    """The rules for a system, and the limits beyond which the result is invalid."""

    rules: Sequence[Rule]
    limits: Limits
    primary: Measure
    facts: BaselineFacts | None = None
    overruled: tuple[str, ...] = ()
    """What the config changes of the settings that a ref decides."""
    notes: tuple[str, ...] = ()
    evidence: tuple[Finding, ...] = ()
    """What the evidence checks found, except failed queries: a rule can replace that limit."""
    earlier: tuple[EarlierSource, ...] = ()
    """What was read and not made in this call."""
    n_earlier: int = 0


def judge_all(given: GateInput, terms: GateTerms) -> GateResult:
    """Judge an evaluation by its rules.

    Invalid comes before failed, failed before inconclusive, and inconclusive before passed.
    """
    results = tuple(RULES[rule.kind].judge(rule.terms, given) for rule in terms.rules)
    broken = [*failed_too_often(given, terms.rules, terms.limits), *void_sentences(terms.evidence)]
    status, figures = _status(results, broken), result_of(given.evaluation)
    worse = tuple(failing_queries(given, terms.primary.canonical, terms.rules, results))
    return GateResult(
        status=status,
        explanation=_explanation(status, results, broken),
        testset=figures.testset,
        convention=figures.convention,
        rules=results,
        evaluation=replace(figures.systems[0], queries={}, unscored={}),
        primary=terms.primary.canonical,
        baseline=terms.facts,
        measures=tuple(_measure_changes(given, terms)),
        strata=tuple(_stratum_changes(given, terms.primary.canonical)),
        worse=worse,
        better=tuple(_better_queries(given, terms.primary.canonical, {change.query_id for change in worse})),
        by_stratum=tuple(change for measure in _measures(given, terms) for change in _stratum_changes(given, measure)),
        overruled=terms.overruled,
        notes=(*broken, *terms.notes, *_noticed(given, terms)),
        evidence=terms.evidence,
        alpha=given.alpha,
        test=_mean_test(given.test),
        earlier=terms.earlier,
        n_earlier=terms.n_earlier,
    )


def failed_too_often(given: GateInput, rules: Sequence[Rule], limits: Limits) -> list[str]:
    """Message if failures exceed the limit of the config; a rule on failures replaces that limit."""
    total, broken = given.evaluation.ranking.n_queries, len(given.unanswered)
    most = limits.max_failed_share
    if any(rule.kind == "failures" for rule in rules) or most is None or not total or broken <= exact(most) * total:
        return []
    sentence = f"{format_count(broken)} of {format_count(total)} queries failed or have no answer"
    why = given.evaluation.ranking.why_failed(given.evaluation.run)
    sentence += f": {why}" if why else ""
    return [f"{sentence}; the limit is {format_percent(most)} (limits.max_failed_share)"]


def no_baseline(given: GateInput, rules: Sequence[Rule], limits: Limits, findings: Sequence[Finding] = ()) -> list[str]:
    """Reasons why a run is no baseline: too many failures, or void scores. Every later run would be compared with it."""
    failure_rules = [rule for rule in rules if rule.kind == "failures"]
    results = [RULES[rule.kind].judge(rule.terms, given) for rule in failure_rules]
    broken = [result.sentence for result in results if result.status != "passed"]
    return [*broken, *failed_too_often(given, rules, limits), *void_sentences(findings)]


def _status(results: Sequence[RuleResult], broken: Sequence[str]) -> GateStatus:
    found = {result.status for result in results}
    if broken:
        return "invalid"
    if "failed" in found or not results:
        return "failed"
    return "inconclusive" if "inconclusive" in found else "passed"


def _explanation(status: GateStatus, results: Sequence[RuleResult], broken: Sequence[str]) -> str:
    total = count_noun(len(results), "rules")
    if status == "invalid":
        return broken[0]
    if not results:
        return "no rule applies to this test set"
    if status == "passed":
        return "the rule is kept" if len(results) == 1 else f"all {total} are kept"
    counts = {name: sum(result.status == name for result in results) for name in ("failed", "inconclusive")}
    if status == "inconclusive":
        return f"{counts['inconclusive']} of {total} inconclusive, none broken"
    unclear = f", {counts['inconclusive']} inconclusive" if counts["inconclusive"] else ""
    return f"{counts['failed']} of {total} broken{unclear}"


def _measures(given: GateInput, terms: GateTerms) -> list[str]:
    """The measures that have a mean: the primary one, those evaluated, and those of the rules."""
    spelled = [str(parse(measure)) for rule in terms.rules if (measure := measure_of(rule)) is not None]
    averaged = [found.canonical for found in given.evaluation.measures if CATALOGUE[found.name].aggregate == "mean"]
    return list(dict.fromkeys((terms.primary.canonical, *averaged, *spelled)))


def _measure_changes(given: GateInput, terms: GateTerms) -> Iterator[MeasureChange]:
    test = _mean_test(given.test)
    for measure in _measures(given, terms):
        now, before = given.values(measure), given.before(measure)
        pairs = [query_id for query_id in now if query_id in before]
        if not pairs:
            current = float(mean(now.values())) if now else None
            yield MeasureChange(measure, current, None, None, None, None, len(now))
            continue
        after, then = (mean([side[query_id] for query_id in pairs]) for side in (now, before))
        change = [float(now[query_id] - before[query_id]) for query_id in pairs]
        low, high = interval_of(change, test, given.alpha, given.seed, given.n_draws)
        yield MeasureChange(measure, float(after), float(then), float(after - then), low, high, len(pairs))


def _mean_test(test: str) -> str:
    """The test for intervals of a mean: the declared one, if it estimates a mean difference."""
    return test if TESTS[test].estimates == MEAN_DIFFERENCE else DEFAULT_TEST


def _stratum_changes(given: GateInput, measure: str) -> Iterator[StratumChange]:
    if is_composed(measure):  # one number over the strata
        return
    now, before = given.values(measure), given.before(measure)
    evaluation = given.evaluation
    for key, value, query_ids in strata_of(evaluation.testset, evaluation.query_ids):
        scored = [query_id for query_id in query_ids if query_id in now]
        pairs = [query_id for query_id in scored if query_id in before]
        if not pairs:
            current = float(mean([now[query_id] for query_id in scored])) if scored else None
            yield StratumChange(key, value, len(scored), current, None, None, measure)
            continue
        after, then = (mean([side[query_id] for query_id in pairs]) for side in (now, before))
        yield StratumChange(key, value, len(pairs), float(after), float(then), float(after - then), measure)


def _too_few_for_a_drop(given: GateInput, rules: Sequence[Rule]) -> Iterator[str]:
    """The first bound on a drop that is kept, and that these queries can hardly show to be broken."""
    for rule in rules:
        if not isinstance(rule.terms, Drop) or rule.terms.significant:
            continue
        now, before, sign = given.sides(rule.terms.measure)
        pairs = [query_id for query_id in given.queries(rule.terms.where) if query_id in now and query_id in before]
        if len(pairs) < 2:
            continue
        spread = statistics.stdev(float(now[query_id] - before[query_id]) for query_id in pairs)
        shown = minimal_detectable_effect(spread, len(pairs), given.alpha)
        margin = rule.terms.at_most.of(abs(mean([before[query_id] for query_id in pairs])))
        fell = sign * mean([before[query_id] - now[query_id] for query_id in pairs])
        if shown is not None and shown > margin >= fell:
            yield (
                f"{format_count(len(pairs))} queries with this spread show a drop of {rule.terms.measure} of "
                f"{format_value(shown)} in 80 % of cases, and a smaller one, such as {format_value(float(margin))}, less often; "
                "`cranfield power TESTSET BASELINE CANDIDATE` computes how many queries would"
            )
            return


def _noticed(given: GateInput, terms: GateTerms) -> Iterator[str]:
    """Notes for the reader."""
    testset, run = given.evaluation.testset, given.evaluation.run
    for rule in terms.rules:
        by = getattr(rule.terms, "by", None)
        without = [query.id for query in testset.queries if by is not None and by not in query_strata(query)]
        if without and rule.kind != "no_worse":  # there they are a class of their own
            yield f"queries without {by}: {format_count(len(without))}; not covered by: {words(rule)}"
        measure = measure_of(rule)
        if measure is not None and is_silent(measure, by):
            values = given.values(measure)
            for label, queries in given.groups(getattr(rule.terms, "where", None), by):
                if not any(query_id in values for query_id in queries):
                    yield f"{measure} has no value for any query of {label}: not covered by: {words(rule)}"
    yield from _too_few_for_a_drop(given, terms.rules)
    ranking = given.evaluation.ranking
    yield from forced_zeros(ranking.convention, ranking)
    logs = run.logs.values() if run is not None else ()
    cached = sum(log.cached for log in logs)
    if cached:
        is_file = run is not None and "run" in run.config and all(log.age_s is None for log in logs)
        place = "run file" if is_file else "cache"
        yield f"{format_count(cached)} of {format_count(len(logs))} answers and their latencies are from the {place}"
    unstable = [query_id for query_id, log in run.logs.items() if log.unstable] if run is not None else []
    if unstable:
        yield f"{count_noun(len(unstable), 'queries', format_count)} had different answers in repeated calls"
    yield from given.evaluation.warnings
