"""Books of judgments: how far they are, their items and grades, measures that follow them, files out, grades in."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from cranfield.base.errors import Problem, UsageError, shorten
from cranfield.books.store.schema import Action, BookState
from cranfield.books.store.values import BookClosedError, BookInfo, ImportedJudgment
from cranfield.judging.selection import Selection
from cranfield.workbench.server.books import book_of, books_selected, quality_of
from cranfield.workbench.server.http_errors import not_found
from cranfield.workbench.server.v1.common import (
    DEFAULT_LIMIT,
    READ,
    Cursor,
    Judging,
    Limit,
    Reading,
    Route,
    page_at,
    page_from,
    service_of,
    store_of,
)
from cranfield.workbench.server.v1.files import FILE, FormatName, written
from cranfield.workbench.server.v1.results import fields_of
from cranfield.workbench.service.responses import (
    BookCoverage,
    BookMeasures,
    BookResponse,
    Grades,
    ItemResponse,
    LiveMeasureResponse,
    Page,
    SavedGrades,
)

if TYPE_CHECKING:
    from cranfield.workbench.service.values import EvaluationInfo

BookName = Annotated[str, Path(min_length=1, max_length=200, description="Name of a book.")]


def book_name(book: BookName) -> str:
    """The parameter of the path: the book itself is in the caller, who may see it."""
    return book


router = APIRouter(prefix="/books", route_class=Route)
of_book = APIRouter(prefix="/{book}", route_class=Route, dependencies=[Depends(book_name)])


def book_response(info: BookInfo) -> BookResponse:
    """A book."""
    return BookResponse(**fields_of(info, BookResponse), mode=info.settings.mode)


@router.get("", dependencies=[READ])
def list_books(request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[BookResponse]:
    """List the books."""
    return page_at(request, store_of(request).books.all(), limit, cursor, book_response)


@of_book.get("")
def get_book(caller: Reading) -> BookResponse:
    """Give a book."""
    return book_response(book_of(caller))


@of_book.get("/coverage")
def get_coverage(request: Request, caller: Reading) -> BookCoverage:
    """Give the progress of a book, and the agreement of its raters. A document without a grade is unjudged, never 0."""
    found = quality_of(request, book_of(caller))
    coverage = found.coverage
    alpha = found.report.agreement.coefficients["alpha-ordinal"] if found.report and not found.too_few else None
    own = {
        "states": {str(state): n for state, n in coverage.states.items()},
        "by_persons": {str(persons): n for persons, n in coverage.by_persons.items()},
        "n_twice": found.n_twice,
        "alpha": None if alpha is None else alpha.value,
        "alpha_low": None if alpha is None else alpha.ci_low,
        "alpha_high": None if alpha is None else alpha.ci_high,
        "null_queries": found.null_queries,
    }
    return BookCoverage.model_validate(fields_of(coverage, BookCoverage) | own)


@of_book.get("/items")
def list_items(
    request: Request,
    caller: Reading,
    query: Annotated[str | None, Query(max_length=2000, description="Id of a query.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[ItemResponse]:
    """List the items with every judgment of them."""
    start = cursor or 0
    found = books_selected(request, book_of(caller), Selection(query=query), limit=limit + 1, start=start)
    return page_from(request, found, limit, start)


@of_book.get("/measures")
def get_book_measures(
    request: Request,
    caller: Reading,
    evaluation: Annotated[
        int | None,
        Query(
            ge=1, lt=2**63, description="Id of an evaluation whose results are judged in the book; default: the latest."
        ),
    ] = None,
) -> BookMeasures:
    """Compute the measures of an evaluation with the current grades of its book; null means no value, not 0."""
    service, info = service_of(request), book_of(caller)
    found = _judged_in(request, info.id, evaluation)
    live = service.evaluations.live(found)
    rows = [
        LiveMeasureResponse(**fields_of(row, LiveMeasureResponse) | {"measure": row.measure.canonical})
        for row in live.rows
    ]
    return BookMeasures(
        void=list(live.void), evaluation=found.id, system=found.label, failures=dict(live.failures), measures=rows
    )


def _judged_in(request: Request, book_id: int, evaluation: int | None) -> EvaluationInfo:
    from cranfield.workbench.service.values import EvaluationFilter

    evaluations = service_of(request).evaluations
    if evaluation is None:
        found = next(iter(evaluations.all(EvaluationFilter(book=book_id, limit=1))), None)
    else:
        found = evaluations.get(evaluation)
    if found is None or found.book_id != book_id:
        raise not_found("evaluation whose results are judged in this book")
    return found


@of_book.get("/file", response_class=Response, responses=FILE)
def download_book(
    request: Request,
    caller: Reading,
    format_name: FormatName = "yaml",
    raters: Annotated[
        Literal["names", "pseudonyms"], Query(description="Replace the names of raters by `rater 1`, …")
    ] = "names",
) -> Response:
    """Download the judgments of a book as a test set, in any output format; -1: pooled, but unjudged.

    If the pool of the book was created from a test set with judgments, the header `Cranfield-Notes` and the history of the file note that its other judgments are not included.
    """
    from cranfield.formats.convert import chosen_format, write_testset
    from cranfield.judging.book.exports import JUDGES, judgments_of
    from cranfield.judging.book.grades import contents_of
    from cranfield.workbench.service.uploads import safe_name

    entry = chosen_format(FilePath("testset"), format_name)
    info = book_of(caller)
    contents = contents_of(store_of(request), info.name)
    testset = judgments_of(contents, pseudonyms=raters == "pseudonyms", by_judge=entry.name == JUDGES)
    return written(
        safe_name(info.name) + entry.suffix,
        lambda path: (*map(str, testset.notes), *write_testset(testset, path, format_name)),
    )


@of_book.post("/grades")
def save_grades(request: Request, caller: Judging, sent: Grades) -> SavedGrades:
    """Save grades by this account, all or none; the same grade sent again is saved once.

    A rater can grade the items from `GET /api/books/{book}/next`, up to the quota; a lead can grade all items.
    """
    store, info = store_of(request), book_of(caller)
    if info.state == BookState.CLOSED:
        raise BookClosedError(f"book {info.name} is closed and accepts no judgments", hint="a lead can reopen it")
    if not store.people.is_member(info.id, caller.account.id):
        store.people.join(info.id, caller.account.id)
    items = store.reading.item_ids(info.id)
    problems, rows = [], []
    for place, entry in enumerate(sent.grades):
        item = items.get((entry.query, entry.doc))
        if item is None:
            message = f"the book does not contain document {shorten(entry.doc)} for query {shorten(entry.query)}"
            problems.append(Problem(message, path=f"body.grades.{place}"))
            continue
        key = (
            entry.key
            or sha256(repr((entry.query, entry.doc, entry.grade, entry.reason)).encode("utf-8", "replace")).hexdigest()
        )
        rows.append(
            ImportedJudgment(
                item_id=item,
                account_id=caller.account.id,
                client_key=f"rest:{key}",
                grade=entry.grade,
                reason=entry.reason,
                action=Action.GRADE,
                method="api",
            )
        )
    if problems:
        raise UsageError(problems)
    new = store.log.import_many(info.id, rows, by=caller.account.id)
    return SavedGrades(n_saved=len(new), n_known=len(rows) - len(new))


router.include_router(of_book)
