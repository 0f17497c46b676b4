"""Streams of events, and how many of them and of uploads an account may have at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from fastapi import Request
from fastapi.sse import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from cranfield.workbench.server.access import Access, Caller, admit
from cranfield.workbench.server.error_handlers import database_problem
from cranfield.workbench.server.http_errors import NO_ANSWER, RefusedRequestError

T = TypeVar("T")
MAX_STREAMS = 30
"""Most streams of an account at a time: each looks at the database every second."""
POLL_S = 1.0
"""Between two looks."""
LOOKS_PER_CHECK = 30
"""After so many looks a stream checks that its caller may still read."""


@contextmanager
def counted(open_of: Counter[int], account_id: int, most: int) -> Iterator[bool]:
    """Count a stream, or an upload, of an account while the block runs; whether the account may have it."""
    if open_of[account_id] >= most:
        yield False
        return
    open_of[account_id] += 1
    try:
        yield True
    finally:
        open_of[account_id] -= 1


def number_event(number: int) -> ServerSentEvent:
    """The event that tells a page to load its changed part."""
    return ServerSentEvent(data={"event": number}, event="progress", id=str(number), retry=3000)


async def events(
    request: Request,
    caller: Caller,
    access: Access,
    look: Callable[[], T],
    event_of: Callable[[T], ServerSentEvent],
    is_last: Callable[[T], bool] = lambda _: False,
) -> AsyncIterator[ServerSentEvent]:
    """Send a value whenever it has changed; end after the last one, or with the server, the session or the client.

    Args:
        request: of the stream.
        caller: who reads it.
        access: what the caller must still be allowed.
        look: gives the value; called in a thread.
        event_of: the event of a value.
        is_last: whether none follows a value.
    """
    streams: Counter[int] = request.app.state.streams
    with counted(streams, caller.account.id, MAX_STREAMS) as is_free:
        if not is_free or streams.total() > request.app.state.most_streams:
            whose = "on this server" if is_free else "of this account"
            yield ServerSentEvent(comment=f"too many streams {whose}", retry=60_000)
            return
        try:
            async for value in _changes(request, access, look):
                yield event_of(value)
                if is_last(value):
                    return
        except NO_ANSWER as error:  # the client connects again
            database_problem(error)


async def _changes(request: Request, access: Access, look: Callable[[], T]) -> AsyncIterator[T]:
    stopping: asyncio.Event = request.app.state.stopping
    last, looks = None, 0
    while not stopping.is_set():
        now = await run_in_threadpool(look)
        if now != last:
            last = now
            yield now
        looks += 1
        if looks % LOOKS_PER_CHECK == 0:
            try:
                await run_in_threadpool(admit, request, access)
            except RefusedRequestError:
                return
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), POLL_S)
