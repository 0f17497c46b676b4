"""Grade a result that is not judged where it is seen: a page of its own, which a script shows in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from cranfield.judging.settings import DEFAULT_GUIDELINE
from cranfield.server.access import Caller, require
from cranfield.server.documents import rendered
from cranfield.server.live_measures import recomputed
from cranfield.server.pages import local_path, render_page, see_other
from cranfield.server.refusal import wants_json
from cranfield.server.results import service_of
from cranfield.service.hole_grades import grade_hole, hole_book, hole_levels, hole_pool, new_grades
from cranfield.service.values import ComparisonInfo, EvaluationInfo

if TYPE_CHECKING:
    from cranfield.service.service import Service

router = APIRouter()
Lead = Annotated[Caller, Depends(require("manage"))]
Evaluator = Annotated[Caller, Depends(require("evaluate"))]
Side = Literal["baseline", "candidate"]
SIDES: tuple[Side, ...] = ("baseline", "candidate")
Id = Annotated[str, Query(min_length=1, max_length=2_000)]
Sent = Annotated[str, Form(min_length=1, max_length=2_000)]


@dataclass(frozen=True, slots=True)
class NewGrades:
    """What a page says of grades that its figures do not count yet."""

    n: int
    path: str
    """Of the form that counts them."""


def counted_later(request: Request, info: ComparisonInfo | EvaluationInfo) -> NewGrades:
    """Grades of persons that a comparison or an evaluation does not count, in the book of its test set."""
    service = service_of(request)
    if isinstance(info, ComparisonInfo):
        return NewGrades(new_grades(service, info.candidate), f"/comparisons/{info.id}/recompute")
    return NewGrades(new_grades(service, info), f"/evaluations/{info.id}/freeze")


def grade_path(base: str, query: str, doc: str, *, side: Side | None = None, back: str = "") -> str:
    """Address of the page that grades a result.

    Args:
        base: `/evaluations/7` or `/comparisons/7`.
        query: id of the query.
        doc: id of the result.
        side: of a comparison.
        back: page that is shown afterwards.
    """
    given = {"query": query, "doc": doc, "side": side, "back": back}
    return f"{base}/grade?{urlencode({name: value for name, value in given.items() if value})}"


def _side(service: Service, comparison_id: int, side: Side) -> EvaluationInfo:
    found = service.comparisons.get(comparison_id)
    return found.baseline if side == "baseline" else found.candidate


@router.get("/evaluations/{evaluation_id:int}/grade")
def evaluation_grade(
    request: Request, caller: Lead, evaluation_id: int, query: Id, doc: Id, *, back: str = ""
) -> HTMLResponse:
    """Show a result of an evaluation, to be graded."""
    info = service_of(request).evaluations.get(evaluation_id)
    return _page(request, caller, info, query, doc, back or f"/evaluations/{evaluation_id}")


@router.get("/comparisons/{comparison_id:int}/grade")
def comparison_grade(
    request: Request, caller: Lead, comparison_id: int, query: Id, doc: Id, *, side: Side = "candidate", back: str = ""
) -> HTMLResponse:
    """Show a result of one side of a comparison, to be graded."""
    info = _side(service_of(request), comparison_id, side)
    return _page(request, caller, info, query, doc, back or f"/comparisons/{comparison_id}")


def _page(request: Request, caller: Caller, info: EvaluationInfo, query: str, doc: str, back: str) -> HTMLResponse:
    service = service_of(request)
    testset = service.testsets.load_id(info.testset_id)
    pool = hole_pool(testset, service.runs.load(info.run_id), info.system, query, doc)
    book = hole_book(service, info)
    shown = rendered(request.app.state.texts.get(doc, pool.items[0].fields), pool.queries[0].text)
    return render_page(
        request,
        "grade_hole.html",
        caller,
        path_of_form=request.url.path,
        side=request.query_params.get("side", ""),
        query=pool.queries[0],
        doc=doc,
        text=shown,
        levels=hole_levels(service, info),
        guideline=DEFAULT_GUIDELINE if book is None else book.guideline,
        back=local_path(back),
        testset=info.testset_name,
    )


@router.post("/evaluations/{evaluation_id:int}/grade")
def grade_of_evaluation(
    request: Request,
    caller: Lead,
    evaluation_id: int,
    query: Sent,
    doc: Sent,
    grade: Annotated[float, Form()],
    *,
    back: Annotated[str, Form()] = "",
    method: Annotated[Literal["key", "click"], Form()] = "click",
) -> Response:
    """Grade a result of an evaluation."""
    info = service_of(request).evaluations.get(evaluation_id)
    return _graded(request, caller, info, query, doc, grade, method, back or f"/evaluations/{evaluation_id}")


@router.post("/comparisons/{comparison_id:int}/grade")
def grade_of_comparison(
    request: Request,
    caller: Lead,
    comparison_id: int,
    query: Sent,
    doc: Sent,
    grade: Annotated[float, Form()],
    *,
    side: Annotated[Side, Form()] = "candidate",
    back: Annotated[str, Form()] = "",
    method: Annotated[Literal["key", "click"], Form()] = "click",
) -> Response:
    """Grade a result of one side of a comparison."""
    info = _side(service_of(request), comparison_id, side)
    return _graded(request, caller, info, query, doc, grade, method, back or f"/comparisons/{comparison_id}")


def _graded(
    request: Request, caller: Caller, info: EvaluationInfo, query: str, doc: str, grade: float, method: str, back: str
) -> Response:
    service = service_of(request)
    book = grade_hole(service, info, query, doc, grade, caller.account.id, method=method)
    if wants_json(request):
        return JSONResponse({"ok": True, "grade": grade, "book": book.name, "new_grades": new_grades(service, info)})
    return see_other(local_path(back), done="graded")


@router.post("/comparisons/{comparison_id:int}/recompute")
def recompute(request: Request, caller: Evaluator, comparison_id: int) -> Response:
    """Score both runs on a version of the test set that has the new grades, and compare them: another comparison."""
    service = service_of(request)
    found = service.comparisons.get(comparison_id)
    return recomputed(service, found.baseline, found.candidate, caller)
