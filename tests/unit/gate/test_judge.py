"""The rules, each on small evaluations: what keeps it, what breaks it, and what a rule says that applies to nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.gate.rule_text import rule_of

from cranfield import Query, TestSet, evaluate
from cranfield.evaluation.values import Evaluation
from cranfield.gate.baseline import Baseline
from cranfield.gate.gate_input import GateInput
from cranfield.gate.result import RuleResult
from cranfield.gate.rules import RULES, own_rules, words
from cranfield.gate.verdict import _too_few_for_a_drop
from cranfield.model import Answer, Criteria, Hit, Outcome, Run
from cranfield.model.query import Negative

Found = Callable[..., Evaluation]
Accepted = Callable[..., Baseline]


def judged(text: str, evaluation: Evaluation, baseline: Baseline | None = None, **more: Any) -> RuleResult:
    """What comes of a rule as it stands in YAML."""
    rule = rule_of(text)
    return RULES[rule.kind].judge(rule.terms, GateInput(evaluation, baseline, **more))


@pytest.mark.parametrize(
    ("then", "now", "total", "status", "got"),
    [
        # The published scenario: a drop of more than 5 % fails, exactly 5 % does not.
        (1000, 951, 1000, "passed", "\u22124.9 %"),
        (1000, 950, 1000, "passed", "\u22125.0 %"),
        (1000, 949, 1000, "failed", "\u22125.1 %"),
        # (0.40 - 0.38) / 0.40 is 0.05000000000000004 in floats: 40 to 38 of 100 is 5 % and no more.
        (40, 38, 100, "passed", "\u22125.0 %"),
        (40, 37, 100, "failed", "\u22127.5 %"),
        # 0.70 to 0.665
        (700, 665, 1000, "passed", "\u22125.0 %"),
        (700, 664, 1000, "failed", "\u22125.1 %"),
        # A hair more than 5 %, which is never written as 5.0 %: (20000 - 18999) / 20000 is 5.005 %.
        (2000, 1899, 2000, "failed", "\u22125.05 %"),
        (100, 100, 100, "passed", "0.0 %"),
        (38, 40, 100, "passed", "+5.3 %"),
        (0, 0, 100, "passed", "0.0000"),
    ],
)
def test_a_relative_drop_is_compared_exactly(
    found: Found, accepted: Accepted, then: int, now: int, total: int, status: str, got: str
) -> None:
    baseline = accepted(found(then, total))
    result = judged("drop: {measure: Success@5, at_most: 5 %}", found(now, total), baseline)
    assert (result.status, result.got) == (status, got)
    assert result.expected == "a drop of at most 5 %"


@pytest.mark.parametrize(
    ("at_most", "then", "now", "status"),
    [
        ("0.02", 40, 38, "passed"),  # 0.40 - 0.38 is 0.020000000000000018 in floats
        ("0.019", 40, 38, "failed"),
        ("0", 40, 40, "passed"),
        ("0", 40, 39, "failed"),
        ("0", 40, 41, "passed"),
        ("2e-2", 40, 38, "passed"),
    ],
)
def test_an_absolute_drop_is_compared_exactly(
    found: Found, accepted: Accepted, at_most: str, then: int, now: int, status: str
) -> None:
    rule = f"drop: {{measure: Success@5, at_most: {at_most}}}"
    assert judged(rule, found(now, 100), accepted(found(then, 100))).status == status


def test_a_value_that_floats_add_up_to_is_the_value_it_stands_for(answered: Found, accepted: Accepted) -> None:
    """Three of ten relevant documents found: 0.3. A baseline whose sum of 0.1 and 0.2 was kept is the same."""
    now = answered({"q1": "RRR"}, missed={"q1": 7})
    baseline = accepted(now, "R@10", {"q1": 0.1 + 0.2})
    assert judged("drop: {measure: R@10, at_most: 0}", now, baseline).status == "passed"
    assert judged("ratchet: {measure: R@10, queries: [q1]}", now, baseline).status == "passed"


@pytest.mark.parametrize(
    ("rule", "right", "status", "got"),
    [
        ("floor: {measure: Success@5, at_least: 0.70}", 70, "passed", "0.7000"),
        ("floor: {measure: Success@5, at_least: 0.70}", 69, "failed", "0.6900"),
        ("floor: {measure: Success@5, above: 0.70}", 70, "failed", "0.7000"),
        ("floor: {measure: Success@5, above: 0.70}", 71, "passed", "0.7100"),
        ("floor: {measure: Success@5, every_query: 1}", 100, "passed", "100 of 100 queries"),
        ("floor: {measure: Success@5, every_query: 1}", 99, "failed", "99 of 100 queries"),
    ],
)
def test_a_floor_that_is_reached_exactly_is_kept(found: Found, rule: str, right: int, status: str, got: str) -> None:
    result = judged(rule, found(right, 100))
    assert (result.status, result.got) == (status, got)


def test_a_mean_of_thirds_reaches_the_half_that_it_is(answered: Found) -> None:
    now = answered({"q1": "R--", "q2": "--R", "q3": "--R"})  # RR 1, 1/3, 1/3: mean 5/9
    assert judged("floor: {measure: RR, at_least: 0.5555555555555555}", now).status == "passed"
    assert judged("floor: {measure: RR, at_least: 0.5555555555555556}", now).status == "failed"


STRATA: Mapping[str, Mapping[str, str]] = {
    "q1": {"difficulty": "easy"},
    "q2": {"difficulty": "easy"},
    "q3": {"difficulty": "hard"},
    "q4": {"difficulty": "hard"},
}


def test_a_floor_of_a_stratum_looks_at_that_stratum_alone(answered: Found) -> None:
    now = answered({"q1": "R", "q2": "-R", "q3": "--", "q4": "--"}, strata=STRATA)
    every = judged("floor: {measure: P@1, where: {difficulty: easy}, every_query: 1}", now)
    assert (every.status, every.queries) == ("failed", ("q2",))
    assert every.rule == "P@1 is 1 or better on every query of difficulty: easy"
    assert judged("floor: {measure: RR, where: {difficulty: easy}, at_least: 0.75}", now).status == "passed"


def test_no_stratum_may_be_at_zero_however_good_the_others_are(answered: Found) -> None:
    rule = "floor: {measure: R@10, by: difficulty, above: 0}"
    bad = judged(rule, answered({"q1": "R", "q2": "R", "q3": "--", "q4": "--"}, strata=STRATA))
    assert (bad.status, bad.got, bad.queries) == ("failed", "difficulty: hard 0.0000", ("q3", "q4"))
    good = judged(rule, answered({"q1": "R", "q2": "R", "q3": "--", "q4": "-R"}, strata=STRATA))
    assert (good.status, good.got) == ("passed", "difficulty: hard 0.5000")  # the nearest of the two


def test_a_drop_within_one_stratum_is_not_hidden_by_the_mean(answered: Found, accepted: Accepted) -> None:
    then = answered({"q1": "R", "q2": "R", "q3": "-R", "q4": "-R"}, strata=STRATA)
    now = answered({"q1": "R", "q2": "-R", "q3": "R", "q4": "R"}, strata=STRATA)
    assert judged("drop: {measure: RR, at_most: 0}", now, accepted(then)).status == "passed"
    by = judged("drop: {measure: RR, at_most: 0, by: difficulty}", now, accepted(then))
    assert (by.status, by.got, by.queries) == ("failed", "difficulty: easy \u22120.2500", ("q2",))


def test_of_strata_that_keep_a_rule_the_nearest_to_its_bound_is_told(answered: Found, accepted: Accepted) -> None:
    strata = {"q1": {"kind": "a"}, "q2": {"kind": "b"}, "q3": {"kind": "c"}}
    then = answered({"q1": "R", "q2": "R", "q3": "--R"}, strata=strata)
    now = answered({"q1": "R", "q2": "-R", "q3": "-R"}, strata=strata)  # the same, half, and half as much again
    dropped = judged("drop: {measure: RR, at_most: 60 %, by: kind}", now, accepted(then))
    assert (dropped.status, dropped.got) == ("passed", "kind: b \u221250.0 %")
    assert dropped.sentence.endswith("(n = 1); the closest of 3 strata to its bound")
    least = judged("floor: {measure: RR, at_least: 0.1, by: kind}", now)
    assert (least.status, least.got) == ("passed", "kind: b 0.5000")
    ranks = answered({"q1": "R", "q2": "-R", "q3": "--R"}, strata=strata, measures=["RankOfFirst"])
    most = judged("floor: {measure: RankOfFirst, at_most: 9, by: kind}", ranks)
    assert (most.status, most.got) == ("passed", "kind: c 3.0000")


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ("floor: {measure: RR, at_least: 0, where: {difficulty: none}}", "no matching query"),
        ("floor: {measure: RR, every_query: 0, where: {difficulty: none}}", "no matching query"),
        ("floor: {measure: RR, by: nothing, at_least: 0}", "the rule was not tested"),
        ("drop: {measure: RR, at_most: 100 %, where: {difficulty: none}}", "no matching query"),
        ("drop: {measure: RR, at_most: 100 %}", "none of 1 queries has a value"),  # without a baseline
        ("ratchet: {measure: RR, where: {difficulty: none}}", "no matching query"),
        ("ratchet: {measure: RR, queries: [q9]}", "none of 1 queries has a value"),
        ("judged: {k: 10, at_least: 0, where: {difficulty: none}}", "no matching query"),
        ("latency: {p95_ms: 1000}", "no call has a time"),
    ],
)
def test_a_rule_that_applies_to_nothing_fails(answered: Found, rule: str, what: str) -> None:
    result = judged(rule, answered({"q1": "R"}))
    assert result.status == "failed"
    assert what in result.sentence


def test_a_ratchet_names_every_query_that_got_worse(answered: Found, accepted: Accepted) -> None:
    then = answered({"q1": "R", "q2": "-R", "q3": "--R"})
    now = answered({"q1": "-R", "q2": "R", "q3": "---"})
    result = judged("ratchet: {measure: RR, queries: [q1, q2, q3]}", now, accepted(then))
    assert (result.status, result.queries, result.got) == ("failed", ("q1", "q3"), "2 of 3 queries worse")
    assert result.sentence == "RR got worse on 2 of 3 queries: q1 1.0000 to 0.5000, q3 0.3333 to 0.0000"
    assert judged("ratchet: {measure: RR, queries: [q2]}", now, accepted(then)).status == "passed"


def test_of_a_measure_where_less_is_better_more_is_worse(answered: Found, accepted: Accepted) -> None:
    then = answered({"q1": "R", "q2": "R"}, measures=["RankOfFirst"])
    now = answered({"q1": "-R", "q2": "R"}, measures=["RankOfFirst"])  # mean rank 1.5, was 1
    assert judged("floor: {measure: RankOfFirst, at_most: 1.5}", now).status == "passed"
    assert judged("floor: {measure: RankOfFirst, at_most: 1.4}", now).status == "failed"
    assert judged("floor: {measure: RankOfFirst, every_query: 1}", now).queries == ("q1",)
    assert judged("drop: {measure: RankOfFirst, at_most: 50 %}", now, accepted(then)).status == "passed"
    worse = judged("drop: {measure: RankOfFirst, at_most: 49 %}", now, accepted(then))
    assert (worse.status, worse.got) == ("failed", "+50.0 %")
    assert judged("ratchet: {measure: RankOfFirst, queries: [q1]}", now, accepted(then)).status == "failed"


def test_a_query_that_lost_its_value_is_a_loss_and_not_left_out(answered: Found, accepted: Accepted) -> None:
    """The rank of the first relevant result is no number where none is returned: the mean of the rest gets better."""
    then = answered({"q1": "R", "q2": "---R"}, measures=["RankOfFirst"])
    now = answered({"q1": "R", "q2": "----"}, measures=["RankOfFirst"])
    result = judged("drop: {measure: RankOfFirst, at_most: 100 %}", now, accepted(then))
    assert (result.status, result.queries) == ("failed", ("q2",))
    assert judged("ratchet: {measure: RankOfFirst, queries: [q2]}", now, accepted(then)).status == "failed"
    assert judged("floor: {measure: RankOfFirst, every_query: 9}", now, accepted(then)).queries == ("q2",)


@pytest.mark.parametrize("convention", ["trec", "searchtweak", "octocode"])
def test_no_convention_lets_a_mean_rise_by_failing_or_by_silence(convention: str) -> None:
    """Two conventions have no value for a call that failed, one of them none for an empty list: here both count as 0."""
    lists = {"q1": ("d",), "q2": ("d",), "q3": (), "q4": None}
    testset = TestSet("t", tuple(Query(one) for one in lists), {one: {"d": 1} for one in lists})
    answers = {
        one: Answer(Outcome.TIMEOUT, reason="too slow")
        if found is None
        else Answer(Outcome.ANSWERED if found else Outcome.EMPTY, tuple(Hit(doc) for doc in found))
        for one, found in lists.items()
    }
    run = Run("new", answers, depth=10)
    now = evaluate(testset, run, measures=["RR"], convention=convention, missing="zero")
    result = judged("floor: {measure: RR, at_least: 0.51}", now)
    assert (result.status, result.got) == ("failed", "0.5000")  # (1 + 1 + 0 + 0) / 4
    assert judged("floor: {measure: RR, every_query: 1}", now).queries == ("q3", "q4")


def test_every_query_leaves_out_those_that_the_measure_is_not_about(answered: Found) -> None:
    """Where nothing should be found only Silence has a value, and elsewhere it has none, whatever becomes of the call."""
    testset = TestSet(
        "t", (Query("q1"), Query("q2"), Query("none", negative=Negative())), {"q1": {"d": 1}, "q2": {"d": 1}}
    )
    failed, quiet = Answer(Outcome.TIMEOUT, reason="too slow"), Answer(Outcome.EMPTY)
    hit = Answer(Outcome.ANSWERED, (Hit("d"),))
    now = evaluate(testset, Run("new", {"q1": hit, "q2": hit, "none": failed}, depth=10), measures=["RR"])
    assert judged("floor: {measure: RR, every_query: 1}", now).got == "2 of 2 queries"
    assert judged("floor: {measure: Silence, every_query: 1}", now).queries == ("none",)
    now = evaluate(testset, Run("new", {"q1": hit, "q2": failed, "none": quiet}, depth=10), measures=["RR"])
    assert judged("floor: {measure: Silence, every_query: 1}", now).got == "1 of 1 queries"


def test_a_query_that_finds_nothing_is_no_query_that_keeps_a_rank(answered: Found) -> None:
    """Without any baseline: q2 and q4 have something to be found, q3 asks for what nobody judged relevant."""
    now = answered({"q1": "R", "q2": "NN", "q3": "N", "q4": ""}, missed={"q2": 1}, measures=["RankOfFirst"])
    result = judged("floor: {measure: RankOfFirst, every_query: 9}", now)
    assert (result.status, result.got, result.queries) == ("failed", "1 of 3 queries", ("q2", "q4"))
    # A list of relevant documents alone has no value of Accuracy, and is no loss.
    right = answered({"q1": "RN", "q2": "R"}, measures=["Accuracy"])
    assert judged("floor: {measure: Accuracy, every_query: 1}", right).got == "1 of 1 queries"


def test_a_mean_says_how_many_queries_are_not_in_it_and_does_not_gain_by_losing_them(
    answered: Found, accepted: Accepted
) -> None:
    then = answered({"q1": "R", "q2": "---R", "q3": "N"}, measures=["RankOfFirst"])
    assert judged("floor: {measure: RankOfFirst, at_most: 3}", then, accepted(then)).sentence == (
        "RankOfFirst is 2.5000, at most 3 is required (n = 2; 1 query has no value)"  # (1 + 4) / 2
    )
    lost = answered({"q1": "R", "q2": "----", "q3": "N"}, measures=["RankOfFirst"])
    result = judged("floor: {measure: RankOfFirst, at_most: 3}", lost, accepted(then))
    assert (result.status, result.got, result.queries) == ("failed", "no value", ("q2",))
    assert result.sentence == "1 query without a value of RankOfFirst failed, or had a value in the baseline"
    failed = answered({"q1": "R", "q2": "!"}, measures=["RankOfFirst"])
    assert judged("floor: {measure: RankOfFirst, at_most: 3}", failed).queries == ("q2",)
    # How much is judged is no quality: a call that failed has no results to judge.
    assert judged("floor: {measure: Judged@5, at_least: 1}", failed).status == "passed"


def test_a_drop_that_must_be_certain_fails_passes_or_cannot_be_told(found: Found, accepted: Accepted) -> None:
    rule = "drop: {measure: Success@5, at_most: 0.05, significant: true, alpha: 0.05}"
    baseline = accepted(found(200, 200))
    assert judged(rule, found(120, 200), baseline).status == "failed"  # 0.40 less: the interval is beyond 0.05
    assert judged(rule, found(200, 200), baseline).status == "passed"  # no query differs: the interval is 0
    unclear = judged(rule, found(185, 200), baseline)  # 0.075 less: the interval holds 0.05
    assert unclear.status == "inconclusive"
    assert "95 % CI of the drop +0.0" in unclear.sentence
    assert "n = 200" in unclear.sentence
    assert judged("drop: {measure: Success@5, at_most: 0.05}", found(185, 200), baseline).status == "failed"


def test_an_interval_that_ends_at_the_margin_is_within_it(answered: Found, accepted: Accepted) -> None:
    """Every query falls from 1 to 0.5, so that the interval is 0.5 to 0.5."""
    lists = {f"q{number:02}": "R" for number in range(20)}
    then, now = accepted(answered(lists)), answered(dict.fromkeys(lists, "-R"))
    rule = "drop: {measure: RR, at_most: %s, significant: true}"
    assert judged(rule % "0.5", now, then).status == "passed"
    assert judged(rule % "50 %", now, then).status == "passed"
    assert judged(rule % "0.499", now, then).status == "failed"


def test_a_stratum_without_a_value_is_passed_over_only_where_no_answer_has_one(answered: Found) -> None:
    queries = (Query("q1", strata={"kind": "a"}), Query("none", strata={"kind": "b"}, negative=Negative()))
    testset = TestSet("t", queries, {"q1": {"d": 1}})
    now = evaluate(testset, {"q1": ["d"], "none": []}, measures=["RR"])
    assert judged("floor: {measure: RR, at_least: 1, by: kind}", now).status == "passed"
    barren = answered(
        {"q1": "R", "q2": "N"}, strata={"q1": {"kind": "a"}, "q2": {"kind": "b"}}, measures=["RankOfFirst"]
    )
    result = judged("floor: {measure: RankOfFirst, at_most: 9, by: kind}", barren)
    assert (result.status, result.got) == ("failed", "kind: b no query")
    assert judged("judged: {k: 5, at_least: 100 %}", answered({"q1": "R-"})).queries == ("q1",)


@pytest.mark.parametrize("total", [1, 3])
def test_too_few_queries_decide_nothing(found: Found, accepted: Accepted, total: int) -> None:
    rule = "drop: {measure: Success@5, at_most: 0.05, significant: true}"
    assert judged(rule, found(0, total), accepted(found(total, total))).status == "inconclusive"


@pytest.mark.parametrize(
    ("at_most", "status"), [("0", "failed"), ("1", "failed"), ("2", "passed"), ("39 %", "failed"), ("40 %", "passed")]
)
def test_failures_and_missing_answers_are_counted_together(answered: Found, at_most: str, status: str) -> None:
    """A timeout and a query without an answer, of five; an honest empty list is no failure."""
    now = answered({"q1": "R", "q2": "!", "q3": "?", "q4": "", "q5": "R"})
    result = judged(f"failures: {{at_most: {at_most}}}", now)
    assert (result.status, result.got) == (status, "2 of 5")
    assert result.queries == (() if status == "passed" else ("q2", "q3"))


@pytest.mark.parametrize(("at_least", "status"), [("0.75", "passed"), ("75 %", "passed"), ("75.1 %", "failed")])
def test_coverage_is_the_mean_share_that_is_judged(answered: Found, at_least: str, status: str) -> None:
    now = answered({"q1": "RN", "q2": "R-"})  # 2 of 2 and 1 of 2 results
    result = judged(f"judged: {{k: 10, at_least: {at_least}}}", now)
    assert (result.status, result.got) == (status, "75.0 %")


def test_the_first_calls_to_a_system_are_not_held(answered: Found) -> None:
    cold = answered(dict.fromkeys("abcdef", "R"), latencies=(900, 800, 700, 10, 20, 30))
    assert judged("latency: {p50_ms: 10}", cold).status == "failed"
    run = cold.run
    assert run is not None
    logs = {key: replace(log, calls_before=n) for n, (key, log) in enumerate(run.logs.items())}
    warm = replace(cold, run=replace(run, logs=logs))
    assert judged("latency: {p50_ms: 20, p95_ms: 30}", warm).status == "passed"
    assert judged("latency: {p50_ms: 19}", warm).status == "failed"


def test_latency_is_held_at_each_percentile_that_is_named(answered: Found) -> None:
    now = answered({f"q{n}": "R" for n in range(5)}, latencies=[10.0, 20.0, 30.0, 40.0, 500.0])
    assert judged("latency: {p50_ms: 30}", now).status == "passed"
    both = judged("latency: {p50_ms: 30, p95_ms: 100}", now)
    assert both.status == "failed"
    # numpy's linear percentile: 40 + 0.8 * 460
    assert both.got == "p95 408.0 ms"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("floor: {measure: RR, at_least: 0.5}", "RR is at least 0.5"),
        ("floor: {measure: RR, above: 0.5, by: kind}", "RR is more than 0.5 in each kind"),
        ("floor: {measure: RR, every_query: 1, where: {kind: a}}", "RR is 1 or better on every query of kind: a"),
        ("floor: {measure: RankOfFirst, at_most: 3}", "RankOfFirst is at most 3"),
        ("drop: {measure: RR, at_most: 5 %}", "RR drops by at most 5 %"),
        ("drop: {measure: RR, at_most: 5 %, by: kind}", "RR drops by at most 5 % in each kind"),
        (
            "drop: {measure: RR, at_most: 0.02, significant: true}",
            "RR drops by at most 0.02, by its confidence interval",
        ),
        ("ratchet: {measure: RR, queries: [q1, q2]}", "RR does not get worse on q1, q2"),
        ("ratchet: {measure: RR, where: {kind: a}}", "RR does not get worse on any query of kind: a"),
        ("failures: {at_most: 0}", "at most 0 queries fail or have no answer"),
        ("failures: {at_most: 1}", "at most 1 query fails or has no answer"),
        ("failures: {at_most: 2 %}", "at most 2 % of the queries fail or have no answer"),
        ("judged: {k: 5, at_least: 80 %}", "Judged@5 is at least 80 %"),
        (
            "latency: {p50_ms: 30, p95_ms: 90}",
            "p50 of the latency is at most 30 ms, p95 of the latency is at most 90 ms",
        ),
    ],
)
def test_a_rule_in_words(rule: str, said: str) -> None:
    asked = rule_of(rule)
    assert words(asked) == said


def test_a_failed_mean_names_the_ten_worst_and_a_failed_call_its_outcome(found: Found, answered: Found) -> None:
    assert judged("floor: {measure: RR, at_least: 0.9}", found(0, 12)).queries == tuple(f"q{n:04}" for n in range(10))
    assert "(n = 12)" in judged("floor: {measure: RR, at_least: 0.9}", found(0, 12)).sentence
    now = answered({"q1": "R", "q2": "!", "q3": "?", "q4": "!"})
    assert judged("failures: {at_most: 0}", now).sentence == (
        "3 of 4 queries failed or have no answer (missing 1, timeout 2), at most 0 may"
    )
    assert (
        judged("failures: {at_most: 0}", found(1, 1)).sentence
        == "0 of 1 queries failed or have no answer, at most 0 may"
    )


def by_type(**letters: str) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """One query a letter: R finds it at rank 1, S at rank 2; the name is the value of the stratum `type`."""
    lists = {
        f"{kind}{n}": {"R": "R", "S": "-R"}[letter] for kind, row in letters.items() for n, letter in enumerate(row)
    }
    return lists, {query: {"type": query.rstrip("0123456789")} for query in lists if not query.startswith("none")}


@pytest.mark.parametrize(
    ("rule", "then", "now", "status", "got"),
    [
        # 6 of 6 down: p = 2 / 2^6 = .031
        ("{measure: RR}", {"a": "R" * 6}, {"a": "S" * 6}, "failed", "worse"),
        # No loss of so few queries could be significant
        ("{measure: RR, alpha: 0.01}", {"a": "R" * 6}, {"a": "S" * 6}, "inconclusive", "no significant difference"),
        ("{measure: RR}", {"a": "R" * 5}, {"a": "S" * 5}, "inconclusive", "no significant difference"),
        ("{measure: RR}", {"a": "S" * 5}, {"a": "R" * 5}, "passed", "no significant difference"),
        ("{measure: RR}", {"a": "R" * 5}, {"a": "R" * 5}, "passed", "no significant difference"),
        ("{measure: RR}", {"a": "R" * 20}, {"a": "S" + "R" * 19}, "passed", "no significant difference"),
        ("{measure: RR}", {"a": "S" * 6}, {"a": "R" * 6}, "passed", "better"),
        # The mean rises, and one class falls: 8 of 8, p = 2 * 2 / 2^8 = .016 over two classes
        ("{measure: RR}", {"a": "S" * 20, "b": "R" * 8}, {"a": "R" * 20, "b": "S" * 8}, "passed", "better"),
        (
            "{measure: RR, by: type}",
            {"a": "S" * 20, "b": "R" * 8},
            {"a": "R" * 20, "b": "S" * 8},
            "failed",
            "mixed: better in type: a, worse in type: b",
        ),
        # 5 of 5 down: p = 2 * 2 / 2^5 = .125, which an alpha of .05 leaves undecided and the rule's own does not
        ("{measure: RR, by: type}", {"a": "S" * 20, "b": "R" * 5}, {"a": "R" * 20, "b": "S" * 5}, "passed", "better"),
        (
            *("{measure: RR, by: type, alpha: 0.2}", {"a": "S" * 20, "b": "R" * 5}, {"a": "R" * 20, "b": "S" * 5}),
            *("failed", "mixed: better in type: a, worse in type: b"),
        ),
        (
            "{measure: RR, by: type}",
            {"a": "RS" * 9, "b": "R" * 8},
            {"a": "SR" * 9, "b": "S" * 8},
            "failed",
            "worse in type: b",
        ),
        (
            "{measure: RR, by: type}",
            {"a": "RS" * 9, "none": "R" * 8},
            {"a": "SR" * 9, "none": "S" * 8},
            "failed",
            "worse in queries without type",
        ),
        (
            "{measure: RR, by: type, where: {type: a}}",
            {"a": "R" * 8},
            {"a": "R" * 8},
            "passed",
            "no significant difference",
        ),
    ],
)
def test_no_worse_looks_at_the_mean_and_at_each_class(
    answered: Found, accepted: Accepted, rule: str, then: dict[str, str], now: dict[str, str], status: str, got: str
) -> None:
    (before, strata), (after, _) = by_type(**then), by_type(**now)
    result = judged(f"no_worse: {rule}", answered(after, strata=strata), accepted(answered(before, strata=strata)))
    assert (result.status, result.got, result.expected) == (status, got, "neither worse nor mixed")


def test_no_worse_is_inconclusive_where_the_declared_draws_find_nothing(answered: Found, accepted: Accepted) -> None:
    (before, strata), (after, _) = by_type(a="R" * 40), by_type(a="S" * 40)
    now, then = answered(after, strata=strata), accepted(answered(before, strata=strata))
    few = judged("no_worse: {measure: RR}", now, then, n_draws=10)
    assert (few.status, few.sentence.rpartition("; ")[2]) == (
        "inconclusive",
        "40 queries and 10 draws cannot show any loss at alpha 0.05",
    )
    assert judged("no_worse: {measure: RR}", now, then).status == "failed"


def test_no_worse_names_the_queries_of_the_class_that_lost_and_the_classes_that_cannot_decide(
    answered: Found, accepted: Accepted
) -> None:
    (before, strata), (after, _) = by_type(a="S" * 20, b="R" * 9, c="R"), by_type(a="R" * 20, b="S" * 8 + "R", c="S")
    result = judged(
        "no_worse: {measure: RR, by: type}", answered(after, strata=strata), accepted(answered(before, strata=strata))
    )
    assert result.queries == tuple(f"b{n}" for n in range(8))
    assert "RR was 1.0000 and is 0.5556 of type: b: worse (p Holm .0078, n = 9, permutation)" in result.sentence
    assert result.sentence.endswith("too few queries to decide: type: c")


def test_no_worse_fails_on_lost_values_and_where_it_applies_to_nothing(answered: Found, accepted: Accepted) -> None:
    then = answered({"q1": "RRR", "q2": "R"}, measures=("RR",))
    empty = judged("no_worse: {measure: RR, where: {type: x}}", then, accepted(then))
    assert (empty.status, empty.got) == ("failed", "no query")


FLOORS = TestSet(
    "floors",
    (Query("q1", floors={"P@5": 0.4}), Query("q2", floors={"Success@3": 1}), Query("q3")),
    {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}, "q3": {"a": 1}},
    forbidden={"q3": (Criteria({"id": "old"}),)},
)


@pytest.mark.parametrize(
    ("lists", "status", "got", "reasons"),
    [
        ({"q1": "ab", "q2": "xya", "q3": "a"}, "passed", "0 of 3 requirements broken", {}),  # 2 of 5 is 0.4
        (
            {"q1": "axyzvb", "q2": "xyza", "q3": "ao"},  # b at rank 6, a at rank 4, old at rank 2
            "failed",
            "3 of 3 requirements broken",
            {
                "q1": "P@5 >= 0.4: 0.2000",
                "q2": "Success@3 >= 1: 0.0000",
                "q3": "no forbidden result: at rank 2",
            },
        ),
    ],
)
def test_what_a_test_set_requires_of_single_queries(
    lists: Mapping[str, str], status: str, got: str, reasons: Mapping[str, str]
) -> None:
    names = {"o": "old"}
    answers = {
        query: Answer(Outcome.ANSWERED, tuple(Hit(names.get(letter, letter)) for letter in found))
        for query, found in lists.items()
    }
    result = judged("requirements: {at_most: 0}", evaluate(FLOORS, Run("new", answers), measures=["RR"]))
    assert (result.status, result.got, result.reasons) == (status, got, reasons)
    lenient = judged("requirements: {at_most: 100 %}", evaluate(FLOORS, Run("new", answers), measures=["RR"]))
    assert lenient.status == "passed"


def test_a_failed_query_meets_no_requirement_and_a_set_without_any_breaks_the_rule() -> None:
    failed = Run("new", {query: Answer(Outcome.TIMEOUT) for query in FLOORS.query_ids})
    result = judged("requirements: {at_most: 0}", evaluate(FLOORS, failed, measures=["RR"]))
    assert (result.status, result.got) == ("failed", "3 of 3 requirements broken")
    plain = evaluate(TestSet("t", (Query("q"),), {"q": {"a": 1}}), {"q": ["a"]}, measures=["RR"])
    assert judged("requirements: {at_most: 0}", plain).status == "failed"


def test_a_gate_has_the_rule_of_a_set_that_requires_something_without_its_config() -> None:
    (own,) = own_rules(FLOORS, [])
    assert words(own) == "at most 0 requirements of the test set are broken"
    assert own_rules(FLOORS, [rule_of("requirements: {at_most: 2}")]) == []
    assert own_rules(TestSet("t", (Query("q"),), {"q": {"a": 1}}), []) == []


def test_every_kind_of_rule_is_judged_here() -> None:
    files = (Path(__file__), Path(__file__).with_name("test_confidence.py"))
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert [name for name in RULES if f"{name}: {{" not in text] == []


def modes(*values: object, outcome: Outcome = Outcome.ANSWERED) -> Evaluation:
    """One answer a query: its mode, or no field at all where that is None; the last query is hard."""
    ids = [f"q{number}" for number in range(len(values))]
    queries = tuple(Query(one, strata={"difficulty": "hard" if one == ids[-1] else "easy"}) for one in ids)
    fields = [{} if value is None else {"mode": value} for value in values]
    answers = {one: Answer(outcome, (Hit("d"),), fields=own) for one, own in zip(ids, fields, strict=True)}
    return evaluate(TestSet("t", queries, {one: {"d": 1} for one in ids}), Run("new", answers), measures=["RR"])


@pytest.mark.parametrize(
    ("rule", "values", "status", "got", "queries", "sentence"),
    [
        ("mode = a", "aaa", "passed", "0 of 3 answers", (), "0 of 3 answers break the rule mode = a"),
        (
            "mode = a",
            "aba",
            "failed",
            "1 of 3 answers",
            ("q1",),
            '1 of 3 answers breaks the rule mode = a: q1 (mode is "b")',
        ),
        (
            "mode = a",
            ["b", None, "a"],
            "failed",
            "2 of 3 answers",
            ("q0", "q1"),
            '2 of 3 answers break the rule mode = a: q0 (mode is "b"), q1 (no field mode)',
        ),
        (
            "{rule: mode = a, at_most: 1}",
            "baa",
            "passed",
            "1 of 3 answers",
            (),
            '1 of 3 answers breaks the rule mode = a: q0 (mode is "b"); at most 1 may',
        ),
        ("{rule: mode = a, at_most: 33 %}", "baa", "failed", "1 of 3 answers", ("q0",), "at most 33 % may"),
        ("{rule: mode = a, at_most: 34 %}", "baa", "passed", "1 of 3 answers", (), "at most 34 % may"),
        (
            "{rule: mode = a, where: {difficulty: hard}}",
            "bba",
            "passed",
            "0 of 1 answer",
            (),
            "0 of 1 answer of difficulty: hard break the rule mode = a",
        ),
    ],
)
def test_a_rule_on_every_answer_names_the_violating_queries(
    rule: str, values: list[object], status: str, got: str, queries: tuple[str, ...], sentence: str
) -> None:
    result = judged(f"every_answer: {rule}", modes(*values))
    assert (result.status, result.got, result.queries) == (status, got, queries)
    assert sentence in result.sentence


def test_a_rule_on_answers_that_applies_to_none_fails(found: Found) -> None:
    assert judged("every_answer: mode = a", found(1, 2)).sentence.startswith(
        "2 of 2 answers break"
    )  # lists have no fields
    failures = judged("every_answer: mode = a", modes("a", "a", outcome=Outcome.TIMEOUT))
    assert failures.status == "failed"
    assert failures.sentence == "the rule applies to no answer (none of 2 queries was answered): it was not tested"
    file = evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, measures=["RR"])
    assert "a run file of another tool has no answer fields" in judged("every_answer: mode = a", file).sentence


def test_the_words_of_a_rule_on_answers() -> None:
    def said(text: str) -> str:
        rule = rule_of(text)
        return words(rule)

    assert said("every_answer: mode == semantic") == "every answer: mode = semantic"
    limited = "every_answer: {rule: tokens <= 4000, at_most: 2 %, where: {difficulty: easy}}"
    assert said(limited) == "every answer of difficulty: easy: tokens <= 4000; at most 2 % may break it"


@pytest.mark.parametrize(("bound", "status"), [("0.85", "passed"), ("0.8500001", "failed")])
def test_a_weighted_sum_over_strata_has_a_floor_and_a_drop_of_the_whole(
    answered: Found, accepted: Accepted, bound: str, status: str
) -> None:
    spelled = "0.6 * RR[difficulty=easy] + 0.4 * RR[difficulty=hard]"
    strata = {"q1": {"difficulty": "easy"}, "q2": {"difficulty": "hard"}, "q3": {"difficulty": "hard"}}
    about = {"strata": strata, "measures": [spelled]}
    # 0.6 * 1 + 0.4 * (1 + 1/4) / 2 = 0.85; before, 0.6 * 1 + 0.4 * (1 + 1) / 2 = 1
    now = answered({"q1": "R", "q2": "R", "q3": "NNNR"}, **about)
    floor = judged(f"floor: {{measure: '{spelled}', at_least: {bound}}}", now)
    assert (floor.status, floor.got[:6]) == (status, "0.8500")
    before = accepted(answered({"q1": "R", "q2": "R", "q3": "R"}, **about))
    drop = judged(f"drop: {{measure: '{spelled}', at_most: 0.15}}", now, before)
    assert (drop.status, drop.got) == ("passed", "\u22120.1500")


def test_a_bound_on_a_drop_that_these_queries_can_hardly_show_is_noted_once(found: Found, accepted: Accepted) -> None:
    baseline = accepted(found(12, 18))
    rules = [rule_of(f"drop: {{measure: Success@5, at_most: {most} %}}") for most in (10, 11)]
    now = GateInput(found(11, 18), baseline)
    (note,) = _too_few_for_a_drop(now, rules)
    # Differences: one of -1 and 17 of 0, standard deviation .2357; of 18 queries a paired t test finds .7008 of it in 80 % of cases
    # (statsmodels, TTestPower), .1652. The mean fell by 1 of 18, .0556; 8 % of 12/18 is .0533, 10 % .0667.
    assert "18 queries with this spread show a drop of Success@5 of 0.1652 in 80 % of cases" in note
    assert "such as 0.0667, less often" in note
    for most in (8, 30):  # broken: the drop was shown; wide enough to be shown
        assert not list(_too_few_for_a_drop(now, [rule_of(f"drop: {{measure: Success@5, at_most: {most} %}}")]))
    assert not list(_too_few_for_a_drop(GateInput(found(12, 18), baseline), rules))  # nothing changed: no spread
