"""What every route of the API has: who may call it and how often, its errors, entity tags, pages of a list."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

from fastapi import Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from cranfield.workbench.server.access import Access, Caller, Require
from cranfield.workbench.server.http_errors import SAFE, RefusedRequestError
from cranfield.workbench.service.responses import ErrorResponse, Page

if TYPE_CHECKING:
    from cranfield.books.store.store import Store
    from cranfield.workbench.service.service import Service

JSON = "application/json"
FORM = "multipart/form-data"
MAX_ACCOUNTS = 10_000
"""Most accounts of which the rate is known; beyond it the memory of all is dropped."""
DEFAULT_LIMIT = 50
MAX_ROWS = 500
"""Most rows of a page."""
RETRY_S = 5
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": text}
    for status, text in {
        400: "The body does not match its content type.",
        401: "The token is missing, unknown, revoked or expired.",
        403: "The scope or the role does not allow it, or the request comes from another site.",
        404: "Not found, or a name in the request is unknown.",
        409: "Conflict with the stored state.",
        412: "The resource has changed since the entity tag in `If-Match` was read.",
        413: "The body exceeds the size limit of the server.",
        415: "The route does not accept this content type.",
        421: "The header `Host` names another server.",
        422: "The request is invalid; all problems are listed.",
        429: "Too many requests or jobs: `Retry-After` says when to try again.",
        503: "The database does not respond, or the server is stopping: try again after `Retry-After` seconds.",
    }.items()
}


@dataclass(frozen=True)
class ApiRequire(Require):
    """The dependency of a route of the API: it finds the caller, counts the request, and looks at its content type."""

    content: tuple[str, ...] = (JSON,)
    """Types of a body that the route takes."""
    reads_forms: ClassVar[bool] = False

    async def __call__(self, request: Request) -> Caller | None:
        """As FastAPI calls it."""
        caller = await super().__call__(request)
        if caller is not None:
            count_request(request, caller.account.id)
        check_content(request, self.content)
        return caller


def check_content(request: Request, allowed: Sequence[str]) -> None:
    """Refuse a body of another type.

    Raises:
        RefusedError: 415.
    """
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    if has_body and request.method not in {"GET", "HEAD", "DELETE"} and sent not in allowed:
        expected = " or ".join(allowed)
        raise RefusedRequestError(415, f"the content type is {sent or 'missing'}", f"send {expected}", "content_type")


def count_request(request: Request, account_id: int, clock: Callable[[], float] = time.monotonic) -> None:
    """Refuse what is more than the operator allows an account per minute; short bursts of a tenth of it are no excess.

    Raises:
        RefusedError: 429.
    """
    state = request.app.state
    service: Service | None = state.service
    per_minute = 0 if service is None else service.workbench.limits.requests_per_minute
    if not per_minute:
        return
    clock = getattr(state, "monotonic", clock)
    known: dict[int, tuple[float, float]] = state.rates
    if len(known) > MAX_ACCOUNTS:
        known.clear()
    now, burst = clock(), max(10.0, per_minute / 10)
    left, at = known.get(account_id, (burst, now))
    left = min(burst, left + (now - at) * per_minute / 60)
    known[account_id] = (left - 1 if left >= 1 else left, now)
    if left < 1:
        wait = max(1, round((1 - left) * 60 / per_minute + 0.5))
        hint = f"wait {wait} s; the limit is {per_minute} requests per minute and account"
        raise RefusedRequestError(429, "too many requests", hint, "rate", {"Retry-After": str(wait)})


ANYONE = Depends(ApiRequire(Access.PUBLIC))
RESULTS = Depends(ApiRequire(Access.RESULTS))
EVALUATE = Depends(ApiRequire(Access.EVALUATE))
READ = Depends(ApiRequire(Access.READ))
"""For routes that need no caller; the others name one of these types."""
Results = Annotated[Caller, RESULTS]
Evaluating = Annotated[Caller, EVALUATE]
Uploading = Annotated[Caller, Depends(ApiRequire(Access.EVALUATE, (FORM,)))]
EitherWay = Annotated[Caller, Depends(ApiRequire(Access.EVALUATE, (FORM, JSON)))]
Reading = Annotated[Caller, READ]
Judging = Annotated[Caller, Depends(ApiRequire(Access.JUDGE))]

Limit = Annotated[int, Query(ge=1, le=MAX_ROWS, description="Maximum number of entries per page.")]
Cursor = Annotated[
    int | None, Query(ge=1, lt=2**63, description="Start of the page, from `next` of the previous page.")
]


def service_of(request: Request) -> Service:
    """The service of the server.

    Raises:
        RefusedError: 503, it serves books alone.
    """
    service: Service | None = request.app.state.service
    if service is None:
        raise RefusedRequestError(503, "this server serves only books", "start it with `cranfield serve`", "no_service")
    return service


def store_of(request: Request) -> Store:
    """The books of the server."""
    store: Store = request.app.state.store
    return store


class Route(APIRoute):
    """A route of the API: what it answers has an entity tag, a page its link; 304 where the caller has it already."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI calls it."""
        handle = super().get_route_handler()

        async def tagged(request: Request) -> Response:
            response = await handle(request)
            if response.status_code >= 300 or isinstance(response, StreamingResponse):
                return response
            response.headers["Cache-Control"] = "private, no-cache"
            response.headers["ETag"] = tag = tag_of(bytes(response.body))
            if following := getattr(request.state, "next", None):
                response.headers["Link"] = f'<{following}>; rel="next"'
            if request.method in SAFE and has_tag(request.headers.get("if-none-match", ""), tag):
                kept = {name: response.headers[name] for name in ("ETag", "Cache-Control")}
                return Response(status_code=304, headers=kept)
            return response

        return tagged


def page_of(request: Request, found: Sequence[Any], limit: int) -> Page[Any]:
    """A page of things with an id, of which one more was asked for than the page has."""
    return _page(request, found[:limit], found[limit - 1].id if len(found) > limit else None)


def page_at(
    request: Request, found: Sequence[Any], limit: int, cursor: int | None, shape: Callable[[Any], Any] | None = None
) -> Page[Any]:
    """A page of a list that is there whole: the cursor is a place in it."""
    start = cursor or 0
    end = start + limit
    items = [each if shape is None else shape(each) for each in found[start:end]]
    return _page(request, items, end if end < len(found) else None)


def page_from(request: Request, found: Sequence[Any], limit: int, start: int) -> Page[Any]:
    """A page from a place in a list on, of which one more was asked for than the page has."""
    return _page(request, found[:limit], start + limit if len(found) > limit else None)


def _page(request: Request, items: Sequence[Any], cursor: int | None) -> Page[Any]:
    if cursor is not None:
        query = [(key, value) for key, value in request.query_params.multi_items() if key != "cursor"]
        request.state.next = f"{quote(request.url.path)}?{urlencode([*query, ('cursor', str(cursor))])}"
    return Page[Any](items=list(items), next=getattr(request.state, "next", None))


def answer(body: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A model as JSON, with another status or further headers."""
    return Response(body.model_dump_json(), status, dict(headers or {}), JSON)


def tag_of(data: bytes) -> str:
    """The entity tag of a body."""
    return f'"{sha256(data).hexdigest()[:32]}"'


def has_tag(header: str, tag: str) -> bool:
    """Whether a list of entity tags has this one."""
    tags = [each.strip().removeprefix("W/") for each in header.split(",")]
    return tag in tags or "*" in tags


def check_unchanged(request: Request, *now: BaseModel) -> None:
    """Refuse a change of something that is no longer as the caller read it.

    Args:
        request: its `If-Match` may name the entity tag of any of the answers.
        now: the answers that have the thing, as they would be given now.

    Raises:
        RefusedError: 412.
    """
    expected = request.headers.get("if-match")
    if expected and not any(has_tag(expected, tag_of(each.model_dump_json().encode())) for each in now):
        raise RefusedRequestError(
            412, "the resource has changed since it was read", "read it again, and resend the change", "changed"
        )
