"""An HTTP client for MCP sessions that says why an exchange failed, where the SDK has but one sentence for all of it.

An answer that is a failure of the service becomes an error of the protocol, with the reason for its message.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx2

from cranfield.systems.http import retry_after_s
from cranfield.systems.http_reasons import failures, why_broken

_MARK = "cranfield"
_INTERNAL_ERROR = -32603
_REFUSALS = frozenset({401, 403, 407, 429})
"""Statuses that are no word of the protocol; besides them those of 500 and more."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an exchange failed, and whether another may not."""

    reason: str
    may_pass: bool
    retry_after_s: float | None = None


class TellingClient(httpx2.AsyncClient):
    """A client whose failures can be told apart by `refusal_in`."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; a message that fails is answered with an error that says why."""
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except failures() as error:
            reason, may_pass = why_broken(error, has_begun=False)
            return _told(request, Refusal(reason, may_pass))
        status = response.status_code
        if status not in _REFUSALS and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return response
        await response.aclose()
        wait_s = retry_after_s(response.headers.get("retry-after", ""), response.headers.get("date", ""))
        may_pass = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        phrase = response.reason_phrase
        return _told(request, Refusal(f"HTTP {status} {phrase}".strip(), may_pass, wait_s))


def refusal_in(data: object) -> Refusal | None:
    """The refusal that an error of the protocol brings along; None where the server itself said it."""
    if isinstance(data, dict) and isinstance(data.get(_MARK), list):
        return Refusal(*data[_MARK])
    return None


def _told(request: httpx2.Request, refusal: Refusal) -> httpx2.Response:
    data = {_MARK: [refusal.reason, refusal.may_pass, refusal.retry_after_s]}
    error = {"code": _INTERNAL_ERROR, "message": refusal.reason, "data": data}
    content = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = {"content-type": "application/json"}
    return httpx2.Response(HTTPStatus.BAD_GATEWAY, headers=headers, content=content, request=request)
