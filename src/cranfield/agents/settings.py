"""Settings of models and budgets as a plan has them: read from files of users, and turned into what agents take."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field

from cranfield.agents.budget import Budget, Budgeted, PriceList
from cranfield.agents.loop import AgentLimits
from cranfield.agents.protocol import Backend, OutputMode, Sampling
from cranfield.agents.pydantic_ai_backend import Provider, PydanticAiBackend, split_model
from cranfield.agents.recording import Recording, Replaying
from cranfield.agents.retrying import DEFAULT_BACKOFF_S, Paced, Retrying
from cranfield.base.concurrency.retry import DEFAULT_ATTEMPTS
from cranfield.base.errors import UsageError
from cranfield.formats.io.validation import ClosedModel, Filled


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
            raise UsageError("the base URL is not an address", got=repr(self.place), expected="http://HOST:PORT/v1")
        if self.record is not None and self.replay is not None:
            raise UsageError("record and replay exclude each other", hint="a replay makes no new requests")


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


_Count = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(gt=0, le=86_400)]


class LimitSettings(ClosedModel):
    """Limits on the work of an agent on one thing; None: no limit."""

    turns: _Count = 40
    tool_calls: _Count = 120
    tokens: _Count | None = None
    seconds: _Seconds | None = None
    corrections: Annotated[int, Field(ge=0)] = 2
    """How often in a row an answer that does not fit the schema is sent back."""


NOT_CONTENT = frozenset({"attempts", "base_url", "api_key_env", "concurrency", "per_minute", "timeout_s"})
"""Settings of a model that no request depends on: a run may go on with others."""


class ModelSettings(ClosedModel):
    """A model, and how it is called."""

    model: Filled
    """`provider:name`."""
    base_url: str = ""
    api_key_env: str = ""
    temperature: Annotated[float, Field(ge=0)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = None
    max_tokens: _Count | None = None
    """Most tokens of one answer."""
    output_mode: OutputMode = "tool"
    timeout_s: _Seconds = 120.0
    """Timeout of one request, in seconds."""
    attempts: Annotated[int, Field(ge=1, le=20)] = DEFAULT_ATTEMPTS
    """Attempts at one request, the first included, where it is limited, lost or garbled; and at the reply to each vote
    of a judge."""
    concurrency: _Count = 4
    """Agents at a time."""
    per_minute: Annotated[float, Field(gt=0)] | None = None
    """Requests; agents that share a model share its pace."""
    limits: LimitSettings = LimitSettings()

    @property
    def sampling(self) -> Sampling:
        """As a request has it."""
        return Sampling(self.temperature, self.top_p, self.seed, self.max_tokens)

    @property
    def content(self) -> dict[str, Any]:
        """What answers depend on."""
        return self.model_dump(exclude=set(NOT_CONTENT))

    @property
    def connection(self) -> Connection:
        """How it is called."""
        return Connection(
            self.model, self.base_url, self.api_key_env, attempts=self.attempts, per_minute=self.per_minute
        )

    @property
    def agent_limits(self) -> AgentLimits:
        """As an agent has them."""
        return AgentLimits(**self.limits.model_dump())


class BudgetSettings(ClosedModel):
    """Budget of a whole run; None: no limit."""

    tokens: _Count | None = None
    money: Annotated[float, Field(gt=0)] | None = None
    """Every model then needs a price."""
    prices: PriceList = PriceList()
