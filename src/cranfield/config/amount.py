"""Bounds and amounts of a rule as exact decimals, as in the file: 0.70 is seventy hundredths and not the float next to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from cranfield.formats.io.tree import describe
from cranfield.model.kinds import SourceFloat, SourceInt

MAX_DIGITS = 30
"""A bound has no more digits than this, before or after its point."""
_PERCENT = re.compile(r"\s*(\S+?)\s*%\s*")


def _decimal(value: Any) -> Any:
    """A number as it was written."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{describe(value)} is not a number")  # noqa: TRY004 - pydantic collects this kind
    text = value.source if isinstance(value, (SourceInt, SourceFloat)) else repr(value)
    number = _read(text)
    if number is None:
        raise ValueError(f"{text} is not a number of at most {MAX_DIGITS} digits")
    return number


def _read(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or len(number.as_tuple().digits) > MAX_DIGITS or abs(number.adjusted()) > MAX_DIGITS:
        return None
    return number


@dataclass(frozen=True, slots=True)
class Amount:
    """A number as it stands (`0.02`), or a share of something (`5 %`)."""

    number: Decimal
    is_percent: bool = False

    def __str__(self) -> str:
        return f"{self.number:f} %" if self.is_percent else f"{self.number:f}"

    def of(self, whole: Fraction) -> Fraction:
        """What it comes to: itself, or that share of `whole`."""
        return Fraction(self.number) * whole / 100 if self.is_percent else Fraction(self.number)

    @property
    def share(self) -> Fraction:
        """As a share of one: `0.8` and `80 %` are the same."""
        return self.of(Fraction(1))


def _amount(value: Any) -> Any:
    if isinstance(value, Amount):
        return value
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    number = _read(found[1]) if found else None if isinstance(value, str) else _decimal(value)
    if number is None:
        raise ValueError(f"{describe(value)} is not an amount: write a number, or a share such as 5 %")
    if number < 0:
        raise ValueError(f"{number:f}{' %' if found else ''} is under 0")
    return Amount(number, is_percent=found is not None)


Bound = Annotated[Decimal, BeforeValidator(_decimal), WithJsonSchema({"type": "number"})]
AnAmount = Annotated[
    Amount,
    BeforeValidator(_amount),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^\s*\S+\s*%\s*$"}]}),
]
