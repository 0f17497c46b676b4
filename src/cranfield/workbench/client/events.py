"""The stream of a job: each event is the job as it was then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cranfield.workbench.client.errors import ApiUnavailableError, error_of
from cranfield.workbench.service.responses import JobResponse

if TYPE_CHECKING:
    from httpx2 import Client

SILENCE_S = 40.0
"""Longest silence: the server sends a comment every 15 seconds."""


def events_of(http: Client, path: str) -> Iterator[JobResponse]:
    """The events of a stream until it ends.

    Raises:
        ApiUnavailableError: the connection breaks.
        ApiError: the server refuses the stream.
    """
    import httpx2

    headers = {"Accept": "text/event-stream"}
    try:
        with http.stream("GET", path, headers=headers, timeout=SILENCE_S) as response:
            if not response.is_success:
                response.read()
                raise error_of(response)
            for line in response.iter_lines():
                if line.startswith("data:"):
                    yield JobResponse.model_validate_json(line.removeprefix("data:").strip())
    except httpx2.TransportError as error:
        raise ApiUnavailableError(f"the progress stream was interrupted: {error or type(error).__name__}") from None
