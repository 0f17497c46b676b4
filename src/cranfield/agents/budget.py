"""Budgets: a request is sent only where even its largest cost, with that of the requests under way, is within them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cranfield.agents.protocol import Backend, Failure, FailureKind, ModelAnswer, Request, Usage
from cranfield.base.errors import ConfigError
from cranfield.base.words import count_noun
from cranfield.formats.io.validation import load_model

BYTES_PER_TOKEN = 2
"""Fewest bytes of UTF-8 a token has on average in any text that is likely: about 4 in English, 3 in Chinese."""
TYPICAL_BYTES = 4
"""For estimates."""
OVERHEAD_TOKENS = 200
"""Tokens of the format of a conversation and of a schema, beyond their text."""
DEFAULT_OUTPUT = 4_096
"""Output tokens that are reserved where the request has no maximum."""
PER = 1_000_000
"""Prices are per million tokens."""

_Money = Annotated[float, Field(ge=0)]


class Price(BaseModel):
    """Price of a million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: _Money
    output: _Money
    cache_read: _Money | None = None
    """None: as the input."""
    cache_write: _Money | None = None

    def cost(self, usage: Usage) -> float | None:
        """Cost of the tokens; None where not known. Input without a report of its cache is priced as uncached."""
        if usage.input is None or usage.output is None:
            return None
        read, write = usage.cache_read or 0, usage.cache_write or 0
        cached = read * _or(self.cache_read, self.input) + write * _or(self.cache_write, self.input)
        return ((usage.input - read - write) * self.input + cached + usage.output * self.output) / PER


def _or(price: float | None, default: float) -> float:
    return default if price is None else price


class PriceList(BaseModel):
    """The user's price list: prices change, so none is built in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: str = "USD"
    models: Mapping[str, Price] = {}
    """`provider:name` to price."""

    def cost(self, model: str, usage: Usage) -> float | None:
        """None where the price or the usage is not known."""
        price = self.models.get(model)
        return None if price is None else price.cost(usage)


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """Tokens of a request before it is sent."""

    input: int
    output: int

    @property
    def usage(self) -> Usage:
        """As if it had been reported."""
        return Usage(input=self.input, output=self.output, cache_read=0)


def estimate(request: Request, bytes_per_token: int = BYTES_PER_TOKEN) -> TokenEstimate:
    """Tokens of a request: at most, or, with `TYPICAL_BYTES`, about."""
    record = request.record()
    texts = [record["system"], *(json.dumps(message, ensure_ascii=False) for message in record["messages"])]
    texts += [json.dumps(record["output"] or ""), json.dumps(record["tools"])]
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return TokenEstimate(size // bytes_per_token + OVERHEAD_TOKENS, request.sampling.max_tokens or DEFAULT_OUTPUT)


@dataclass
class Spent:
    """What was used so far."""

    requests: int = 0
    tokens: int = 0
    """With the reservations of requests that reported none."""
    money: float | None = 0.0
    """None from the first request on whose cost is not known."""
    unmeasured: int = 0

    @classmethod
    def of(cls, prices: PriceList, model: str, usage: Usage) -> Spent:
        """What requests to a model took. Tokens that were not reported are not counted, and the money is then not known."""
        return cls(usage.requests, usage.total or 0, prices.cost(model, usage), usage.unmeasured)

    def text(self, currency: str) -> str:
        """`1,320 tokens (2 requests reported none), cost 0.0132 USD`."""
        without = f" ({count_noun(self.unmeasured, 'requests')} reported none)" if self.unmeasured else ""
        cost = "unknown" if self.money is None else f"{self.money:.4f} {currency}"
        return f"{count_noun(self.tokens, 'tokens', '{:,}'.format)}{without}, cost {cost}"

    def add(self, other: Spent) -> None:
        """Count what something else used."""
        self.requests += other.requests
        self.tokens += other.tokens
        self.unmeasured += other.unmeasured
        self.money = None if other.money is None or self.money is None else self.money + other.money


Limit = Literal["tokens", "money"]


@dataclass
class Budget:
    """Limits of a run; None: no limit. On one event loop."""

    tokens: int | None = None
    money: float | None = None
    """A model without a price is not called where money is limited."""
    prices: PriceList = field(default_factory=PriceList)
    spent: Spent = field(default_factory=Spent)
    reached: Limit | None = None
    """The limit for which a request was not sent."""

    def __post_init__(self) -> None:
        self._in_flight: list[tuple[int, float]] = []
        self._changed = asyncio.Event()

    async def reserve(self, request: Request) -> tuple[int, float] | None:
        """Reserve the most that the request can cost; see `reserve_amount`."""
        upper = estimate(request)
        cost = self.prices.cost(request.model, upper.usage)
        if cost is None and self.money is not None:
            self.reached = "money"
            return None
        return await self.reserve_amount((upper.input + upper.output, cost or 0.0))

    async def reserve_amount(self, amount: tuple[int, float]) -> tuple[int, float] | None:
        """Reserve tokens and money; None where they, with all others, exceed a limit.

        Waits where they would fit if what is under way turned out cheaper.
        """
        while (limit := self._exceeded(amount)) is not None:
            if not self._in_flight:
                self.reached = limit
                return None
            self._changed.clear()
            await self._changed.wait()
        self._in_flight.append(amount)
        return amount

    def charge(self, amount: tuple[int, float], request: Request, answer: ModelAnswer | None) -> None:
        """Replace a reservation by what was used. Where that is not known (also: interrupted), the reservation counts."""
        usage = answer.usage if answer is not None else Usage(unmeasured=1)
        if not usage.unmeasured and usage.total is not None:
            tokens, cost = usage.total, self.prices.cost(request.model, usage)
        else:
            tokens, cost = amount[0], amount[1] if request.model in self.prices.models else None
        self.release(amount, Spent(usage.requests, tokens, cost, usage.unmeasured))

    def release(self, amount: tuple[int, float], used: Spent) -> None:
        """Replace a reservation by what was used."""
        self._in_flight.remove(amount)
        self.spent.add(used)
        self._changed.set()

    def _exceeded(self, amount: tuple[int, float]) -> Limit | None:
        tokens = self.spent.tokens + amount[0] + sum(tokens for tokens, _ in self._in_flight)
        money = (self.spent.money or 0.0) + amount[1] + sum(money for _, money in self._in_flight)
        if self.tokens is not None and tokens > self.tokens:
            return "tokens"
        if self.money is not None and money > self.money:
            return "money"
        return None


class Budgeted:
    """A backend within a budget. A request that could exceed it is not sent: its failure is `budget`."""

    def __init__(self, backend: Backend, budget: Budget) -> None:
        self.backend = backend
        self.budget = budget

    async def ask(self, request: Request) -> ModelAnswer:
        """Reserve, send, charge."""
        amount = await self.budget.reserve(request)
        if amount is None:
            failure = Failure(FailureKind.BUDGET, f"the budget of {self.budget.reached} does not allow another request")
            return ModelAnswer(failure=failure, usage=Usage(requests=0, input=0, output=0))
        answer = None
        try:
            answer = await self.backend.ask(request)
        finally:
            self.budget.charge(amount, request, answer)
        return answer


def read_prices(path: Path) -> PriceList:
    """A price list in YAML or JSON.

    Raises:
        ConfigError: the file is missing or invalid, with every problem.
    """
    return load_model(path, PriceList, ConfigError)
