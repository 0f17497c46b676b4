"""Every request passes here first: its host, where it comes from; and every response, for its headers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders

from cranfield.base.errors import Problem
from cranfield.workbench.server.documents import Place, unfit_texts
from cranfield.workbench.server.error_handlers import error_response, problem_of, unexpected
from cranfield.workbench.server.http_errors import SAFE

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from cranfield.workbench.server.options import ServerOptions

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: browsers then send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
API = "/v1/"
PLAIN = "text/plain; charset=utf-8"
TOO_LARGE = 413
OVER_LIMIT = Problem("the request is too large", hint="send less data, or ask the operator to raise the limit")


class Guard:
    """Refuses requests for another host (DNS rebinding) and from other sites; adds the headers of security."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self.app = app
        self.options = options
        self.headers = HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if options.secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = too_large = False

        async def sent(message: Message) -> None:
            nonlocal started, too_large
            if message["type"] == "http.response.start":
                started, too_large = True, _is_plain_refusal(message)
                self._protect(message)
            if not too_large:
                await send(message)

        request = Request(scope, receive)
        if problem := refusal(request.headers, scope["method"], self.options, path=scope["path"]):
            await error_response(request, 421 if problem[0] == "host" else 403, [problem[1]], code=problem[0])(
                scope, receive, sent
            )
            return
        if unfit := [*_unfit_address(request)]:
            await error_response(request, 422, unfit, code="invalid")(scope, receive, sent)
            return
        try:
            await self.app(scope, receive, sent)
            if too_large:
                await error_response(request, TOO_LARGE, [OVER_LIMIT])(scope, receive, sent)
        except Exception as error:
            if started:
                raise
            await unexpected(request, error)(scope, receive, sent)

    def _protect(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self.headers.items():
            headers.setdefault(name, value)  # an image has a stricter policy of its own
        headers.setdefault("Cache-Control", "no-store")


def _is_plain_refusal(message: Message) -> bool:
    """Whether the framework refuses a body over its limit, in plain text: it is answered as every failure instead."""
    return bool(message["status"] == TOO_LARGE and Headers(scope=message).get("content-type") == PLAIN)


def _unfit_address(request: Request) -> Iterator[Problem]:
    """Texts in the path and the query that nothing can hold."""
    texts: list[tuple[Place, object]] = [(("path",), request.scope["path"])]
    for name, value in request.query_params.multi_items():
        texts += [(("query", name), name), (("query", name), value)]
    return map(problem_of, unfit_texts(texts))


def refusal(headers: Headers, method: str, options: ServerOptions, *, path: str = "/") -> tuple[str, Problem] | None:
    """Why a request is refused, by its headers; None where it is not.

    A program with a token sends neither `Origin` nor `Sec-Fetch-Site`. A link on another site may lead to a page (a safe method,
    a navigation of the whole window); nothing else of another site is answered.
    """
    host = headers.get("host", "").lower()
    if not options.knows(host):
        problem = Problem(f"the host {host or '(none)'} is not a name of this server", hint=f"use {options.public}")
        return "host", problem
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    foreign = Problem("a request from another site is refused", hint=f"open {options.public} itself")
    if origin is not None and origin.lower() not in options.origins:
        return "cross_site", foreign
    if method in SAFE:
        navigates = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return None if site in {None, "same-origin", "none"} or navigates else ("cross_site", foreign)
    if site not in {None, "same-origin"}:
        return "cross_site", foreign
    # A program without a token has no session either, and gets 401.
    no_session = path.startswith(API) and "cookie" not in headers
    if site is None and origin is None and "authorization" not in headers and not no_session:
        return "cross_site", Problem("the request has no origin", expected="the header Origin, or a token of the API")
    return None
