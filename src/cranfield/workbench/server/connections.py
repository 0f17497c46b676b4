"""How many connections and requests the server has at a time: those that wait for their client make room for new ones.

A client may open a connection and send nothing, half a request or a byte a minute, or read no answer. As long as there is
room that is its own affair. Of a full server the oldest connection that waits for its client is closed for the next one, so
that none is kept out by those that do nothing. Requests that are being worked on are never closed; where they are as many as
there may be, three quarters of the connections, further ones are answered with 503. One whose body has not arrived, or whose
answer is not read, is not being worked on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.requests import Request
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from cranfield.workbench.server.error_handlers import wants_json
from cranfield.workbench.server.logs import LOG, event

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ACCEPTED_AT_ONCE = 100
"""Connections that are accepted before any of them is looked at: they need file handles beside those of the limit."""
RETRY_S = 2
BUSY = "the server has reached its limit of active requests"
TRY_AGAIN = "send the request again in a moment"


def protocol_of(most: int) -> type[Any]:
    """The HTTP protocol of uvicorn, with a limit of connections."""
    http: type[Any] = AutoHTTPProtocol

    class HttpConnection(http):  # type: ignore[misc]  # the class is chosen by what is installed
        """A connection."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.made_at = time.monotonic()
            if len(self.connections) > most:
                waiting = (each for each in self.connections if waits_for_client(each))
                longest = min(waiting, key=lambda each: each.made_at)  # at the latest this one
                event(LOG, "connection closed: too many connections", logging.WARNING, limit=most)
                self.connections.discard(longest)
                longest.transport.abort()

    return HttpConnection


def waits_for_client(connection: Any) -> bool:
    """Whether nothing happens on a connection of uvicorn before its client sends, or reads, more."""
    cycle = connection.cycle
    return cycle is None or cycle.response_complete or cycle.more_body or connection.flow.write_paused


def most_requests(connections: int) -> int:
    """How many requests are worked on at a time: the other connections are there to be answered that it is too many."""
    return max(1, connections * 3 // 4)


class Room:
    """Refuses requests while as many are worked on as there may be; streams of progress count."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most
        self.n_open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.n_open >= self.most:
            await _refusal(Request(scope))(scope, receive, send)
            return
        has_arrived = False

        async def received() -> Message:
            nonlocal has_arrived
            if has_arrived:  # the end of the connection alone is awaited, as by a stream
                return await receive()
            with self._waiting():
                message = await receive()
            has_arrived = not message.get("more_body")
            return message

        async def sent(message: Message) -> None:
            with self._waiting():
                await send(message)

        self.n_open += 1
        try:
            await self.app(scope, received, sent)
        finally:
            self.n_open -= 1

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """A request that waits for its client does not count."""
        self.n_open -= 1
        try:
            yield
        finally:
            self.n_open += 1


def _refusal(request: Request) -> Response:
    """Without a look at the account: the database has enough to do."""
    headers = {"Retry-After": str(RETRY_S), "Connection": "close", "Cache-Control": "no-store"}
    if not wants_json(request):
        return PlainTextResponse(f"{BUSY[0].upper()}{BUSY[1:]}: {TRY_AGAIN}.", 503, headers)
    problem = {"message": BUSY, "where": "", "expected": "", "got": "", "hint": TRY_AGAIN, "code": "busy"}
    return JSONResponse({"ok": False, "error": BUSY, "errors": [problem], "status": 503}, 503, headers)
