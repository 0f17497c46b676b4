"""The queries that a gate shows: those that lost, that a broken rule names, or that failed, the worst first.

They are ranked by the measure of the rule that broke: of several, in the order of the rules, and by the primary measure last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from cranfield.base.words import noun
from cranfield.gate.config import Rule
from cranfield.gate.decimals import as_text
from cranfield.gate.gate_input import GateInput
from cranfield.gate.result import QueryChange, RuleResult
from cranfield.gate.rules import measure_of
from cranfield.measures import CATALOGUE, parse


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
            yield QueryChange(query_id, by_id[query_id].text, current, then, outcomes[query_id], why, measure)
        shown |= found


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
