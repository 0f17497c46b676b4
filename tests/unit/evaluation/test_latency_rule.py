"""When a system is called faster: a warm-up, a smallest effect, and collections that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, compare, evaluate
from cranfield.base.errors import UsageError
from cranfield.evaluation.latency import LatencyImpact, latency_impact, latency_summary, timed_calls
from cranfield.evaluation.options.blocks import LatencyRule, parse_rule
from cranfield.evaluation.values import Evaluation
from cranfield.model import CallLog
from cranfield.reporting import comparison_document
from cranfield.reporting.renderers.text import render_brief

START = "2026-11-21T20:00:00Z"
RULE = LatencyRule()


def side(
    times: Sequence[float],
    name: str = "new",
    *,
    before: int | None = 0,
    at: str | None = START,
    machine: str | None = "m1",
    cached: Sequence[int] = (),
    rule: LatencyRule = RULE,
    **config: int,
) -> Evaluation:
    """A system whose n-th call came after `before + n` others."""
    ids = [f"q{n}" for n in range(len(times))]
    testset = TestSet("set", tuple(map(Query, ids)), {query_id: {"d": 1} for query_id in ids})
    answers = {query_id: Answer(Outcome.ANSWERED, (Hit("d"),)) for query_id in ids}
    logs = {
        f"q{n}": CallLog(time, calls_before=None if before is None else before + n, at=at, cached=n in cached)
        for n, time in enumerate(times)
    }
    run = Run(name, answers, logs=logs, config=config, machine=machine)
    return replace(evaluate(testset, run, measures=["RR"]), latency_rule=rule)


def impact_of(old: Evaluation, new: Evaluation) -> LatencyImpact:
    impact = latency_impact(old, new, n_draws=300)
    assert impact is not None
    return impact


def verdict_of(old: Evaluation, new: Evaluation) -> str:
    found = impact_of(old, new).median
    assert found is not None
    return found.verdict.value


TIMES = [20.0 + n % 7 for n in range(40)]
SLOWER = [time + 5 for time in TIMES]


def test_the_first_calls_of_a_system_are_not_timed() -> None:
    cold = side([900.0, 500.0, 300.0, *TIMES])
    summary = latency_summary(cold)
    assert summary is not None
    assert (summary.n, summary.n_left_out, summary.max_ms) == (40, 3, 26.0)
    assert summary.p95_ms == pytest.approx(np.percentile(TIMES, 95))
    assert timed_calls(cold).warm_up == 3


@pytest.mark.parametrize(("concurrency", "n_left_out"), [(1, 3), (3, 3), (8, 8)])
def test_with_more_calls_at_a_time_more_of_them_are_first(concurrency: int, n_left_out: int) -> None:
    assert timed_calls(side(TIMES, concurrency=concurrency)).n_left_out == n_left_out


def test_queries_that_were_sent_as_a_warm_up_are_the_first_calls() -> None:
    timed = timed_calls(side(TIMES, before=5))
    assert (timed.n_left_out, timed.warm_up, len(timed.logs)) == (0, 5, 40)


def test_how_many_calls_were_before_is_not_known_where_it_is_of_some_only() -> None:
    evaluation = side(TIMES, before=5)
    logs = {**evaluation.run.logs, "q7": CallLog(20.0)}
    assert timed_calls(replace(evaluation, run=replace(evaluation.run, logs=logs))).warm_up is None


def test_where_no_call_would_be_left_none_is_left_out_and_there_is_no_verdict() -> None:
    few = timed_calls(side([1.0, 2.0]))
    assert (few.n_left_out, few.warm_up, len(few.logs)) == (0, 0, 2)


def test_an_answer_from_a_file_without_a_log_was_not_timed() -> None:
    assert latency_summary(side([0.0] * 8, cached=range(8))) is None


def test_the_warm_up_is_in_the_sentence() -> None:
    sentence = impact_of(side(TIMES, "old"), side(SLOWER)).sentence
    expected = "new is slower than old by 5.0 ms [5.0, 5.0], 22 %, at the median (n = 37, after a warm-up of 3 calls)."
    assert sentence == expected


@pytest.mark.parametrize(
    ("rule", "base", "delta", "expected"),
    [
        (RULE, 3.0, 0.2, "negligible"),  # under 1 ms
        (RULE, 3.0, 1.0, "slower"),  # 1 ms, and 33 %
        (RULE, 3.0, -1.0, "faster"),
        (RULE, 100.0, 4.0, "negligible"),  # 4 % of 100 ms
        (RULE, 100.0, 5.0, "slower"),  # 5 %
        (RULE, 1.1, 0.1, "negligible"),
        (LatencyRule(smallest_ms=0, smallest_percent=0), 3.0, 0.2, "slower"),
        (LatencyRule(smallest_ms=10), 100.0, 8.0, "negligible"),
        (LatencyRule(smallest_percent=50), 10.0, 4.0, "negligible"),
    ],
)
def test_a_difference_below_the_smallest_effect_is_negligible(
    rule: LatencyRule, base: float, delta: float, expected: str
) -> None:
    assert verdict_of(side([base] * 30, "old"), side([base + delta] * 30, rule=rule)) == expected


def test_faster_by_0_2_ms_is_not_said() -> None:
    impact = impact_of(side([3.0] * 30, "old"), side([2.8] * 30))
    assert "faster" not in impact.sentence
    assert impact.sentence == (
        "Negligible difference in latency between old and new: \u22120.200 ms [\u22120.200, \u22120.200] at the median "
        "(n = 27, after a warm-up of 3 calls); below the smallest effect that counts, 1 ms and 5 %."
    )


LATER, SOON = "2026-11-23T20:00:00Z", "2026-11-21T20:50:00Z"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ({"before": None}, {}, "old: the run does not say whether the system was warmed up"),
        ({}, {"rule": LatencyRule(skip_first=0)}, "new: no warm-up"),
        ({}, {"cached": range(10, 20)}, "new: 10 of 37 answers are of an earlier collection"),
        ({}, {"machine": "m2"}, "the runs were collected on different machines"),
        ({}, {"at": LATER}, "the systems answered 37 queries up to 2 days apart"),
        ({}, {"at": "2026-11-21T21:10:00Z"}, "the systems answered 37 queries up to over an hour apart"),
    ],
)
def test_what_cannot_be_compared_has_figures_and_no_verdict(
    old: dict[str, object], new: dict[str, object], reason: str
) -> None:
    impact = impact_of(side(TIMES, "old", **old), side(SLOWER, **new))  # type: ignore[arg-type]
    assert impact.median is not None
    assert impact.median.delta_ms == pytest.approx(5)
    assert impact.median.verdict.value == "not_claimed"
    assert reason in map(str, impact.incomparable)
    assert impact.sentence.startswith("new against old: +5.0 ms [+5.0, +5.0] at the median")
    assert f"No verdict: {reason}" in impact.sentence


@pytest.mark.parametrize("new", [{"machine": None}, {"at": None}, {"at": SOON}, {"at": "2026-11-21T20:50:00"}])
def test_what_is_not_known_of_time_and_machine_takes_no_verdict_away(new: dict[str, object]) -> None:
    assert verdict_of(side(TIMES, "old"), side(SLOWER, **new)) == "slower"  # type: ignore[arg-type]


def test_a_resumed_collection_may_have_a_few_pairs_on_both_sides_of_the_interruption() -> None:
    old, new = side(TIMES, "old"), side(SLOWER)
    assert new.run is not None
    logs = {key: replace(log, at=LATER) if key in ("q10", "q11") else log for key, log in new.run.logs.items()}
    assert verdict_of(old, replace(new, run=replace(new.run, logs=logs))) == "slower"


@given(
    st.lists(st.tuples(st.floats(0.1, 1000), st.floats(-50, 50)), min_size=10, max_size=30),
    st.builds(
        LatencyRule, skip_first=st.integers(0, 4), smallest_ms=st.floats(0, 20), smallest_percent=st.floats(0, 30)
    ),
    st.booleans(),
)
@settings(max_examples=min(60, settings().max_examples), deadline=None)
def test_a_claim_has_a_warm_up_an_interval_without_zero_and_a_difference_that_counts(
    pairs: list[tuple[float, float]], rule: LatencyRule, known: bool
) -> None:
    a = [time for time, _ in pairs]
    b = [max(time + delta, 0.05) for time, delta in pairs]
    impact = impact_of(side(a, "old", rule=rule), side(b, before=0 if known else None, rule=rule))
    for found in (impact.median, impact.p50, impact.p95):
        assert found is not None
        low, high = found.ci_ms
        if found.verdict.value in ("faster", "slower"):
            assert known
            assert rule.skip_first > 0
            assert low is not None
            assert high is not None
            assert (low > 0 and found.delta_ms > 0) or (high < 0 and found.delta_ms < 0)
            assert abs(found.delta_ms) >= rule.smallest_ms * (1 - 1e-6)
            assert abs(found.delta_ms) >= rule.smallest_percent / 100 * found.baseline_ms * (1 - 1e-6)
    # The figures do not depend on whether they are a claim.
    kept = slice(rule.skip_first if known else 0, None)
    shared = np.array(b)[rule.skip_first :] - np.array(a)[rule.skip_first :]
    assert impact.median is not None
    assert impact.median.delta_ms == pytest.approx(float(np.median(shared)), abs=1e-9)
    assert impact.candidate.mean_ms == pytest.approx(float(np.mean(b[kept])))


def test_a_claim_of_noise_is_as_rare_as_the_level_and_a_real_one_is_found() -> None:
    """120 pairs without a difference: at most as many claims as an exact sign test allows; with 20 % more, nearly all."""
    draw, claims, found = np.random.default_rng(5), 0, 0
    for _ in range(120):
        a = draw.lognormal(3, 0.4, size=33)
        noise = draw.lognormal(0, 0.1, size=33)
        old = side(a.tolist(), "old")
        claims += verdict_of(old, side((a * noise).tolist())) in ("faster", "slower")
        found += verdict_of(old, side((a * noise * 1.2).tolist())) == "slower"
    # Nominal 5 %, and the smallest effect of 5 % takes most of these away: p of so many claims, were they 1 in 20.
    assert stats.binomtest(claims, 120, 0.05, alternative="greater").pvalue > 0.01
    assert found >= 114


def test_a_rule_of_the_command_line_keeps_the_other_defaults() -> None:
    assert parse_rule(["smallest_ms=5", "skip_first=0"]) == LatencyRule(
        skip_first=0, smallest_ms=5.0, smallest_percent=5.0
    )
    with pytest.raises(UsageError, match="smalest_ms") as caught:
        parse_rule(["smalest_ms=5", "smallest_ms=much"])
    assert "smallest_ms" in str(caught.value)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("values", [{"smallest_ms": -1.0}, {"skip_first": 1.5}, {"smallest_percent": float("nan")}])
def test_a_rule_of_negative_numbers_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        LatencyRule(**values)  # type: ignore[arg-type]


def test_a_latency_that_moved_beyond_the_smallest_effect_is_in_the_short_form() -> None:
    """The smallest effect is 1 ms and 5 %: of a median of about 23 ms 5 ms count, and 0.5 ms do not."""
    old = side(TIMES, "old")
    for times, is_shown in ((SLOWER, True), ([time + 0.5 for time in TIMES], False)):
        comparison = compare(old, side(times, "new"))
        brief = " ".join(render_brief(comparison_document(comparison)).split())
        assert ("Latency at the median: new +5.0 ms (slower)" in brief) is is_shown, brief
        assert ("Latency" in brief) is is_shown
