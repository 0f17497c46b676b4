"""Evaluate, and compare: a request becomes a job, and is answered with its result where that does not take long."""

from __future__ import annotations

import io
import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ConfigDict, ValidationError
from starlette.concurrency import run_in_threadpool

from cranfield.workbench.server.access import Caller
from cranfield.workbench.server.http_errors import RefusedRequestError
from cranfield.workbench.server.v1.common import FORM, JSON, EitherWay, Evaluating, Route, service_of
from cranfield.workbench.server.v1.files import BINARY, SentForm, form_schema, sent_form
from cranfield.workbench.server.v1.results import RESULT_RESPONSES, ResultResponse, ended, result_of, seconds_to_wait
from cranfield.workbench.server.v1.testsets import QUERIES
from cranfield.workbench.service.requests import CompareRequest, EvaluateRequest, JobRequest

if TYPE_CHECKING:
    from cranfield.workbench.service.service import Service

router = APIRouter(route_class=Route)
uploads = APIRouter(route_class=Route)
"""Routes that take as much as the limits of the server allow."""
KEY_CHARS = 100
LISTS = ("systems", "runs", "components", "measures", "tags")
Prefer = Annotated[
    str | None,
    Header(
        max_length=200,
        pattern=r"^[ -~]*$",
        description="`wait=N` waits up to N seconds for the result; `respond-async` returns the job at once.",
    ),
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=KEY_CHARS,
        pattern=r"^[!-~]*$",
        description=(
            "Requests with the same key and body share one job, so a request can be resent if its answer was lost."
        ),
    ),
]
Components = Annotated[
    list[str] | None,
    Query(
        max_length=50,
        description="Evaluate only these components of the system; repeat, or separate by commas.",
    ),
]
FILES = {"testset": 1, "queries": 1, "runs": 20}
"""Fields that take files, and how many."""
FORM_FIELDS = {
    "testset": {**BINARY, "description": "A file or a name."},
    "runs": {"type": "array", "items": BINARY, "description": "Files, or ids."},
    "queries": QUERIES,
    "name": {
        "type": "string",
        "description": "Name of the uploaded test set; default: the declared name, else the file name.",
    },
    "format": {"type": "string", "description": "Format of the uploaded test set; default: detected from the content."},
    "run_format": {"type": "string", "description": "Format of the uploaded runs."},
    "systems": {"type": "array", "items": {"type": "string"}},
    "measures": {"type": "array", "items": {"type": "string"}},
}
TEXTS = frozenset({*EvaluateRequest.model_fields, "name", "format", "run_format"})
ABOUT_FORM = "The same fields as in JSON; repeat a field to pass a list. `testset` and `runs` may be files."
JSON_SCHEMA = EvaluateRequest.model_json_schema()
JSON_SCHEMA["properties"] |= {
    "testset": {
        "anyOf": [JSON_SCHEMA["properties"]["testset"], {"type": "object"}],
        "description": "A name, or a test set as JSON in any supported format.",
    },
    "name": FORM_FIELDS["name"],
    "format": FORM_FIELDS["format"],
}
REQUEST_BODY = {
    "required": True,
    "content": {
        JSON: {"schema": JSON_SCHEMA},
        **form_schema("testset", FORM_FIELDS, ABOUT_FORM),
    },
}


class CompareBody(CompareRequest):
    """Request body of a comparison."""

    model_config = ConfigDict(strict=True, title="CompareRequest")


@uploads.post(
    "/evaluate", response_model=ResultResponse, responses=RESULT_RESPONSES, openapi_extra={"requestBody": REQUEST_BODY}
)
async def evaluate(
    request: Request,
    caller: EitherWay,
    components: Components = None,
    prefer: Prefer = None,
    key: Key = None,
) -> Response:
    """Evaluate systems of the config, or runs, on a test set that is named or uploaded with the request.

        The response is an evaluation for one system, and a list for several. If the evaluation takes longer than `Prefer` allows,
    the response is 202 with the job.
    """
    service = service_of(request)
    is_form = request.headers.get("content-type", "").lower().startswith(FORM)
    if is_form:
        async with sent_form(request, caller, FILES, TEXTS, LISTS) as form:
            fields = await run_in_threadpool(_stored, service, form, caller)
    else:
        fields = await _json_of(request)
        if isinstance(fields.get("testset"), dict):
            fields = await run_in_threadpool(_stored_inline, service, fields, caller)
    if components:
        fields["components"] = [name for each in components for name in each.split(",") if name]
    sent = _checked(fields, strict=not is_form, queried={"components"} if components else set())
    if sent.book and caller.scope == "evaluate":
        raise RefusedRequestError(403, "a token of scope evaluate may not use a book", "scope: manage", "scope")
    return await _answered(request, sent, caller, prefer, key)


@router.post("/compare", response_model=ResultResponse, responses=RESULT_RESPONSES)
async def compare(
    request: Request, caller: Evaluating, sent: CompareBody, prefer: Prefer = None, key: Key = None
) -> Response:
    """Compare two stored evaluations of the same queries: candidate with baseline."""
    return await _answered(request, CompareRequest(**sent.model_dump()), caller, prefer, key)


async def _answered(
    request: Request, sent: JobRequest, caller: Caller, prefer: str | None, key: str | None
) -> Response:
    jobs = service_of(request).jobs
    own_key = None if key is None else f"api:{caller.account.id}:{key}"
    job = await run_in_threadpool(lambda: jobs.submit(sent, by=caller.account.id, key=own_key))
    job = await ended(request, job.id, seconds_to_wait(prefer))
    return await run_in_threadpool(result_of, request, job)


def _stored_inline(service: Service, fields: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """The fields of a JSON body with its test set stored and named, as a file of a form is."""
    from cranfield.workbench.service.uploads import Upload, save_testset

    testset = fields.pop("testset")
    name, format_name = (fields.pop(each, "") for each in ("name", "format"))
    if not isinstance(name, str) or not isinstance(format_name, str):
        raise RefusedRequestError(
            422, "name and format must be strings", "strings that describe the test set in the body", "invalid"
        )
    _checked({"testset": "uploaded", **fields}, strict=True)  # before anything is stored
    data = io.BytesIO(json.dumps(testset).encode())
    upload = Upload(data, "testset.json", format_name or None, None)
    return {**fields, "testset": save_testset(service, name, upload, caller.account.id).ref}


async def _json_of(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
    except ValueError as error:
        raise RefusedRequestError(422, f"the body is not JSON: {error}", code="invalid") from None
    except RecursionError:
        raise RefusedRequestError(422, "the body is nested too deeply", code="invalid") from None
    if not isinstance(found, dict):
        raise RefusedRequestError(422, "the body is not a JSON object", code="invalid")
    return found


def _checked(fields: dict[str, Any], *, strict: bool, queried: Collection[str] = ()) -> EvaluateRequest:
    """The request; in a form numbers are text, and some fields are parameters of the query."""
    try:
        return EvaluateRequest.model_validate_json(json.dumps(fields), strict=strict)
    except ValidationError as error:
        raise RequestValidationError(
            [
                {**each, "loc": ("query", each["loc"][0]) if each["loc"][0] in queried else ("body", *each["loc"])}
                for each in error.errors()
            ]
        ) from None


def _stored(service: Service, form: SentForm, caller: Caller) -> dict[str, Any]:
    """The fields of a form, with its files stored and named."""
    from cranfield.workbench.service.uploads import save_run, save_testset

    by = caller.account.id
    name, format_name, run_format = (form.pop(each) for each in ("name", "format", "run_format"))
    fields: dict[str, Any] = {key: values if key in LISTS else values[0] for key, values in form.texts.items()}
    if "params" in fields:
        try:
            fields["params"] = json.loads(fields["params"])
        except (ValueError, RecursionError):
            raise RefusedRequestError(422, "params is not JSON", code="invalid") from None
    testsets = form.uploads("testset", format_name)
    if testsets and "testset" in fields:
        raise RefusedRequestError(422, "two test sets", "testset is neither a file nor a name", "invalid")
    if not testsets and (form.files.get("queries") or name or format_name):
        hint = "queries, name and format require the file testset"
        raise RefusedRequestError(422, "no test set file", hint, "invalid")
    _checked({"testset": "uploaded", **fields}, strict=False)  # before anything is stored
    for upload in testsets:
        fields["testset"] = save_testset(service, name, upload, by).ref
    for upload in form.uploads("runs", run_format):
        fields.setdefault("runs", []).append(save_run(service, "", upload, by).id)
    return fields
