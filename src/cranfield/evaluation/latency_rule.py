"""Which timings count, and what a claim of a faster system takes: a warm-up, a smallest effect, comparable collections."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING

from cranfield.errors import CranfieldError, Problem, UnknownNameError, UsageError, shorten
from cranfield.model import CallLog
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.evaluation.values import Evaluation

FAR_APART_S = 3600.0
"""Calls of one query to two systems that lie further apart, in seconds, are not comparable: the load of a machine changes."""
MOST_FAR_APART = 0.1
"""Share of the pairs that may be: those around the place where an interrupted collection was resumed."""
ROUNDING = 1e-9
"""Relative tolerance of the smallest effect, so that 1.1 - 0.1 counts as 1."""


@dataclass(frozen=True, slots=True)
class LatencyRule:
    """When a difference of latencies is a claim."""

    skip_first: int = 3
    """First calls to each system whose timings are left out; with more calls at a time, as many as these. Queries that were
    sent as a warm-up count."""
    smallest_ms: float = 1.0
    """Smallest difference that counts, in milliseconds."""
    smallest_percent: float = 5.0
    """Smallest difference that counts, in percent of the latency of the baseline. Both must be reached."""

    def __post_init__(self) -> None:
        problems = [
            Problem(f"{name} of the latency rule is {shorten(value)}", expected="a number of 0 or more")
            for name, value in asdict(self).items()
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf
        ]
        if isinstance(self.skip_first, float):
            problems.append(Problem(f"skip_first is {self.skip_first:g}", expected="a whole number"))
        if problems:
            raise UsageError(problems)

    def counts(self, delta_ms: float, baseline_ms: float) -> bool:
        """Whether a difference is as large as the smallest effect.

        Args:
            delta_ms: the difference.
            baseline_ms: the same figure of the baseline.
        """
        least = max(self.smallest_ms, self.smallest_percent / 100 * baseline_ms)
        return abs(delta_ms) >= least * (1 - ROUNDING)

    @property
    def smallest(self) -> str:
        """The smallest effect: `1 ms and 5 %`."""
        return f"{self.smallest_ms:g} ms and {self.smallest_percent:g} %"


def parse_rule(written: Sequence[str]) -> LatencyRule:
    """A rule as the command line writes it: `smallest_ms=5`; what is not written has its default.

    Raises:
        UsageError: with every part that is none.
    """
    names = [field.name for field in fields(LatencyRule)]
    values: dict[str, float] = {}
    problems: list[Problem] = []
    for text in written:
        name, _, value = (part.strip() for part in text.partition("="))
        try:
            if name not in names:
                raise UnknownNameError.among("key of --latency", name, names)
            values[name] = int(value) if name == "skip_first" else float(value)
        except CranfieldError as error:
            problems += error.problems
        except ValueError:
            problems.append(Problem(f"--latency is {shorten(text)}", expected="KEY=NUMBER, as in smallest_ms=5"))
    if problems:
        raise UsageError(problems)
    return LatencyRule(**values)  # type: ignore[arg-type]  # skip_first is an int


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
    if len(far) > MOST_FAR_APART * len(query_ids):
        hours = max(far) / 3600
        apart = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours" if hours >= 1.5 else "over an hour"
        yield NoVerdict(f"the systems answered {n_of(len(far), 'queries')} up to {apart} apart")


def _gap_s(a: CallLog, b: CallLog) -> float | None:
    """Seconds between two answers; None where the time of one is not known."""
    try:
        return abs((datetime.fromisoformat(a.at or "") - datetime.fromisoformat(b.at or "")).total_seconds())
    except (ValueError, TypeError):  # no time; one with a zone and one without
        return None
