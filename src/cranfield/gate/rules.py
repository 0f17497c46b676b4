"""The rules of a gate as one table, from which docs, tests, checks and judging are read; and what can be wrong with one.

What a rule may say is in `cranfield.config.gate`: the key of a rule there is its name here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cranfield.config.gate import TESTSET_PART, Drop, Floor, GateConfig, JudgedShare, Ratchet, Rule
from cranfield.config.models import Config
from cranfield.config.strict import Finding
from cranfield.errors import CranfieldError, Problem, unknown_name
from cranfield.formats.io.tree import Loc
from cranfield.gate import judge
from cranfield.gate.evidence import Evidence
from cranfield.gate.result import RuleResult
from cranfield.measures import CATALOGUE, parse
from cranfield.model import TestSet
from cranfield.stats.table import MEAN_DIFFERENCE, TESTS


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """One row of the table."""

    name: str
    sentence: str
    """What it is for, in words a reader of the docs knows."""
    examples: tuple[str, ...]
    """As they stand in YAML, under `rules:`."""
    judge: Callable[[Any, Evidence], RuleResult]
    words: Callable[[Any], str]
    """The rule in a line."""
    needs_baseline: bool = False


RULES: Mapping[str, RuleSpec] = {
    spec.name: spec
    for spec in (
        RuleSpec(
            "floor",
            "A measure has a bound: its mean, its mean in each stratum, or every single query.",
            (
                "floor: {measure: Success@5, at_least: 0.70}",
                "floor: {measure: P@1, where: {difficulty: easy}, every_query: 1}",
                "floor: {measure: R@10, by: task_type, above: 0}",
            ),
            judge.floor,
            judge.floor_words,
        ),
        RuleSpec(
            "drop",
            "The mean may fall below the baseline's by so much and no more: in units of the measure, or in per cent.",
            (
                "drop: {measure: R@10, at_most: 5 %}",
                "drop: {measure: nDCG@10, at_most: 0.02, significant: true}",
                "drop: {measure: nDCG@10, at_most: 10 %, by: task_type}",
            ),
            judge.drop,
            judge.drop_words,
            needs_baseline=True,
        ),
        RuleSpec(
            "ratchet",
            "Queries that may not get worse than they are in the baseline, by name or by stratum.",
            ("ratchet: {measure: RR, queries: [q1, q7]}", "ratchet: {measure: RR, where: {difficulty: easy}}"),
            judge.ratchet,
            judge.ratchet_words,
            needs_baseline=True,
        ),
        RuleSpec(
            "judged",
            "So many of the results must have been judged by somebody, or the other numbers say little.",
            ("judged: {k: 10, at_least: 80 %}",),
            judge.judged,
            judge.judged_words,
        ),
        RuleSpec(
            "failures",
            "So many queries may fail or have no answer, and no more; it takes the place of `limits.max_failed_share`.",
            ("failures: {at_most: 0}", "failures: {at_most: 2 %}"),
            judge.failures,
            judge.failures_words,
        ),
        RuleSpec(
            "latency",
            "Calls may take so long, and no longer.",
            ("latency: {p95_ms: 300}",),
            judge.latency,
            judge.latency_words,
        ),
    )
}
"""Name to spec, in the order docs list them."""


def words(rule: Rule) -> str:
    """A rule in a line."""
    only = f" (test sets {', '.join(rule.testsets)})" if rule.testsets else ""
    return RULES[rule.kind].words(rule.asked) + only


def rules_of(gate: GateConfig, testset: str) -> list[tuple[int, Rule]]:
    """The rules that are about a test set, each with its position; its name is empty where there is one set alone."""
    return [
        (index, rule)
        for index, rule in enumerate(gate.rules)
        if rule.testsets is None or not testset or testset in rule.testsets
    ]


def measure_of(rule: Rule) -> str | None:
    """The measure that a rule is about, as it is written; None where it is about none."""
    asked = rule.asked
    if isinstance(asked, JudgedShare):
        return f"Judged@{asked.k}"
    return asked.measure if isinstance(asked, Floor | Drop | Ratchet) else None


def measures_held(rules: Sequence[Rule]) -> list[str]:
    """The one spelling of each measure that some rule holds against a baseline."""
    spelled = [measure_of(rule) for rule in rules if RULES[rule.kind].needs_baseline]
    return list(dict.fromkeys(str(parse(measure)) for measure in spelled if measure is not None))


def check_gate(config: Config) -> Iterator[Finding]:
    """Everything wrong with the gate of a config that the config alone can tell, each with its place."""
    gate = config.gate
    if gate is None:
        return
    if gate.system is not None and gate.system not in config.systems:
        yield ("gate", "system"), unknown_name("system", gate.system, config.systems)
    yield from _check_path(config, gate)
    for index, rule in enumerate(gate.rules):
        place = ("gate", "rules", index)
        yield from _check_measure(rule, (*place, rule.kind))
        if isinstance(rule.asked, Drop) and rule.asked.significant:
            yield from _check_test(rule.asked, config.test, (*place, rule.kind))
        for position, name in enumerate(rule.testsets or ()):
            if name not in (config.testsets or {}):
                yield (*place, "testsets", position), unknown_name("test set", name, config.testsets or {})


def _check_path(config: Config, gate: GateConfig) -> Iterator[Finding]:
    if gate.baseline is None:
        return
    place: Loc = ("gate", "baseline")
    if not gate.baseline.endswith(".json"):
        yield place, Problem("the name of a baseline ends in .json", got=gate.baseline)
    if config.testsets is None and TESTSET_PART in gate.baseline:
        yield place, Problem("{testset} is for a config with several test sets", hint="leave it out.")
    held = any(RULES[rule.kind].needs_baseline for rule in gate.rules)
    if config.testsets is not None and TESTSET_PART not in gate.baseline and held:
        hint = "say baseline: cranfield-baseline-{testset}.json"
        yield place, Problem("several test sets and one baseline: each has its own", hint=hint)


def _check_measure(rule: Rule, place: Loc) -> Iterator[Finding]:
    spelled = measure_of(rule)
    if spelled is None or isinstance(rule.asked, JudgedShare):
        return
    place = (*place, "measure")
    try:
        spec = CATALOGUE[parse(spelled).name]
    except CranfieldError as error:
        yield from ((place, problem) for problem in error.problems)
        return
    if spec.aggregate != "mean":
        hint = "choose one that is averaged over queries, such as AP."
        yield place, Problem(f"{spelled} is one number over all queries, and no mean", hint=hint)
    elif isinstance(rule.asked, Floor) and (rule.asked.at_most is not None) == spec.higher_is_better:
        yield from _check_side(rule.asked, spelled, place, higher=spec.higher_is_better)


def _check_side(asked: Floor, spelled: str, place: Loc, *, higher: bool) -> Iterator[Finding]:
    """A bound on the wrong side would be kept by the worst of systems; `every_query` knows which way is up."""
    if higher:
        yield place, Problem(f"of {spelled} more is better", expected="at_least or above", got="at_most")
    elif asked.every_query is None:
        got = "above" if asked.above is not None else "at_least"
        yield place, Problem(f"of {spelled} less is better", expected="at_most", got=got)


def _check_test(asked: Drop, declared: str, place: Loc) -> Iterator[Finding]:
    test = asked.test or declared
    where = (*place, "test") if asked.test is not None else (*place, "significant")
    able = [name for name, spec in TESTS.items() if spec.can_declare and spec.estimates == MEAN_DIFFERENCE]
    if test not in TESTS:
        if asked.test is not None:
            yield where, unknown_name("test", test, able)
    elif test not in able:
        hint = f"say test: {able[0]} in this rule."
        yield where, Problem(f"test {test} gives no interval of a mean", expected=" or ".join(able), hint=hint)


def check_fit(gate: GateConfig, name: str, testset: TestSet) -> Iterator[Finding]:
    """Strata and queries that rules name and the test set does not have: found before anything is asked."""
    strata: dict[str, set[str]] = {}
    for query in testset.queries:
        for key, value in query.strata.items():
            strata.setdefault(key, set()).add(value)
    for index, rule in rules_of(gate, name):
        place: Loc = ("gate", "rules", index, rule.kind)
        for key, value in (getattr(rule.asked, "where", None) or {}).items():
            if key not in strata:
                yield (*place, "where", key), unknown_name("stratum", key, strata)
            elif value not in strata[key]:
                yield (*place, "where", key), unknown_name(f"value of {key}", value, strata[key])
        by = getattr(rule.asked, "by", None)
        if by is not None and by not in strata:
            yield (*place, "by"), unknown_name("stratum", by, strata)
        for position, query_id in enumerate(getattr(rule.asked, "queries", None) or ()):
            if query_id not in testset.by_id:
                yield (*place, "queries", position), unknown_name("query", query_id, testset.query_ids)
