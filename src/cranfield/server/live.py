"""Changes as a stream of events; the progress of a book as JSON for programs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from cranfield.judging.selection import Selection
from cranfield.server.access import Access, Caller, admit
from cranfield.server.books import Reader, book_of, books_selected, quality_of
from cranfield.server.refusal import NO_ANSWER, RefusedError, database_problem

if TYPE_CHECKING:
    from cranfield.judging.store.store import Store

router = APIRouter()

SECONDS = 1.0
"""Between two looks at the log."""
MOST_STREAMS = 30
"""Of an account at a time: each looks at the log every second."""
LOOKS_PER_CHECK = 30
"""After so many looks the stream checks that the session still holds."""


@router.get("/books/{book}/live", response_class=EventSourceResponse)
async def live(request: Request, caller: Reader) -> AsyncIterator[ServerSentEvent]:
    """Send the number of the last event whenever it has changed; end with the server, the session or the browser."""
    store: Store = request.app.state.store
    book = book_of(caller)
    async for event in events(request, caller, Access.READ, lambda: store.reading.last_event_id(book.id)):
        yield event


async def events(
    request: Request, caller: Caller, access: Access, look: Callable[[], int]
) -> AsyncIterator[ServerSentEvent]:
    """Send a number whenever it has changed; end with the server, the session or the browser.

    Args:
        request: of the stream.
        caller: who reads it.
        access: what the caller must still be allowed.
        look: gives the number; called in a thread.
    """
    open_of: Counter[int] = request.app.state.streams
    if open_of[caller.account.id] >= MOST_STREAMS:
        yield ServerSentEvent(comment="too many streams of this account", retry=60_000)
        return
    open_of[caller.account.id] += 1
    try:
        async for event in _changes(request, access, look):
            yield event
    except NO_ANSWER as error:  # the browser connects again
        database_problem(error)
    finally:
        open_of[caller.account.id] -= 1


async def _changes(request: Request, access: Access, look: Callable[[], int]) -> AsyncIterator[ServerSentEvent]:
    stopping: asyncio.Event = request.app.state.stopping
    last, looks = -1, 0
    while not stopping.is_set():
        now = await run_in_threadpool(look)
        if now != last:
            last = now
            yield ServerSentEvent(data={"event": now}, event="progress", id=str(now), retry=3000)
        looks += 1
        if looks % LOOKS_PER_CHECK == 0:
            try:
                await run_in_threadpool(admit, request, access)
            except RefusedError:
                return
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), SECONDS)


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
