"""The rules of a gate on a stated confidence and on predicted strata."""

from __future__ import annotations

import pytest
from tests.unit.gate.rule_text import rule_of

from cranfield import Query, TestSet, evaluate
from cranfield.evaluation.values import Evaluation
from cranfield.gate.gate_input import GateInput
from cranfield.gate.result import RuleResult
from cranfield.gate.rules import RULES, measure_of, words
from cranfield.model import Answer, Hit, Outcome, Run


def judged(text: str, evaluation: Evaluation) -> RuleResult:
    rule = rule_of(text)
    return RULES[rule.kind].judge(rule.terms, GateInput(evaluation, n_draws=999))


def stating(*answers: tuple[object, bool], task: str = "code", routed: str = "code") -> Evaluation:
    """A query for each confidence and outcome; None states no confidence, and ... is a timeout."""
    ids = [f"q{number:03}" for number in range(len(answers))]
    queries = tuple(Query(one, strata={"task_type": task if number % 2 else "prose"}) for number, one in enumerate(ids))
    made = {}
    for one, (score, right) in zip(ids, answers, strict=True):
        fields = {"routed": routed} | ({} if score is None else {"confidence": score})
        hits = (Hit("d" if right else "x"),)
        made[one] = Answer(Outcome.TIMEOUT) if score is ... else Answer(Outcome.ANSWERED, hits, fields=fields)
    return evaluate(TestSet("t", queries, {one: {"d": 1} for one in ids}), Run("new", made), measures=["Success@5"])


def repeated(score: float, right: int, n: int) -> list[tuple[object, bool]]:
    return [(score, number < right) for number in range(n)]


@pytest.mark.parametrize(
    ("rule", "answers", "status", "got"),
    [
        # 20 answers at .8, 14 right: |.8 - .7| = .1 exactly, which floats make 0.10000000000000009.
        ("ece: {field: confidence, correct: Success@5, at_most: 0.1}", repeated(0.8, 14, 20), "passed", "0.1000"),
        ("ece: {field: confidence, correct: Success@5, at_most: 0.1}", repeated(0.8, 13, 20), "failed", "0.1500"),
        ("ece: {field: confidence, correct: Success@5, at_most: 0.1}", repeated(0.8, 2, 19), "inconclusive", "0.6947"),
        (  # 13 of 20 at .8: P(13 or fewer) is .087, and so is no finding
            "ece: {field: confidence, correct: Success@5, at_most: 0.1, significant: true}",
            repeated(0.8, 13, 20),
            "inconclusive",
            "0.1500",
        ),
        (
            "ece: {field: confidence, correct: Success@5, at_most: 0.1, significant: true}",
            repeated(0.8, 8, 20),
            "failed",
            "0.4000",
        ),
        (
            "correct_at: {field: confidence, correct: Success@5, at_least: 0.7}",
            repeated(0.8, 7, 10),
            "passed",
            "0.7000",
        ),
        (
            "correct_at: {field: confidence, correct: Success@5, at_least: 0.7}",
            repeated(0.8, 6, 10),
            "failed",
            "0.6000",
        ),
        (
            "correct_at: {field: confidence, correct: Success@5, threshold: 0.81, at_least: 0}",
            repeated(0.8, 6, 10),
            "failed",
            "no answer",
        ),
        (  # Wilson at 4 of 7: .2505 to .8418
            "correct_at: {field: confidence, correct: Success@5, at_least: 0.25, significant: true}",
            repeated(0.8, 4, 7),
            "passed",
            "0.5714",
        ),
        (
            "correct_at: {field: confidence, correct: Success@5, at_least: 0.26, significant: true}",
            repeated(0.8, 4, 7),
            "inconclusive",
            "0.5714",
        ),
        (
            "correct_at: {field: confidence, correct: Success@5, at_least: 0.85, significant: true}",
            repeated(0.8, 4, 7),
            "failed",
            "0.5714",
        ),
        (
            "correct_at: {field: confidence, correct: Success@5 < 1, at_least: 1}",
            repeated(0.9, 0, 3),
            "passed",
            "1.0000",
        ),
    ],
)
def test_a_bound_on_a_confidence_is_compared_exactly(rule: str, answers: list, status: str, got: str) -> None:
    result = judged(rule, stating(*answers))
    assert (result.status, result.got) == (status, got), result.sentence


def test_a_threshold_that_floats_miss_is_reached() -> None:
    result = judged(
        "correct_at: {field: confidence, correct: Success@5, threshold: 0.3, at_least: 1}", stating((0.7 - 0.4, True))
    )
    assert result.status == "passed"  # 0.7 - 0.4 is 0.29999999999999993


@pytest.mark.parametrize("stated", [None, 87, "high", True, -0.1])
def test_an_answer_without_a_confidence_breaks_the_rule_and_is_named(stated: object) -> None:
    for kind in (
        "ece: {field: confidence, correct: Success@5, at_most: 1}",
        "correct_at: {field: confidence, correct: Success@5, at_least: 0}",
    ):
        result = judged(kind, stating((0.9, True), (stated, True)))
        assert (result.status, result.queries) == ("failed", ("q001",))
        assert "1 of 2 answers without a number from 0 to 1 as confidence: q001" in result.sentence


def test_queries_without_an_answer_are_counted() -> None:
    result = judged(
        "correct_at: {field: confidence, correct: Success@5, at_least: 1}", stating((0.9, True), (..., True))
    )
    assert result.status == "passed"
    assert result.sentence.endswith("(n = 1; 1 query without an answer)")
    nothing = judged("ece: {field: confidence, correct: Success@5, at_most: 1}", stating((..., True)))
    assert (nothing.status, nothing.got) == ("failed", "no answer")


def test_wrong_confident_answers_are_named() -> None:
    result = judged(
        "correct_at: {field: confidence, correct: Success@5, at_least: 1}",
        stating((0.9, True), (0.8, False), (0.7, False)),
    )
    assert result.queries == ("q001",)


@pytest.mark.parametrize(
    ("bounds", "status", "sentence"),
    [
        ("at_least: 0.5", "passed", "routed is task_type in 0.5000 of the answers (CI 0.1500 to 0.8500), at least 0.5"),
        ("at_least: 0.51", "failed", "at least 0.51 is required (n = 4)"),
        ("each_at_least: 0.1", "failed", "less for prose 0.0000"),
        ("at_least: 0.5, each_at_least: 0", "passed", "at least 0.5 and at least 0 of each expected value is required"),
    ],
)
def test_predicted_strata_are_compared_with_the_expected_ones(bounds: str, status: str, sentence: str) -> None:
    result = judged(f"accuracy: {{field: routed, stratum: task_type, {bounds}}}", stating(*repeated(0.5, 4, 4)))
    assert result.status == status
    assert sentence in result.sentence
    wrong = {"q000": "code instead of prose", "q002": "code instead of prose"}
    assert result.reasons == (wrong if status == "failed" else {})


def test_a_field_that_predicts_nothing_breaks_the_rule() -> None:
    result = judged("accuracy: {field: confidence, stratum: task_type, at_least: 0}", stating((0.5, True)))
    assert result.sentence == (
        "confidence predicts nothing (no answer has a value of task_type in confidence): the rule was not tested"
    )


@pytest.mark.parametrize(
    ("rule", "line", "measure"),
    [
        (
            "ece: {field: c, correct: R@10, at_most: 0.10, significant: true}",
            "ECE of c (correct: R@10 >= 1) is at most 0.10, significantly",
            "R@10",
        ),
        (
            "correct_at: {field: c, correct: R@10>0.5, at_least: 0.7, where: {difficulty: hard}}",
            "at least 0.7 of the answers with c >= 0.8 of difficulty: hard are correct (R@10 > 0.5)",
            "R@10",
        ),
        ("accuracy: {field: task_type, at_least: 0.8}", "accuracy of task_type as task_type is at least 0.8", None),
    ],
)
def test_rules_in_words(rule: str, line: str, measure: str | None) -> None:
    assert (words(rule_of(rule)), measure_of(rule_of(rule))) == (line, measure)
