"""The log: a line for each request and event, as JSON or text. No secret, cookie, query text or path with a token is in it.

A request is logged by the template of its route. Each line within a request has its id, which is taken from the header
`X-Request-Id` where that is well-formed, and returned in it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import sys
import time
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request

from cranfield.base.errors import Problem, traceback_of
from cranfield.workbench.server.error_handlers import error_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID = "X-Request-Id"
WELL_FORMED = re.compile(r"[A-Za-z0-9._=+/-]{1,64}")
CURRENT: ContextVar[str] = ContextVar("cranfield_request_id", default="")
LOG = logging.getLogger("cranfield.workbench.server")
QUIET = "quiet"
"""The form of the log of one user's own server: warnings and errors, as text."""
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def event(log: logging.Logger, name: str, level: int = logging.INFO, **fields: object) -> None:
    """Log an event with its fields: numbers, names from tables, ids. Not what a user wrote."""
    if log.isEnabledFor(level):
        log.log(level, name, extra={"fields": fields})


class _Form(logging.Formatter):
    """What both forms have: the fields of a line.

    Args:
        with_messages: also the messages of unexpected errors, which may quote anything.
    """

    def __init__(self, *, with_messages: bool) -> None:
        super().__init__()
        self.with_messages = with_messages

    def fields(self, record: logging.LogRecord) -> dict[str, object]:
        found: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if request := CURRENT.get():
            found["request"] = request
        found |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            found["error"] = type(error).__name__
            found["traceback"] = traceback_of(error, with_messages=self.with_messages)
        return found


class JsonForm(_Form):
    """A JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """As logging calls it."""
        return json.dumps(self.fields(record), ensure_ascii=False, default=str)


class TextForm(_Form):
    """Time, level, event, then `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """As logging calls it."""
        fields = self.fields(record)
        frames = fields.pop("traceback", None)
        first = [str(fields.pop(name)) for name in ("time", "level", "event")]
        line = " ".join([*first, *(f"{name}={value}" for name, value in fields.items())])
        line = _UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], line)
        return line if frames is None else f"{line}\n  " + str(frames).replace("\n", "\n  ")


MAX_ALIKE = 200
"""Lines of one kind in a window; the others are counted."""
MAX_BYTES_ALIKE = 64_000
"""Most bytes of such lines, with their tracebacks."""
WINDOW_S = 10


@dataclass
class _Kind:
    """Lines of one kind in a window."""

    last: logging.LogRecord
    n_written: int = 0
    n_bytes: int = 0
    n_more: int = 0


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Writes at most `MAX_ALIKE` lines and `MAX_BYTES_ALIKE` of one kind in a window of time, then how many more there were.

    Of one kind are lines of one message before its values are put in; requests, also of one route and status. The counts are
    written with the first line after the window, or when the log is closed.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._start = 0.0
        self._kinds: dict[tuple[object, ...], _Kind] = {}
        self._n_bytes = 0

    def emit(self, record: logging.LogRecord) -> None:
        """As logging calls it, one thread at a time."""
        if not 0 <= record.created - self._start < WINDOW_S:
            self._end_window(record.created)
        fields = getattr(record, "fields", {})
        error = record.exc_info[0] if record.exc_info else None
        name = (record.name, record.levelno, str(record.msg), error, fields.get("route"), fields.get("status"))
        kind = self._kinds.setdefault(name, _Kind(record))
        kind.last = record
        if kind.n_written >= MAX_ALIKE or kind.n_bytes >= MAX_BYTES_ALIKE:
            kind.n_more += 1
            return
        before = self._n_bytes
        super().emit(record)
        kind.n_written += 1
        kind.n_bytes += self._n_bytes - before

    def format(self, record: logging.LogRecord) -> str:
        """As logging calls it."""
        line = super().format(record)
        self._n_bytes += len(line.encode("utf-8", "replace"))
        return line

    def _end_window(self, now: float) -> None:
        seconds = max(1, min(WINDOW_S, round(now - self._start)))
        token = CURRENT.set("")  # it is of no request
        for kind in self._kinds.values():
            if more := kind.n_more:
                last, fields = kind.last, getattr(kind.last, "fields", {})
                about = {name: fields[name] for name in ("route", "status") if name in fields}
                values = {"msg": f"{more} more like it in the last {seconds} seconds", "args": None, "exc_info": None}
                about |= {"like": str(last.msg), "more": more, "seconds": seconds}
                super().emit(logging.makeLogRecord(last.__dict__ | values | {"created": now, "fields": about}))
        CURRENT.reset(token)
        self._kinds.clear()
        self._start = now

    def close(self) -> None:
        """Write what was counted."""
        self._end_window(time.time())
        super().close()


def configure_logs(form: str, *, with_messages: bool = False) -> None:
    """Send the log of this process to stderr.

    Args:
        form: `json`, `text`, `auto` or `quiet`.
        with_messages: also the messages of unexpected errors.
    """
    if form == "auto":
        form = "text" if sys.stderr.isatty() else "json"
    handler = BoundedHandler(sys.stderr)
    handler.setFormatter((JsonForm if form == "json" else TextForm)(with_messages=with_messages))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)  # libraries log addresses, with their secrets, under `info`
    logging.getLogger("cranfield").setLevel(logging.WARNING if form == QUIET else logging.INFO)


class RequestLog:
    """Gives each request its id, and logs it when its response has ended."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        name = given if WELL_FORMED.fullmatch(given) else secrets.token_hex(8)
        token = CURRENT.set(name)
        start, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = name
            await send(message)

        try:
            await self.app(scope, receive, sent)
        except asyncio.CancelledError:
            if status or not scope["app"].state.stopping.is_set():
                raise
            problem = Problem(
                "the server stopped before the request was complete", hint="send the request again in a moment"
            )
            headers = {"Retry-After": "5", "Connection": "close"}
            answer = error_response(Request(scope, receive), 503, [problem], code="stopping", headers=headers)
            await answer(scope, receive, sent)
        finally:
            milliseconds = round((time.perf_counter() - start) * 1000, 1)
            if not scope.get("cranfield.probe"):
                # Method, template of the route and account of a request: not its path, which may hold a token.
                route = scope.get("fastapi", {}).get("effective_route_context") or scope.get("route")
                found = {
                    "method": scope["method"],
                    "route": getattr(route, "path", None) or scope.get("root_path") or None,
                }
                account = scope.get("state", {}).get("account_id")
                about = found if account is None else {**found, "account": account}
                event(LOG, "request", **about, status=status, ms=milliseconds)
            CURRENT.reset(token)
