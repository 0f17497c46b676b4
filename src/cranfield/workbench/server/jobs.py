"""Jobs: the queue, the progress of a job as it goes, cancel, retry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from cranfield.workbench.server.access import Access, Caller, require
from cranfield.workbench.server.pages import render_page, see_other
from cranfield.workbench.server.results import service_of
from cranfield.workbench.server.streams import events, number_event
from cranfield.workbench.server.tables import (
    MAX_CSV,
    JobNames,
    csv_response,
    job_subject,
    job_table,
    list_caption,
    listed,
    schedule_table,
    state_cell,
)
from cranfield.workbench.server.v1.jobs import found_job
from cranfield.workbench.service.responses import EvaluationState, JobKind, JobState
from cranfield.workbench.service.tuning import shown_value
from cranfield.workbench.service.watch.scheduler import outcome_lines, watch_states

if TYPE_CHECKING:
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import JobInfo

router = APIRouter()
Reader = Annotated[Caller, Depends(require("results"))]
Evaluator = Annotated[Caller, Depends(require("evaluate"))]
PAGE = 50


@router.get("/jobs")
def jobs(
    request: Request,
    caller: Reader,
    *,
    chosen: Annotated[JobState | Literal[""], Query(alias="state")] = "",
    before: int | None = None,
    form: Annotated[str, Query(alias="format")] = "",
) -> Response:
    """List jobs, the latest first."""
    service, state = service_of(request), chosen or None
    if form == "csv":
        found = service.jobs.all(state, limit=MAX_CSV)
        names, waiting = JobNames.read(service, found), _waiting(service, found)
        return csv_response(job_table(found, "", names=names, waiting=waiting), "jobs")
    event = service.jobs.last_change()  # before the jobs are read: a later change is shown by the script
    found = service.jobs.all(state, limit=PAGE + 1, before=before)
    caption = list_caption("Jobs", whole=before is None and len(found) <= PAGE)
    names, waiting = JobNames.read(service, found[:PAGE]), _waiting(service, found)
    jobs_here = job_table(found[:PAGE], caption, names=names, waiting=waiting)
    table = schedule_table(watch_states(service))
    return render_page(
        request,
        "jobs.html",
        caller,
        event=event,
        state=state,
        states=list(JobState),
        n=len(found[:PAGE]),
        content=listed("jobs", "All jobs" if state is None else f"Jobs: {state}", jobs_here),
        worker_problem=service.worker_problem(),
        schedules=listed("schedules", "Schedules", table) if table.rows else "",
        before_id=found[PAGE - 1].id if len(found) > PAGE else None,
    )


def _waiting(service: Service, jobs: Sequence[JobInfo]) -> set[int]:
    """The evaluations of jobs that wait for grades."""
    made = {number for each in jobs if each.kind is JobKind.EVALUATE for number in each.results}
    infos = service.evaluations.named(made).values()
    return {info.id for info in infos if info.state is EvaluationState.WAITING}


@router.get("/jobs/live", response_class=EventSourceResponse)
async def jobs_live(request: Request, caller: Reader) -> AsyncIterator[ServerSentEvent]:
    """Notify the page when a job has changed."""
    jobs = service_of(request).jobs
    async for event in events(request, caller, Access.RESULTS, jobs.last_change, number_event):
        yield event


@router.get("/jobs/{job_id:id}")
def job(request: Request, caller: Reader, job_id: int) -> HTMLResponse:
    """Show a job: its progress, its results, or the reason for its failure."""
    service = service_of(request)
    info = service.jobs.get(job_id)
    made = () if info.kind is JobKind.COMPARE else service.evaluations.for_job(job_id)
    return render_page(
        request,
        "job.html",
        caller,
        info=info,
        subject=job_subject(info, JobNames.read(service, [info])),
        made=[(each, state_cell(each)) for each in made],
        outcome=[] if info.outcome is None else [*outcome_lines(info.outcome)],
        settings=[
            (name, _text_of(value))
            for name, value in info.request.model_dump(mode="json", exclude_defaults=True).items()
        ],
    )


def _text_of(value: object) -> str:
    """A value of a request: `yes`, `a, b`, `params.boost = 2`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} = {shown_value(each)}" for name, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@router.get("/jobs/{job_id:id}/live", response_class=EventSourceResponse)
async def job_live(
    request: Request, caller: Reader, job_id: Annotated[int, Depends(found_job)]
) -> AsyncIterator[ServerSentEvent]:
    """Notify the page when this job has changed."""
    jobs = service_of(request).jobs
    async for event in events(request, caller, Access.RESULTS, lambda: jobs.get(job_id).changed_at, number_event):
        yield event


@router.post("/jobs/{job_id:id}/cancel")
def cancel(request: Request, caller: Evaluator, job_id: int) -> Response:
    """Stop a job."""
    del caller
    service_of(request).jobs.cancel(job_id)
    return see_other(f"/jobs/{job_id}", done="cancelled")


@router.post("/jobs/{job_id:id}/retry")
def retry(request: Request, caller: Evaluator, job_id: int) -> Response:
    """Put a job that failed or was cancelled into the queue again."""
    del caller
    service_of(request).jobs.retry(job_id)
    return see_other(f"/jobs/{job_id}", done="queued")
