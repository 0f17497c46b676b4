"""An HTTP client for MCP sessions that preserves the reason of a failed exchange; the SDK has one message for all of them.

A failed exchange becomes an error response of the protocol, with the reason as its message.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx2

from cranfield.base.certificates import trusted_certificates
from cranfield.base.concurrency.child_process import MAX_OUTPUT_BYTES
from cranfield.base.concurrency.retry import is_transient, retry_after_s
from cranfield.systems.kinds.http import close_if_leftover, keep_quiet
from cranfield.systems.kinds.http_reasons import failure_reason, failures
from cranfield.systems.kinds.http_request import TOO_LONG

_MARK = f"cranfield {secrets.token_hex(16)}"
"""A server cannot know it: what has it is ours."""
_INTERNAL_ERROR = -32603
_REFUSALS = frozenset({401, 403, 407, 429})
"""Statuses that are not part of the protocol, besides 5xx."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason of a failed exchange, and whether a retry may succeed."""

    reason: str
    may_pass: bool
    retry_after_s: float | None = None


class _Bounded(httpx2.AsyncByteStream):
    """A body with a size limit, as the SDK reads all of it into memory; nothing may follow it on its connection."""

    def __init__(self, response: httpx2.Response) -> None:
        self._body: Any = response.stream
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        n_bytes = 0
        async for part in self._body:
            n_bytes += len(part)
            if n_bytes > MAX_OUTPUT_BYTES:
                raise httpx2.ReadError(TOO_LONG)
            yield part
        if left := await close_if_leftover(self._response, self._body):
            raise httpx2.ReadError(f"{left} bytes follow the end of the answer")

    async def aclose(self) -> None:
        await self._body.aclose()


class ReasonClient(httpx2.AsyncClient):
    """A client whose failures are identified by `refusal_in`."""

    def __init__(self, **options: Any) -> None:
        """Accept only unencoded bodies: a compressed body may expand without limit."""
        keep_quiet()
        super().__init__(verify=trusted_certificates(), **options)
        self.headers["Accept-Encoding"] = "identity"

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; a failed exchange is returned as an error response with its reason."""
        if request.method != "POST":
            return _bounded(await super().send(request, **options))
        try:
            response = _bounded(await super().send(request, **options))
        except failures() as error:
            reason, may_pass = failure_reason(error, has_begun=False)
            return _error_response(request, Refusal(reason, may_pass))
        status = response.status_code
        if status not in _REFUSALS and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            if response.headers.get("content-encoding", "identity").strip().lower() == "identity":
                return response
            await response.aclose()
            return _error_response(
                request, Refusal("the answer has an encoding that was not requested", may_pass=False)
            )
        await response.aclose()
        wait_s = retry_after_s(response.headers.get("retry-after", ""), response.headers.get("date", ""))
        phrase = response.reason_phrase
        return _error_response(request, Refusal(f"HTTP {status} {phrase}".strip(), is_transient(status), wait_s))


def _bounded(response: httpx2.Response) -> httpx2.Response:
    if not response.is_stream_consumed:
        response.stream = _Bounded(response)
    return response


def refusal_in(data: object) -> Refusal | None:
    """The refusal in the data of an error; None if the error is the server's own."""
    if isinstance(data, dict) and isinstance(data.get(_MARK), list):
        return Refusal(*data[_MARK])
    return None


def _error_response(request: httpx2.Request, refusal: Refusal) -> httpx2.Response:
    data = {_MARK: [refusal.reason, refusal.may_pass, refusal.retry_after_s]}
    error = {"code": _INTERNAL_ERROR, "message": refusal.reason, "data": data}
    content = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = {"content-type": "application/json"}
    return httpx2.Response(HTTPStatus.BAD_GATEWAY, headers=headers, content=content, request=request)
