"""Where each schedule stands, for lists, pages and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from cranfield.base.errors import CranfieldError, Problem, unknown_name
from cranfield.base.words import count_noun
from cranfield.benefit.plan import load_plan
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.workbench.service.responses import JobState
from cranfield.workbench.service.watch.scheduler import JOBS_LOOKED_AT, Scheduler, Uncompared, overdue_note
from cranfield.workbench.service.watch.times import Schedule
from cranfield.workbench.watch_config import BenefitWatch, Watch, zone_of

if TYPE_CHECKING:
    from cranfield.workbench.service.outcome import BenefitOutcome
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo, JobInfo

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
        is_invalid = any(each.verdict == VerdictCode.INVALID for each in self.comparisons)
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
            primary = each.figures.primary or ""
            figure = each.figures.measures.get(primary, {})
            mean = figure.get("mean")
            void = f"VOID: {'; '.join(each.void)}: " if each.void else ""
            value = "null" if mean is None else f"{mean:.4f}"
            yield f"evaluation {each.id}: {each.label}: {void}{primary} {value}, n={figure.get('n', 0)}"
        yield from (f"comparison {each.id}: {each.sentence}" for each in self.comparisons)
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
            "comparisons": [{"id": each.id, "verdict": each.verdict} for each in last.comparisons] if last else [],
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
