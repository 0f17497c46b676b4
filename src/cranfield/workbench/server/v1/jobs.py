"""Jobs: where they stand, their progress as events, their results, cancelling and trying again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from cranfield.workbench.server.access import Access, Caller
from cranfield.workbench.server.http_errors import RefusedRequestError
from cranfield.workbench.server.streams import events
from cranfield.workbench.server.v1.common import (
    DEFAULT_LIMIT,
    RESULTS,
    Cursor,
    Evaluating,
    Limit,
    Results,
    Route,
    answer,
    page_of,
    service_of,
)
from cranfield.workbench.server.v1.results import RESULT_RESPONSES, ResultResponse, result_of
from cranfield.workbench.service.responses import JobResponse, JobState, Page
from cranfield.workbench.service.values import JobInfo

router = APIRouter(route_class=Route)
JobId = Annotated[int, Path(ge=1, lt=2**63, description="Id of the job.")]


@router.get("/jobs")
def list_jobs(
    request: Request,
    caller: Results,
    state: Annotated[JobState | None, Query()] = None,
    of: Annotated[Literal["all", "me"], Query(description="`me`: only jobs of this account.")] = "all",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[JobResponse]:
    """List the jobs, the latest first."""
    by = caller.account.id if of == "me" else None
    found = service_of(request).jobs.all(state, limit + 1, cursor, by=by)
    return page_of(request, found, limit)


@router.get("/jobs/{job_id}", response_model=JobResponse, dependencies=[RESULTS])
def get_job(request: Request, job_id: JobId) -> JobInfo:
    """Give a job."""
    return service_of(request).jobs.get(job_id)


@router.get("/jobs/{job_id}/result", response_model=ResultResponse, responses=RESULT_RESPONSES, dependencies=[RESULTS])
def get_job_result(request: Request, job_id: JobId) -> Response:
    """Give the result of a job, as in the response to the original request: evaluations or a comparison; while the job runs, the job."""
    return result_of(request, service_of(request).jobs.get(job_id))


@router.post("/jobs/{job_id}/cancel", response_model=JobResponse)
def cancel_job(request: Request, caller: Evaluating, job_id: JobId) -> JobInfo:
    """Cancel a job. A running job ends a moment later; an ended job does not change."""
    jobs = service_of(request).jobs
    _refuse_others(caller, jobs.get(job_id))
    return jobs.cancel(job_id)


@router.post("/jobs/{job_id}/retry", response_model=JobResponse, status_code=202)
def retry_job(request: Request, caller: Evaluating, job_id: JobId) -> Response:
    """Queue a failed or cancelled job again; it continues with the stored answers."""
    jobs = service_of(request).jobs
    found = jobs.get(job_id)
    _refuse_others(caller, found)
    if found.state not in {"failed", "cancelled"}:
        raise RefusedRequestError(
            409, f"job {job_id} is {found.state}", "only a failed or cancelled job can be retried", "state"
        )
    return answer(JobResponse.model_validate(jobs.retry(job_id)), 202, {"Location": f"/v1/jobs/{job_id}"})


def _refuse_others(caller: Caller, job: JobInfo) -> None:
    """A token that may evaluate, and not manage, changes the jobs of its account alone."""
    if caller.scope == "evaluate" and job.account_id != caller.account.id:
        raise RefusedRequestError(403, "the job belongs to another account", "scope: manage", "scope")


def found_job(request: Request, job_id: JobId) -> int:
    """The job of the path: an unknown one is refused before a stream begins."""
    return int(service_of(request).jobs.get(job_id).id)


@router.get("/jobs/{job_id}/events", response_class=EventSourceResponse)
async def job_events(
    request: Request, caller: Results, job_id: Annotated[int, Depends(found_job)]
) -> AsyncIterator[ServerSentEvent]:
    """Send the job whenever it changes, as events `progress` and finally `ended`; the data is the job."""
    jobs = service_of(request).jobs
    async for event in events(
        request,
        caller,
        Access.RESULTS,
        lambda: JobResponse.model_validate(jobs.get(job_id)),
        _event_of,
        lambda job: job.has_ended,
    ):
        yield event


def _event_of(job: JobResponse) -> ServerSentEvent:
    name = "ended" if job.has_ended else "progress"
    return ServerSentEvent(raw_data=job.model_dump_json(), event=name, id=str(job.changed_at), retry=2000)
