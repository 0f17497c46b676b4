"""Whether the process lives (`/healthz`) and may get requests (`/readyz`), for load balancers and supervisors.

Both answer under every host name, because a load balancer uses an address; they name no host, version or person, so that
a page of another site that reaches them (DNS rebinding) learns that a server is or is not ready, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError

from cranfield.books.database.base import REVISION
from cranfield.books.database.migrate import check_write, stored_revision
from cranfield.workbench.server.logs import LOG, event

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send

    from cranfield.books.database.engine import Database

PATHS = frozenset({"/healthz", "/readyz"})
SECONDS_TO_ANSWER = 2.0
"""After which a database counts as one that does not answer."""
SECONDS_KEPT = 3.0
"""That a result is used again: no caller can make the server look, and write, more often."""


class Readiness:
    """What keeps a server from being ready. One look at the database at a time, in a thread of its own."""

    def __init__(self, app: FastAPI, *, seconds: float = SECONDS_TO_ANSWER) -> None:
        self.app = app
        self.draining = False
        self._seconds = seconds
        self._looker = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._look: asyncio.Future[str] | None = None
        self._kept = (float("-inf"), "")
        self._last: tuple[str, ...] = ()

    async def problems(self) -> tuple[str, ...]:
        """Sentences, none of which names a host or a path; empty: ready."""
        found = ["the server is stopping"] if self.draining or self.app.state.stopping.is_set() else []
        if problem := await self._of_database():
            found.append(problem)
        service = getattr(self.app.state, "service", None)
        worker: Callable[[], str] | None = getattr(service, "worker_problem", None)
        if worker is not None and (problem := worker()):
            found.append(problem)
        result = tuple(found)
        if result != self._last:
            self._last = result
            event(LOG, "not ready" if result else "ready", logging.WARNING if result else logging.INFO, problems=result)
        return result

    async def _of_database(self) -> str:
        at, problem = self._kept
        if time.monotonic() - at < SECONDS_KEPT:
            return problem
        if self._look is None:
            loop = asyncio.get_running_loop()
            self._look = loop.run_in_executor(self._looker, database_problem, self.app.state.store.database)
        try:
            problem = await asyncio.wait_for(asyncio.shield(self._look), self._seconds)
            self._look = None
        except TimeoutError:  # the look goes on; the next request waits for the same one
            problem = "the database does not answer"
        self._kept = time.monotonic(), problem
        return problem


def database_problem(database: Database) -> str:
    """Why a database cannot be used by this version; empty where it can."""
    if not database.is_in_place:
        return "the database file was moved or deleted"
    try:
        revision = stored_revision(database)
    except SQLAlchemyError:
        return "the database does not answer"
    if revision != REVISION:
        return "the database schema has a different version"
    try:
        check_write(database, REVISION)
    except SQLAlchemyError:
        return "the database cannot be written"
    return ""


class Probes:
    """Answers `/healthz` and `/readyz`, before anything that asks for a host name or an account."""

    def __init__(self, app: ASGIApp, readiness: Readiness) -> None:
        self.app = app
        self.readiness = readiness

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        if scope["type"] != "http" or scope["path"] not in PATHS:
            await self.app(scope, receive, send)
            return
        scope["cranfield.probe"] = True  # not logged: they come every few seconds
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        if scope["method"] not in {"GET", "HEAD"}:
            await JSONResponse({"ok": False}, 405, headers | {"Allow": "GET, HEAD"})(scope, receive, send)
            return
        problems = await self.readiness.problems() if scope["path"] == "/readyz" else ()
        body = {"ok": not problems, "problems": list(problems)}
        await JSONResponse(body, 503 if problems else 200, headers)(scope, receive, send)
