"""Stored evaluations and comparisons: lists, all of their JSON, their queries, reports in every form; tags, note and pin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from cranfield.workbench.server.results import comparison_queries, evaluation_queries
from cranfield.workbench.server.v1.common import (
    DEFAULT_LIMIT,
    EVALUATE,
    MAX_ROWS,
    RESULTS,
    Cursor,
    Limit,
    Route,
    check_unchanged,
    page_at,
    page_of,
    service_of,
)
from cranfield.workbench.server.v1.results import (
    compared_rows,
    comparison_response,
    evaluation_response,
    query_rows,
    whole_comparison,
    whole_evaluation,
)
from cranfield.workbench.service.requests import DiffRequest
from cranfield.workbench.service.responses import (
    ComparedRow,
    ComparisonResponse,
    DifferenceResponse,
    EvaluationChange,
    EvaluationResponse,
    Page,
    QueryRow,
)

if TYPE_CHECKING:
    from cranfield.reporting.sections.subject import Subject
    from cranfield.workbench.service.values import EvaluationInfo

router = APIRouter(route_class=Route)
EvaluationId = Annotated[int, Path(ge=1, lt=2**63, description="Id of the evaluation.")]
ComparisonId = Annotated[int, Path(ge=1, lt=2**63, description="Id of the comparison.")]
Row = TypeVar("Row", QueryRow, ComparedRow)
Name = Annotated[str | None, Field(max_length=200)]


class Conditions(BaseModel):
    """Conditions of a list of evaluations; all of them hold."""

    model_config = ConfigDict(extra="forbid")

    testset: Name = None
    system: Name = None
    variant: Name = None
    components: Name = None
    tag: Name = None
    pinned: bool | None = None
    since: Annotated[int | None, Field(ge=0, lt=2**53)] = None
    """Made at this time or later, in milliseconds since 1970 (UTC)."""
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = DEFAULT_LIMIT
    cursor: Annotated[int | None, Field(ge=1, lt=2**63)] = None


ReportFormat = Annotated[
    Literal["html", "markdown", "brief", "latex", "text", "csv", "json", "xlsx", "model-card"], Query(alias="format")
]
MeasureName = Annotated[
    str | None, Query(max_length=200, description="Measure to sort by, the worst first; spelled as in `measures`.")
]
Wanted = Annotated[str, Query(max_length=200, description="Only queries whose id or text contains this string.")]
MEDIA = {
    "html": "text/html; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
    "brief": "text/markdown; charset=utf-8",
    "latex": "application/x-tex; charset=utf-8",
    "model-card": "text/markdown; charset=utf-8",
    "text": "text/plain; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
SCHEMAS: dict[str, dict[str, Any]] = {"json": {}, "xlsx": {"type": "string", "format": "binary"}}
REPORT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The report.",
        "content": {
            media.partition(";")[0]: {"schema": SCHEMAS.get(name, {"type": "string"})} for name, media in MEDIA.items()
        },
    },
}
REPORT_POLICY = "sandbox allow-scripts allow-popups; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Security policy of a report in HTML: it is one file with its own styles and script, in an origin of its own."""


@router.get("/evaluations", dependencies=[RESULTS])
def list_evaluations(request: Request, chosen: Annotated[Conditions, Query()]) -> Page[EvaluationResponse]:
    """List the evaluations that match all conditions, the latest first."""
    from cranfield.workbench.service.values import EvaluationFilter

    given = chosen.model_dump(exclude={"limit", "cursor"})
    wanted = EvaluationFilter(**given, limit=chosen.limit + 1, before=chosen.cursor)
    found = [evaluation_response(each) for each in service_of(request).evaluations.all(wanted)]
    return page_of(request, found, chosen.limit)


@router.get("/evaluations/{evaluation_id}", dependencies=[RESULTS])
def get_evaluation(request: Request, evaluation_id: EvaluationId) -> EvaluationResponse:
    """Give an evaluation with all data of its JSON."""
    return whole_evaluation(service_of(request), evaluation_id)


@router.get("/evaluations/{evaluation_id}/summary", dependencies=[RESULTS])
def get_evaluation_summary(request: Request, evaluation_id: EvaluationId) -> EvaluationResponse:
    """Give an evaluation without its queries. A change may use its entity tag, or the tag of the whole evaluation."""
    return evaluation_response(service_of(request).evaluations.get(evaluation_id))


@router.patch("/evaluations/{evaluation_id}", dependencies=[EVALUATE])
def change_evaluation(request: Request, evaluation_id: EvaluationId, change: EvaluationChange) -> EvaluationResponse:
    """Change tags, note or pin; with `If-Match` only if the evaluation, or its summary, has not changed since it was read."""
    evaluations = service_of(request).evaluations
    result = evaluations.payload(evaluation_id) if "if-match" in request.headers else {}  # it never changes

    def check(now: EvaluationInfo) -> None:
        check_unchanged(request, evaluation_response(now), evaluation_response(now, result))

    return evaluation_response(evaluations.change(evaluation_id, **change.model_dump(), check=check))


@router.get("/evaluations/{evaluation_id}/queries", dependencies=[RESULTS])
def list_evaluation_queries(
    request: Request,
    evaluation_id: EvaluationId,
    measure: MeasureName = None,
    text: Wanted = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[QueryRow]:
    """List the queries with their values and first results, in the order of the test set or by a measure."""
    service = service_of(request)
    known = [measure.canonical for measure in service.evaluations.get(evaluation_id).scores.measures]
    rows = _having(text, query_rows(service.evaluations.payload(evaluation_id)))
    return page_at(request, _worst_first(rows, measure, known, lambda row: row.values), limit, cursor)


def _having(text: str, rows: Iterable[Row]) -> list[Row]:
    wanted = text.casefold()
    return [row for row in rows if wanted in row.id.casefold() or wanted in row.text.casefold()]


def _worst_first(
    rows: list[Row], measure: str | None, known: Iterable[str], values: Callable[[Row], Mapping[str, float | None]]
) -> list[Row]:
    from cranfield.base.errors import UnknownNameError
    from cranfield.measures import parse
    from cranfield.measures.catalogue import sign_of

    if measure is None:
        return rows
    spelling = parse(measure).canonical
    if spelling not in known:
        raise UnknownNameError.among("measure of the evaluation", measure, known)
    sign = sign_of(parse(spelling))

    def key(row: Row) -> tuple[bool, float]:
        value = values(row).get(spelling)
        return value is None, sign * (value or 0.0)

    return sorted(rows, key=key)


@router.get("/evaluations/{evaluation_id}/report", response_class=Response, responses=REPORT, dependencies=[RESULTS])
def evaluation_report(request: Request, evaluation_id: EvaluationId, report_format: ReportFormat = "html") -> Response:
    """Give the report of an evaluation, as `cranfield evaluate` writes it."""
    queries = evaluation_queries(request, evaluation_id)
    return _rendered(replace(queries.subject, by_query=True), report_format)


@router.get("/comparisons", dependencies=[RESULTS])
def list_comparisons(
    request: Request,
    evaluation: Annotated[int | None, Query(ge=1, lt=2**63, description="Only comparisons of this evaluation.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[ComparisonResponse]:
    """List the comparisons, the latest first."""
    found = service_of(request).comparisons.all(evaluation=evaluation, limit=limit + 1, before=cursor)
    return page_of(request, [comparison_response(each) for each in found], limit)


@router.get("/comparisons/{comparison_id}", dependencies=[RESULTS])
def get_comparison(request: Request, comparison_id: ComparisonId) -> ComparisonResponse:
    """Give a comparison with all data of its JSON."""
    return whole_comparison(service_of(request), comparison_id)


@router.get("/comparisons/{comparison_id}/queries", dependencies=[RESULTS])
def list_comparison_queries(
    request: Request,
    comparison_id: ComparisonId,
    measure: MeasureName = None,
    text: Wanted = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[ComparedRow]:
    """List the queries with both sides and their difference, in the order of the test set or the greatest loss first."""
    payload = service_of(request).comparisons.payload(comparison_id)
    rows = _having(text, compared_rows(payload))
    found = _worst_first(rows, measure, payload["comparisons"], lambda row: row.difference)
    return page_at(request, found, limit, cursor)


@router.get("/comparisons/{comparison_id}/report", response_class=Response, responses=REPORT, dependencies=[RESULTS])
def comparison_report(request: Request, comparison_id: ComparisonId, report_format: ReportFormat = "html") -> Response:
    """Give the report of a comparison, as `cranfield compare` writes it."""
    return _rendered(comparison_queries(request, comparison_id).subject, report_format)


@router.get("/diff", dependencies=[RESULTS])
def diff(request: Request, wanted: Annotated[DiffRequest, Query()]) -> DifferenceResponse:
    """Compare two evaluations, or runs, without judgments: what changed, and in which queries most."""
    from cranfield.model.results import to_jsonable

    found = service_of(request).evaluations.difference(wanted)
    sides = wanted.model_dump(include={"baseline", "candidate", "of"})
    return DifferenceResponse(**sides, result=to_jsonable(found))


def _rendered(subject: Subject, name: str) -> Response:
    from cranfield.reporting.documents.comparison import subject_document
    from cranfield.reporting.renderers.data import RENDERERS

    headers = {"Content-Security-Policy": REPORT_POLICY} if name == "html" else {}
    if name == "xlsx":
        headers = {"Content-Disposition": 'attachment; filename="report.xlsx"'}
    return Response(RENDERERS[name].content(subject_document(subject)), headers=headers, media_type=MEDIA[name])
