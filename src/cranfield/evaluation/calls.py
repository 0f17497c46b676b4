"""What differs from one collection to the next, as a record: times of the calls, output of those that failed, repeated answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cranfield.evaluation.latency import LatencyImpact, LatencySummary, latency_impact, latency_summary, timed_calls
from cranfield.evaluation.many_values import ManyComparison
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.model import CallLog
from cranfield.options.latency import LatencyRule
from cranfield.results import Record


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """The calls of one system."""

    latency: LatencySummary | None
    """None where no call was timed."""
    n_left_out: int
    """First calls whose times do not count."""
    latency_ms: Mapping[str, float]
    """Of each query."""
    failed: Mapping[str, CallLog]
    repeated: Mapping[str, CallLog]
    """Queries that were sent several times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsResult(Record):
    """The calls of the systems of a result."""

    rule: LatencyRule
    systems: Mapping[str, SystemCalls]
    impacts: Mapping[str, LatencyImpact]
    """Of the candidate against the baseline, or of each of many systems against theirs, where calls were timed."""

    preflight: tuple[tuple[str, str, str], ...] = ()
    """System, check and what was found, of every check that passed before the first query."""

    @property
    def were_made(self) -> bool:
        """Whether anything is known of any call."""
        return bool(self.preflight) or any(system.latency_ms for system in self.systems.values())


NOT_MADE = SystemCalls(None, 0, {}, {}, {})
"""Of a system whose answers were read from a file."""


def calls_of(
    evaluations: tuple[Evaluation, ...],
    result: Comparison | ManyComparison | None = None,
    preflight: Sequence[tuple[str, str, str]] = (),
) -> CallsResult:
    """The calls of evaluations, and of a comparison of them the differences of their latencies."""
    impacts = {}
    if isinstance(result, Comparison):
        baseline, others, alpha, seed = result.baseline, [result.candidate], result.alpha, result.seed
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
