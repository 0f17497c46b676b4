"""What the API refuses, as exceptions; `problems` are those of its answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cranfield.base.errors import CranfieldError, Problem, shorten

if TYPE_CHECKING:
    from httpx2 import Response


class ApiError(CranfieldError):
    """An answer of the API that is no success."""

    exit_code = 2
    status = 0
    """Status of the HTTP response; 0 where there was no answer."""
    code = ""
    """Code of the first problem, for programs."""


class RefusedError(ApiError):
    """The request is wrong, or does not fit what is stored (400 to 422)."""


class NotFoundError(RefusedError):
    """There is no such thing (404)."""


class NotAuthorisedError(ApiError):
    """The token is missing or unknown, or its scope does not allow it (401, 403)."""


class JobFailedError(ApiError):
    """The job failed or was cancelled: there is no result."""

    exit_code = 3


class ApiUnavailableError(ApiError):
    """The server does not answer, has too much to do, or failed (429, 5xx); it may be tried again."""

    exit_code = 3


KINDS: dict[int, type[ApiError]] = {
    401: NotAuthorisedError,
    403: NotAuthorisedError,
    404: NotFoundError,
    424: JobFailedError,
    429: ApiUnavailableError,
}


def error_of(response: Response) -> ApiError:
    """The error of an answer."""
    status = response.status_code
    kind = KINDS.get(status, ApiUnavailableError if status >= 500 else RefusedError)
    try:
        errors = json.loads(response.content)["errors"]
        problems = [
            Problem(
                each["message"],
                path=each["where"] or None,
                expected=each.get("expected") or None,
                got=each.get("got") or None,
                hint=each["hint"].rstrip(".") or None,
            )
            for each in errors
        ]
        code = str(errors[0]["code"])
    except (ValueError, LookupError, TypeError, AttributeError):
        problems = [Problem(f"the server answered with status {status}", got=shorten(response.text))]
        code = ""
    found = kind(problems)
    found.status, found.code = status, code
    return found
