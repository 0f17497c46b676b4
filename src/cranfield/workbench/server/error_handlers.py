"""What a request gets when it is refused or fails: one shape as JSON, one page as HTML, never a traceback."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.routing import iter_route_contexts
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import compile_path

from cranfield.base.errors import CranfieldError, Problem
from cranfield.workbench.server.access import caller_or_none
from cranfield.workbench.server.http_errors import NO_ANSWER, SIGN_IN, RefusedRequestError
from cranfield.workbench.server.pages import render_page

if TYPE_CHECKING:
    from starlette.types import ASGIApp

STATUSES = {"UnknownNameError": 404, "QueueFullError": 429, "KeyConflictError": 409, "BookClosedError": 409}
"""Class of an error to the status of its answer; 422 for all others. Names: the service is imported where there is one."""
CODES = {413: "too_large", 422: "unprocessable_entity"}
"""Status to the code of its problems where Python's words for it differ by version."""
PLACES = {"query": "?{}", "path": "{{{}}}", "header": "header {}", "cookie": "cookie {}"}
"""Part of a request to how a name in it is written; one of JSON or of a form stands alone: `grades[0].doc`."""
LOG = logging.getLogger("cranfield.workbench.server")


def wants_json(request: Request) -> bool:
    """Whether a program asked, and not a person."""
    of_programs = request.url.path.startswith(("/api/", "/v1/"))
    return of_programs or "text/html" not in request.headers.get("accept", "text/html")


def error_response(
    request: Request,
    status: int,
    problems: Sequence[Problem],
    *,
    code: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The same facts as JSON or as a page."""
    code = code or CODES.get(status) or HTTPStatus(status).phrase.lower().replace(" ", "_")
    if wants_json(request):
        errors = [
            {
                "message": each.spelled(each.message),
                "where": each.where,
                "expected": each.spelled(each.expected or ""),
                "got": each.got or "",
                "hint": each.hint_sentence(),
                "code": code,
            }
            for each in problems
        ]
        body = {"ok": False, "error": problems[0].spelled(problems[0].message), "errors": errors, "status": status}
        return JSONResponse(body, status, headers=headers)
    title = HTTPStatus(status).phrase
    caller = caller_or_none(request)
    page = render_page(request, "error.html", caller, status=status, title=title, problems=problems, http_status=status)
    page.headers.update(headers or {})
    return page


def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, RefusedRequestError):
        raise error
    if error.code == SIGN_IN and not wants_json(request) and request.method == "GET":
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/sign-in?next={quote(target, safe='')}", 303)
    problem = Problem(error.message, hint=error.hint or None)
    return error_response(request, error.status, [problem], code=error.code, headers=error.headers)


def _known(request: Request, error: Exception) -> Response:
    if not isinstance(error, CranfieldError):
        raise error
    status = next(
        (status for name, status in STATUSES.items() if name in {each.__name__ for each in type(error).__mro__}), 422
    )
    headers = {"Retry-After": "10"} if status == HTTPStatus.TOO_MANY_REQUESTS else None
    return error_response(request, status, error.problems, headers=headers)


def _invalid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    return error_response(request, 422, [problem_of(each) for each in error.errors()], code="invalid")


def problem_of(found: Mapping[str, Any]) -> Problem:
    """What is wrong with a part of a request, and where, as the client wrote it."""
    part, *names = found["loc"]
    if found["type"] == "json_invalid":
        return Problem(f"not JSON at character {names[0]}: {_lower(found['ctx']['error'])}", path="body")
    name = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in names).removeprefix(".")
    place = PLACES.get(part, "{}").format(name) if name else str(part)
    return Problem(_lower(found["msg"]), path=place, hint=found.get("ctx", {}).get("hint"))


def _lower(message: str) -> str:
    """A message of the library as ours begin."""
    return message[:1].lower() + message[1:]


def _http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # Methods of every route of the path: the framework names those of the first alone.
        found: set[str] = set()
        for route in iter_route_contexts(request.app.routes):
            if route.path and compile_path(route.path)[0].match(request.url.path):
                found |= route.methods or set()
        allowed = ", ".join(sorted(found))
        problem = Problem(f"method {request.method} is not allowed for this URL", expected=allowed)
        return error_response(
            request, error.status_code, [problem], headers={**(error.headers or {}), "Allow": allowed}
        )
    message = "page not found" if error.status_code == HTTPStatus.NOT_FOUND else str(error.detail)
    return error_response(request, error.status_code, [Problem(message)], headers=error.headers)


def database_problem(error: DBAPIError) -> str:
    """Log in one line that the database refused or is gone, and word it for a user."""
    lines = str(error.orig).strip().splitlines()
    LOG.error("the database does not respond: %s", lines[0] if lines else type(error.orig).__name__)
    return "the database of the server does not respond"


def _database(request: Request, error: Exception) -> Response:
    if not isinstance(error, DBAPIError):
        raise error
    problem = Problem(database_problem(error), hint="try again in a moment; go back to submit a form again")
    return error_response(request, 503, [problem], code="database", headers={"Retry-After": "2"})


def _left(_request: Request, _error: Exception) -> Response:
    """To a client that closed its connection before the body was complete: for the log of requests alone."""
    return Response(status_code=400)


def log_failure(error: Exception) -> Problem:
    """Log a bug under a number, and word it for a user."""
    number = secrets.token_hex(4)
    LOG.error("error %s", number, exc_info=error)  # without the path: some have a token in it
    return Problem(f"internal server error (number {number})", hint="the server log has the reason under this number")


def unexpected(request: Request, error: Exception) -> Response:
    """Answer after a bug: the reason is in the log of the server, under a number that the page shows."""
    return error_response(request, 500, [log_failure(error)], code="internal")


def add_handlers(app: FastAPI) -> ASGIApp:
    """Register the answer to each kind of error."""
    app.add_exception_handler(RefusedRequestError, _refused)
    app.add_exception_handler(CranfieldError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _left)
    for kind in NO_ANSWER:
        app.add_exception_handler(kind, _database)
    return app
