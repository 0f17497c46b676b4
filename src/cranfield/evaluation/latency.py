"""Latencies: the calls as a record, percentiles, and the claim that one system is faster.

Latencies are milliseconds of the last attempt of a call, one per query. They come from a run's logs; run files of other tools
have none. A verdict takes a warm-up, a smallest effect (`latency_rule`), and collections that are comparable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from cranfield.base.words import count_noun
from cranfield.evaluation.many import ManyComparison
from cranfield.evaluation.options.blocks import LatencyRule
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.model import CallLog, Outcome
from cranfield.model.results import Record
from cranfield.stats.bootstrap import index_blocks
from cranfield.stats.describe import check_alpha, check_draws

DEFAULT_RESAMPLES = 2_000
"""Resamples for an interval of a latency difference; Monte Carlo error of the ends is a few percent of its width."""

MIN_QUERIES = 6
"""With fewer queries there is no interval."""

MIN_FOR_P95 = 50
"""With fewer queries there is no interval of the 95th percentile: nominal 95 % intervals cover 75 % at 6 queries, 81 % at 10 and
92 % at 20 (simulated, log-normal latencies)."""

FAR_APART_S = 3600.0
"""Calls of one query to two systems that lie further apart, in seconds, are not comparable: the load of a machine changes."""
MAX_FAR_APART = 0.1
"""Share of the pairs that may be: those around the place where an interrupted collection was resumed."""

Spread = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class NoVerdict:
    """Why the latencies of two systems are shown without a verdict."""

    sentence: str
    system: str = ""
    """The system that it is about; empty where it is about both."""

    def __str__(self) -> str:
        return f"{self.system}: {self.sentence}" if self.system else self.sentence


@dataclass(frozen=True, slots=True)
class TimedCalls:
    """The calls of a system whose timings count."""

    logs: Mapping[str, CallLog]
    """Query id to log, in the order of the queries."""
    n_left_out: int = 0
    """First calls, whose timings do not count."""

    @property
    def warm_up(self) -> int | None:
        """Calls made to the system before any of these; 0 without a warm-up, None where it is not known."""
        before = [log.calls_before for log in self.logs.values()]
        known = [number for number in before if number is not None]
        return min(known) if known and len(known) == len(before) else None


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Latency of one system over its queries."""

    n: int
    """Calls whose timings count, those that failed included."""
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    n_timeouts: int
    n_errors: int
    """Calls that failed otherwise."""
    n_retried: int
    """Calls that took more than one attempt."""
    n_cached: int
    """Answers kept from an earlier collection, whose latencies are of that one."""
    concurrency: int
    """Maximum number of concurrent calls, from the configuration."""
    n_left_out: int = 0
    """First calls, whose timings are left out."""

    @property
    def cached_share(self) -> float:
        """Share of the answers that are cached from an earlier collection."""
        return self.n_cached / self.n


@dataclass(frozen=True, slots=True)
class LatencyDifference:
    """One number of the latencies, candidate minus baseline, in milliseconds."""

    what: str
    """`median difference`, `difference of p50` or `difference of p95`."""
    delta_ms: float
    ci_ms: Spread
    """Percentiles of resampled queries, at about 1 - alpha; None under 6 queries, and of the 95th percentile under 50."""
    baseline_ms: float
    """The same figure of the baseline; of the median difference, its median."""
    is_comparable: bool = True
    """False where the timings allow no verdict."""
    is_large: bool = True
    """Whether it is at least the smallest effect."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies wholly on one side of zero."""
        low, high = self.ci_ms
        return (low is not None and low > 0) or (high is not None and high < 0)

    @property
    def verdict(self) -> VerdictCode:
        """`slower` or `faster` where the interval excludes zero and the difference is large enough for a claim."""
        if not self.is_comparable:
            return VerdictCode.NOT_CLAIMED
        if not self.excludes_zero:
            return VerdictCode.NOT_SIGNIFICANT
        if not self.is_large:
            return VerdictCode.NEGLIGIBLE
        return VerdictCode.SLOWER if self.delta_ms > 0 else VerdictCode.FASTER


@dataclass(frozen=True, slots=True)
class LatencyImpact:
    """Latency of a candidate against a baseline, over the queries that both answered."""

    baseline: LatencySummary
    candidate: LatencySummary
    n: int
    """Queries answered on both sides: a failed call has no latency that could be compared."""
    median: LatencyDifference | None
    """Median of the differences query by query; None where no query was answered on both sides."""
    p50: LatencyDifference | None
    p95: LatencyDifference | None
    names: tuple[str, str]
    alpha: float
    rule: LatencyRule
    """When a difference is a claim: that of the candidate's evaluation."""
    incomparable: tuple[NoVerdict, ...] = ()
    """Why there is no verdict; empty where there is one."""
    warm_up: int | None = None
    """Calls made to each system before the first one that counts; None where it is not known."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """What may disturb the times: kept answers, several calls at once, retries."""
        sides = zip(self.names, (self.baseline, self.candidate), strict=True)
        return tuple(f"{name}: {caution}" for name, side in sides for caution in cautions(side))

    @property
    def sentence(self) -> str:
        """The median difference with its verdict, or why there is none."""
        return _sentence(self)


def timed_calls(evaluation: Evaluation) -> TimedCalls:
    """The calls whose timings count: all that were timed, without the first ones, unless no call would be left.

    An answer that was read from a file without a log was not timed.
    """
    run = evaluation.run
    logs = {} if run is None else run.logs
    timed = {
        query_id: log
        for query_id in evaluation.query_ids
        if (log := logs.get(query_id)) is not None and log.attempts and (log.latency_ms or not log.cached)
    }
    skip_first = evaluation.latency_rule.skip_first
    n_first = max(skip_first, concurrency_of(evaluation)) if skip_first else 0
    kept = {query_id: log for query_id, log in timed.items() if log.calls_before is None or log.calls_before >= n_first}
    return TimedCalls(kept, len(timed) - len(kept)) if kept else TimedCalls(timed)


def concurrency_of(evaluation: Evaluation) -> int:
    """Calls to a system that may be under way at a time, as its config says."""
    declared = evaluation.run.config.get("concurrency", 1) if evaluation.run is not None else 1
    return declared if isinstance(declared, int) else 1


def incomparable(baseline: Evaluation, candidate: Evaluation, query_ids: Sequence[str]) -> tuple[NoVerdict, ...]:
    """Why the latencies of two systems are shown without a verdict; empty where one may be given.

    Args:
        baseline: one system.
        candidate: the other.
        query_ids: the queries that are compared.
    """
    return (*_of_each((baseline, candidate), query_ids), *_of_both(baseline, candidate, query_ids))


def _of_each(systems: Sequence[Evaluation], query_ids: Sequence[str]) -> Iterator[NoVerdict]:
    for system in systems:
        logs = [log for query_id, log in timed_calls(system).logs.items() if query_id in set(query_ids)]
        n_cached = sum(log.cached for log in logs)
        warm_up = timed_calls(system).warm_up
        if n_cached:
            yield NoVerdict(f"{n_cached} of {len(logs)} answers are of an earlier collection", system.name)
        elif warm_up is None:
            yield NoVerdict("the run does not say whether the system was warmed up", system.name)
        elif warm_up == 0:
            yield NoVerdict("no warm-up", system.name)


def _of_both(baseline: Evaluation, candidate: Evaluation, query_ids: Sequence[str]) -> Iterator[NoVerdict]:
    machines = {side.run.machine for side in (baseline, candidate) if side.run is not None} - {None}
    if len(machines) > 1:
        yield NoVerdict("the runs were collected on different machines")
    a, b = timed_calls(baseline).logs, timed_calls(candidate).logs
    gaps = [gap for query_id in query_ids if (gap := _gap_s(a[query_id], b[query_id])) is not None]
    far = [gap for gap in gaps if gap > FAR_APART_S]
    if len(far) > MAX_FAR_APART * len(query_ids):
        hours = max(far) / 3600
        apart = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours" if hours >= 1.5 else "over an hour"
        yield NoVerdict(f"the systems answered {count_noun(len(far), 'queries')} up to {apart} apart")


def _gap_s(a: CallLog, b: CallLog) -> float | None:
    """Seconds between two answers; None where the time of one is not known."""
    try:
        return abs((datetime.fromisoformat(a.at or "") - datetime.fromisoformat(b.at or "")).total_seconds())
    except (ValueError, TypeError):  # no time; one with a zone and one without
        return None


def latency_summary(evaluation: Evaluation) -> LatencySummary | None:
    """Percentiles and counts of one system's calls; None where no call was timed."""
    timed = timed_calls(evaluation)
    logs = timed.logs
    if not logs:
        return None
    times = np.array([log.latency_ms for log in logs.values()])
    outcomes = dict(zip(evaluation.query_ids, evaluation.ranking.outcomes, strict=True))
    failed = [outcomes[query_id] for query_id in logs if outcomes[query_id].is_failure]
    timeouts = failed.count(Outcome.TIMEOUT)
    p50, p95, p99 = np.percentile(times, [50, 95, 99]).tolist()
    return LatencySummary(
        n=len(times),
        mean_ms=math.fsum(times.tolist()) / len(times),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=float(times.max()),
        n_timeouts=timeouts,
        n_errors=len(failed) - timeouts,
        n_retried=sum(log.attempts > 1 for log in logs.values()),
        n_cached=sum(log.cached for log in logs.values()),
        concurrency=concurrency_of(evaluation),
        n_left_out=timed.n_left_out,
    )


def latency_impact(
    baseline: Evaluation,
    candidate: Evaluation,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    n_draws: int = DEFAULT_RESAMPLES,
) -> LatencyImpact | None:
    """Paired latency differences with bootstrap intervals.

    Percentile bootstrap over the queries that both sides answered. Coverage is approximate: nominal 95 % intervals cover 92
    to 95 % for the median difference, and 96 to 99 % for the differences of p50 and p95. Percentiles are numpy's (linear
    interpolation).

    Args:
        baseline: the current system.
        candidate: the system that would replace it; differences are candidate minus baseline.
        alpha: intervals cover 1 - alpha.
        seed: of the resamples.
        n_draws: resamples.

    Returns:
        The impact; None where the calls of either side were not timed.

    Source:
        Efron & Tibshirani 1993, An Introduction to the Bootstrap, 13.
    """
    check_alpha(alpha)
    check_draws(seed, n_draws)
    about = latency_summary(baseline), latency_summary(candidate)
    if about[0] is None or about[1] is None:
        return None
    shared, a, b = _paired(baseline, candidate)
    why_not = incomparable(baseline, candidate, shared)
    found = _differences(a, b, alpha, seed, n_draws) if shared else (None, None, None)
    median, p50, p95 = (_judged(each, candidate.latency_rule, is_comparable=not why_not) for each in found)
    return LatencyImpact(
        about[0],
        about[1],
        len(shared),
        median,
        p50,
        p95,
        (baseline.name, candidate.name),
        alpha,
        candidate.latency_rule,
        why_not,
        _shared_warm_up(baseline, candidate),
    )


def _paired(baseline: Evaluation, candidate: Evaluation) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """The queries that both sides answered, and the latencies of each side."""
    sides = _answered(baseline), _answered(candidate)
    shared = [query_id for query_id in sides[0] if query_id in sides[1]]
    a, b = (np.array([side[query_id] for query_id in shared], dtype=np.float64) for side in sides)
    return shared, a, b


def _judged(found: LatencyDifference | None, rule: LatencyRule, *, is_comparable: bool) -> LatencyDifference | None:
    """A difference with what its verdict rests on."""
    if found is None:
        return None
    is_large = rule.counts(found.delta_ms, found.baseline_ms)
    return replace(found, is_comparable=is_comparable, is_large=is_large)


def cautions(about: LatencySummary) -> list[str]:
    """Caveats of the latencies of a system, a sentence each."""
    notes = []
    if about.n_cached:
        notes.append(f"{about.n_cached} of {about.n} answers and their latencies are cached from an earlier collection")
    if about.concurrency > 1:
        notes.append(f"up to {about.concurrency} calls ran concurrently and may have delayed each other")
    if about.n_retried:
        notes.append(f"{about.n_retried} of {about.n} calls took more than one attempt; the latency is of the last")
    return notes


def _shared_warm_up(*systems: Evaluation) -> int | None:
    """Calls made to each system before the first that counts; None where that is not known of one."""
    known = [number for number in (timed_calls(system).warm_up for system in systems) if number is not None]
    return min(known) if len(known) == len(systems) else None


def _answered(evaluation: Evaluation) -> dict[str, float]:
    """Query id to latency, of the calls that were answered, with results or without."""
    outcomes = dict(zip(evaluation.query_ids, evaluation.ranking.outcomes, strict=True))
    return {
        query_id: log.latency_ms
        for query_id, log in timed_calls(evaluation).logs.items()
        if not outcomes[query_id].is_failure and outcomes[query_id] is not Outcome.MISSING
    }


def _differences(
    a: NDArray[np.float64], b: NDArray[np.float64], alpha: float, seed: int, n_draws: int
) -> tuple[LatencyDifference, LatencyDifference, LatencyDifference]:
    p50, p95 = np.percentile(a, [50, 95]).tolist()
    observed = np.median(b - a), *(np.percentile(b, [50, 95]) - [p50, p95])
    intervals: list[Spread] = [(None, None)] * 3
    if len(a) >= MIN_QUERIES:
        drawn = np.concatenate([_resampled(a, b, rows) for _, rows in index_blocks(seed, n_draws, len(a))])
        ends = np.percentile(drawn, [100 * alpha / 2, 100 * (1 - alpha / 2)], axis=0)
        intervals = [(low, high) for low, high in ends.T.tolist()]
    if len(a) < MIN_FOR_P95:
        intervals[2] = (None, None)
    names = ("median difference", "difference of p50", "difference of p95")
    first, second, third = (
        LatencyDifference(name, float(delta), interval, of_baseline)
        for name, delta, interval, of_baseline in zip(names, observed, intervals, (p50, p50, p95), strict=True)
    )
    return first, second, third


def _resampled(a: NDArray[np.float64], b: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[rows, 3]: the three differences of each sample of queries."""
    a_drawn, b_drawn = a[rows], b[rows]
    of_percentiles = np.percentile(b_drawn, [50, 95], axis=1) - np.percentile(a_drawn, [50, 95], axis=1)
    return np.column_stack([np.median(b_drawn - a_drawn, axis=1), of_percentiles.T])


def _sentence(impact: LatencyImpact) -> str:
    """`new is slower than old by 12.1 ms [8.0, 17.2], 24 %, at the median (n = 50, after a warm-up of 3 calls).`"""
    (baseline, candidate), found = impact.names, impact.median
    if found is None:
        return f"No query was answered by both {baseline} and {candidate}: latencies cannot be compared."
    low, high = found.ci_ms
    if low is None or high is None:
        (delta,) = signed_ms(found.delta_ms)
        return (
            f"{candidate} against {baseline}: {delta} ms at the median; {impact.n} queries are too few for an interval."
        )
    delta, *ends = signed_ms(found.delta_ms, low, high)
    figures, of = f"{delta} ms [{', '.join(ends)}]", f"at the median ({_sample(impact)})"
    if found.verdict is VerdictCode.NOT_CLAIMED:
        return (
            f"{candidate} against {baseline}: {figures} {of}. No verdict: {'; '.join(map(str, impact.incomparable))}."
        )
    if found.verdict is VerdictCode.NOT_SIGNIFICANT:
        return f"No significant difference in latency between {baseline} and {candidate}: {figures} {of}."
    if found.verdict is VerdictCode.NEGLIGIBLE:
        least = f"below the smallest effect that counts, {impact.rule.smallest}"
        return f"Negligible difference in latency between {baseline} and {candidate}: {figures} {of}; {least}."
    delta, *ends = (text.lstrip(PLUS_OR_MINUS) for text in signed_ms(found.delta_ms, *sorted((low, high), key=abs)))
    percent = f", {abs(found.delta_ms) / found.baseline_ms:.0%}".replace("%", " %") if found.baseline_ms else ""
    return f"{candidate} is {found.verdict.text} than {baseline} by {delta} ms [{', '.join(ends)}]{percent}, {of}."


def _sample(impact: LatencyImpact) -> str:
    """`n = 50, after a warm-up of 3 calls`."""
    after = f", after a warm-up of {count_noun(impact.warm_up, 'calls')}" if impact.warm_up else ""
    return f"n = {impact.n}{after}"


PLUS_OR_MINUS = "+\u2212"


def signed_ms(*milliseconds: float) -> list[str]:
    """Differences of milliseconds with their signs and without their unit, all to the same decimals.

    Example:
        >>> signed_ms(12.04, -0.5), signed_ms(0.0)
        (['+12.0', '\u22120.5'], ['0.000'])
    """
    largest = max(map(abs, milliseconds), default=0.0)
    decimals = 0 if largest >= 100 else 1 if largest >= 1 else 3
    texts = [f"{number:+,.{decimals}f}".replace("-", "\u2212") for number in milliseconds]
    return [text if text.strip(PLUS_OR_MINUS + "0.,") else text.lstrip(PLUS_OR_MINUS) for text in texts]


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """The calls of one system."""

    latency: LatencySummary | None
    """None where no call was timed."""
    n_left_out: int
    """First calls whose times do not count."""
    latency_ms: Mapping[str, float]
    """Latency of each query, in milliseconds."""
    failed: Mapping[str, CallLog]
    repeated: Mapping[str, CallLog]
    """Queries that were sent several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsResult(Record):
    """The calls of the systems of a result."""

    rule: LatencyRule
    systems: Mapping[str, SystemCalls]
    impacts: Mapping[str, LatencyImpact]
    """Impact of the candidate against the baseline, or of each of many systems against theirs, where calls were
    timed."""

    preflight: tuple[tuple[str, str, str], ...] = ()
    """System, check and what was found, of every check that passed before the first query."""

    @property
    def were_made(self) -> bool:
        """Whether anything is known of any call."""
        return bool(self.preflight) or any(system.latency_ms for system in self.systems.values())


NOT_MADE = SystemCalls(None, 0, {}, {}, {})
"""Calls of a system whose answers were read from a file."""


def calls_of(
    evaluations: tuple[Evaluation, ...],
    result: Comparison | ManyComparison | None = None,
    preflight: Sequence[tuple[str, str, str]] = (),
) -> CallsResult:
    """The calls of evaluations, and of a comparison of them the differences of their latencies."""
    impacts = {}
    if isinstance(result, Comparison):
        baseline, others, alpha, seed = result.baseline, [result.candidate], result.options.alpha, result.options.seed
        impacts = {each.name: latency_impact(baseline, each, alpha=alpha, seed=seed) for each in others}
    elif result is not None and result.baseline is not None:
        sides = {each.name: each for each in result.evaluations}
        baseline, options = sides.pop(result.baseline), result.options
        impacts = {
            each.name: latency_impact(baseline, each, alpha=options.alpha, seed=options.seed) for each in sides.values()
        }
    return CallsResult(
        rule=evaluations[0].latency_rule,
        systems={each.name: _of_system(each) for each in evaluations},
        impacts={name: impact for name, impact in impacts.items() if impact is not None},
        preflight=tuple(preflight),
    )


def _of_system(evaluation: Evaluation) -> SystemCalls:
    logs = evaluation.run.logs if evaluation.run is not None else {}
    failed = {query_id for query_id, _, _ in evaluation.failures}
    return SystemCalls(
        latency_summary(evaluation),
        timed_calls(evaluation).n_left_out,
        {query_id: round(log.latency_ms, 3) for query_id, log in logs.items()},
        {query_id: log for query_id, log in logs.items() if query_id in failed},
        {query_id: log for query_id, log in logs.items() if log.repeat_ms or log.unstable},
    )
