"""All rules together: which outcome wins, what the changes are, and what else a reader is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tests.unit.gate.rule_text import rule_of

from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.options.blocks import Limits
from cranfield.evaluation.values import Evaluation
from cranfield.gate.baseline import Baseline
from cranfield.gate.gate_input import GateInput
from cranfield.gate.reports.gate import gate_document
from cranfield.gate.result import GateReport, GateResult
from cranfield.gate.verdict import GateTerms, judge_all
from cranfield.measures import parse
from cranfield.reporting.renderers.text import render_brief

Found = Callable[..., Evaluation]
Accepted = Callable[..., Baseline]
KEPT = "floor: {measure: RR, at_least: 0}"
BROKEN = "floor: {measure: RR, at_least: 0.99}"
UNCLEAR = "drop: {measure: RR, at_most: 0, significant: true}"
STRATA = {"q1": {"d": "easy"}, "q2": {"d": "easy"}, "q3": {"d": "hard"}, "q4": {"d": "hard"}}


def gate(
    rules: Sequence[str], evaluation: Evaluation, baseline: Baseline | None = None, limits: Limits | None = None
) -> GateResult:
    made = [rule_of(text) for text in rules]
    limits = limits or Limits()
    findings = inspect_systems((evaluation,), parse("RR"), replace(limits, max_failed_share=None))
    terms = GateTerms(made, limits, parse("RR"), evidence=findings)
    return judge_all(GateInput(evaluation, baseline), terms)


@pytest.mark.parametrize(
    ("rules", "status", "sentence"),
    [
        ([KEPT], "passed", "passed: the rule is kept"),
        ([KEPT, KEPT], "passed", "passed: all 2 rules are kept"),
        ([KEPT, UNCLEAR], "inconclusive", "inconclusive: 1 of 2 rules inconclusive, none broken"),
        ([KEPT, UNCLEAR, BROKEN], "failed", "failed: 1 of 3 rules broken, 1 inconclusive"),
        ([], "failed", "failed: no rule applies to this test set"),
    ],
)
def test_failed_wins_over_inconclusive_and_inconclusive_over_passed(
    answered: Found, accepted: Accepted, rules: list[str], status: str, sentence: str
) -> None:
    then = answered({"q1": "R", "q2": "-R", "q3": "R", "q4": "R"})
    now = answered({"q1": "-R", "q2": "R", "q3": "R", "q4": "R"})
    result = gate(rules, now, accepted(then))
    assert (result.status, result.sentence) == (status, sentence)
    assert result.is_passed == (status == "passed")


def test_more_failures_than_the_limits_make_every_number_void(answered: Found) -> None:
    now = answered({"q1": "R", "q2": "!", "q3": "R", "q4": "?"})
    result = gate([KEPT, BROKEN], now)
    assert result.status == "invalid"
    assert result.sentence == (
        "invalid: 2 of 4 queries failed or have no answer: too slow; the limit is 10.0 % (limits.max_failed_share)"
    )
    assert gate([KEPT], now, limits=Limits(max_failed_share=0.5)).status == "passed"  # exactly half
    assert gate([KEPT], now, limits=Limits(max_failed_share=None)).status == "passed"


def test_a_rule_on_failures_takes_the_place_of_the_limit(answered: Found) -> None:
    now = answered({"q1": "R", "q2": "!", "q3": "R", "q4": "?"})
    assert gate([KEPT, "failures: {at_most: 1}"], now).status == "failed"
    assert gate([KEPT, "failures: {at_most: 2}"], now).status == "passed"


def test_a_limit_on_what_is_judged_still_holds(answered: Found) -> None:
    now = answered({"q1": "R---"})
    assert gate([KEPT], now, limits=Limits(min_judged_share=0.5)).status == "invalid"


def test_the_changes_are_over_the_queries_that_both_have(answered: Found, accepted: Accepted) -> None:
    then = answered({"q1": "R", "q2": "R", "q3": "-R", "q4": "-R"}, strata=STRATA)
    now = answered({"q1": "R", "q2": "-R", "q3": "R", "q4": "!"}, strata=STRATA)
    result = gate([KEPT, BROKEN], now, accepted(then))
    change = {one.measure: one for one in result.measures}["RR"]
    # then (1 + 1 + 1/2 + 1/2) / 4, now (1 + 1/2 + 1 + 0) / 4
    assert (change.baseline, change.current, change.delta, change.n) == (0.75, 0.625, -0.125, 4)
    assert [(one.value, one.baseline, one.current, one.delta, one.n) for one in result.strata] == [
        ("easy", 1.0, 0.75, -0.25, 2),
        ("hard", 0.5, 0.5, 0.0, 2),
    ]
    assert [(one.query_id, one.baseline, one.current, one.outcome) for one in result.worse] == [
        ("q2", 1.0, 0.5, "answered"),
        ("q4", 0.5, 0.0, "timeout"),
    ]


def test_a_failing_query_says_why(answered: Found, accepted: Accepted) -> None:
    then = answered({"q1": "R", "q2": "R", "q3": "R"})
    now = answered({"q1": "R", "q2": "-R", "q3": "!"})
    of_rules = gate(
        [KEPT, BROKEN, "floor: {measure: RR, at_least: 0.9}", "failures: {at_most: 0}"], now, accepted(then)
    )
    rules = "rules: RR is at least 0.99; RR is at least 0.9"
    assert [(one.query_id, one.why) for one in of_rules.worse] == [
        ("q3", f"RR 0.0000, baseline 1.0000 ({rules}); timeout (rule: at most 0 queries fail or have no answer)"),
        ("q2", f"RR 0.5000, baseline 1.0000 ({rules})"),
    ]
    kept = gate([KEPT], now, accepted(then), limits=Limits(max_failed_share=None))
    assert [one.why for one in kept.worse] == ["RR 0.0000, baseline 1.0000", "RR 0.5000, baseline 1.0000"]
    assert [one.why for one in gate([BROKEN], answered({"q1": "-R"})).worse] == [
        "RR 0.5000 (rule: RR is at least 0.99)"
    ]


def test_failing_queries_are_ranked_by_the_measure_that_broke_the_rule(answered: Found, accepted: Accepted) -> None:
    # RR: q1 1 to 1/2, q2 1 to 1/3, q3 1/2 to 1; R@10: q1 1/2 to 1/2, q2 1 to 1/2, q3 1 to 1
    then = answered({"q1": "R", "q2": "RR", "q3": "-R"}, missed={"q1": 1})
    now = answered({"q1": "-R", "q2": "--R", "q3": "R"}, missed={"q1": 1, "q2": 1})
    result = gate(["drop: {measure: R@10, at_most: 0}"], now, accepted(then, "R@10", {"q2": 1.0}))
    assert [(one.query_id, one.measure, one.baseline, one.current) for one in result.worse] == [
        ("q2", "R@10", 1.0, 0.5),
        ("q1", "RR", 1.0, 0.5),
    ]
    of_primary = gate([BROKEN], now, accepted(then))
    assert [(one.query_id, one.measure) for one in of_primary.worse] == [("q2", "RR"), ("q1", "RR")]


def test_every_measure_has_its_values_by_stratum(answered: Found, accepted: Accepted) -> None:
    lists = {"q1": "R", "q2": "-R", "q3": "RR", "q4": "N"}
    result = gate([KEPT], answered(lists, strata=STRATA), accepted(answered(lists, strata=STRATA)))
    assert {one.measure for one in result.strata} == {"RR"}
    by_measure = {(one.measure, one.value): one.current for one in result.by_stratum}
    assert by_measure["RR", "easy"] == 0.75
    assert by_measure["P@1", "easy"] == 0.5
    assert by_measure["R@10", "hard"] == 0.5


def test_without_a_baseline_there_are_numbers_and_no_change(answered: Found) -> None:
    result = gate([KEPT], answered({"q1": "R", "q2": "-R"}))
    assert result.baseline is None
    assert [(one.current, one.baseline, one.delta) for one in result.measures if one.measure == "RR"] == [
        (0.75, None, None)
    ]
    assert result.worse == ()


def test_queries_without_the_stratum_are_counted_and_not_lost(answered: Found) -> None:
    now = answered({"q1": "R", "q2": "R", "q5": "-"}, strata=STRATA)
    result = gate(["floor: {measure: RR, by: d, above: 0}"], now)
    assert result.status == "passed"
    assert any(note.startswith("queries without d: 1; not covered by: RR is more than 0") for note in result.notes)


def test_the_short_form_has_the_notes_behind_the_broken_rules_and_no_sentence_twice(answered: Found) -> None:
    now = answered({"q1": "R", "q2": "N"})
    terms = GateTerms(
        [rule_of(BROKEN)], Limits(), parse("RR"), overruled=("rules differ from main",), notes=("one more",)
    )
    result = judge_all(GateInput(now, None), terms)
    lines = render_brief(gate_document(GateReport.of([result]))).splitlines()
    doubts = [line[2:] for line in lines if line.startswith("! ")]
    assert doubts[:3] == [result.rules[0].sentence, "rules differ from main", "one more"]
    named = render_brief(gate_document(GateReport.of([replace(result, name="code")])))
    assert "! rules differ from main\n" in named
    assert "! code: one more\n" in named
    void = gate([KEPT], answered({"q1": "R", "q2": "!", "q3": "R", "q4": "?"}))
    text = " ".join(render_brief(gate_document(GateReport.of([void]))).split())
    assert text.count(void.explanation) == 1
