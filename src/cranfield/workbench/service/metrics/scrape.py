"""The metrics of a server: read from its database when they are scraped, so that a restart changes none."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby, takewhile
from typing import TYPE_CHECKING

from cranfield.base.errors import CranfieldError
from cranfield.base.version import __version__
from cranfield.books.database.engine import day_of
from cranfield.workbench.service.intake.traces import SpanFate
from cranfield.workbench.service.metrics.exposition import Exposition
from cranfield.workbench.service.metrics.families import naming_of
from cranfield.workbench.service.metrics.observed import (
    Measured,
    MeasuredSubject,
    MetricsSnapshot,
    Observation,
    ScheduleState,
    with_earlier,
)
from cranfield.workbench.service.responses import JobState
from cranfield.workbench.service.watch.scheduler import Schedule, Scheduler, last_run, moment

if TYPE_CHECKING:
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import EvaluationInfo

DAY_MS = 86_400_000


class Scraper:
    """Writes the metrics of a service; the database is read at most once in `cache_s`. Use it from any thread."""

    def __init__(self, service: Service) -> None:
        """Initialise.

        Raises:
            UsageError: the operator's file gives two metrics one name.
        """
        self._service = service
        self._naming = naming_of(service.workbench.metrics)
        self._turn = threading.Lock()
        self._last: tuple[int, MetricsSnapshot] | None = None
        """When it was read, in milliseconds, and what."""

    def exposition(self) -> Exposition:
        """The metrics, as of now."""
        now = self._service.clock()
        with self._turn:
            if self._last is None or not 0 <= now - self._last[0] < self._naming.config.cache_s * 1000:
                self._last = now, self._snapshot(now)
            known = self._last[1]
        return Exposition(replace(known, now=now / 1000), self._naming)

    def _snapshot(self, now: int) -> MetricsSnapshot:
        config = self._naming.config
        found = self._service.evaluations.followed(now - config.keep_days * DAY_MS, config.triggers)
        observations = [observation(subject, list(infos)) for subject, infos in groupby(found, _subject)]
        jobs = {state.value: n for state, n in self._service.jobs.counts().items()}
        schedules = [self._schedule(each, now) for each in Scheduler(self._service).schedules()]
        counts = self._service.traces.counts
        spans = {fate.value: counts.spans[fate] for fate in SpanFate} if counts.requests else {}
        pooled = {"added": counts.documents_added, **counts.documents_dropped} if counts.requests else {}
        return MetricsSnapshot(
            observations, __version__, None, jobs, self._overdue(now), schedules, spans=spans, pooled=pooled
        )

    def _schedule(self, schedule: Schedule, now: int) -> ScheduleState:
        following = next(schedule.upcoming(moment(now)), None)
        state = ScheduleState(schedule.name, None if following is None else following.timestamp())
        last = last_run(self._service, schedule)
        if last is None or last.job.finished_at is None:
            return state
        ended = (job for job in self._service.jobs.scheduled(schedule.prefix) if job.has_ended)
        n_failed = sum(1 for _ in takewhile(lambda job: job.state != JobState.DONE, ended))
        return replace(state, ended=last.job.finished_at / 1000, result=last.result, n_failed=n_failed)

    def _overdue(self, now: int) -> dict[str, int]:
        testsets, today = self._service.testsets, day_of(now)
        try:
            stored = [info for info in testsets.names() if info.id is not None]
            return {info.name: testsets.refresh_dates(info.id or 0).days_overdue(today) for info in stored}
        except CranfieldError:  # a set that cannot be read: no other metric is lost for it
            return {}


def _subject(info: EvaluationInfo) -> MeasuredSubject:
    return MeasuredSubject(info.testset_name, info.system, info.variant, info.components)


def observation(subject: MeasuredSubject, infos: Sequence[EvaluationInfo]) -> Observation:
    """The last evaluation and the last values, of evaluations of one subject, the latest first.

    A measure that the last evaluation did not compute keeps its last value, with its own time. A broken rule that it could not
    decide is broken still: without a value its alert would be resolved, though it is not known whether the rule holds.
    """
    valid = [measured(info) for info in infos if not info.void]
    if not valid:
        return Observation(subject, measured(infos[0]), None)
    decided = {
        rule: state for each in reversed(valid) for rule, state in (each.facts.gate or {}).items() if state is not None
    }
    facts = valid[0].facts
    gate = facts.gate and {rule: False if decided.get(rule) is False else state for rule, state in facts.gate.items()}
    return Observation(
        subject, measured(infos[0]), replace(reduce(with_earlier, valid), facts=replace(facts, gate=gate))
    )


def measured(info: EvaluationInfo) -> Measured:
    """An evaluation of the database, as far as metrics show it."""
    return Measured(info.at / 1000, info.record.testset, info.record.convention, info.scores, info.facts, info.void)
