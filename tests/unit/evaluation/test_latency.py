"""How long systems take, and what a candidate does to that."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, evaluate
from cranfield.evaluation.latency import latency_impact, latency_summary, signed_ms
from cranfield.evaluation.values import Evaluation
from cranfield.model import CallLog

ANSWERED = Answer(Outcome.ANSWERED, (Hit("d"),))


def timed(
    times: list[float], name: str = "system", *, failed: dict[int, Outcome] | None = None, **config: int
) -> Evaluation:
    """A system that took so long for each query, after a warm-up of 5 calls."""
    logs = [CallLog(time, calls_before=5 + n) for n, time in enumerate(times)]
    return logged(logs, name, failed=failed, **config)


def logged(
    logs: list[CallLog], name: str = "system", *, failed: dict[int, Outcome] | None = None, **config: int
) -> Evaluation:
    testset = TestSet(
        "set", tuple(Query(f"q{i}") for i in range(len(logs))), {f"q{i}": {"d": 1} for i in range(len(logs))}
    )
    answers = {
        f"q{i}": Answer((failed or {}).get(i, Outcome.ANSWERED), () if i in (failed or {}) else (Hit("d"),))
        for i in range(len(logs))
    }
    run = Run(name, answers, logs={f"q{i}": log for i, log in enumerate(logs)}, config=config)
    return evaluate(testset, run, measures=["RR"])


def test_the_percentiles_are_numpys() -> None:
    draw = random.Random(1)
    times = [draw.expovariate(1 / 30) for _ in range(101)]
    about = latency_summary(timed(times))
    assert about is not None
    assert about.mean_ms == pytest.approx(np.mean(times))
    found = (about.p50_ms, about.p95_ms, about.p99_ms, about.max_ms)
    assert found == pytest.approx((*np.percentile(times, [50, 95, 99]), max(times)))


def test_timeouts_failures_retries_and_kept_answers_are_counted() -> None:
    logs = [CallLog(1.0), CallLog(2.0, attempts=3), CallLog(3.0, cached=True), CallLog(30_000.0), CallLog(5.0)]
    about = latency_summary(logged(logs, failed={3: Outcome.TIMEOUT, 4: Outcome.ERROR}, concurrency=8))
    assert about is not None
    assert (about.n, about.n_timeouts, about.n_errors, about.n_retried, about.n_cached) == (5, 1, 1, 1, 1)
    assert about.cached_share == 0.2
    assert about.concurrency == 8


def test_what_nobody_timed_has_no_latency() -> None:
    testset = TestSet("set", (Query("q0"),), {"q0": {"d": 1}})
    bare = evaluate(testset, {"q0": ["d"]}, measures=["RR"])
    assert latency_summary(bare) is None
    assert latency_impact(bare, timed([1.0])) is None


def test_a_candidate_that_takes_12_ms_more_everywhere_is_slower_by_12_ms() -> None:
    times = [10.0 + n for n in range(20)]
    impact = latency_impact(timed(times, "old"), timed([time + 12 for time in times], "new"))
    assert impact is not None
    assert (
        impact.sentence
        == "new is slower than old by 12.0 ms [12.0, 12.0], 62 %, at the median (n = 20, after a warm-up of 5 calls)."
    )
    for found in (impact.median, impact.p50, impact.p95):
        assert found is not None
        assert found.delta_ms == pytest.approx(12)
    assert impact.median is not None
    assert impact.median.ci_ms == pytest.approx((12, 12))


def test_the_other_way_round_it_is_faster_by_as_much() -> None:
    times = [10.0 + n for n in range(20)]
    impact = latency_impact(timed([time + 12 for time in times], "old"), timed(times, "new"))
    assert impact is not None
    after = "at the median (n = 20, after a warm-up of 5 calls)"
    assert impact.sentence == f"new is faster than old by 12.0 ms [12.0, 12.0], 38 %, {after}."


def test_noise_is_not_called_slower() -> None:
    draw = random.Random(2)
    sides = [[draw.uniform(10, 50) for _ in range(40)] for _ in range(2)]
    impact = latency_impact(timed(sides[0], "old"), timed(sides[1], "new"))
    assert impact is not None
    assert impact.median is not None
    assert impact.median.verdict.text == "no significant difference"
    assert impact.sentence.startswith("No significant difference in latency between old and new: ")


def test_the_interval_is_that_of_scipys_bootstrap() -> None:
    draw = np.random.default_rng(3)
    a = draw.gamma(3, 10, size=60)
    b = a + draw.normal(4, 8, size=60)
    impact = latency_impact(timed(a.tolist()), timed(b.tolist()), n_draws=4000)
    assert impact is not None
    assert impact.median is not None
    expected = stats.bootstrap(
        (b - a,), np.median, method="percentile", n_resamples=4000, random_state=1
    ).confidence_interval
    # Two sets of 4000 resamples place an end within a few hundredths of the width of each other.
    width = expected.high - expected.low
    assert impact.median.ci_ms == pytest.approx((expected.low, expected.high), abs=0.15 * width)
    paired = stats.bootstrap(
        (a, b),
        lambda x, y, axis: np.percentile(y, 95, axis=axis) - np.percentile(x, 95, axis=axis),
        method="percentile",
        paired=True,
        n_resamples=4000,
        random_state=1,
    ).confidence_interval
    assert impact.p95 is not None
    assert impact.p95.ci_ms == pytest.approx((paired.low, paired.high), abs=0.2 * (paired.high - paired.low))


@pytest.mark.parametrize(("n", "given"), [(49, False), (50, True)])
def test_a_few_calls_give_no_interval_of_the_slowest(n: int, *, given: bool) -> None:
    times = [10.0 + (7 * number) % n for number in range(n)]
    impact = latency_impact(timed(times, "old"), timed([time + 12 for time in times], "new"), n_draws=200)
    assert impact is not None
    assert impact.p50 is not None
    assert impact.p95 is not None
    assert impact.p50.verdict.text == "slower"
    assert impact.p95.delta_ms == pytest.approx(12)
    assert impact.p95.ci_ms == (pytest.approx((12, 12)) if given else (None, None))
    assert impact.p95.verdict.text == ("slower" if given else "no significant difference")


def test_queries_that_failed_on_a_side_are_in_no_pair() -> None:
    times = [10.0 + n for n in range(10)]
    slow = timed([*times[:-1], 30_000.0], "new", failed={9: Outcome.TIMEOUT})
    impact = latency_impact(timed(times, "old"), slow)
    assert impact is not None
    assert impact.n == 9
    assert impact.p95 is not None
    assert impact.p95.delta_ms == 0
    assert impact.candidate.max_ms == 30_000.0


def test_few_queries_have_a_difference_and_no_interval() -> None:
    impact = latency_impact(timed([1.0, 2.0, 3.0], "old"), timed([2.0, 4.0, 6.0], "new"))
    assert impact is not None
    assert impact.median is not None
    assert (impact.median.delta_ms, impact.median.ci_ms) == (2.0, (None, None))
    assert impact.sentence == "new against old: +2.0 ms at the median; 3 queries are too few for an interval."


def test_nothing_answered_on_both_sides_is_said() -> None:
    impact = latency_impact(
        timed([1.0, 2.0], "old", failed={0: Outcome.ERROR}), timed([1.0, 2.0], "new", failed={1: Outcome.ERROR})
    )
    assert impact is not None
    assert impact.median is None
    assert "No query was answered by both old and new" in impact.sentence


def test_what_makes_times_hard_to_compare_is_said() -> None:
    kept = logged([CallLog(1.0, cached=True), CallLog(2.0, attempts=2)], "old", concurrency=4)
    impact = latency_impact(kept, timed([1.0, 2.0], "new"))
    assert impact is not None
    assert impact.cautions == (
        "old: 1 of 2 answers and their latencies are cached from an earlier collection",
        "old: up to 4 calls ran concurrently and may have delayed each other",
        "old: 1 of 2 calls took more than one attempt; the latency is of the last",
    )


def test_the_same_seed_gives_the_same_interval() -> None:
    draw = random.Random(4)
    sides = [timed([draw.uniform(10, 50) for _ in range(30)]) for _ in range(2)]
    assert latency_impact(*sides, seed=5) == latency_impact(*sides, seed=5)
    first, second = latency_impact(*sides, seed=5), latency_impact(*sides, seed=6)
    assert first is not None
    assert second is not None
    assert (first.median, first.p50, first.p95) != (second.median, second.p50, second.p95)


@pytest.mark.parametrize(
    ("milliseconds", "texts"),
    [
        ((12.0, 8.04, 17.0), ["+12.0", "+8.0", "+17.0"]),
        ((-250.0, -3.2), ["\u2212250", "\u22123"]),
        ((0.25, -0.0), ["+0.250", "0.000"]),
        ((1234.0,), ["+1,234"]),
    ],
)
def test_differences_are_written_to_the_same_decimals(milliseconds: tuple[float, ...], texts: list[str]) -> None:
    assert signed_ms(*milliseconds) == texts
