"""The plan of a golden set: which queries are wanted, and which models play the roles."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cranfield.agents.loop import Limits
from cranfield.agents.protocol import OutputMode, Sampling
from cranfield.golden.records import Filled, Strict

_Count = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(gt=0, le=86_400)]


class RoleLimits(Strict):
    """Of the work of a role on one record; None: no limit."""

    turns: _Count = 40
    tool_calls: _Count = 120
    tokens: _Count | None = None
    seconds: _Seconds | None = None
    corrections: Annotated[int, Field(ge=0)] = 2
    """How often an answer that does not fit the schema is sent back."""


class RoleSettings(Strict):
    """The model of a role, and how it is called."""

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
    concurrency: _Count = 4
    """Records at a time."""
    limits: RoleLimits = RoleLimits()

    @property
    def sampling(self) -> Sampling:
        """As a request has it."""
        return Sampling(self.temperature, self.top_p, self.seed, self.max_tokens)

    @property
    def agent_limits(self) -> Limits:
        """As an agent has them."""
        return Limits(**self.limits.model_dump())
