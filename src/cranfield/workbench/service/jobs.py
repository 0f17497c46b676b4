"""Jobs: a request is checked by name, put into the queue, and worked on by a server that has time."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cranfield.base.errors import CranfieldError, Problem, UnknownNameError, UsageError
from cranfield.workbench.service.experiments import benefit_watch
from cranfield.workbench.service.requests import (
    BenefitRequest,
    CompareRequest,
    CompareResultsRequest,
    EvaluateRequest,
    JobRequest,
)
from cranfield.workbench.service.responses import Trigger
from cranfield.workbench.service.store.jobs import StoredJobs
from cranfield.workbench.service.values import JobInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cranfield.workbench.service.context import Context

POLL_INTERVALS_S = (0.02, 0.05, 0.1, 0.25)
"""Seconds between two looks at a job that is waited for; the last one is repeated."""


class Jobs(StoredJobs):
    """The queue of jobs."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.store.database, context.clock, context.workbench.jobs.lease_s)
        self._context = context

    def submit(
        self, request: JobRequest, *, trigger: Trigger = Trigger.API, by: int | None = None, key: str | None = None
    ) -> JobInfo:
        """Put a request into the queue.

        Names are checked now: of the test set, systems, runs, variant, measures, convention. Everything that needs the files
        or the systems is checked by the job, whose `problems` say what is wrong.

        Args:
            request: what is to be done.
            trigger: what asked for it.
            by: id of the account that asked for it.
            key: idempotency key: the same key and the same request is one job, whatever became of it.

        Raises:
            UsageError: with all names that are unknown; more results than the limits allow; `QueueFullError`, `KeyConflictError`.
        """
        if found := self._of_key(key, request):
            return found
        if isinstance(request, EvaluateRequest):
            problems = list(_check_evaluate(self._context, request))
        elif isinstance(request, BenefitRequest):
            problems = list(_problems("schedule", partial(benefit_watch, self._context, request.schedule)))
        elif isinstance(request, CompareResultsRequest):
            checks = [(f"jobs[{place}]", partial(self.get, job)) for place, job in enumerate(request.jobs)]
            problems = [problem for where, check in checks for problem in _problems(where, check)]
        else:
            problems = list(_check_compare(self._context, request))
        if problems:
            raise UsageError(problems)
        limits = self._context.workbench.limits
        return self.add(request, trigger, by, key, most_queued=limits.queued_per_account)

    def wait(self, job_id: int, seconds: float) -> JobInfo:
        """Wait until a job is ended, or for so many seconds; the job as it is then."""
        until = time.monotonic() + seconds
        looks = iter(POLL_INTERVALS_S)
        pause = POLL_INTERVALS_S[-1]
        while not (found := self.get(job_id)).has_ended and time.monotonic() < until:
            pause = next(looks, pause)
            time.sleep(max(0.0, min(pause, until - time.monotonic())))
        return found


def _check_evaluate(context: Context, request: EvaluateRequest) -> Iterator[Problem]:
    """Problems of the names of a request."""
    from cranfield.model import convention_named
    from cranfield.workbench.service.systems import chosen_systems

    if request.book and not request.measures:
        hint = "name the measures, the primary one first"
        yield Problem("an evaluation in a book needs measures", path="measures", hint=hint)
    most = context.workbench.limits.k
    if request.k is not None and request.k > most:
        yield Problem(
            f"k is {request.k}", path="k", expected=f"{most} or less", hint="the limit is limits.k of the server"
        )
    checks: dict[str, Callable[[], object]] = {
        "testset": lambda: context.testsets.check(request.testset),
        "systems": lambda: chosen_systems(context, request),
        "book": lambda: context.store.books.get(request.book) if request.book else None,
        "measures": lambda: _check_measures(context, request),
        "convention": lambda: None if request.convention is None else convention_named(request.convention),
        **{f"runs[{place}]": partial(context.runs.get, run) for place, run in enumerate(request.runs)},
    }
    for where, check in checks.items():
        yield from _problems(where, check)


def _check_measures(context: Context, request: EvaluateRequest) -> None:
    """Refuse what is no measure, and in a book a measure that its scale has no map for."""
    from cranfield.measures import parse_all
    from cranfield.model import DEFAULT_CONVENTION
    from cranfield.workbench.service.live_measures import without_map

    measures = parse_all([*(request.measures or ()), *([request.primary] if request.primary else [])])
    if not request.book:
        return
    try:
        scale = context.store.books.get(request.book).settings.scale
    except UnknownNameError:
        return  # is a problem of its own
    config = context.config()
    convention = request.convention or (DEFAULT_CONVENTION if config is None else config.scoring().convention_name)
    if problems := list(without_map(measures, scale.grades, convention)):
        raise UsageError(problems)


def _check_compare(context: Context, request: CompareRequest) -> Iterator[Problem]:
    from cranfield.evaluation.options.blocks import CompareOptions
    from cranfield.evaluation.options.keys import given_keys
    from cranfield.measures import parse

    for where, number in (("baseline", request.baseline), ("candidate", request.candidate)):
        yield from _problems(where, partial(_refuse_judged, context, number))
    yield from _problems("candidate", partial(_check_pair, context, request))
    if (spelling := request.measure) is not None:
        yield from _problems("measure", lambda: parse(spelling))
    yield from _problems("", lambda: CompareOptions(**given_keys(CompareOptions, request)))


def _check_pair(context: Context, request: CompareRequest) -> None:
    """Refuse one evaluation twice, and two of different test sets: their comparison would end in an error."""
    from cranfield.workbench.service.results import check_two

    check_two(request.baseline, request.candidate)
    try:
        sides = [context.evaluations.get(number) for number in (request.baseline, request.candidate)]
    except UnknownNameError:
        return  # is a problem of its own
    if sides[0].testset_digest != sides[1].testset_digest:
        raise UsageError(
            "the evaluations have different queries or judgments",
            got=" and ".join(f"#{each.id} on {each.testset_name}@{each.testset_id}" for each in sides),
            hint="evaluate both on one version of a test set",
        )


def _refuse_judged(context: Context, evaluation_id: int) -> None:
    """Refuse an evaluation whose figures follow a book: its comparison would not stay true."""
    info = context.evaluations.get(evaluation_id)
    if info.book_id is not None:
        raise UsageError(
            f"evaluation {info.id} is still being judged, so its figures change",
            hint="freeze the grades on its page to compare",
        )


def _problems(where: str, check: Callable[[], object]) -> Iterator[Problem]:
    try:
        check()
    except CranfieldError as error:
        for problem in error.problems:
            yield replace(problem, path=problem.path or where or next(iter(problem.parameters), None))
