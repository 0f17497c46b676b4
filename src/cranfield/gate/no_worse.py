"""The rule `no_worse`: the verdict against the baseline may not be worse or mixed, and no class may be worse.

A loss that so few queries or draws could not make significant is inconclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cranfield.base.numbers import format_count, format_p, format_plain
from cranfield.base.words import count_noun, join_first
from cranfield.evaluation.classes import smallest_n
from cranfield.evaluation.unseen import ObservedEffect, Unseen, largest_difference, unseen_queries
from cranfield.evaluation.verdict import verdict_of_p
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.gate.config import NoWorse
from cranfield.gate.decimals import as_text, mean
from cranfield.gate.gate_input import GateInput, named
from cranfield.gate.judge import lowest
from cranfield.gate.result import RuleResult, Status
from cranfield.measures import parse
from cranfield.measures.catalogue import is_composed
from cranfield.model import query_strata
from cranfield.stats.describe import differences
from cranfield.stats.result import TestResult, holm
from cranfield.stats.table import TESTS, Paired

EXPECTED = "neither worse nor mixed"
OVERALL = ""
"""Label of all queries."""


@dataclass(frozen=True, slots=True)
class _Tested:
    """The verdict of a class, or of all queries."""

    label: str
    pairs: Sequence[str]
    p: float | None
    """Adjusted over the classes; None where the class has too few queries to decide, or the test gives none."""
    code: VerdictCode
    unseen: Unseen | None


def no_worse(rule: NoWorse, given: GateInput) -> RuleResult:
    """A paired test against the baseline; with `by`, one of each class, adjusted by Holm, where there are several."""
    now, before = given.values(rule.measure), given.before(rule.measure)
    queries = given.queries(rule.where)
    lost = tuple(query_id for query_id in queries if query_id in before and query_id not in now)
    pairs = [query_id for query_id in queries if query_id in before and query_id in now]
    if lost:
        sentence = f"{format_count(len(lost))} queries had a value of {rule.measure} and have none now"
        return RuleResult("no_worse", no_worse_words(rule), "failed", "no value", EXPECTED, sentence, lost)
    if not pairs:
        sentence = f"{rule.measure} applies to no query: the rule was not tested"
        return RuleResult("no_worse", no_worse_words(rule), "failed", "no query", EXPECTED, sentence)
    (overall,) = _tested(rule, given, {OVERALL: pairs})
    groups = _classes(rule, given, pairs) if rule.by is not None else {}
    return _judged(rule, given, overall, _tested(rule, given, groups) if len(groups) > 1 else [])


def in_classes(rule: NoWorse, key: str) -> NoWorse:
    """The rule with the classes of the verdict, where it names none itself.

    Args:
        rule: of the config.
        key: of the classes that decide the verdict; empty where one mean decides.
    """
    is_one = not key or rule.by is not None or key in (rule.where or {}) or is_composed(rule.measure)
    return rule if is_one else rule.model_copy(update={"by": key})


def no_worse_words(rule: NoWorse) -> str:
    """`nDCG@10 is not significantly worse in any class`."""
    within = f" over all queries or in any {rule.by}" if rule.by else ""
    of = f" of {named(rule.where)}" if rule.where else ""
    return f"{rule.measure} is not significantly worse{within}{of}"


def _classes(rule: NoWorse, given: GateInput, pairs: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Value of the stratum to its queries; those without one are a class of their own."""
    by_id = given.evaluation.testset.by_id
    groups: dict[str, list[str]] = {}
    for query_id in pairs:
        value = query_strata(by_id[query_id]).get(rule.by or "")
        groups.setdefault(f"queries without {rule.by}" if value is None else f"{rule.by}: {value}", []).append(query_id)
    return dict(sorted(groups.items()))


def _tested(rule: NoWorse, given: GateInput, groups: Mapping[str, Sequence[str]]) -> list[_Tested]:
    now, before, sign = given.sides(rule.measure)
    alpha = _alpha(rule, given)
    spec, results = TESTS[rule.test or given.test], []
    for pairs in groups.values():
        a, b = (np.array([float(side[query_id]) for query_id in pairs]) for side in (before, now))
        results.append(spec.run(Paired(a, b, differences(a, b), alpha, given.seed, given.n_draws)))
    needed = 0 if OVERALL in groups else smallest_n(alpha)
    counted = [
        result.p_two_sided if len(pairs) >= needed else None
        for result, pairs in zip(results, groups.values(), strict=True)
    ]
    found = []
    for (label, pairs), result, p in zip(groups.items(), results, holm(counted), strict=True):
        code = verdict_of_p(p, result.direction * sign, alpha)
        unseen = None if p is None else _unseen(rule, given, code, pairs, result)
        found.append(
            _Tested(
                label,
                pairs,
                p,
                code,
                unseen and replace(unseen, of=label, among="its queries" if label else unseen.among),
            )
        )
    return found


def _unseen(
    rule: NoWorse, given: GateInput, code: VerdictCode, pairs: Sequence[str], result: TestResult
) -> Unseen | None:
    """What stands beside the verdict of few queries."""
    now, before, sign = given.sides(rule.measure)
    delta = float(mean([now[query_id] - before[query_id] for query_id in pairs]))
    is_of_mean = TESTS[rule.test or given.test].is_of_mean
    ends = (result.ci_low, result.ci_high) if is_of_mean else (None, None)
    largest = largest_difference(parse(rule.measure), given.evaluation.ranking)
    return unseen_queries(code, ObservedEffect(len(pairs), delta, *ends, sign, largest), _alpha(rule, given))


def _judged(rule: NoWorse, given: GateInput, overall: _Tested, classes: Sequence[_Tested]) -> RuleResult:
    better, worse = (
        [each for each in classes if each.code is code] for code in (VerdictCode.BETTER, VerdictCode.WORSE)
    )
    is_broken = bool(worse) or overall.code is VerdictCode.WORSE
    got = overall.code.text
    if worse:
        lead = f"{VerdictCode.MIXED.text}: better in {join_first(each.label for each in better)}, " if better else ""
        got = f"{lead}worse in {join_first(each.label for each in worse)}"
    shown = [overall, *worse]
    sentence = "; ".join(_sentence(rule, given, each) for each in shown)
    silent = [each.label for each in classes if each.p is None]
    if silent:
        sentence += f"; too few queries to decide: {join_first(silent)}"
    now, before, sign = given.sides(rule.measure)
    of = worse or [overall]
    losses = {q: loss for each in of for q in each.pairs if (loss := sign * (now[q] - before[q])) < 0}
    queries = lowest(losses, 1) if is_broken else ()
    status: Status = "failed" if is_broken else "passed"
    if not is_broken and (why := _undetectable_loss(rule, given, overall.pairs)):
        status, sentence = "inconclusive", f"{sentence}; {why}"
    unseen = tuple(each.unseen for each in (overall, *classes) if each.unseen is not None)
    return RuleResult("no_worse", no_worse_words(rule), status, got, EXPECTED, sentence, queries, unseen=unseen)


def _undetectable_loss(rule: NoWorse, given: GateInput, pairs: Sequence[str]) -> str:
    """Why a mean that fell could not have been significant; empty where it could, or where it did not fall."""
    now, before, sign = given.sides(rule.measure)
    test, alpha = rule.test or given.test, _alpha(rule, given)
    fell = sign * (mean([now[query_id] for query_id in pairs]) - mean([before[query_id] for query_id in pairs])) < 0
    if not fell or TESTS[test].smallest_p(len(pairs), given.n_draws) <= alpha:
        return ""
    counts = [count_noun(len(pairs), "queries", format_count)]
    if TESTS[test].smallest_p(len(pairs), 2**31) <= alpha:
        counts.append(f"{format_count(given.n_draws)} draws")
    return f"{' and '.join(counts)} cannot show any loss at alpha {format_plain(alpha)}"


def _alpha(rule: NoWorse, given: GateInput) -> float:
    return given.alpha if rule.alpha is None else rule.alpha


def _sentence(rule: NoWorse, given: GateInput, tested: _Tested) -> str:
    """`nDCG@10 was 0.4120 and is 0.3510 of class: prose: worse (p Holm .0021, n = 24, permutation)`."""
    then, after = (
        mean([side[query_id] for query_id in tested.pairs])
        for side in (given.before(rule.measure), given.values(rule.measure))
    )
    of = f" of {tested.label}" if tested.label else ""
    p = f"{'p Holm' if tested.label else 'p'} {format_p(tested.p)}, " if tested.p is not None else ""
    numbers = f"{p}n = {format_count(len(tested.pairs))}, {rule.test or given.test}"
    return f"{rule.measure} was {as_text(then)} and is {as_text(after)}{of}: {tested.code.text} ({numbers})"
