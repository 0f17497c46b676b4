"""The queue of jobs: who has which, until when, and what became of it.

A worker claims a job for the time of a lease, and renews the lease while it works. Each claim has a number, the fence, which
is one more than that of the claim before. All that a worker writes of a job is written only while its fence is the last one:
a worker that was stalled, and whose job another has taken meanwhile, changes nothing.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import cast

from pydantic import BaseModel
from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cranfield.base.errors import Problem, UsageError
from cranfield.books.database.engine import Clock, Database
from cranfield.books.store.rows import as_value
from cranfield.workbench.service.requests import (
    BenefitRequest,
    CompareRequest,
    CompareResultsRequest,
    EvaluateRequest,
    JobRequest,
)
from cranfield.workbench.service.responses import BenefitOutcome, JobKind, JobState, Trigger
from cranfield.workbench.service.store.blobs import ServicePart, account_names, row_of
from cranfield.workbench.service.store.comparisons import add_comparison
from cranfield.workbench.service.store.evaluations import add_evaluation
from cranfield.workbench.service.store.schema import Job, StoredComparison, StoredEvaluation
from cranfield.workbench.service.values import Claim, JobInfo, JobProblem, NewComparison, NewEvaluation, Result

KINDS: Mapping[type[JobRequest], JobKind] = {
    EvaluateRequest: JobKind.EVALUATE,
    CompareRequest: JobKind.COMPARE,
    CompareResultsRequest: JobKind.COMPARE,
    BenefitRequest: JobKind.BENEFIT,
}
MAX_ATTEMPTS = 3
"""Claims of a job whose worker died each time; then it has failed."""
DIED = "the process of the job ended before the job was complete, {n} times"


class ProblemCode(StrEnum):
    """What kind of problem made a job fail."""

    INPUT = "input"
    """A file of the config, a test set or a run."""
    USAGE = "usage"
    """The request."""
    SYSTEM = "system"
    """The system under test: a check before the first query failed, or it cannot be started."""
    TIME_LIMIT = "time_limit"
    DIED = "died"
    """The process of the job, or its server, ended each time."""
    INTERNAL = "internal"
    """A bug; the server log has the reason."""


class QueueFullError(UsageError):
    """An account has as many jobs in the queue as the limits allow."""


class KeyConflictError(UsageError):
    """The idempotency key is that of another request."""


class StoredJobs(ServicePart):
    """Jobs. The side of the workers is from `claim` on."""

    def __init__(self, database: Database, clock: Clock, lease_s: float = 60.0) -> None:
        super().__init__(database, clock)
        self._lease_ms = round(lease_s * 1000)
        self.submitted = threading.Event()
        """A job was put into the queue by this process."""

    def add(
        self,
        request: JobRequest,
        trigger: Trigger,
        by: int | None = None,
        key: str | None = None,
        *,
        most_queued: int | None = None,
    ) -> JobInfo:
        """Put a request into the queue, without checks of its names; see `Jobs.submit`."""
        found = self._of_key(key, request)
        if found is not None:
            return found
        now = self._clock()
        row = Job(
            kind=KINDS[type(request)],
            state=JobState.QUEUED,
            trigger=trigger,
            request=request.model_dump(mode="json"),
            key=key,
            progress=_waits_for(request),
            account_id=by,
            created_at=now,
            changed_at=now,
        )
        try:
            with self._database.write() as session:
                if most_queued is not None:
                    _refuse_more(session, by, most_queued)
                session.add(row)
                session.flush()
                added = _info(session, row)
        except IntegrityError:
            if found := self._of_key(key, request):  # another call with this key was faster
                return found
            raise
        self.submitted.set()
        return added

    def get(self, job_id: int) -> JobInfo:
        """A job.

        Raises:
            UnknownNameError: there is none of this number.
        """
        with self._database.read() as session:
            return _info(session, _row(session, job_id))

    def all(
        self, state: JobState | None = None, limit: int = 50, before: int | None = None, *, by: int | None = None
    ) -> tuple[JobInfo, ...]:
        """The latest first; in one state, with ids under `before`, of one account, where these are given."""
        query = select(Job).order_by(Job.id.desc()).limit(limit)
        if state is not None:
            query = query.where(Job.state == state)
        if before is not None:
            query = query.where(Job.id < before)
        if by is not None:
            query = query.where(Job.account_id == by)
        with self._database.read() as session:
            return _infos(session, session.scalars(query).all())

    def scheduled(self, prefix: str, limit: int = 20) -> tuple[JobInfo, ...]:
        """Jobs of schedules whose keys begin so, the latest first."""
        begins = Job.key.startswith(prefix, autoescape=True)
        query = select(Job).where(Job.trigger == Trigger.WATCH, begins).order_by(Job.id.desc()).limit(limit)
        with self._database.read() as session:
            return _infos(session, session.scalars(query).all())

    def counts(self) -> dict[JobState, int]:
        """How many jobs are in each state."""
        query = select(Job.state, func.count()).group_by(Job.state)
        with self._database.read() as session:
            found = dict(session.execute(query).all())
        return {state: found.get(state, 0) for state in JobState}

    def last_change(self) -> int:
        """When a job changed last; 0 without jobs."""
        with self._database.read() as session:
            return session.scalar(select(func.max(Job.changed_at))) or 0

    def cancel(self, job_id: int) -> JobInfo:
        """Stop a job: at once where it is queued; a running one ends a moment later. One that is ended stays as it is."""
        with self._database.write() as session:
            row = _row(session, job_id, lock=True)
            if row.state == JobState.QUEUED:
                self._set_end(row, JobState.CANCELLED)
            if row.state == JobState.RUNNING:
                row.cancel, row.changed_at = True, self._clock()
            session.flush()
            return _info(session, row)

    def retry(self, job_id: int) -> JobInfo:
        """Queue a failed or cancelled job again; it continues with the stored answers.

        Raises:
            UsageError: it is neither.
        """
        with self._database.write() as session:
            row = _row(session, job_id, lock=True)
            if row.state not in {JobState.FAILED, JobState.CANCELLED}:
                raise UsageError(
                    f"job {job_id} is {row.state}",
                    expected="a failed or cancelled job",
                    hint="send the request again for a new evaluation",
                )
            row.state, row.cancel, row.problems, row.attempts = JobState.QUEUED, False, None, 0
            row.finished_at, row.progress, row.n_done, row.n_all = None, _waits_for(_request(row)), 0, 0
            row.changed_at = self._clock()
            session.flush()
            found = _info(session, row)
        self.submitted.set()
        return found

    def claim(self, worker: str, job_id: int | None = None) -> Claim | None:
        """Take the next job, or one whose worker has let its lease end; None where there is none.

        A job that was cancelled, or whose worker died too often, has ended with this claim: there is nothing to do for it.

        Args:
            worker: name of the server.
            job_id: take this one or none.
        """
        with self._database.read() as session:  # so that a queue without jobs costs no write
            turns = _turns(session, self._clock())
        for number in turns if job_id is None else [each for each in turns if each == job_id]:
            with self._database.write() as session:
                now = self._clock()
                late = and_(Job.state == JobState.RUNNING, Job.lease_until < now)
                free = select(Job).where(Job.id == number, or_(Job.state == JobState.QUEUED, late))
                row = session.scalar(free.with_for_update(skip_locked=True))
                if row is None:  # another worker was faster
                    continue
                row.fence += 1
                if row.cancel:
                    self._set_end(row, JobState.CANCELLED)
                elif row.attempts >= MAX_ATTEMPTS:
                    self._set_end(row, JobState.FAILED, [_died(row)])
                else:
                    row.state, row.worker, row.lease_until = JobState.RUNNING, worker, now + self._lease_ms
                    row.attempts, row.started_at, row.changed_at = row.attempts + 1, row.started_at or now, now
                return Claim(row.id, row.fence, worker)
        return None

    def renew(self, claim: Claim) -> bool:
        """Lengthen the lease; False where the job is another's or ended."""
        return self._change(claim, lease_until=self._clock() + self._lease_ms)

    def progress(self, claim: Claim, done: int, total: int, text: str) -> bool:
        """Say how far it is: `done` of `total` answers; False as `renew`."""
        return self._change(claim, n_done=done, n_all=total, progress=text, changed_at=self._clock())

    def finish(self, claim: Claim, results: Sequence[Result]) -> bool:
        """Store the results and end the job, both or neither; False as `renew`: nothing is stored."""
        with self._database.write() as session:
            row = session.scalar(select(Job).where(*_holds(claim)).with_for_update())
            if row is None:
                return False
            now = self._clock()
            for position, result in enumerate(results):
                if isinstance(result, NewEvaluation):
                    add_evaluation(session, row, position, result, now)
                elif isinstance(result, NewComparison):
                    add_comparison(session, row, result, now)
                else:
                    row.outcome = result.model_dump(mode="json")
            self._set_end(row, JobState.DONE)
            return True

    def fail(self, claim: Claim, problems: Sequence[JobProblem]) -> bool:
        """End the job, which cannot be done; False as `renew`."""
        return self._end(claim, JobState.FAILED, problems)

    def stopped(self, claim: Claim) -> bool:
        """End the job, which was cancelled; False as `renew`."""
        return self._end(claim, JobState.CANCELLED)

    def release(self, claim: Claim, *, is_failure: bool = False) -> bool:
        """Put the job back into the queue; False as `renew`.

        Args:
            claim: of this worker.
            is_failure: its process died: after `MAX_ATTEMPTS` of these the job has failed.
        """
        with self._database.write() as session:
            row = session.scalar(select(Job).where(*_holds(claim)).with_for_update())
            if row is None:
                return False
            if is_failure and row.attempts >= MAX_ATTEMPTS:
                self._set_end(row, JobState.FAILED, [_died(row)])
                return True
            row.state, row.lease_until, row.changed_at = JobState.QUEUED, None, self._clock()
            row.attempts -= 0 if is_failure else 1
            return True

    def _end(self, claim: Claim, state: JobState, problems: Sequence[JobProblem] = ()) -> bool:
        with self._database.write() as session:
            row = session.scalar(select(Job).where(*_holds(claim)).with_for_update())
            if row is not None:
                self._set_end(row, state, problems)
            return row is not None

    def _set_end(self, row: Job, state: JobState, problems: Sequence[JobProblem] = ()) -> None:
        row.state, row.lease_until = state, None
        row.finished_at = row.changed_at = self._clock()
        row.problems = [problem.model_dump() for problem in problems] or None

    def _change(self, claim: Claim, **values: object) -> bool:
        with self._database.write() as session:
            changed = session.scalar(update(Job).where(*_holds(claim)).values(**values).returning(Job.id))
            return changed is not None

    def _of_key(self, key: str | None, request: BaseModel) -> JobInfo | None:
        """The job of a key.

        Raises:
            KeyConflictError: it is of another request.
        """
        if key is None:
            return None
        with self._database.read() as session:
            row = session.scalar(select(Job).where(Job.key == key))
            if row is None:
                return None
            found = _info(session, row)
        if found.request != request:
            raise KeyConflictError(
                f"the key was used for job {found.id}, with a different request",
                path="key",
                hint="send the same request again, or choose another key",
            )
        return found


def _holds(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    """The job is running, and the claim is the last one."""
    return Job.id == claim.job, Job.fence == claim.fence, Job.state == JobState.RUNNING


def _refuse_more(session: Session, by: int | None, most: int) -> None:
    waiting = select(func.count()).where(Job.account_id == by, Job.state == JobState.QUEUED)
    if by is not None and (session.scalar(waiting) or 0) >= most:
        raise QueueFullError(
            f"{most} jobs of this account are already waiting",
            hint="wait for them, or cancel one (the limit: limits.queued_per_account)",
        )


def _turns(session: Session, now: int = 0) -> list[int]:
    """The jobs to take, in order: first those whose lease ended before `now`, then the queue, one job of each account in turn.

    An account that has sent many jobs so does not keep the others waiting. Schedules have no account, and count as one.
    A job that compares the results of others has no turn before these have ended.
    """
    query = select(Job.id, Job.account_id, Job.state, Job.lease_until, Job.request)
    rows = session.execute(query.where(Job.state.in_((JobState.QUEUED, JobState.RUNNING)))).all()
    open_jobs = {row.id for row in rows}
    before: Counter[int | None] = Counter()
    turns = []
    for row in sorted(rows, key=lambda row: (row.state == JobState.QUEUED, row.id)):
        number, account, state, lease_until, request = row
        if any(other in open_jobs for other in cast("list[int]", request.get("jobs", ()))):
            continue
        if state == JobState.QUEUED:
            turns.append((before[account], number))
        elif (lease_until or 0) < now:
            turns.append((-1, number))
        before[account] += 1
    return [number for _, number in sorted(turns)]


def _row(session: Session, job_id: int, *, lock: bool = False) -> Job:
    return row_of(session, Job, job_id, "job", lock=lock)


def _infos(session: Session, rows: Sequence[Job]) -> tuple[JobInfo, ...]:
    """Jobs as values: four queries, however many jobs."""
    results = _results(session, [row.id for row in rows if row.state == JobState.DONE])
    names = account_names(session, (row.account_id for row in rows))
    waiting = _turns(session) if any(row.state == JobState.QUEUED for row in rows) else []
    ahead = {number: place for place, number in enumerate(waiting)}
    return tuple(
        as_value(
            JobInfo,
            row,
            kind=JobKind(row.kind),
            state=JobState(row.state),
            trigger=Trigger(row.trigger),
            request=_request(row),
            account=names[row.account_id],
            problems=tuple(_problem(problem) for problem in row.problems or ()),
            results=tuple(results.get(row.id, ())),
            # another server may have claimed it since it was read
            ahead=ahead.get(row.id, 0) if row.state == JobState.QUEUED else 0,
            outcome=None if row.outcome is None else BenefitOutcome.model_validate(row.outcome),
        )
        for row in rows
    )


def _info(session: Session, row: Job) -> JobInfo:
    return _infos(session, [row])[0]


def _results(session: Session, jobs: Sequence[int]) -> dict[int | None, list[int]]:
    """Jobs with the ids of what they made: evaluations of some, the comparison of others."""
    found: dict[int | None, list[int]] = {}
    for made in (StoredEvaluation, StoredComparison) if jobs else ():
        for job, number in session.execute(select(made.job_id, made.id).where(made.job_id.in_(jobs)).order_by(made.id)):
            found.setdefault(job, []).append(number)
    return found


def _request(row: Job) -> JobRequest:
    """What a job is asked to do."""
    of_kind = next(model for model, kind in KINDS.items() if kind == row.kind)
    model = CompareResultsRequest if "jobs" in row.request else of_kind
    return model.model_validate(row.request)


def _waits_for(request: JobRequest) -> str:
    """What a job that compares the results of others waits for, for people."""
    if not isinstance(request, CompareResultsRequest):
        return ""
    jobs = " and ".join(str(number) for number in request.jobs)
    return f"starts when job {jobs} has ended" if len(request.jobs) == 1 else f"starts when jobs {jobs} have ended"


def _died(row: Job) -> JobProblem:
    hint = "the server log has its last lines; a retry continues with the stored answers"
    return job_problem(Problem(DIED.format(n=row.attempts), hint=hint), ProblemCode.DIED)


def _problem(stored: dict[str, object]) -> JobProblem:
    return JobProblem.model_validate({name: str(stored.get(name, "")) for name in JobProblem.model_fields})


def job_problem(problem: Problem, code: ProblemCode) -> JobProblem:
    """A problem as a job keeps it."""
    message = replace(problem, path=None).sentence()
    return JobProblem(message=message, where=problem.where, hint=problem.hint_sentence(), code=code)
