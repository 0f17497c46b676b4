"""The table of the rules of a gate, used by docs, tests, checks and judging.

The keys of a rule are in `cranfield.gate.config`, by the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cranfield.base.errors import unknown_name
from cranfield.config.strict import Finding
from cranfield.evaluation.requirements import requires_something
from cranfield.formats.io.tree import Loc
from cranfield.gate import answers, confidence, judge, no_worse
from cranfield.gate.config import (
    Accuracy,
    Drop,
    Floor,
    GateConfig,
    JudgedShare,
    NoWorse,
    Ratchet,
    Requirements,
    RequirementsRule,
    Rule,
    StatedConfidenceRule,
    Terms,
)
from cranfield.gate.gate_input import GateInput
from cranfield.gate.result import RuleResult
from cranfield.measures import parse
from cranfield.measures.threshold import parse_threshold
from cranfield.model import TestSet, is_in_stratum, query_strata


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """One row of the table."""

    name: str
    sentence: str
    """Description for the docs."""
    examples: tuple[str, ...]
    """In YAML, as under `rules:`."""
    judge: Callable[[Any, GateInput], RuleResult]
    words: Callable[[Any], str]
    """The rule in a line."""


RULES: Mapping[str, RuleSpec] = {
    spec.name: spec
    for spec in (
        RuleSpec(
            "floor",
            "A bound on a measure: on its mean, on its mean in each stratum, or on every query.",
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
            "The largest drop of the mean below the baseline's, in units of the measure or in per cent.",
            (
                "drop: {measure: R@10, at_most: 5 %}",
                "drop: {measure: nDCG@10, at_most: 0.02, significant: true}",
                "drop: {measure: nDCG@10, at_most: 10 %, by: task_type}",
            ),
            judge.drop,
            judge.drop_words,
        ),
        RuleSpec(
            "no_worse",
            (
                "No significant loss against the baseline: neither over all queries nor in any class (Holm "
                "correction over the classes). Fails if the verdict is worse or mixed."
            ),
            (
                "no_worse: {measure: nDCG@10}",
                "no_worse: {measure: nDCG@10, by: class}",
                "no_worse: {measure: R@10, by: task_type, where: {difficulty: hard}}",
            ),
            no_worse.no_worse,
            no_worse.no_worse_words,
        ),
        RuleSpec(
            "ratchet",
            "Queries that must not get worse than in the baseline, by id or by stratum.",
            ("ratchet: {measure: RR, queries: [q1, q7]}", "ratchet: {measure: RR, where: {difficulty: easy}}"),
            judge.ratchet,
            judge.ratchet_words,
        ),
        RuleSpec(
            "judged",
            "The smallest share of judged results; below it, other measures are unreliable.",
            ("judged: {k: 10, at_least: 80 %}",),
            judge.judged,
            judge.judged_words,
        ),
        RuleSpec(
            "failures",
            "The largest number or share of queries that fail or have no answer; it replaces `limits.max_failed_share`.",
            ("failures: {at_most: 0}", "failures: {at_most: 2 %}"),
            judge.failures,
            judge.failures_words,
        ),
        RuleSpec(
            "requirements",
            "What the test set itself requires of single queries, `floors` and `forbidden`: how many requirements may be broken, "
            "by default none. A gate has this rule also where its config does not name it.",
            ("requirements: {at_most: 0}", "requirements: {at_most: 5 %}"),
            judge.requirements,
            judge.requirements_words,
        ),
        RuleSpec(
            "latency",
            "The largest latency of calls, by percentile.",
            ("latency: {p95_ms: 300}",),
            judge.latency,
            judge.latency_words,
        ),
        RuleSpec(
            "every_answer",
            "A rule on a field of every answer, such as its mode or its confidence; answers that break it are listed.",
            (
                "every_answer: mode = semantic",
                "every_answer: {rule: confidence >= 0.5, at_most: 2 %}",
                "every_answer: {rule: 'routed in local, remote', where: {difficulty: easy}}",
            ),
            answers.every_answer,
            answers.every_answer_words,
        ),
        RuleSpec(
            "ece",
            "The largest expected calibration error (ECE) of a confidence field, in 10 bins of equal width.",
            (
                "ece: {field: confidence, correct: Success@5, at_most: 0.15}",
                "ece: {field: confidence, correct: R@10 >= 0.5, at_most: 0.1, significant: true}",
            ),
            confidence.ece,
            confidence.ece_words,
        ),
        RuleSpec(
            "correct_at",
            (
                "The smallest share of correct answers among those with a confidence of at least a threshold "
                "(default 0.8)."
            ),
            (
                "correct_at: {field: confidence, correct: Success@5, at_least: 0.7}",
                "correct_at: {field: confidence, correct: Success@5, threshold: 0.9, at_least: 0.7, significant: true}",
            ),
            confidence.correct_at,
            confidence.correct_at_words,
        ),
        RuleSpec(
            "accuracy",
            "The smallest share of answers whose field is the stratum of the query, over all or for each expected value.",
            (
                "accuracy: {field: task_type, at_least: 0.8}",
                "accuracy: {field: routed, stratum: task_type, at_least: 0.8, each_at_least: 0.5}",
            ),
            confidence.accuracy,
            confidence.accuracy_words,
        ),
    )
}
"""Name to spec, in the order docs list them."""


def words(rule: Rule) -> str:
    """A rule in a line."""
    only = f" (test sets {', '.join(rule.testsets)})" if rule.testsets else ""
    return RULES[rule.kind].words(rule.terms) + only


def rules_of(gate: GateConfig, testset: str) -> list[tuple[int, Rule]]:
    """The rules for a test set, each with its position; `testset` is empty if there is only one."""
    return [
        (index, rule)
        for index, rule in enumerate(gate.rules)
        if rule.testsets is None or not testset or testset in rule.testsets
    ]


def configured_rules(gate: GateConfig, name: str, testset: TestSet) -> list[Rule]:
    """The rules for a test set by its name in the config, and its own."""
    rules = [rule for _, rule in rules_of(gate, name)]
    return rules + own_rules(testset, rules)


def own_rules(testset: TestSet, rules: Sequence[Rule]) -> list[Rule]:
    """The rule on the requirements of a test set that has some, where no rule is about them."""
    is_there = any(rule.kind == RequirementsRule.kind for rule in rules)
    return [RequirementsRule(requirements=Requirements())] if requires_something(testset) and not is_there else []


def in_classes(rule: Rule, key: str) -> Rule:
    """The rule with the classes of the verdict, where it goes by classes and names none; `key` is empty for no classes."""
    terms = rule.terms
    return rule.model_copy(update={rule.kind: no_worse.in_classes(terms, key)}) if isinstance(terms, NoWorse) else rule


def measure_of(rule: Rule) -> str | None:
    """The measure of a rule, as written; None if it has none."""
    terms = rule.terms
    if isinstance(terms, JudgedShare):
        return f"Judged@{terms.k}"
    if isinstance(terms, StatedConfidenceRule):
        return str(parse_threshold(terms.correct).measure)
    return terms.measure if isinstance(terms, Floor | Drop | NoWorse | Ratchet) else None


def compared_measures(rules: Sequence[Rule]) -> list[str]:
    """The spelling of each measure that some rule compares with the baseline."""
    spelled = [measure_of(rule) for rule in rules if rule.needs_baseline]
    return list(dict.fromkeys(str(parse(measure)) for measure in spelled if measure is not None))


def check_fit(gate: GateConfig, name: str, testset: TestSet) -> Iterator[Finding]:
    """Strata and queries that rules name and the test set does not have: found before a query is sent."""
    strata = _strata_of(testset)
    for index, rule in rules_of(gate, name):
        place: Loc = ("gate", "rules", index, rule.kind)
        for key, value in (getattr(rule.terms, "where", None) or {}).items():
            if key not in strata:
                yield (*place, "where", key), unknown_name("stratum", key, strata)
            elif not any(is_in_stratum(query, key, value) for query in testset.queries):
                yield (*place, "where", key), unknown_name(f"value of {key}", value, strata[key])
        for key, stratum in _named_strata(rule.terms):
            if stratum not in strata:
                yield (*place, key), unknown_name("stratum", stratum, strata)
        for position, query_id in enumerate(getattr(rule.terms, "queries", None) or ()):
            if query_id not in testset.by_id:
                yield (*place, "queries", position), unknown_name("query", query_id, testset.query_ids)


def _strata_of(testset: TestSet) -> dict[str, set[str]]:
    """Stratum to its values."""
    strata: dict[str, set[str]] = {}
    for query in testset.queries:
        for key, value in query_strata(query).items():
            strata.setdefault(key, set()).add(value)
    return strata


def _named_strata(terms: Terms) -> Iterator[tuple[str, str]]:
    """The keys of a rule that name a stratum, and its name."""
    if (by := getattr(terms, "by", None)) is not None:
        yield "by", by
    if isinstance(terms, Accuracy):
        yield "field" if terms.stratum is None else "stratum", terms.expected_stratum
