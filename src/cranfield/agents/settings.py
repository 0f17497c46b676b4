"""Settings of models and budgets as a plan has them: read from files of users, and turned into what agents take."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from annotated_types import Ge, Interval
from pydantic import Field

from cranfield.agents.budget import Budget, Budgeted, PriceList
from cranfield.agents.loop import AgentLimits
from cranfield.agents.protocol import Backend, OutputMode, Sampling
from cranfield.agents.pydantic_ai_backend import Provider, PydanticAiBackend, split_model
from cranfield.agents.recording import Recording, Replaying
from cranfield.agents.retrying import DEFAULT_BACKOFF_S, Paced, Retrying
from cranfield.base.concurrency.retry import DEFAULT_ATTEMPTS
from cranfield.base.errors import UsageError
from cranfield.evaluation.options.declaration import Option
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


BaseUrlOption = Annotated[
    str, Option("URL of the server, such as http://127.0.0.1:8000/v1.", flag="--base-url", metavar="URL")
]
KeyOption = Annotated[str, Option("Environment variable that holds the API key.", flag="--api-key-env", metavar="NAME")]
TokensOption = Annotated[
    int | None, Option("Maximum number of tokens to use.", flag="--budget-tokens", metavar="N"), Ge(1)
]
MoneyOption = Annotated[
    float | None,
    Option("Maximum amount to spend; requires --prices.", flag="--budget-money", metavar="X"),
    Ge(0),
]
PricesOption = Annotated[
    Path | None, Option("Price list, a YAML file; default: costs are not known.", flag="--prices", metavar="FILE")
]


class SchemaMode(StrEnum):
    """How a model is given the schema of its answer."""

    NATIVE = "native"
    TOOL = "tool"
    PROMPTED = "prompted"


OutputOption = Annotated[
    SchemaMode,
    Option("How the answer schema is passed to the model.", flag="--output-mode", metavar="MODE"),
]
AtOnceOption = Annotated[int, Option("Calls at once.", flag="--concurrency", metavar="N"), Interval(ge=1, le=100)]


def read_budget(model: str, tokens: int | None, money: float | None, prices: Path | None) -> Budget:
    """The budget of a run.

    Raises:
        UsageError: a budget of money without a price.
    """
    from cranfield.agents.budget import Budget, PriceList, read_prices
    from cranfield.base.errors import UsageError

    found = PriceList() if prices is None else read_prices(prices)
    if money is not None and model not in found.models:
        where = "no price list" if prices is None else str(prices)
        hint = f"write `models: {{{model}: {{input: 0.5, output: 1.5}}}}`, prices of a million tokens, to a file for --prices"
        raise UsageError(f"--budget-money requires the price of {model}", got=where, hint=hint)
    return Budget(tokens=tokens, money=money, prices=found)
