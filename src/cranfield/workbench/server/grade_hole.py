"""Grade an unjudged result where it is seen: a page of its own, which a script shows in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from cranfield.books.settings import DEFAULT_GUIDELINE
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.documents import rendered
from cranfield.workbench.server.error_handlers import wants_json
from cranfield.workbench.server.live_measures import recomputed
from cranfield.workbench.server.pages import local_path, render_page, see_other
from cranfield.workbench.server.results import service_of
from cranfield.workbench.service.hole_grades import grade_hole, hole_book, hole_levels, hole_pool, new_grades
from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo

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
    """Path of the form that counts them."""


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


def _evaluation(request: Request, number: int, side: Side) -> EvaluationInfo:
    """The evaluation of a path, or that of a side of its comparison."""
    service = service_of(request)
    if not request.url.path.startswith("/comparisons/"):
        return service.evaluations.get(number)
    found = service.comparisons.get(number)
    return found.baseline if side == "baseline" else found.candidate


@router.get("/comparisons/{number:id}/grade")
@router.get("/evaluations/{number:id}/grade")
def grade_form(
    request: Request, caller: Lead, number: int, query: Id, doc: Id, *, side: Side = "candidate", back: str = ""
) -> HTMLResponse:
    """Show a result of an evaluation, or of one side of a comparison, to be graded."""
    service, info = service_of(request), _evaluation(request, number, side)
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
        back=local_path(back or request.url.path.removesuffix("/grade")),
        testset=info.testset_name,
    )


@router.post("/comparisons/{number:id}/grade")
@router.post("/evaluations/{number:id}/grade")
def save_grade(
    request: Request,
    caller: Lead,
    number: int,
    query: Sent,
    doc: Sent,
    grade: Annotated[float, Form()],
    *,
    side: Annotated[Side, Form()] = "candidate",
    back: Annotated[str, Form()] = "",
    method: Annotated[Literal["key", "click"], Form()] = "click",
) -> Response:
    """Grade a result of an evaluation, or of one side of a comparison."""
    service, info = service_of(request), _evaluation(request, number, side)
    book = grade_hole(service, info, query, doc, grade, caller.account.id, method=method)
    if wants_json(request):
        return JSONResponse({"ok": True, "grade": grade, "book": book.name, "new_grades": new_grades(service, info)})
    return see_other(local_path(back or request.url.path.removesuffix("/grade")), done="graded")


@router.post("/comparisons/{comparison_id:id}/recompute")
def recompute(request: Request, caller: Evaluator, comparison_id: int) -> Response:
    """Score both runs on a version of the test set with the new grades, and store a new comparison."""
    service = service_of(request)
    found = service.comparisons.get(comparison_id)
    return recomputed(service, found.baseline, found.candidate, caller)
