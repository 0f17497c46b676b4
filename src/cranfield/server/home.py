"""The first page: the books of the account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from cranfield.judging.store.schema import Role
from cranfield.server.access import Caller, require
from cranfield.server.pages import render_page

if TYPE_CHECKING:
    from cranfield.judging.store.store import Store

router = APIRouter()
Self = Annotated[Caller, Depends(require("account"))]


@router.get("/")
def home(request: Request, caller: Self) -> HTMLResponse:
    """List the books: those of which a rater is a member, and for the others all."""
    store: Store = request.app.state.store
    mine = set(store.people.books_of(caller.account.id))
    all_books = caller.account.role != Role.RATER
    rows = [
        (book, store.reading.progress(book.id, caller.account.id) if book.id in mine else None)
        for book in store.books.all()
        if all_books or book.id in mine
    ]
    return render_page(request, "home.html", caller, rows=rows)
