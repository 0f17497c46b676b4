"""A new evaluation: the form, filled in from an earlier evaluation where one is run again, and what it submits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, Response

from cranfield.base.errors import Problem, UsageError
from cranfield.books.settings import DEFAULT_GUIDELINE
from cranfield.model import CONVENTIONS, DEFAULT_CONVENTION
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.pages import render_page, see_other
from cranfield.workbench.server.results import service_of
from cranfield.workbench.service.team_evaluation import (
    DEFAULT_MEASURES,
    NEW_BOOK,
    NO_BOOK,
    OWN_SCALE,
    USUAL_BOOK,
    Line,
    TeamRequest,
    measures_of,
    start_evaluation,
    takes_grades,
    usual_k,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.workbench.service.service import Service

router = APIRouter()
Evaluator = Annotated[Caller, Depends(require("evaluate"))]
SCALE_TEXTS = {
    "": "default: the scale of the book; graded for a new book",
    "binary": "binary: 0 not relevant, 1 relevant",
    "graded": "graded: 0 to 3",
    "detail": "detail: 1 to 10",
    OWN_SCALE: "the scale of the test set",
}


@router.get("/evaluations/new")
def new_evaluation(
    request: Request,
    caller: Evaluator,
    *,
    like: Annotated[int | None, Query(ge=1)] = None,
    testset: Annotated[Line, Query()] = "",
    system: Annotated[Line, Query()] = "",
) -> HTMLResponse:
    """Show the form; `like` fills in the settings of an evaluation."""
    service = service_of(request)
    if like is not None:
        return _form(request, caller, like_evaluation(service, like))
    chosen = [system] if system else _usual(service)
    return _form(request, caller, TeamRequest(testset=testset, systems=chosen, guideline=DEFAULT_GUIDELINE))


def _usual(service: Service) -> list[str]:
    config = service.config()
    return list(config.systems) if config is not None and len(config.systems) == 1 else []


def _usual_settings(service: Service, wanted: TeamRequest) -> dict[str, str]:
    """What empty fields stand for, of the test set that is chosen; of keywords where none is."""
    config, k = service.config(), usual_k(service, wanted)
    if not wanted.testset:
        measures = f"{DEFAULT_MEASURES.format(k=k)} for keywords"
        return {"k": str(k), "measures": measures, "convention": "searchtweak for keywords"}
    chosen = None if config is None else config.settings_of(service.testsets.config_key(wanted.testset))
    measures = ", ".join(measures_of(chosen)) or "the usual ones"
    return {
        "k": str(k),
        "measures": measures,
        "convention": DEFAULT_CONVENTION if config is None else config.scoring().convention_name,
    }


def like_evaluation(service: Service, evaluation_id: int) -> TeamRequest:
    """What an evaluation was made with: a re-run of it, on the same queries and in the same book."""
    info = service.evaluations.get(evaluation_id)
    settings = service.evaluations.settings(evaluation_id)
    config = service.config()
    known = config is not None and info.system in config.systems
    book = None if info.book_id is None else service.store.books.get(info.book_id)
    return TeamRequest(
        testset=info.testset_name,
        systems=[info.system] if known and not info.variant else [],
        variants=[info.variant] if info.variant in {variant.name for variant in service.variants.all()} else [],
        k=settings.k,
        measures=", ".join(
            dict.fromkeys(map(str, filter(None, [info.primary, *(settings.measures or info.scores.measures)])))
        ),
        convention=settings.scoring.convention_name,
        book=NO_BOOK if book is None else book.name,
        scale="" if book is None else book.settings.scale.name,
        raters=1 if book is None else book.settings.raters_per_item,
    )


def _form(
    request: Request,
    caller: Caller,
    wanted: TeamRequest,
    *,
    problems: Sequence[Problem] = (),
) -> HTMLResponse:
    service = service_of(request)
    config, store = service.config(), service.store
    books = [info for info in store.books.all() if info.name == wanted.book or takes_grades(info)]
    return render_page(
        request,
        "new_evaluation.html",
        caller,
        http_status=422 if problems else 200,
        wanted=wanted,
        problems=problems,
        usual=_usual_settings(service, wanted),
        testsets=[info.name for info in service.testsets.names()],
        systems=list(config.systems) if config is not None else [],
        variants=service.variants.all(),
        conventions=CONVENTIONS.values(),
        scales=SCALE_TEXTS,
        books=books,
        raters=store.people.raters(),
        new_book=NEW_BOOK,
        no_book=NO_BOOK,
        usual_book=USUAL_BOOK,
    )


@router.post("/evaluations/new")
def start(request: Request, caller: Evaluator, wanted: Annotated[TeamRequest, Form()]) -> Response:
    """Start an evaluation. Blank and repeated keyword lines are left out, and listed in its note."""
    try:
        jobs = start_evaluation(service_of(request), wanted, caller.account.id)
    except UsageError as error:
        return _form(request, caller, wanted, problems=[_named(problem) for problem in error.problems])
    return see_other(f"/jobs/{jobs[-1].id}" if len(jobs) == 1 else "/jobs")


def _named(problem: Problem) -> Problem:
    """A problem with the label of its field instead of the name."""
    labels = {"name": "Name", "systems": "Systems", "measures": "Measures", "book": "Results go into", "scale": "Scale"}
    return replace(problem, path=labels.get(problem.path or "", problem.path))
