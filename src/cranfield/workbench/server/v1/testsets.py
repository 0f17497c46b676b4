"""Test sets and runs: those of the config and uploaded ones, versions, queries, and their files in the formats that we write."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from cranfield.workbench.server.access import Caller
from cranfield.workbench.server.pages import segment
from cranfield.workbench.server.v1.common import (
    DEFAULT_LIMIT,
    RESULTS,
    Cursor,
    Limit,
    Route,
    Uploading,
    answer,
    page_at,
    page_of,
    service_of,
)
from cranfield.workbench.server.v1.files import BINARY, FILE, FormatName, form_schema, sent_form, written
from cranfield.workbench.server.v1.results import query_response
from cranfield.workbench.service.responses import Page, QueryResponse, RunResponse, SetResponse, StoredSource
from cranfield.workbench.service.values import RunInfo, SetInfo

if TYPE_CHECKING:
    from cranfield.workbench.service.service import Service

router = APIRouter(route_class=Route, dependencies=[RESULTS])
uploads = APIRouter(route_class=Route)
Ref = Annotated[
    str,
    Path(
        min_length=1,
        max_length=220,
        description="Name of a test set: its latest version; `NAME@ID` selects one version.",
    ),
]
RunId = Annotated[int, Path(ge=1, lt=2**63, description="Id of the run.")]
FIELDS = {
    "file": BINARY,
    "name": {"type": "string", "description": "Name; default: the file name."},
    "format": {"type": "string", "description": "Format; default: detected from the content."},
}
SET_NAME = {"type": "string", "description": "Name; default: the declared name, else the file name."}
QUERIES = {**BINARY, "description": "Texts of the queries of qrels."}
TEXTS = frozenset({"name", "format"})


@router.get("/testsets")
def list_testsets(request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[SetResponse]:
    """List the latest version of each test set, by name."""
    return page_at(request, service_of(request).testsets.names(), limit, cursor)


@uploads.post(
    "/testsets",
    response_model=SetResponse,
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": form_schema("file", {**FIELDS, "name": SET_NAME, "queries": QUERIES}),
        }
    },
)
async def upload_testset(request: Request, caller: Uploading) -> Response:
    """Store a test set under a name, as a new version if the name exists; identical content is stored once.

    A file that refers to databases, SQL or variables of the server is rejected; its expressions are compiled under a time limit.
    """
    info = await saved_testset(service_of(request), request, caller)
    return answer(SetResponse.model_validate(info), 201, {"Location": f"/v1/testsets/{segment(info.ref)}"})


async def saved_testset(service: Service, request: Request, caller: Caller) -> SetInfo:
    """Store the test set of a form, which is a program's or that of a page."""
    from cranfield.workbench.service.uploads import save_testset

    async with sent_form(request, caller, {"file": 1, "queries": 1}, TEXTS) as form:
        name, upload = form.pop("name"), form.upload("file", form.pop("format"))
        return await run_in_threadpool(save_testset, service, name, upload, caller.account.id)


@router.get("/testsets/{ref}", response_model=SetResponse)
def get_testset(request: Request, ref: Ref) -> SetInfo:
    """Give a version of a test set, without its queries."""
    return service_of(request).testsets.get(ref)


@router.get("/testsets/{ref}/versions")
def list_versions(request: Request, ref: Ref, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[SetResponse]:
    """List the stored versions of a test set, the latest first."""
    return page_at(request, service_of(request).testsets.versions(ref.rpartition("@")[0] or ref), limit, cursor)


@router.get("/testsets/{ref}/queries")
def list_queries(
    request: Request,
    ref: Ref,
    text: Annotated[str, Query(max_length=200, description="Only queries whose id or text contains this string.")] = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[QueryResponse]:
    """List the queries with their expected results, in the order of the test set."""
    testset = service_of(request).testsets.load(ref)
    wanted = text.casefold()
    found = [each for each in testset.queries if wanted in each.id.casefold() or wanted in each.text.casefold()]
    return page_at(request, found, limit, cursor, lambda each: query_response(testset, each))


@router.get("/testsets/{ref}/file", response_class=Response, responses=FILE)
def download_testset(request: Request, ref: Ref, format_name: FormatName = "yaml") -> Response:
    """Download a test set in any output format; the header `Cranfield-Notes` lists data that the format cannot represent."""
    from cranfield.formats.convert import chosen_format, write_testset
    from cranfield.workbench.service.uploads import safe_name

    entry = chosen_format(FilePath("testset"), format_name)
    testset = service_of(request).testsets.load(ref)
    name = safe_name(ref.partition("@")[0]) + entry.suffix
    return written(name, lambda path: write_testset(testset, path, format_name))


@router.get("/runs")
def list_runs(
    request: Request,
    source: Annotated[StoredSource | None, Query()] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[RunResponse]:
    """List the runs, the latest first."""
    found = service_of(request).runs.all(limit + 1, cursor, source=source)
    return page_of(request, found, limit)


@uploads.post(
    "/runs",
    response_model=RunResponse,
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": form_schema("file", FIELDS)}},
)
async def upload_run(request: Request, caller: Uploading) -> Response:
    """Store a run (results of a system) in any run format."""
    from cranfield.workbench.service.uploads import save_run

    async with sent_form(request, caller, {"file": 1}, TEXTS) as form:
        name, upload = form.pop("name"), form.upload("file", form.pop("format"))
        info = await run_in_threadpool(save_run, service_of(request), name, upload, caller.account.id)
    return answer(RunResponse.model_validate(info), 201, {"Location": f"/v1/runs/{info.id}"})


@router.get("/runs/{run_id}", response_model=RunResponse)
def get_run(request: Request, run_id: RunId) -> RunInfo:
    """Give a run, without its answers."""
    return service_of(request).runs.get(run_id)


@router.get("/runs/{run_id}/file", response_class=Response, responses=FILE)
def download_run(request: Request, run_id: RunId, format_name: FormatName = "jsonl") -> Response:
    """Download a run in any output format."""
    from cranfield.formats.convert import chosen_format, write_run

    entry = chosen_format(FilePath("run"), format_name, "run")
    run = service_of(request).runs.load(run_id)
    return written(f"run-{run_id}{entry.suffix}", lambda path: write_run(run, path, format_name))
