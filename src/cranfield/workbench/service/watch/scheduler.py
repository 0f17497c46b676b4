"""The scheduler: it puts evaluations and experiments into the queue when they are due, and comparisons when they are done.

Several servers on one database may each have one: a job has a key that follows from the schedule and its time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from cranfield.base.errors import CranfieldError, UnknownNameError
from cranfield.base.words import count_noun
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.options.keys import given_keys
from cranfield.workbench.service.hole_grades import compare_on_newest
from cranfield.workbench.service.intake.intake import purge
from cranfield.workbench.service.requests import BenefitRequest, CompareRequest, EvaluateRequest, JobRequest
from cranfield.workbench.service.responses import JobState, Trigger
from cranfield.workbench.service.set_versions import are_versions_of_one, shares_queries
from cranfield.workbench.service.store.jobs import KeyConflictError
from cranfield.workbench.service.values import EvaluationFilter
from cranfield.workbench.service.watch.times import Schedule, moment
from cranfield.workbench.watch_config import BenefitWatch, Watch

if TYPE_CHECKING:
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import EvaluationInfo, JobInfo
    from cranfield.workbench.watch_config import Compare

LOG = logging.getLogger("cranfield.watch")
PAUSE_S = 5.0
"""Between two looks at the schedules."""
PURGE_S = 3600.0
JOBS_LOOKED_AT = 5
"""Jobs of each schedule that are looked at: those whose comparisons may not be made yet."""
EARLIER = 50
"""Evaluations among which the one before is looked for."""


class Uncompared(StrEnum):
    """Why an evaluation of a schedule is compared with nothing."""

    NOT_WANTED = "not_wanted"
    """The schedule says so."""
    NOT_PINNED = "not_pinned"
    FIRST = "first"
    """There is none before that is not void."""
    OTHER_VERSION = "other_version"
    """The evaluations are of another version of the test set, which has none of these queries: their runs have no answers for them."""


@dataclass
class Scheduler:
    """Schedules of one server. `tick` is called again and again; the time is that of the service."""

    service: Service
    _started: datetime = field(init=False)
    _compared: set[int] = field(default_factory=set)
    """Jobs whose comparisons are in the queue."""
    _logged: dict[str, str] = field(default_factory=dict)
    """Schedule to what was logged last of it: once, and not at every tick."""
    _purged: datetime | None = None

    def __post_init__(self) -> None:
        """Begin now: times of a schedule that never ran count from here."""
        self._started = self.now()

    def schedules(self) -> list[Schedule]:
        """The schedules of the operator's file, in its order."""
        path = self.service.store.database.path
        where = self.service.store.where if path is None else str(path.resolve())
        return [Schedule(name, watch, where) for name, watch in self.service.workbench.watch.items()]

    def schedule(self, name: str) -> Schedule:
        """A schedule.

        Raises:
            UnknownNameError: the operator's file has none of this name.
        """
        found = {each.name: each for each in self.schedules()}
        if name not in found:
            raise UnknownNameError.among("schedule", name, found)
        return found[name]

    def tick(self) -> list[JobInfo]:
        """Put what is due into the queue, and comparisons of what is done; gives the jobs that are new."""
        self._purge()
        made: list[JobInfo] = []
        for schedule in self.schedules():
            try:
                jobs = self.service.jobs.scheduled(schedule.prefix, JOBS_LOOKED_AT)
                made += [new for job in jobs for new in self.compare(schedule, job)]
                time = self._due(schedule, jobs[0] if jobs else None)
                if time is not None:
                    made.append(self.start(schedule, time))
            except CranfieldError as error:
                self._log_once(schedule, logging.ERROR, str(error).replace("\n", " "))
        return made

    def start(self, schedule: Schedule, time: datetime | None = None) -> JobInfo:
        """Put the job of a time into the queue; None: one that is started by hand, now.

        Raises:
            UsageError: unknown names, or too many jobs.
        """
        now = self.now()
        key = schedule.key(time) if time is not None else f"{schedule.prefix}by hand {now.isoformat()}"
        try:
            job = self.service.jobs.submit(self._request(schedule), trigger=Trigger.WATCH, key=key)
        except KeyConflictError:
            started = self.service.jobs.scheduled(key, 1)
            if not started:
                raise
            return started[0]  # by another server, which has another version of the file
        LOG.info("schedule %s: job %d has been due since %s", schedule.name, job.id, (time or now).isoformat())
        return job

    def _request(self, schedule: Schedule) -> JobRequest:
        watch = schedule.watch
        if isinstance(watch, BenefitWatch):
            return BenefitRequest(schedule=schedule.name)
        return EvaluateRequest(
            testset=watch.testset,
            systems=tuple(watch.systems),
            k=watch.k,
            measures=None if watch.measures is None else tuple(watch.measures),
            primary=watch.primary,
            convention=watch.convention,
            seed=watch.seed,
            tags=(f"watch:{schedule.name}",),
            note=overdue_note(self.service, watch.testset, self.now().date(), as_it_stands=True),
        )

    def compare(self, schedule: Schedule, job: JobInfo) -> list[JobInfo]:
        """Put the comparisons of a job that is done into the queue, once."""
        if job.state != JobState.DONE or job.id in self._compared or compare_options(schedule) is None:
            return []
        made: list[JobInfo] = []
        for candidate in self.service.evaluations.for_job(job.id):
            baseline = self.baseline_of(schedule, candidate)
            if not isinstance(baseline, Uncompared):
                made += self._compare(schedule, baseline, candidate)
        self._compared.add(job.id)
        return made

    def _compare(self, schedule: Schedule, baseline: EvaluationInfo, candidate: EvaluationInfo) -> list[JobInfo]:
        watch, options, key = schedule.watch, compare_options(schedule), schedule.compare_key(candidate.id)
        if not isinstance(watch, Watch) or options is None or self.service.jobs.scheduled(key, 1):
            return []
        request = CompareRequest(
            baseline=baseline.id,
            candidate=candidate.id,
            measure=options.measure,
            seed=watch.seed,
            **given_keys(CompareOptions, options),
        )
        try:
            if are_versions_of_one(baseline, candidate):
                return [compare_on_newest(self.service, baseline, candidate, None, request, key)]
            return [self.service.jobs.submit(request, trigger=Trigger.WATCH, key=key)]
        except KeyConflictError:  # another server was faster, and a baseline was pinned in between
            return []

    def baseline_of(self, schedule: Schedule, candidate: EvaluationInfo) -> EvaluationInfo | Uncompared:
        """What an evaluation of a schedule is compared with, or why with nothing."""
        options = compare_options(schedule)
        if options is None:
            return Uncompared.NOT_WANTED
        of_set = EvaluationFilter(testset=candidate.testset_name, limit=EARLIER)
        if options.with_ == "baseline":
            pinned = self.service.evaluations.all(replace(of_set, pinned=True))
            others = [each for each in pinned if each.id != candidate.id]
            found = sorted(others, key=lambda each: each.label != candidate.label)
        else:
            before = replace(of_set, system=candidate.system, variant=candidate.variant, before=candidate.id)
            earlier = self.service.evaluations.all(replace(before, components=candidate.components))
            found = [each for each in earlier if not each.void and not each.figures.pilot]
        same = [each for each in found if each.testset_digest == candidate.testset_digest]
        if same:
            return same[0]
        if any(shares_queries(self.service, (each, candidate)) for each in found[:1]):
            return found[0]  # the answers of both are scored on the newest version
        if found:
            return Uncompared.OTHER_VERSION
        return Uncompared.NOT_PINNED if options.with_ == "baseline" else Uncompared.FIRST

    def _due(self, schedule: Schedule, last: JobInfo | None) -> datetime | None:
        """The time whose job is to be started now."""
        now = self.now()
        if last is None:
            return schedule.missed(self._started, now)
        if (n := schedule.n_skipped(last, now)) and not last.has_ended:
            self._log_once(schedule, logging.WARNING, f"skipped {count_noun(n, 'times')}: job {last.id} still runs")
        if not last.has_ended:
            return None
        ended = moment(last.finished_at or last.created_at)
        return schedule.missed(max(schedule.due(schedule.time_of(last)), ended), now)

    def _purge(self) -> None:
        now = self.now()
        if self._purged is None or (now - self._purged).total_seconds() >= PURGE_S:
            self._purged = now
            if n := purge(self.service.queries, self.service.workbench.intake, self.service.clock):
                LOG.info("deleted %s of production queries that are too old", count_noun(n, "rows"))

    def _log_once(self, schedule: Schedule, level: int, text: str) -> None:
        if self._logged.get(schedule.name) != text:
            self._logged[schedule.name] = text
            LOG.log(level, "schedule %s: %s", schedule.name, text)

    def now(self) -> datetime:
        """The time of the service."""
        return moment(self.service.clock())

    def run(self, stopping: threading.Event) -> None:
        """Tick until the server stops; what fails is logged, and tried again."""
        from sqlalchemy.exc import DBAPIError

        while not stopping.is_set():
            try:
                self.tick()
            except DBAPIError as error:
                LOG.warning("the database does not respond: %s", type(error.orig).__name__)
            except Exception:
                LOG.exception("the schedules could not be checked")
            stopping.wait(PAUSE_S)


@contextmanager
def scheduling(service: Service) -> Iterator[Scheduler]:
    """Run the schedules of the operator's file for the time of the block."""
    scheduler, stopping = Scheduler(service), threading.Event()
    thread = threading.Thread(target=scheduler.run, args=(stopping,), name="cranfield-watch", daemon=True)
    thread.start()
    try:
        yield scheduler
    finally:
        stopping.set()
        thread.join()


def compare_options(schedule: Schedule) -> Compare | None:
    """What the evaluations of a schedule are compared with; None: with nothing, as experiments are."""
    return schedule.watch.compare if isinstance(schedule.watch, Watch) else None


def overdue_note(service: Service, name: str, today: date, *, as_it_stands: bool) -> str:
    """Says that the refresh of a test set is overdue; empty where it is not.

    Args:
        service: of the test set.
        name: of the test set.
        today: the day.
        as_it_stands: read the file of a test set of the config, which takes its time; else its last version that was used.

    Raises:
        CranfieldError: there is no such test set, or it cannot be read.
    """
    testsets = service.testsets
    is_read = as_it_stands and testsets.config_key(name) is not None
    info = testsets.snapshot_of_config(name) if is_read else testsets.get(name)
    days = testsets.refresh_dates(info.id or 0).days_overdue(today)
    version = f" (version {info.version})" if info.version else ""
    return f"The refresh of test set {name}{version} is overdue by {count_noun(days, 'days')}." if days else ""
