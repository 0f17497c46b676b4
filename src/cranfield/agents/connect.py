"""A backend with everything around it: budget, retries, recording or replay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cranfield.agents.budget import Budget, Budgeted
from cranfield.agents.protocol import Backend
from cranfield.agents.pydantic_ai_backend import Provider, PydanticAiBackend, split_model
from cranfield.agents.recording import Recording, Replaying
from cranfield.agents.retrying import DEFAULT_BACKOFF_S, Paced, Retrying
from cranfield.base.concurrency.retry import DEFAULT_ATTEMPTS
from cranfield.base.errors import UsageError


@dataclass(frozen=True, slots=True)
class Connection:
    """How a model is called."""

    model: str
    """`provider:name`."""
    base_url: str = ""
    api_key_env: str = ""
    attempts: int = DEFAULT_ATTEMPTS
    backoff_s: float = DEFAULT_BACKOFF_S
    per_minute: float | None = None
    """Requests that are started in a minute, retries included; None: no limit."""
    record: Path | None = None
    replay: Path | None = None

    @property
    def place(self) -> str:
        """The base URL without a user, a password or parameters."""
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()

    def __post_init__(self) -> None:
        split_model(self.model)
        if self.base_url and not (
            self.base_url.startswith(("http://", "https://")) and urlsplit(self.base_url).hostname
        ):
            raise UsageError("the base URL is no address", got=repr(self.place), expected="http://HOST:PORT/v1")
        if self.record is not None and self.replay is not None:
            raise UsageError("record and replay exclude each other", hint="a replay asks nothing that is new")


@asynccontextmanager
async def connected(connection: Connection, budget: Budget, source: Backend | None = None) -> AsyncIterator[Backend]:
    """The backend of a connection; `source` answers in the place of the model, for tests.

    Each attempt of a retry is reserved in the budget. Answers are recorded, attempts are not.
    """
    adapter = None
    if source is None and connection.replay is not None:
        source = Replaying(connection.replay)
    elif source is None:
        name, _ = split_model(connection.model)
        source = adapter = PydanticAiBackend(Provider(name, connection.base_url, connection.api_key_env))
    if connection.per_minute is not None:
        source = Paced(source, connection.per_minute)
    backend: Backend = Retrying(Budgeted(source, budget), attempts=connection.attempts, backoff_s=connection.backoff_s)
    recording = None if connection.record is None else Recording(backend, connection.record)
    try:
        yield recording or backend
    finally:
        if recording is not None:
            recording.close()
        if adapter is not None:
            await adapter.close()
