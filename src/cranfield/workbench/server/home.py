"""The first page: what changed, and the books of the account; and the list of all books."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from cranfield.books.store.schema import BookState, Role
from cranfield.reporting.document import Section
from cranfield.workbench.server.access import require
from cranfield.workbench.server.caller import Caller
from cranfield.workbench.server.overview import MOST, SHOWN, Overview, overview, to_decide, visits
from cranfield.workbench.server.pages import render_page
from cranfield.workbench.server.tables import blocks, comparison_table, evaluation_table, job_table

if TYPE_CHECKING:
    from markupsafe import Markup

    from cranfield.books.store.store import Store
    from cranfield.books.store.values import BookInfo, JudgingProgress

router = APIRouter()
Self = Annotated[Caller, Depends(require("account"))]
Reader = Annotated[Caller, Depends(require("read"))]
BookRow = tuple["BookInfo", "JudgingProgress | None"]


def book_rows(store: Store, caller: Caller) -> list[BookRow]:
    """The books that an account may see, with its progress in those of which it is a member."""
    mine = set(store.people.books_of(caller.account.id))
    sees_all = caller.account.role != Role.RATER
    return [
        (book, store.reading.progress(book.id, caller.account.id) if book.id in mine else None)
        for book in store.books.all()
        if sees_all or book.id in mine
    ]


@router.get("/")
def home(request: Request, caller: Self) -> HTMLResponse:
    """Show raters their books, and the others what changed and what waits for them."""
    store: Store = request.app.state.store
    rows = book_rows(store, caller)
    service = getattr(request.app.state, "service", None)
    if service is None or not caller.may("read"):
        return render_page(request, "books.html", caller, rows=rows)
    name = request.app.state.options.cookie("visits")
    since, cookie = visits(request.cookies.get(name, ""), service.clock())
    found = overview(service, since)
    page = render_page(
        request,
        "home.html",
        caller,
        rows=rows,
        since=since,
        found=found,
        shown=SHOWN,
        content=_lists(found),
        waiting=[
            (book, progress) for book, progress in rows if progress and progress.n_left and book.state == BookState.OPEN
        ],
        deciding=to_decide(store, caller),
        has_config=service.config() is not None,
        config_problems=service.config_problems if caller.may("manage") else (),
    )
    page.set_cookie(
        name, cookie, max_age=365 * 86_400, httponly=True, samesite="lax", secure=request.app.state.options.secure
    )
    return page


def _caption(things: str, n: int) -> str:
    """How many there are, where not all are shown."""
    shown = f"{SHOWN} of {n}" + (" or more" if n == MOST else "")
    return f"{things}, the latest {shown if n > SHOWN else 'first'}"


def _lists(found: Overview) -> Markup | str:
    sections = [
        Section(
            "comparisons",
            "Verdicts",
            (comparison_table(found.comparisons[:SHOWN], _caption("New comparisons", len(found.comparisons))),),
        ),
        Section(
            "failed", "Failed jobs", (job_table(found.failed[:SHOWN], _caption("Failed jobs", len(found.failed))),)
        ),
        Section(
            "evaluations",
            "New evaluations",
            (evaluation_table(found.evaluations[:SHOWN], _caption("New evaluations", len(found.evaluations))),),
        ),
    ]
    counts = (found.comparisons, found.failed, found.evaluations)
    shown = [section for section, rows in zip(sections, counts, strict=True) if rows]
    return blocks(shown) if shown else ""


@router.get("/books")
def books(request: Request, caller: Reader) -> HTMLResponse:
    """List the books."""
    return render_page(request, "books.html", caller, rows=book_rows(request.app.state.store, caller))
