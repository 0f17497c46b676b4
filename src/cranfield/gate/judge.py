"""One function per kind of rule: from the rule and its input to its result.

Numbers are compared as exact fractions. A rule that applies to no query fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from cranfield.base.numbers import format_count, format_level
from cranfield.base.words import count_noun, join_first
from cranfield.config.amount import Amount
from cranfield.evaluation.requirements import requirements_of
from cranfield.evaluation.unseen import CoverageBasis, ObservedEffect, Unseen, largest_difference, tipping_point
from cranfield.gate.config import Drop, Failures, Floor, JudgedShare, LatencyCeiling, Ratchet, Requirements
from cranfield.gate.decimals import as_text, exact, mean, percent_text
from cranfield.gate.gate_input import GateInput, Values, direction, named
from cranfield.gate.result import RuleResult, Status
from cranfield.measures import CATALOGUE, parse
from cranfield.stats.describe import differences
from cranfield.stats.table import TESTS, Paired

MAX_QUERIES = 10
"""Maximum number of queries listed by a rule about a mean; a rule about single queries lists all."""
WORST_FIRST: tuple[Status, ...] = ("failed", "inconclusive", "passed")


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Result of a rule within one group of queries."""

    label: str
    status: Status
    got: str
    """The value compared with the bound."""
    sentence: str
    queries: tuple[str, ...] = ()
    room: Fraction = Fraction(0)
    """Distance to the bound; of several groups that passed, the one with the smallest is reported."""
    unseen: Unseen | None = None
    """Queries of a kind that is not in the group, and what would turn the result, for a rule with a significance
    test."""


def floor(rule: Floor, given: GateInput) -> RuleResult:
    """A bound on a mean, stratum by stratum or over all; or on every query."""
    if rule.every_query is not None:
        return _every_query(rule, rule.every_query, given)
    values, sign = given.values(rule.measure), direction(rule.measure)
    how, bound, keeps = _bound(rule)
    groups = []
    for label, queries in given.groups(rule.where, rule.by):
        scored = {query_id: values[query_id] for query_id in queries if query_id in values}
        lost = _newly_missing(rule.measure, queries, given)
        if lost:
            sentence = f"{count_noun(len(lost), 'queries')} without a value of {rule.measure} failed, or had a value in the baseline"
            groups.append(GroupResult(label, "failed", "no value", sentence + _of(label), lost))
            continue
        if not scored:
            if not is_silent(rule.measure, rule.by):
                groups.append(_nothing(label, rule.measure, queries))
            continue
        got = mean(scored.values())
        text = as_text(got, bound)
        kept = keeps(got)
        sentence = (
            f"{rule.measure} is {text}{_of(label)}, {how} is required (n = {_n_text(rule.measure, scored, queries)})"
        )
        under = {query_id: value for query_id, value in scored.items() if sign * value <= sign * bound}
        worst = () if kept else lowest(under, sign)
        groups.append(GroupResult(label, "passed" if kept else "failed", text, sentence, worst, sign * (got - bound)))
    return _result("floor", floor_words(rule), how, groups)


def _newly_missing(measure: str, queries: Sequence[str], given: GateInput) -> tuple[str, ...]:
    """Queries without a value that failed, or that have a value in the baseline: leaving them out would bias the mean.

    A query that finds nothing is left out of the mean where the measure is defined so.
    """
    compared = given.before(measure).keys() | given.unanswered.keys()
    return tuple(query_id for query_id in given.lost(measure, queries) if query_id in compared)


def _n_text(measure: str, scored: Values, queries: Sequence[str]) -> str:
    """`12`, or `12; 3 queries have no value` where other answers would have had one."""
    n, without = format_count(len(scored)), len(queries) - len(scored)
    if not without or not CATALOGUE[parse(measure).name].unscored_by_run:
        return n
    return f"{n}; {count_noun(without, 'queries')} {'has' if without == 1 else 'have'} no value"


def _bound(rule: Floor) -> tuple[str, Fraction, Callable[[Fraction], bool]]:
    """The bound in words, the bound, and whether a mean keeps it."""
    if rule.at_least is not None:
        bound = Fraction(rule.at_least)
        return f"at least {rule.at_least:f}", bound, lambda got: got >= bound
    if rule.at_most is not None:
        bound = Fraction(rule.at_most)
        return f"at most {rule.at_most:f}", bound, lambda got: got <= bound
    above = rule.above if rule.above is not None else Decimal(0)
    bound = Fraction(above)
    return f"more than {above:f}", bound, lambda got: got > bound


def floor_words(rule: Floor) -> str:
    """`P@1 is 1 or better on every query of difficulty: easy`."""
    if rule.every_query is not None:
        return f"{rule.measure} is {rule.every_query:f} or better on every query{_of(named(rule.where))}"
    within = f" in each {rule.by}" if rule.by else ""
    return f"{rule.measure} is {_bound(rule)[0]}{within}{_of(named(rule.where))}"


def _every_query(rule: Floor, bound: Decimal, given: GateInput) -> RuleResult:
    values, sign = given.values(rule.measure), direction(rule.measure)
    queries = given.queries(rule.where)
    scored = {query_id: values[query_id] for query_id in queries if query_id in values}
    label, expected = named(rule.where), f"{bound:f} or better on every query"
    if not scored:
        return _result("floor", floor_words(rule), expected, [_nothing(label, rule.measure, queries)])
    # A query that has no value because of what the system returned has not met what every query must.
    lost = given.lost(rule.measure, queries)
    under = [query_id for query_id, value in scored.items() if sign * value < sign * Fraction(bound)]
    broken = (*under, *lost)
    total = len(scored) + len(lost)
    got = f"{format_count(total - len(broken))} of {format_count(total)} queries"
    sentence = f"{rule.measure} is {bound:f} or better on {got}{_of(label)}"
    group = GroupResult(label, "failed" if broken else "passed", got, sentence, broken)
    return _result("floor", floor_words(rule), expected, [group])


def drop(rule: Drop, given: GateInput) -> RuleResult:
    """Drop of a mean below the baseline, over the queries with both values."""
    now, before, sign = given.sides(rule.measure)
    groups = []
    for label, queries in given.groups(rule.where, rule.by):
        lost = tuple(query_id for query_id in queries if query_id in before and query_id not in now)
        pairs = [query_id for query_id in queries if query_id in before and query_id in now]
        if lost:
            sentence = f"{format_count(len(lost))} queries had a value of {rule.measure} and have none now{_of(label)}"
            groups.append(GroupResult(label, "failed", "no value", sentence, lost))
        elif not pairs and not is_silent(rule.measure, rule.by):
            groups.append(_nothing(label, rule.measure, queries))
        elif pairs:
            falls = {query_id: sign * (before[query_id] - now[query_id]) for query_id in pairs}
            compared = (
                mean([before[query_id] for query_id in pairs]),
                mean([now[query_id] for query_id in pairs]),
            )
            groups.append(_relative_drop(rule, label, compared, falls, given))
    return _result("drop", drop_words(rule), f"a drop of at most {rule.at_most}", groups)


def drop_words(rule: Drop) -> str:
    """`nDCG@10 drops by at most 5 %`."""
    within = f" in each {rule.by}" if rule.by else ""
    surely = ", by its confidence interval" if rule.significant else ""
    return f"{rule.measure} drops by at most {rule.at_most}{within}{_of(named(rule.where))}{surely}"


def _relative_drop(
    rule: Drop, label: str, means: tuple[Fraction, Fraction], falls: Mapping[str, Fraction], given: GateInput
) -> GroupResult:
    """One group: the means before and now, and by how much each query fell."""
    before, now = means
    margin, fall = rule.at_most.of(abs(before)), mean(falls.values())
    got = _fall_text(rule.at_most, before, fall, margin, direction(rule.measure))
    numbers = f"{rule.measure} was {as_text(before)} and is {as_text(now)}{_of(label)}: {got}"
    status: Status = "passed" if fall <= margin else "failed"
    unseen = None
    if rule.significant:
        status, interval, unseen = _significance(rule, falls, margin, given)
        unseen = unseen and replace(unseen, of=label, among="its queries" if label else unseen.among)
        numbers += f", {interval}"
    sentence = f"{numbers}; a drop of at most {rule.at_most} is allowed (n = {format_count(len(falls))})"
    lost_most = (
        () if status == "passed" else lowest({query_id: -fall for query_id, fall in falls.items() if fall > 0}, 1)
    )
    return GroupResult(label, status, got, sentence, lost_most, margin - fall, unseen)


def _fall_text(at_most: Amount, before: Fraction, fall: Fraction, margin: Fraction, sign: int) -> str:
    """The change in the unit of the rule, `-5.0 %` or `-0.0200`; never rounded to a bound that it exceeds."""
    change, bound = -sign * fall, -sign * margin
    if at_most.is_percent and before:
        return percent_text(change / abs(before), bound / abs(before), signed=True)
    return as_text(change, bound, signed=True)


def _significance(
    rule: Drop, falls: Mapping[str, Fraction], margin: Fraction, given: GateInput
) -> tuple[Status, str, Unseen | None]:
    """Status and text of the interval of the mean drop: above the margin, below it, or overlapping it; and what would turn it."""
    alpha = rule.alpha if rule.alpha is not None else given.alpha
    test = rule.test or given.test
    low, high = interval_of([float(fall) for fall in falls.values()], test, alpha, given.seed, given.n_draws)
    ends = ["unbounded" if end is None else as_text(exact(end), signed=True) for end in (low, high)]
    interval = f"{format_level(alpha)} CI of the drop {ends[0]} to {ends[1]} ({test})"
    status: Status = "inconclusive"
    value: float | None = float(mean(falls.values()))
    if low is not None and exact(low) > margin:
        status, value = "failed", low
    elif high is not None and exact(high) <= margin:
        status, value = "passed", high
    is_of_mean, is_sure = TESTS[test].is_of_mean, status != "inconclusive"
    if is_sure and not is_of_mean:
        value = None
    largest = largest_difference(parse(rule.measure), given.evaluation.ranking)
    found = ObservedEffect(len(falls), None, None, None, 1, largest)
    rests_on: CoverageBasis = "interval" if is_sure else "mean"
    gain = None if value is None else -value
    unseen = tipping_point(found, alpha, gain, rests_on=rests_on, threshold=-float(margin))
    return status, interval, unseen and replace(unseen, turned="the result of this rule")


def interval_of(
    change: Sequence[float], test: str, alpha: float, seed: int, n_draws: int
) -> tuple[float | None, float | None]:
    """The interval of a mean difference by one of the tests; None where an end is not bounded."""
    after = np.asarray(change, dtype=np.float64)
    nothing = np.zeros_like(after)
    found = TESTS[test].run(Paired(nothing, after, differences(nothing, after), alpha, seed, n_draws))
    return found.ci_low, found.ci_high


def ratchet(rule: Ratchet, given: GateInput) -> RuleResult:
    """No query may get worse than in the baseline."""
    now, before, sign = given.sides(rule.measure)
    queries = given.queries(rule.where)
    if rule.queries is not None:
        queries = tuple(rule.queries)
    compared = [query_id for query_id in queries if query_id in before]
    label, expected = named(rule.where), "no worse than in the baseline"
    if not compared:
        return _result("ratchet", ratchet_words(rule), expected, [_nothing(label, rule.measure, queries)])
    worse = [query_id for query_id in compared if query_id not in now or sign * now[query_id] < sign * before[query_id]]
    got = f"{format_count(len(worse))} of {format_count(len(compared))} queries worse"
    sentence = f"{rule.measure} is no worse than it was on any of {format_count(len(compared))} queries{_of(label)}"
    if worse:
        sentence = (
            f"{rule.measure} got worse on {got.removesuffix(' worse')}{_of(label)}: {_shifts(worse, before, now)}"
        )
    if len(compared) < len(queries):
        sentence += f"; {format_count(len(queries) - len(compared))} without a value in the baseline are not compared"
    return _result(
        "ratchet",
        ratchet_words(rule),
        expected,
        [GroupResult(label, "failed" if worse else "passed", got, sentence, tuple(worse))],
    )


def ratchet_words(rule: Ratchet) -> str:
    """`RR does not get worse on q1, q7`."""
    if rule.queries is None:
        return f"{rule.measure} does not get worse on any query{_of(named(rule.where))}"
    return f"{rule.measure} does not get worse on {join_first(rule.queries, MAX_QUERIES)}"


def judged(rule: JudgedShare, given: GateInput) -> RuleResult:
    """The mean share of judged results."""
    measure, bound, label = f"Judged@{rule.k}", rule.at_least.share, named(rule.where)
    values, expected = given.values(measure), f"at least {rule.at_least}"
    queries = given.queries(rule.where)
    scored = {query_id: values[query_id] for query_id in queries if query_id in values}
    if not scored:
        return _result("judged", judged_words(rule), expected, [_nothing(label, measure, queries)])
    got = mean(scored.values())
    text = percent_text(got, bound)
    sentence = f"{text} of the results are judged{_of(label)}, {expected} is required ({measure}, n = {format_count(len(scored))})"
    kept = got >= bound
    group = GroupResult(label, "passed" if kept else "failed", text, sentence, () if kept else lowest(scored, 1))
    return _result("judged", judged_words(rule), expected, [group])


def judged_words(rule: JudgedShare) -> str:
    """`Judged@10 is at least 80 %`."""
    return f"Judged@{rule.k} is at least {rule.at_least}{_of(named(rule.where))}"


def failures(rule: Failures, given: GateInput) -> RuleResult:
    """Number of queries that failed or have no answer."""
    total, broken = given.evaluation.ranking.n_queries, given.unanswered
    if not total:
        return _result("failures", failures_words(rule), f"at most {rule.at_most}", [_nothing("", "answer", ())])
    kept = len(broken) <= rule.at_most.of(Fraction(total))
    got = f"{format_count(len(broken))} of {format_count(total)}"
    counts: dict[str, int] = {}
    for outcome in broken.values():
        counts[outcome] = counts.get(outcome, 0) + 1
    why = f" ({', '.join(f'{outcome} {count}' for outcome, count in sorted(counts.items()))})" if counts else ""
    sentence = f"{got} queries failed or have no answer{why}, at most {rule.at_most} may"
    group = GroupResult("", "passed" if kept else "failed", got, sentence, () if kept else tuple(broken))
    return _result("failures", failures_words(rule), f"at most {rule.at_most}", [group])


def failures_words(rule: Failures) -> str:
    """`at most 2 queries fail or have no answer`."""
    if rule.at_most.is_percent:
        return f"at most {rule.at_most} of the queries fail or have no answer"
    which = "1 query fails or has" if rule.at_most.number == 1 else f"{rule.at_most} queries fail or have"
    return f"at most {which} no answer"


def requirements(rule: Requirements, given: GateInput) -> RuleResult:
    """The floors of single queries and the forbidden results of the test set."""
    evaluation = given.evaluation
    found = requirements_of(evaluation.testset, evaluation.ranking)
    if not found:
        return _result(
            "requirements", requirements_words(rule), f"at most {rule.at_most}", [_nothing("", "requirement", ())]
        )
    broken = [each for each in found if not each.is_met]
    status: Status = "passed" if len(broken) <= rule.at_most.of(Fraction(len(found))) else "failed"
    got = f"{format_count(len(broken))} of {count_noun(len(found), 'requirements')} broken"
    return RuleResult(
        kind="requirements",
        rule=requirements_words(rule),
        status=status,
        got=got,
        expected=f"at most {rule.at_most}",
        sentence=f"{got}, at most {rule.at_most} may be",
        queries=tuple(dict.fromkeys(each.query_id for each in broken)),
        reasons={
            query_id: "; ".join(f"{each.rule}: {each.got}" for each in broken if each.query_id == query_id)
            for query_id in dict.fromkeys(each.query_id for each in broken)
        },
    )


def requirements_words(rule: Requirements) -> str:
    """`at most 0 requirements of the test set are broken`."""
    return f"at most {rule.at_most} requirements of the test set are broken"


def latency(rule: LatencyCeiling, given: GateInput) -> RuleResult:
    """Percentiles of the latency of calls."""
    times, words = given.latencies, latency_words(rule)
    expected = ", ".join(f"p{percentile} at most {bound:f} ms" for percentile, bound in rule.bounds.items())
    if not times:
        group = GroupResult("", "failed", "no time", "no call has a time: a run file of another tool has none")
        return _result("latency", words, expected, [group])
    groups = []
    for percentile, bound in rule.bounds.items():
        got = exact(float(np.percentile(times, percentile)))
        text = as_text(got, Fraction(bound), decimals=1) + " ms"
        sentence = (
            f"p{percentile} of the latency is {text}, at most {bound:f} ms is required (n = {format_count(len(times))})"
        )
        groups.append(GroupResult(f"p{percentile}", "passed" if got <= bound else "failed", text, sentence))
    return _result("latency", words, expected, groups)


def latency_words(rule: LatencyCeiling) -> str:
    """`p95 of the latency is at most 300 ms`."""
    return ", ".join(
        f"p{percentile} of the latency is at most {bound:f} ms" for percentile, bound in rule.bounds.items()
    )


def _result(kind: str, rule: str, expected: str, groups: Sequence[GroupResult]) -> RuleResult:
    """Combine the groups of a rule: the worst status is the result, and all groups that broke it are reported."""
    if not groups:
        groups = [GroupResult("", "failed", "no query", "no query has such a stratum: the rule was not tested")]
    status = next(status for status in WORST_FIRST if any(group.status == status for group in groups))
    worst = [group for group in groups if group.status == status]
    if len(groups) == 1:
        got, sentence = groups[0].got, groups[0].sentence
    elif status == "passed":
        nearest = min(groups, key=lambda group: group.room)
        got = f"{nearest.label} {nearest.got}"
        sentence = f"{nearest.sentence}; the closest of {format_count(len(groups))} strata to its bound"
    else:
        got = join_first([f"{group.label} {group.got}" for group in worst], MAX_QUERIES)
        sentence = "; ".join(group.sentence for group in worst)
    queries = tuple(dict.fromkeys(query_id for group in worst for query_id in group.queries))
    unseen = tuple(group.unseen for group in worst if group.unseen is not None)
    return RuleResult(kind, rule, status, got, expected, sentence, queries, unseen=unseen)


def is_silent(measure: str, by: str | None) -> bool:
    """Whether a stratum without a value is skipped: for any answer, its test set defines none (no relevant results).

    It is skipped with a note. Where a different answer would have had a value, the stratum breaks the rule.
    """
    return by is not None and not CATALOGUE[parse(measure).name].unscored_by_run


def _nothing(label: str, what: str, queries: Sequence[str]) -> GroupResult:
    """A failed group without queries to test."""
    why = f"none of {format_count(len(queries))} queries has a value" if queries else "no matching query"
    return GroupResult(
        label, "failed", "no query", f"{what} applies to no query{_of(label)} ({why}): the rule was not tested"
    )


def _of(label: str) -> str:
    return f" of {label}" if label else ""


def lowest(values: Values, sign: int) -> tuple[str, ...]:
    """The ids of the worst few."""
    return tuple(sorted(values, key=lambda query_id: (sign * values[query_id], query_id))[:MAX_QUERIES])


def _shifts(queries: Sequence[str], before: Values, now: Values) -> str:
    """`q1 1.0000 to 0.5000`, of the first few."""

    def shift(query_id: str) -> str:
        after = as_text(now[query_id], before[query_id]) if query_id in now else "no value"
        return f"{query_id} {as_text(before[query_id])} to {after}"

    return join_first([shift(query_id) for query_id in queries], MAX_QUERIES)
