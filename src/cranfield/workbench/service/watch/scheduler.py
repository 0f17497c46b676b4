"""The scheduler: it puts evaluations and experiments into the queue when they are due, and comparisons when they are done.

Several servers on one database may each have one: a job has a key that follows from the schedule and its time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from cranfield.base.errors import CranfieldError, Problem, UnknownNameError, unknown_name
from cranfield.base.words import count_noun
from cranfield.benefit.plan import load_plan
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.options.keys import given_keys
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.workbench.service.hole_grades import compare_on_newest
from cranfield.workbench.service.intake.intake import purge
from cranfield.workbench.service.requests import BenefitRequest, CompareRequest, EvaluateRequest, JobRequest
from cranfield.workbench.service.responses import JobState, Trigger
from cranfield.workbench.service.set_versions import are_versions_of_one, shares_queries
from cranfield.workbench.service.store.jobs import KeyConflictError
from cranfield.workbench.service.values import EvaluationFilter, JobInfo
from cranfield.workbench.watch_config import AnyWatch, BenefitWatch, Watch, zone_of

if TYPE_CHECKING:
    from cranfield.workbench.service.responses import BenefitOutcome
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo
    from cranfield.workbench.watch_config import Compare


MAX_SKIPPED = 1_000
"""Times that are counted of one run."""
_KEY_TIME = "%Y-%m-%dT%H:%MZ"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule of the operator's file, by name, on one database."""

    name: str
    watch: AnyWatch
    where: str
    """The database, as an absolute path where it is a file: other databases have other delays."""

    @property
    def prefix(self) -> str:
        """Prefix of the keys of its jobs."""
        return f"watch:{self.name}:"

    def key(self, time: datetime) -> str:
        """The key of the job of a time: however many servers start it, it is one job."""
        return f"{self.prefix}{time.astimezone(UTC):{_KEY_TIME}}"

    def compare_key(self, evaluation_id: int) -> str:
        """The key of the job that compares an evaluation of the schedule; no other key begins so."""
        return f"compare:{self.name}:{evaluation_id}:"

    def due(self, time: datetime) -> datetime:
        """A time with its delay, UTC."""
        if not self.watch.jitter_s:
            return time.astimezone(UTC)
        digest = sha256(f"{self.where}\n{self.key(time)}".encode()).digest()
        delay = int.from_bytes(digest[:8]) % (self.watch.jitter_s + 1)
        return time.astimezone(UTC) + timedelta(seconds=delay)

    def time_of(self, job: JobInfo) -> datetime:
        """The time of a job of this schedule; of one that was started by hand, when it was made."""
        text = (job.key or "").removeprefix(self.prefix)
        try:
            return datetime.strptime(text, _KEY_TIME).replace(tzinfo=UTC)
        except ValueError:
            return moment(job.created_at)

    def upcoming(self, after: datetime) -> Iterator[datetime]:
        """The times that are due after a time, with their delays, UTC."""
        begin = after - timedelta(seconds=self.watch.jitter_s)
        return (due for time in self.watch.times(begin) if (due := self.due(time)) > after)

    def missed(self, since: datetime, now: datetime) -> datetime | None:
        """The last time, without its delay, that became due since then: of many only this one is run."""
        for time in self.watch.times_before(now):
            if (due := self.due(time)) <= now:
                return time if due > since else None
        return None

    def n_skipped(self, job: JobInfo, now: datetime) -> int:
        """How many times became due while a job was waiting or running: none of them is run."""
        end = moment(job.finished_at) if job.finished_at is not None else now
        due = takewhile(lambda time: time <= end, self.upcoming(self.due(self.time_of(job))))
        return sum(1 for _ in islice(due, MAX_SKIPPED))


def moment(ms: int) -> datetime:
    """A stored time."""
    return datetime.fromtimestamp(ms / 1000, UTC)


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
            found = [each for each in earlier if not each.void and not each.pilot]
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


UPCOMING = 3
"""Times that a list shows."""
UNCOMPARED = {
    Uncompared.NOT_PINNED: "no evaluation of the test set is pinned as the baseline",
    Uncompared.FIRST: "no earlier valid evaluation of the system",
    Uncompared.OTHER_VERSION: "the earlier evaluations use a version of the test set with other queries: pin an evaluation of this version",
}


class Result(StrEnum):
    """What the last run of a schedule came to."""

    FAILED = "failed"
    """The job, or that of a comparison, failed or was cancelled."""
    VOID = "void"
    WORSE = "worse"
    """The verdict of a comparison: worse, or mixed."""
    GATE_FAILED = "gate_failed"
    PASSED = "passed"


@dataclass(frozen=True)
class LastRun:
    """The last run of a schedule that has ended."""

    job: JobInfo
    evaluations: tuple[EvaluationInfo, ...]
    comparing: tuple[JobInfo, ...]
    """The jobs of their comparisons."""
    comparisons: tuple[ComparisonInfo, ...]

    @property
    def result(self) -> Result | None:
        """What it came to; None: a comparison has not ended."""
        if self.job.state != JobState.DONE:
            return Result.FAILED
        outcome = self.job.outcome
        is_invalid = any(each.record.verdict is VerdictCode.INVALID for each in self.comparisons)
        if is_invalid or any(each.void for each in self.evaluations) or (outcome is not None and outcome.void):
            return Result.VOID
        if any(job.has_ended and job.state != JobState.DONE for job in self.comparing):
            return Result.FAILED
        if any(each.is_regression for each in self.comparisons):
            return Result.WORSE
        if self.broken_rules:
            return Result.GATE_FAILED
        return Result.PASSED if all(job.has_ended for job in self.comparing) else None

    @property
    def broken_rules(self) -> tuple[str, ...]:
        """Rules of the gate that an evaluation breaks whose figures count, or an experiment."""
        if self.job.outcome is not None:
            return tuple(self.job.outcome.failed_rules)
        return tuple(dict.fromkeys(rule for each in self.evaluations for rule in each.broken_rules))

    def lines(self) -> Iterator[str]:
        """The result, for people: why a job failed, figures, verdicts, broken rules."""
        for job in (self.job, *self.comparing):
            yield from (f"error: job {job.id}: {problem.problem.sentence()}" for problem in job.problems)
        if self.job.outcome is not None:
            yield from outcome_lines(self.job.outcome)
        for each in self.evaluations:
            mean, n = (None, 0) if each.summary is None else (each.summary.mean, each.summary.n)
            void = f"VOID: {'; '.join(each.void)}: " if each.void else ""
            value = "null" if mean is None else f"{mean:.4f}"
            yield f"evaluation {each.id}: {each.label}: {void}{each.primary or ''} {value}, n={n}"
        yield from (f"comparison {each.id}: {each.record.verdict_sentence}" for each in self.comparisons)
        yield from (f"gate: failed: {rule}" for rule in self.broken_rules)


def outcome_lines(outcome: BenefitOutcome) -> Iterator[str]:
    """What an experiment came to; an invalid one has no verdicts."""
    if outcome.unchanged:
        yield f"nothing changed since {outcome.file} of {outcome.made_at}: no cell was run"
    else:
        yield f"result: {outcome.file}"
    yield outcome.sentence
    yield from (f"VOID: {each}" for each in outcome.void)
    yield from (f"{stratum}: {verdict}" for stratum, verdict in outcome.verdicts.items())
    yield from (f"caveat: {each}" for each in outcome.caveats)


@dataclass(frozen=True)
class WatchState:
    """Where a schedule stands."""

    name: str
    testset: str | None
    """None: it is of an experiment."""
    benefit: str | None
    """Plan of an experiment."""
    upcoming: tuple[datetime, ...]
    """The next times with their delays, in the zone of the schedule."""
    running: JobInfo | None
    """Its job that has not ended."""
    last: LastRun | None
    n_skipped: int
    """Times that passed while the last job was waiting or running."""
    uncompared: Uncompared | None
    """Why the evaluations have no comparison; None: they have, or will have when their job is done."""
    overdue: str
    """Says that the refresh of its test set is overdue; empty: it is not, or the test set cannot be read."""
    problems: tuple[Problem, ...]
    """Why it cannot run: names that the config does not have, a test set that cannot be read."""

    def notes(self) -> Iterator[str]:
        """Everything else that a person has to know, beside the result."""
        yield from (f"error: {problem.sentence()}" for problem in self.problems)
        if self.last is not None and not self.last.comparisons and self.uncompared in UNCOMPARED:
            yield f"not compared: {UNCOMPARED[self.uncompared]}"
        if self.n_skipped:
            yield f"skipped: {count_noun(self.n_skipped, 'times')}, while a job was waiting or running"
        if self.overdue:
            yield self.overdue

    def as_json(self) -> dict[str, object]:
        """The state for programs; times in ISO 8601."""
        last = self.last
        return {
            "name": self.name,
            "testset": self.testset,
            "benefit": self.benefit,
            "next": [time.isoformat() for time in self.upcoming],
            "running": self.running and self.running.id,
            "job": last and last.job.id,
            "result": last and last.result,
            "evaluations": [each.id for each in last.evaluations] if last else [],
            "comparisons": [{"id": each.id, "verdict": each.record.verdict} for each in last.comparisons]
            if last
            else [],
            "outcome": last and last.job.outcome and last.job.outcome.model_dump(mode="json"),
            "failed_rules": list(last.broken_rules) if last else [],
            "uncompared": self.uncompared,
            "skipped": self.n_skipped,
            "notes": list(self.notes()),
        }


def watch_states(service: Service, *, as_it_stands: bool = False) -> list[WatchState]:
    """The state of every schedule, in the order of the operator's file; `as_it_stands` as of `overdue_note`."""
    scheduler = Scheduler(service)
    return [watch_state(scheduler, schedule, as_it_stands=as_it_stands) for schedule in scheduler.schedules()]


def watch_state(scheduler: Scheduler, schedule: Schedule, *, as_it_stands: bool = False) -> WatchState:
    """The state of a schedule."""
    service, watch, now = scheduler.service, schedule.watch, scheduler.now()
    newest = next(iter(service.jobs.scheduled(schedule.prefix, 1)), None)
    last = last_run(service, schedule)
    found = (scheduler.baseline_of(schedule, each) for each in (last.evaluations if last else ()))
    overdue, problems = "", list(_unknown_names(service, schedule))
    try:
        if isinstance(watch, Watch):
            overdue = overdue_note(service, watch.testset, now.date(), as_it_stands=as_it_stands)
        else:
            load_plan(service.workbench.folder / watch.benefit)
    except CranfieldError as error:
        problems += error.problems
    return WatchState(
        name=schedule.name,
        testset=watch.testset if isinstance(watch, Watch) else None,
        benefit=watch.benefit if isinstance(watch, BenefitWatch) else None,
        upcoming=tuple(time.astimezone(zone_of(watch.zone)) for time in islice(schedule.upcoming(now), UPCOMING)),
        running=None if newest is None or newest.has_ended else newest,
        last=last,
        n_skipped=0 if newest is None else schedule.n_skipped(newest, now),
        uncompared=next((each for each in found if isinstance(each, Uncompared)), None),
        overdue=overdue,
        problems=tuple(problems),
    )


def last_run(service: Service, schedule: Schedule) -> LastRun | None:
    """The last run of a schedule that has ended."""
    jobs = service.jobs.scheduled(schedule.prefix, JOBS_LOOKED_AT)
    job = next((each for each in jobs if each.has_ended), None)
    if job is None:
        return None
    evaluations = service.evaluations.for_job(job.id)
    comparing = [found for each in evaluations for found in service.jobs.scheduled(schedule.compare_key(each.id), 1)]
    made = (service.comparisons.for_job(each.id) for each in comparing)
    return LastRun(job, evaluations, tuple(comparing), tuple(each for each in made if each is not None))


def _unknown_names(service: Service, schedule: Schedule) -> Iterator[Problem]:
    """What the schedule names and the config does not have."""
    config, watch = service.config(), schedule.watch
    for name in watch.systems if isinstance(watch, Watch) else ():
        known = () if config is None else config.systems
        if name not in known:
            yield unknown_name("system", name, known)
