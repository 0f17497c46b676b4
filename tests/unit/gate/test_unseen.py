"""What stands beside the rules with a significance test, on fewer than 50 queries; the arithmetic is beside each value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.gate.rule_text import rule_of

from cranfield import parse
from cranfield.evaluation.options.blocks import Limits
from cranfield.evaluation.unseen import UnseenChange, UnseenKind
from cranfield.evaluation.values import Evaluation
from cranfield.gate.baseline import Baseline
from cranfield.gate.gate_input import GateInput
from cranfield.gate.junit import junit_xml
from cranfield.gate.reports.gate import gate_document
from cranfield.gate.result import GateReport, GateResult
from cranfield.gate.verdict import GateTerms, judge_all
from cranfield.reporting.renderers.html import render_html
from cranfield.reporting.renderers.markdown import render_markdown
from cranfield.reporting.renderers.text import render_brief, render_text

Found = Callable[..., Evaluation]
Accepted = Callable[..., Baseline]


def gate(*rules: str, now: Evaluation, then: Baseline) -> GateResult:
    parsed = [rule_of(r) for r in rules]
    return judge_all(GateInput(now, then), GateTerms(parsed, Limits(), parse("RR")))


def test_no_worse_has_what_would_turn_its_verdict(found: Found, accepted: Accepted) -> None:
    # .9 to 1 on 20 queries is not significant: the mean of .1 comes to 0 with losses of .860892 * .1 / .139108
    result = gate("no_worse: {measure: RR}", now=found(20, 20), then=accepted(found(18, 20)))
    (unseen,) = result.rules[0].unseen
    assert result.status == "passed"
    assert (unseen.n, unseen.change, unseen.rests_on) == (20, UnseenChange.LOSS, "mean")
    assert unseen.size == pytest.approx(0.618866, abs=1e-5)


def test_a_drop_that_is_surely_within_its_bound_has_what_would_exceed_it(found: Found, accepted: Accepted) -> None:
    # No drop on 40 queries, and .05 is allowed: (1 - p) 0 - p L = -.05 with p = .072158
    rule = "drop: {measure: RR, at_most: 0.05, significant: true}"
    result = gate(rule, now=found(40, 40), then=accepted(found(40, 40)))
    (unseen,) = result.rules[0].unseen
    assert (result.status, unseen.change, unseen.rests_on) == ("passed", UnseenChange.LOSS, "interval")
    assert (unseen.share, unseen.size) == (pytest.approx(0.072158, abs=1e-6), pytest.approx(0.692929, abs=1e-5))
    assert unseen.sentence.endswith("a mean loss of 0.6929 or more on them would change the result of this rule")


def test_a_drop_that_is_surely_too_large_has_what_would_cancel_it(found: Found, accepted: Accepted) -> None:
    rule = "drop: {measure: RR, at_most: 0.05, significant: true}"
    result = gate(rule, now=found(10, 40), then=accepted(found(40, 40)))
    (unseen,) = result.rules[0].unseen
    assert (result.status, unseen.change, unseen.kind) == ("failed", UnseenChange.GAIN, UnseenKind.CANNOT_TURN)


@pytest.mark.parametrize(
    ("rule", "n"),
    [
        ("no_worse: {measure: RR}", 50),
        ("drop: {measure: RR, at_most: 0.05, significant: true}", 50),
        ("drop: {measure: RR, at_most: 0.05}", 20),
        ("floor: {measure: RR, at_least: 0.5}", 20),
        ("ratchet: {measure: RR, queries: [q0000]}", 20),
    ],
)
def test_rules_on_50_queries_and_rules_without_a_test_have_none(
    found: Found, accepted: Accepted, rule: str, n: int
) -> None:
    result = gate(rule, now=found(n, n), then=accepted(found(n, n)))
    assert (result.status, result.rules[0].unseen) == ("passed", ())
    assert "of a kind" not in render_text(gate_document(GateReport.of([result])))


def test_each_class_of_no_worse_has_its_own_and_a_report_the_nearest(answered: Found, accepted: Accepted) -> None:
    # 30 of a rise from rank 2 to 1; 10 of b stay as they are
    strata = {f"q{i:02}": {"type": "a" if i < 30 else "b"} for i in range(40)}
    before = answered({q: "NR" if kind["type"] == "a" else "R" for q, kind in strata.items()}, strata=strata)
    after = answered(dict.fromkeys(strata, "R"), strata=strata)
    result = gate("no_worse: {measure: RR, by: type}", now=after, then=accepted(before))
    assert [(unseen.of, unseen.n) for unseen in result.rules[0].unseen] == [("", 40), ("type: a", 30), ("type: b", 10)]
    assert [unseen.among for unseen in result.rules[0].unseen] == ["all queries", "its queries", "its queries"]
    assert [unseen.size is None for unseen in result.rules[0].unseen] == [False, False, True]
    assert result.rules[0].nearest_unseen == result.rules[0].unseen[0]  # the lower end over all is the nearest to 0


def test_a_gate_that_passes_shows_it_in_every_form(found: Found, accepted: Accepted) -> None:
    now = found(20, 20)
    result = gate("no_worse: {measure: RR}", now=now, then=accepted(found(18, 20)))
    document = gate_document(GateReport.of([result]))
    sentence = "(95 % confidence, n = 20)"
    for form in (render_text, render_brief, render_markdown, render_html):
        assert sentence in form(document).replace("\n  ", " ")
    assert sentence in junit_xml([(result, now.testset)])
    (record,) = document.payload()["gates"][0]["rules"][0]["unseen"]
    assert (record["kind"], record["change"], record["n"]) == ("can_turn", "loss", 20)
