"""A client of the REST API of `cranfield serve`: `from cranfield.client import Client`."""

from __future__ import annotations

from cranfield.client.client import Client
from cranfield.client.errors import (
    ApiError,
    ApiUnavailableError,
    JobFailedError,
    NotAuthorisedError,
    NotFoundError,
    RefusedError,
)

__all__ = [
    "ApiError",
    "ApiUnavailableError",
    "Client",
    "JobFailedError",
    "NotAuthorisedError",
    "NotFoundError",
    "RefusedError",
]
