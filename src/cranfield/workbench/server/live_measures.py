"""Measures of an evaluation that move while people grade: the part of its page, freezing, comparing with another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import Response

from cranfield.base.errors import Problem, UsageError
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.books import book_path, with_labels
from cranfield.workbench.server.pages import lead_to, see_other
from cranfield.workbench.server.results import RecentValues, service_of
from cranfield.workbench.service.hole_grades import compare_again, freeze_onto, score_again
from cranfield.workbench.service.values import EvaluationFilter

if TYPE_CHECKING:
    from cranfield.books.store.values import BookInfo
    from cranfield.workbench.service.live_measures import LiveMeasures
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import EvaluationInfo

router = APIRouter()
Evaluator = Annotated[Caller, Depends(require("evaluate"))]
SECONDS = 15.0
"""Longest wait for a job before its page is shown."""
MAX_QUERIES = 200
"""Queries that are listed."""
MAX_OTHERS = 50


@dataclass(frozen=True)
class LiveView:
    """What the part of the page shows."""

    book: BookInfo
    path: str
    """Path of the book."""
    event: int
    """The last event of the book before its grades were read."""
    found: LiveMeasures | None
    problems: Sequence[Problem]
    """Why there are no measures."""
    others: Sequence[EvaluationInfo]
    """Evaluations in the same book."""
    queries: Sequence[tuple[str, str, int, int, Sequence[float | None], str]]
    """Query, its text, judged and shown results, the value of each measure, why one is null; the first ones."""
    n_queries: int
    unfinished: bool = False
    """Whether freezing needs the box for what is half graded or undecided."""


def live_values(request: Request, info: EvaluationInfo) -> LiveView | None:
    """The measures of an evaluation as the grades of its book are now; None where it has no book."""
    if info.book_id is None:
        return None
    service = service_of(request)
    book = service.store.books.get(info.book_id)
    in_book = service.evaluations.all(EvaluationFilter(book=book.id, limit=MAX_OTHERS + 1))
    others = [each for each in in_book if each.id != info.id][:MAX_OTHERS]
    event = service.store.reading.last_event_id(book.id)
    kept: RecentValues = request.app.state.results
    try:  # measured again only after an event of the book, once for all who look
        found: LiveMeasures = kept.get(("live", info.id, event), lambda: service.evaluations.live(info))
    except UsageError as error:
        return LiveView(book, book_path(book), event, None, error.problems, others, (), 0)
    rows = [
        (
            query,
            text,
            *found.progress[query],
            [found.value(row.measure, query) for row in found.rows],
            found.why_null(query),
        )
        for query, text in list(found.texts.items())[:MAX_QUERIES]
    ]
    from cranfield.judging.book.freeze import is_unfinished

    half = kept.get(("unfinished", book.id, event), lambda: is_unfinished(service.store, book.id))
    return LiveView(book, book_path(book), event, found, (), others, rows, len(found.texts), half)


@router.post("/evaluations/{evaluation_id:id}/freeze")
def freeze(
    request: Request, caller: Evaluator, evaluation_id: int, *, partial: Annotated[bool, Form()] = False
) -> Response:
    """Create a version of the test set with the grades of the book, and score the run on it."""
    service = service_of(request)
    info = service.evaluations.get(evaluation_id)
    run = service.runs.load(info.run_id)
    try:
        version = freeze_onto(service, info, {info.system: run}, caller.account.id, allow_partial=partial)
    except UsageError as error:
        raise with_labels(error) from None
    job = service.jobs.wait(score_again(service, [info], version, caller.account.id).id, SECONDS)
    if job.results:
        return see_other(f"/evaluations/{job.results[0]}", done="frozen-set")
    return see_other(f"/jobs/{job.id}", done="frozen-set")


@router.post("/evaluations/{evaluation_id:id}/compare-graded")
def compare_graded(
    request: Request,
    caller: Evaluator,
    evaluation_id: int,
    baseline: Annotated[int, Form(ge=1)],
    *,
    partial: Annotated[bool, Form()] = False,
) -> Response:
    """Compare it with another evaluation of its book, with the current grades."""
    service = service_of(request)
    candidate = service.evaluations.get(evaluation_id)
    try:
        return recomputed(service, service.evaluations.get(baseline), candidate, caller, partial=partial)
    except UsageError as error:
        raise with_labels(error) from None


def recomputed(
    service: Service, baseline: EvaluationInfo, candidate: EvaluationInfo, caller: Caller, *, partial: bool = True
) -> Response:
    """The comparison of two runs by the grades as they are now; the job where it takes longer."""
    job = compare_again(service, baseline, candidate, caller.account.id, allow_partial=partial)
    return lead_to(service.jobs.wait(job.id, SECONDS), done="recomputed")
