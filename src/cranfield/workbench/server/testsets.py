"""Test sets: the list, an upload, one test set with its queries, coverage, versions, and files in every format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from cranfield.books.database.engine import day_of
from cranfield.evaluation.testset.expected import judgments_of, queries_of
from cranfield.formats.convert import fitting_formats, written_formats
from cranfield.model.query import class_of
from cranfield.reporting.document import Link, Section
from cranfield.reporting.table_spec import Col, TableSpec
from cranfield.testsets.diff import diff
from cranfield.testsets.reports.testset import queries_document, statistics_document
from cranfield.testsets.reports.versions import difference_document
from cranfield.testsets.statistics import statistics
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.http_errors import not_found
from cranfield.workbench.server.page_parts import page_parts
from cranfield.workbench.server.pages import environment, render_page, see_other, segment
from cranfield.workbench.server.results import service_of
from cranfield.workbench.server.tables import blocks, csv_response, listed, testset_table
from cranfield.workbench.server.v1.testsets import saved_testset

if TYPE_CHECKING:
    from markupsafe import Markup

    from cranfield.model import Query as TestQuery
    from cranfield.model import TestSet
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import SetInfo

router = APIRouter()
uploads = APIRouter()
"""Routes that take as much as the limits of the server allow."""
Reader = Annotated[Caller, Depends(require("results"))]
Evaluator = Annotated[Caller, Depends(require("evaluate"))]
PAGE = 50
FOUND_IN = 200
"""Characters of a text that are searched for."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """When new queries are due."""

    made: str
    days: int
    overdue: int
    """Days; 0 where it is not."""


def refresh_of(service: Service, info: SetInfo) -> Refresh | None:
    """When a stored test set is to be refreshed; None where it does not say when it was made."""
    if info.id is None:
        return None
    meta = service.testsets.refresh_dates(info.id)
    return Refresh(meta.made, meta.refresh_days, meta.days_overdue(day_of(service.clock()))) if meta.made else None


@router.get("/testsets")
def list_testsets(request: Request, caller: Reader, form: Annotated[str, Query(alias="format")] = "") -> Response:
    """List test sets."""
    service = service_of(request)
    found = service.testsets.names()
    if form == "csv":
        return csv_response(testset_table(found), "testsets")
    table = testset_table(found)
    return render_page(
        request,
        "testsets.html",
        caller,
        n=len(found),
        content=listed("testsets", "By name", table),
        formats=sorted(written_formats()),
    )


@uploads.post("/testsets/upload")
async def upload(request: Request, caller: Evaluator) -> Response:
    """Store an uploaded test set, as a new version if the name exists."""
    info = await saved_testset(service_of(request), request, caller)
    return see_other(f"/testsets/{segment(info.name)}", done="uploaded")


@router.get("/testsets/{name}")
def show_testset(
    request: Request,
    caller: Reader,
    name: str,
    *,
    version: int | None = None,
    find: Annotated[str, Query(max_length=FOUND_IN)] = "",
    page: Annotated[int, Query(ge=1)] = 1,
    form: Annotated[str, Query(alias="format")] = "",
) -> Response:
    """Show a test set: first its refresh date and versions, then a page of its queries, and counts."""
    service = service_of(request)
    info = service.testsets.get(name if version is None else f"{name}@{version}")
    if form == "csv":
        return csv_response(query_rows(service.testsets.load(info.ref), name).table(), f"{name}-queries")
    parts = page_parts(
        request,
        "testset.html",
        caller,
        lambda: _contents(service, info, find, page),
        "Loading the test set.",
        info=info,
        refresh=refresh_of(service, info),
        versions=service.testsets.versions(name),
        find=find,
    )
    return StreamingResponse(parts, media_type="text/html; charset=utf-8")


def _contents(service: Service, info: SetInfo, find: str, page: int) -> Markup:
    """What is missing in the judgments, a page of the queries, counts of everything."""
    from markupsafe import Markup

    found = service.testsets.load(info.ref)
    every = query_rows(found, info.name)
    rows = [row for row in every.rows if find.casefold() in f"{row[0].id}\0{row[0].text}".casefold()]
    last = max(1, -(-len(rows) // PAGE))
    page = min(page, last)
    shown = replace(every, rows=rows[(page - 1) * PAGE : page * PAGE]).table()
    text = (
        environment()
        .get_template("testset_contents.html")
        .render(
            info=info,
            findings=_coverage(every.rows),
            queries=blocks([Section("queries", "Queries", (shown,))]),
            counts=blocks(statistics_document(statistics(found)).sections, most_rows=PAGE),
            find=find,
            n=len(rows),
            page=page,
            last=last,
            formats=fitting_formats(found),
        )
    )
    return Markup(text)  # noqa: S704 - of our template, which escapes


QueryRow = tuple["TestQuery", int, int]
"""A query, and how many items are relevant and judged."""


def query_rows(found: TestSet, name: str) -> TableSpec[QueryRow]:
    """Each query with how many items are judged and relevant."""
    rows = []
    for query in found.queries:
        # A grade under 0 is of what is pooled and not judged.
        grades = [each.grade for each in judgments_of(found, query.id) if each.grade >= 0]
        rows.append((query, sum(grade > 0 for grade in grades), len(grades)))
    return TableSpec(
        "Queries and what is expected",
        rows,
        (
            # The page is at /testsets/NAME.
            Col("query", lambda row: Link(row[0].id, f"{name}/queries/{row[0].id}"), "query id"),
            Col("text", lambda row: row[0].text),
            Col("class", lambda row: class_of(row[0])),
            Col("strata", lambda row: ", ".join(f"{key}={value}" for key, value in row[0].strata.items())),
            Col("relevant", lambda row: row[1], "count"),
            Col("judged", lambda row: row[2], "count"),
        ),
    )


def _coverage(rows: Sequence[QueryRow]) -> list[str]:
    """What is missing in the judgments."""
    none = [query.id for query, _, n_judged in rows if not n_judged]
    without = [query.id for query, n_relevant, n_judged in rows if n_judged and not n_relevant]
    lines = ((none, "without any judgment: their measures are null"), (without, "without a relevant item"))
    return [
        f"{len(ids)} of {len(rows)} queries {what} ({', '.join(ids[:10])}{' …' if len(ids) > 10 else ''})"
        for ids, what in lines
        if ids
    ]


@router.get("/testsets/{name}/queries/{query:path}")
def one_query(request: Request, caller: Reader, name: str, query: str, version: int | None = None) -> HTMLResponse:
    """Show a query with everything that is expected for it."""
    service = service_of(request)
    info = service.testsets.get(name if version is None else f"{name}@{version}")
    found = service.testsets.load(info.ref)
    if query not in found.by_id:
        raise not_found("query")
    content = blocks(queries_document(queries_of(found, [query]), in_full=True).sections)
    base = f"/testsets/{segment(name)}"
    return render_page(request, "queries.html", caller, base=base, subject=name, query=query, content=content)


@router.get("/testsets/{name}/diff")
def versions(
    request: Request, caller: Reader, name: str, old: Annotated[int, Query()], new: Annotated[int, Query()]
) -> HTMLResponse:
    """Show what changed between two versions."""
    service = service_of(request)
    before, after = (service.testsets.load(f"{name}@{number}") for number in (old, new))
    content = blocks(difference_document(diff(before, after)).sections, most_rows=10 * PAGE)
    return render_page(request, "testset_diff.html", caller, name=name, old=old, new=new, content=content)


@router.post("/testsets/{name}/read")
def read_again(request: Request, caller: Evaluator, name: str) -> Response:
    """Read a test set of the config as its files stand now."""
    del caller
    service_of(request).testsets.snapshot_of_config(name)
    return see_other(f"/testsets/{segment(name)}", done="saved")
