"""A rule on one query's value of a measure, such as `R@10 >= 1`: what makes an answer correct."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from cranfield.base.errors import MeasureError, shorten
from cranfield.measures.catalogue import CATALOGUE, is_composed
from cranfield.measures.measure import Measure
from cranfield.measures.parse import parse

COMPARISONS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
"""Longest first, as they are looked for."""
_SHAPE = re.compile(r"\s*(?P<measure>.+?)\s*(?P<symbol>>=|<=|>|<|(?<=[\s\d])=)\s*(?P<bound>[0-9]*\.?[0-9]+)\s*")


@dataclass(frozen=True, slots=True)
class Threshold:
    """`R@10 >= 1`: a measure, a comparison and a bound."""

    measure: Measure
    symbol: str
    bound: Fraction
    text: str
    """The bound as it was written."""

    def __str__(self) -> str:
        return f"{self.measure} {self.symbol} {self.text}"

    def holds(self, value: Fraction) -> bool:
        """Whether a value keeps the rule."""
        return COMPARISONS[self.symbol](value, self.bound)


def parse_threshold(text: str) -> Threshold:
    """Read a rule: MEASURE COMPARISON NUMBER; a measure alone is at least 1.

        >>> str(parse_threshold("Success@5")), str(parse_threshold("R@10>0.5"))
        ('Success@5 >= 1', 'R@10 > 0.5')

    Raises:
        UsageError: it is no rule, or its measure has no value for each query.
    """
    match = _SHAPE.fullmatch(text)
    name, symbol, bound = (match["measure"], match["symbol"], match["bound"]) if match else (text, ">=", "1")
    measure = parse(name)
    if CATALOGUE[measure.name].aggregate != "mean" or is_composed(measure):
        raise MeasureError(
            f"{measure} is one number over all queries",
            expected="a measure with a value for each query",
            got=shorten(text),
        )
    return Threshold(measure, symbol, Fraction(bound), bound)
