"""Settings of models and budgets as a plan has them: read from files of users, and turned into what agents take."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from cranfield.agents.budget import PriceList
from cranfield.agents.connect import Connection
from cranfield.agents.loop import AgentLimits
from cranfield.agents.protocol import OutputMode, Sampling
from cranfield.base.concurrency.retry import DEFAULT_ATTEMPTS
from cranfield.formats.io.validation import ClosedModel, Filled

_Count = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(gt=0, le=86_400)]


class LimitSettings(ClosedModel):
    """Of the work of an agent on one thing; None: no limit."""

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
    """Of one answer."""
    output_mode: OutputMode = "tool"
    timeout_s: _Seconds = 120.0
    """Of one request."""
    attempts: Annotated[int, Field(ge=1, le=20)] = DEFAULT_ATTEMPTS
    """Of one request, the first included, where it is limited, lost or garbled; and of the reply to each vote of a judge."""
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
    """Of a whole run; None: no limit."""

    tokens: _Count | None = None
    money: Annotated[float, Field(gt=0)] | None = None
    """Every model then needs a price."""
    prices: PriceList = PriceList()
