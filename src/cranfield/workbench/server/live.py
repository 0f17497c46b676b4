"""Changes as a stream of events; the progress of a book as JSON for programs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent

from cranfield.judging.selection import Selection
from cranfield.workbench.server.access import Access
from cranfield.workbench.server.books import Reader, book_of, books_selected, quality_of
from cranfield.workbench.server.streams import events, number_event

if TYPE_CHECKING:
    from cranfield.books.store.store import Store

router = APIRouter()


@router.get("/books/{book}/live", response_class=EventSourceResponse)
async def live(request: Request, caller: Reader) -> AsyncIterator[ServerSentEvent]:
    """Send the number of the last event whenever it changes, until the server, the session or the browser ends."""
    store: Store = request.app.state.store
    book = book_of(caller)
    async for event in events(request, caller, Access.READ, lambda: store.reading.last_event_id(book.id), number_event):
        yield event


@router.get("/api/books/{book}/quality")
def quality(request: Request, caller: Reader) -> JSONResponse:
    """Give coverage and the figures of each rater."""
    found = quality_of(request, book_of(caller))
    coverage = asdict(found.coverage) | {"queries": [asdict(query) for query in found.coverage.queries]}
    agreement = found.report.agreement.coefficients["alpha-ordinal"] if found.report and not found.too_few else None
    return JSONResponse(
        {
            "coverage": coverage,
            "n_twice": found.n_twice,
            "alpha": asdict(agreement) if agreement else None,
            "raters": [asdict(line) for line in found.raters],
            "null_queries": found.null_queries,
        }
    )


@router.get("/api/books/{book}/items")
def items(request: Request, caller: Reader, chosen: Annotated[Selection, Query()]) -> JSONResponse:
    """Give the items of a selection with their judgments."""
    return JSONResponse([asdict(each) for each in books_selected(request, book_of(caller), chosen)])
