"""Scheduled evaluations and experiments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Exit, Status, say
from cranfield.books.options import DEFAULT_DATABASE, DbOption, WorkbenchOption, open_books
from cranfield.cli.ending import EXIT_USAGE
from cranfield.evaluation.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import JobInfo
    from cranfield.workbench.service.watch.scheduler import Schedule, Scheduler, WatchState

ConfigArgument = Annotated[
    Path,
    Argument("Systems, test sets and gate: cranfield.yaml.", metavar="CONFIG", env="CRANFIELD_CONFIG"),
]
OnceOption = Annotated[
    str | None, Option("Run this schedule once now, and print the result.", flag="--once", metavar="NAME")
]
ListOption = Annotated[
    bool, Option("List the schedules with their next times and last results; do not start any.", flag="--list")
]
JsonOption = Annotated[bool, Option("Print the list as JSON.", flag="--json")]


def watch_command(
    config: ConfigArgument = Path("cranfield.yaml"),
    *,
    workbench: WorkbenchOption = None,
    db: DbOption = DEFAULT_DATABASE,
    once: OnceOption = None,
    list_: ListOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run evaluations on a schedule, until interrupted.

    The evaluations and experiments of the block `watch:` of the operator's file, when they are due.

    `cranfield serve` does the same. With --once the exit code is 1 if a rule of the gate fails or the verdict is worse, and 3 if the
    result is void.
    """
    from cranfield.base.errors import UsageError
    from cranfield.base.platforms import SERVER, require
    from cranfield.workbench.config import load_workbench

    require(SERVER)
    if workbench is None:
        raise UsageError("no operator's file", expected="--workbench FILE, whose block `watch:` has the schedules")
    operator = load_workbench(workbench)
    if not operator.watch:
        raise UsageError("the file has no schedules", path=str(workbench), expected="a block `watch:`")
    with closing(open_books(db, create=not list_)) as store:
        from cranfield.workbench.service.service import open_service
        from cranfield.workbench.service.watch.scheduler import Scheduler

        service = open_service(store, config, operator)
        scheduler = Scheduler(service)
        if list_:
            _print_list(service, as_json=as_json)
        elif once is not None:
            raise Exit(_run_once(scheduler, scheduler.schedule(once)))
        else:
            _run(service, scheduler)


def _run(service: Service, scheduler: Scheduler) -> None:
    """Run schedules and jobs until interrupted; a job that runs then goes back to the queue."""
    import threading

    from cranfield.workbench.server.logs import configure_logs
    from cranfield.workbench.service.webhooks import sending
    from cranfield.workbench.service.worker import working

    configure_logs("auto")
    for schedule in scheduler.schedules():
        time = next(schedule.upcoming(scheduler.now()), None)
        say(f"{schedule.name}: next at {time:%Y-%m-%d %H:%M:%S} UTC")
    public = service.workbench.server.url
    with sending(service, public) as job_ended, working(service, on_end=job_ended):
        scheduler.run(threading.Event())


def _run_once(scheduler: Scheduler, schedule: Schedule) -> int:
    """Run a schedule in this process, and print its result; the exit code."""
    from cranfield.workbench.service.watch.scheduler import Result, watch_state
    from cranfield.workbench.service.webhooks import sending
    from cranfield.workbench.service.worker import run_job_inline

    service = scheduler.service
    with sending(service, service.workbench.server.url, to_the_end=True) as job_ended:
        job = run_job_inline(service, scheduler.start(schedule).id)
        job_ended(job)
        for comparison in scheduler.compare(schedule, job):
            job_ended(run_job_inline(service, comparison.id))
    state = watch_state(scheduler, schedule)
    say("\n".join((*_result_lines(state), *state.notes())))
    codes = {Result.VOID: Status.VOID, Result.WORSE: Status.FAILED, Result.GATE_FAILED: Status.FAILED, Result.PASSED: 0}
    result = state.last and state.last.result
    return codes.get(result, _exit_code_of_failure(job)) if result else Status.VOID


def _exit_code_of_failure(job: JobInfo) -> int:
    from cranfield.workbench.service.store.jobs import ProblemCode

    is_of_system = any(problem.code == ProblemCode.SYSTEM for problem in job.problems)
    return Status.VOID if is_of_system else EXIT_USAGE


def _print_list(service: Service, *, as_json: bool) -> None:
    import json

    from cranfield.workbench.service.watch.scheduler import watch_states

    states = watch_states(service, as_it_stands=True)
    if as_json:
        say(json.dumps([state.as_json() for state in states], indent=2, ensure_ascii=False))
        return
    for state in states:
        say(f"{state.name}: {state.testset or state.benefit}")
        for line in _state_lines(state):
            say(f"  {line}")


def _state_lines(state: WatchState) -> Iterator[str]:
    yield "next: " + ", ".join(f"{time:%Y-%m-%d %H:%M %Z}" for time in state.upcoming)
    if state.running is not None:
        yield f"running: job {state.running.id}, {state.running.state}; the result is from the previous run"
    yield from _result_lines(state)
    yield from state.notes()


def _result_lines(state: WatchState) -> Iterator[str]:
    if state.last is None:
        yield "last: none"
        return
    yield f"last: job {state.last.job.id}, {state.last.result or 'not compared yet'}".replace("_", " ")
    yield from state.last.lines()
