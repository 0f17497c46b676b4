"""Exact fractions for the comparisons of a gate, and their text.

Most values of measures are floats that approximate a fraction: 2/3, 0.7, 0.1 + 0.2. A gate adds and compares the
fractions, so that a mean of exactly 0.70 is not under 0.70, and a drop of exactly 5 % is not more.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from functools import lru_cache

from cranfield.base.numbers import MINUS

LARGEST_DENOMINATOR = 1_000_000
SAME = Fraction(1, 2**50)
"""Maximum relative distance of a float from the fraction that it approximates: four units in its last place."""
MAX_DECIMALS = 17


@lru_cache(maxsize=65_536)
def exact(value: float) -> Fraction:
    """The fraction that a value approximates.

    The simplest one within its last digits: `0.1 + 0.2` is 3/10, `2 / 3` is 2/3. Where no fraction with a denominator of
    up to a million is that close (a logarithm is in it), the shortest decimal that is this float.

    Example:
        >>> exact(0.1 + 0.2), exact(2 / 3), exact(0.6309297535714575)
        (Fraction(3, 10), Fraction(2, 3), Fraction(252371901428583, 400000000000000))
    """
    number = Fraction(repr(float(value)))
    near = number.limit_denominator(LARGEST_DENOMINATOR)
    return near if abs(near - number) <= SAME * abs(number) else number


def mean(values: Collection[Fraction]) -> Fraction:
    """The exact mean; there is at least one value."""
    return sum(values, Fraction(0)) / len(values)


def as_text(number: Fraction, against: Fraction | None = None, *, decimals: int = 4, signed: bool = False) -> str:
    """A number with four decimals, or as many more as it takes to distinguish it from the bound it is compared with.

    Args:
        number: what to write.
        against: a bound; another number never has the same text.
        decimals: to begin with.
        signed: a plus where it is above 0.

    Example:
        >>> as_text(Fraction("0.69996")), as_text(Fraction("0.69996"), Fraction("0.7"))
        ('0.7000', '0.69996')
    """
    while against is not None and number != against and decimals < MAX_DECIMALS:
        if _rounded(number, decimals) != _rounded(against, decimals):
            break
        decimals += 1
    text = _rounded(number, decimals)
    if signed and number > 0:
        text = f"+{text}"
    return text.replace("-", MINUS)


def percent_text(share: Fraction, against: Fraction | None = None, *, signed: bool = False) -> str:
    """A share of one as `5.0 %`, or with as many more decimals as it takes to distinguish it from its bound."""
    bound = None if against is None else against * 100
    return as_text(share * 100, bound, decimals=1, signed=signed) + " %"


def _rounded(number: Fraction, decimals: int) -> str:
    scaled = round(number * 10**decimals)
    sign, digits = ("-" if scaled < 0 else ""), str(abs(scaled)).rjust(decimals + 1, "0")
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}"
