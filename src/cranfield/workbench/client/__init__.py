"""A client of the REST API of `cranfield serve`: `from cranfield.workbench.client import Client`."""

from __future__ import annotations

from cranfield.workbench.client.client import Client
from cranfield.workbench.client.errors import (
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
