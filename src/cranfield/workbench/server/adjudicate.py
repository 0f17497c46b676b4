"""Adjudication: what raters disagree on, decided by a person who did not grade it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, Response

from cranfield.books.settings import Level, Mode
from cranfield.books.store.rows import seeded
from cranfield.books.store.values import NotAllowedError
from cranfield.judging.selection import person_grades, waiting_items
from cranfield.workbench.server.books import Lead, book_of, book_page, book_path, item_of_book, shown_text
from cranfield.workbench.server.documents import guideline_html
from cranfield.workbench.server.judging_cards import PageSettings
from cranfield.workbench.server.pages import see_other

if TYPE_CHECKING:
    from cranfield.books.store.store import Store

router = APIRouter()

SIDES = (
    Level(grade=0, label="Tie"),
    Level(grade=1, label="List A is better"),
    Level(grade=2, label="List B is better"),
)
"""Final grades of a preference."""


@router.get("/books/{book}/adjudicate")
def adjudicate_page(request: Request, caller: Lead, item: Annotated[int | None, Query()] = None) -> Response:
    """Show the item, or the next one that the caller did not grade."""
    book = book_of(caller)
    if book.settings.mode is Mode.REVIEW:
        return see_other(book_path(book, "review", "decide", **({} if item is None else {"item": item})))
    return _page(request, caller, item)


def _page(request: Request, caller: Lead, item: int | None, draft: tuple[float, str] | None = None) -> HTMLResponse:
    """The page of an item; with the grade and the reason of the caller where another lead decided meanwhile."""
    store: Store = request.app.state.store
    book = book_of(caller)
    queue = waiting_items(store, book.id)
    open_to = [each for each in queue if caller.account.id not in {row.account_id for row in person_grades(each)}]
    found = item_of_book(request, caller, item) if item is not None else open_to[0] if open_to else None
    values: dict[str, object] = {"own": False, "judgments": [], "text": None, "after": None}
    if found:
        judgments = [row for row in found.ratings if row.kind == "person"]
        judgments.sort(key=lambda row: seeded(found.id, row.account_id))  # an order that does not follow names or times
        later = [each.id for each in open_to if (each.query, each.doc) > (found.query, found.doc)]
        values = {
            "own": caller.account.id in {row.account_id for row in judgments if row.grade is not None},
            "judgments": judgments,
            "text": shown_text(request, found),
            "after": later[0] if later else None,
            "draft": draft or (found.final, found.final_reason),
        }
    values |= {
        "n": len(open_to),
        "n_own": len(queue) - len(open_to),
        "levels": SIDES if book.settings.mode is Mode.PREFERENCE else book.settings.scale.levels,
        "enabled": PageSettings.of(caller.account).enabled,
        "guideline": guideline_html(book),
        "meanwhile": draft is not None,
        "key": secrets.token_urlsafe(16),
    }
    return book_page(request, "adjudicate.html", caller, http_status=409 if draft else 200, item=found, **values)


@router.post("/books/{book}/adjudicate/{item_id}")
def adjudicate(
    request: Request,
    caller: Lead,
    item_id: int,
    grade: Annotated[float, Form()],
    reason: Annotated[str, Form(min_length=1, max_length=10_000)],
    key: Annotated[str, Form(min_length=8, max_length=80)],
    seen: Annotated[int | None, Form()] = None,
) -> Response:
    """Set the final grade; the grades of the raters are kept. If another lead has decided in the meantime, the page shows this first."""
    found = item_of_book(request, caller, item_id)
    try:
        request.app.state.store.log.adjudicate(found.id, caller.account.id, grade, reason.strip(), key, seen=seen)
    except NotAllowedError:
        if item_of_book(request, caller, item_id).final_at == seen:
            raise
        return _page(request, caller, item_id, (grade, reason))
    return see_other(book_path(book_of(caller), "adjudicate"), done="saved")
