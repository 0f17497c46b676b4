"""What a job made, as the request that began it answers; from the values of the service to the models of the API."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response
from pydantic import BaseModel, RootModel
from starlette.concurrency import run_in_threadpool

from cranfield.base.errors import Problem
from cranfield.workbench.server.error_handlers import error_response
from cranfield.workbench.server.http_errors import RefusedRequestError
from cranfield.workbench.server.v1.common import RETRY_S, answer, service_of
from cranfield.workbench.service.jobs import POLL_INTERVALS_S
from cranfield.workbench.service.responses import (
    BenefitOutcome,
    ComparedRow,
    ComparisonResponse,
    ErrorResponse,
    EvaluationResponse,
    JobResponse,
    Judgment,
    QueryResponse,
    QueryRow,
    QuerySide,
)
from cranfield.workbench.service.scoring import QUERY_TYPES

if TYPE_CHECKING:
    from cranfield.measures import Measure
    from cranfield.model import Query, TestSet
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo, JobInfo, Json

WAIT_S = 10.0
"""How long a request waits for its job, where `Prefer` does not say."""
MAX_WAIT_S = 120.0
_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,18})\"?\s*(?:$|[,;])")
SYSTEM_FAILED = 424
JOB_LINKS: dict[str, Any] = {
    name: {"operationId": operation, "parameters": {"job_id": "$response.body#/id"}}
    for name, operation in {
        "job": "get_job",
        "result": "get_job_result",
        "cancel": "cancel_job",
        "retry": "retry_job",
    }.items()
}


class ResultResponse(RootModel[EvaluationResponse | list[EvaluationResponse] | ComparisonResponse | BenefitOutcome]):
    """An evaluation, a list of evaluations (one per system), a comparison, or an experiment result."""


RESULT_RESPONSES: dict[int | str, dict[str, Any]] = {
    202: {
        "model": JobResponse,
        "description": "Not finished yet: `Location` is the address of the job.",
        "links": JOB_LINKS,
        "headers": {
            "Location": {"schema": {"type": "string"}, "description": "Address of the job."},
            "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."},
        },
    },
    SYSTEM_FAILED: {
        "model": ErrorResponse,
        "description": "A system under test failed or timed out, so there is no evaluation.",
    },
}


def seconds_to_wait(prefer: str | None) -> float:
    """How long a request waits, by its header `Prefer`: `wait=N`, or `respond-async`."""
    found = _WAIT.search(prefer or "")
    if found:
        return min(float(found[1]), MAX_WAIT_S)
    return 0.0 if "respond-async" in (prefer or "") else WAIT_S


async def ended(request: Request, job_id: int, seconds: float) -> JobInfo:
    """Wait for a job, without holding a thread; until the time is over, the server stops or the caller has gone."""
    jobs, stopping = service_of(request).jobs, request.app.state.stopping
    loop = asyncio.get_running_loop()
    until, looks = loop.time() + seconds, 0
    found: JobInfo = await run_in_threadpool(jobs.get, job_id)
    while not found.has_ended and loop.time() < until and not stopping.is_set():
        await asyncio.sleep(min(POLL_INTERVALS_S[min(looks, len(POLL_INTERVALS_S) - 1)], max(0.0, until - loop.time())))
        if await request.is_disconnected():
            break
        looks += 1
        found = await run_in_threadpool(jobs.get, job_id)
    return found


def result_of(request: Request, job: JobInfo) -> Response:
    """The answer of a job: 200 with its result, 202 with the job where it has not ended, an error where it failed."""
    place = f"/v1/jobs/{job.id}"
    if not job.has_ended:
        return answer(JobResponse.model_validate(job), 202, {"Location": place, "Retry-After": "1"})
    if job.state == "cancelled":
        raise RefusedRequestError(409, f"job {job.id} was cancelled", f"POST {place}/retry runs it again", "cancelled")
    if job.state == "failed":
        return _failed(request, job)
    service = service_of(request)
    if job.kind == "compare":
        return answer(whole_comparison(service, job.results[0]), headers={"Content-Location": place + "/result"})
    if job.outcome is not None:
        return answer(job.outcome, headers={"Content-Location": place + "/result"})
    found = [whole_evaluation(service, each) for each in job.results]
    body: Any = found[0] if len(found) == 1 else found
    return answer(ResultResponse(body), headers={"Content-Location": place + "/result"})


def _failed(request: Request, job: JobInfo) -> Response:
    problems = [each.problem for each in job.problems] or [Problem(f"job {job.id} failed")]
    code = job.problems[0].code if job.problems else "internal"
    status = {"input": 422, "usage": 422, "system": SYSTEM_FAILED, "time_limit": SYSTEM_FAILED, "internal": 500}.get(
        code, 503
    )
    headers = {"Location": f"/v1/jobs/{job.id}"} | ({"Retry-After": str(RETRY_S)} if status == 503 else {})
    return error_response(request, status, problems, code=code, headers=headers)


def whole_evaluation(service: Service, evaluation_id: int) -> EvaluationResponse:
    """An evaluation with every query."""
    return evaluation_response(service.evaluations.get(evaluation_id), service.evaluations.payload(evaluation_id))


def whole_comparison(service: Service, comparison_id: int) -> ComparisonResponse:
    """A comparison with every query."""
    return comparison_response(service.comparisons.get(comparison_id), service.comparisons.payload(comparison_id))


def metric_keys(measures: Iterable[Measure]) -> dict[Measure, str]:
    """Each measure to its key in `metrics`; to its spelling where two have one key."""
    from cranfield.measures.catalogue import measure_key

    keys: dict[Measure, str] = {}
    for measure in measures:
        key = measure_key(measure)
        keys[measure] = measure.canonical if key in keys.values() else key
    return keys


def evaluation_response(info: EvaluationInfo, result: Json | None = None) -> EvaluationResponse:
    """An evaluation; without the JSON of its whole result without its queries."""
    from cranfield.model.results import to_jsonable

    measures, strata = info.scores.measures, info.strata
    types = next((strata[name] for name in QUERY_TYPES if name in strata), {})
    keys = metric_keys(dict.fromkeys(chain(measures, *types.values())))
    return EvaluationResponse(
        **fields_of(info, EvaluationResponse)
        | fields_of(info.facts, EvaluationResponse)
        | {
            "metrics": {keys[measure]: summary.mean for measure, summary in measures.items()},
            "per_query_type": {
                value: {keys[measure]: summary.mean for measure, summary in found.items()}
                for value, found in types.items()
            },
            "testset": f"{info.testset_name}@{info.testset_id}",
            "primary": None if info.primary is None else info.primary.canonical,
            "components": info.components.split(",") if info.components else [],
            "result": to_jsonable(info.record) if result is None else result,
        }
    )


def comparison_response(info: ComparisonInfo, result: Json | None = None) -> ComparisonResponse:
    """A comparison; without the JSON of its whole result without its queries."""
    from cranfield.model.results import to_jsonable

    return ComparisonResponse(
        **fields_of(info, ComparisonResponse)
        | {
            "void": [f"{side}: {reason}" for side in ("baseline", "candidate") for reason in getattr(info, side).void],
            "baseline": info.baseline.id,
            "candidate": info.candidate.id,
            "result": to_jsonable(info.record) if result is None else result,
        }
    )


def fields_of(found: object, model: type[BaseModel]) -> dict[str, Any]:
    """What has the same name in a value of the service and in a model."""
    return {name: getattr(found, name) for name in model.model_fields if hasattr(found, name)}


def query_response(testset: TestSet, query: Query) -> QueryResponse:
    """A query with what is expected for it."""
    judgments = [
        Judgment(doc=doc, kind="document", grade=grade) for doc, grade in testset.grades.get(query.id, {}).items()
    ]
    for target in testset.targets.get(query.id, ()):
        kind: Any = type(target).__name__.lower()
        judgments.append(Judgment(doc=target.label, kind=kind, grade=float(target.grade)))
    values = fields_of(query, QueryResponse) | {
        "negative": query.negative is not None,
        "floors": dict(query.floors),
        "forbidden": [target.label for target in testset.forbidden.get(query.id, ())],
        "judgments": judgments,
    }
    return QueryResponse(**values)


def query_rows(payload: Mapping[str, Any]) -> Iterator[QueryRow]:
    """The queries of the result of an evaluation, in the order of the test set."""
    for query_id, query in payload["queries"].items():
        yield QueryRow(id=query_id, **_query_fields(query), **_side_of(payload, query_id, query, 0))


def compared_rows(payload: Mapping[str, Any]) -> Iterator[ComparedRow]:
    """The queries of the result of a comparison, in the order of the test set."""
    for query_id, query in payload["queries"].items():
        first, second = (_side_of(payload, query_id, query, place) for place in (0, 1))
        yield ComparedRow(
            id=query_id,
            **_query_fields(query),
            difference={
                spelling: None if value is None or then is None else value - then
                for spelling, value in second["values"].items()
                for then in [first["values"].get(spelling)]
            },
            baseline=QuerySide(**first),
            candidate=QuerySide(**second),
        )


def _query_fields(query: Mapping[str, Any]) -> dict[str, Any]:
    return {"text": query["text"], "strata": query.get("strata", {})}


def _side_of(payload: Mapping[str, Any], query_id: str, query: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Values and results of one system for a query."""
    system = payload["systems"][place]
    side: Mapping[str, Any] = next((each for each in query["sides"] if each["system"] == system["name"]), {})
    return {
        "unscored": system["unscored"].get(query_id, {}),
        "values": system["queries"].get(query_id, {}),
        "outcome": side.get("outcome"),
        "reason": side.get("reason"),
        "hits": side.get("hits", []),
    }
