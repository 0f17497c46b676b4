"""Options of commands that call a model. What calls one is imported when a command runs, so that help starts quickly."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Interval

from cranfield.base.errors import UsageError
from cranfield.evaluation.options.declaration import Option

if TYPE_CHECKING:
    from cranfield.agents.budget import Budget

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

    found = PriceList() if prices is None else read_prices(prices)
    if money is not None and model not in found.models:
        where = "no price list" if prices is None else str(prices)
        hint = f"write `models: {{{model}: {{input: 0.5, output: 1.5}}}}`, prices of a million tokens, to a file for --prices"
        raise UsageError(f"--budget-money requires the price of {model}", got=where, hint=hint)
    return Budget(tokens=tokens, money=money, prices=found)
