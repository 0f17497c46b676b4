"""Rules on the fields of an answer, such as `mode = semantic`: read once, used by preflight, gate and evidence checks.

A rule is FIELD OPERATOR VALUE. The value is JSON where it is (`0.8`, `true`, `null`, `"a, b"`), else text, also in single
quotes; `.5` is a number as well. `in` and `not in` take several, separated by commas. A field inside an object is written with dots.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cranfield.base.errors import UsageError, shorten
from cranfield.base.words import join_first
from cranfield.model.run import Answer, Outcome, Run

EXPECTED = "FIELD OPERATOR VALUE, such as mode = semantic, confidence >= 0.5, routed in local, remote, or tokens exists"
SHOWN = 3
"""Violating answers that a sentence quotes."""
_ABSENT = object()
_QUOTED = re.compile(r"'([^']*)'")
_POINT_FIRST = re.compile(r"[+-]?\.[0-9]+")
_PLAIN = re.compile(r"[\w./:@%+-]+(?: [\w./:@%+-]+)*")
"""Text that needs no quotes."""
_SHAPE = re.compile(
    r"\s*(?P<field>[^\s=!<>]+)\s*"
    r"(?:(?P<symbol>==|=|!=|<=|>=|<|>)\s*(?P<value>(?![=!<>]).*?\S)|\s(?P<word>in|not\s+in)\s+(?P<values>.*?\S)|\s(?P<exists>exists))\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ComparisonOperator:
    """One row of the table of operators."""

    symbol: str
    sentence: str
    """For the docs."""
    holds: Callable[[Any, tuple[Any, ...]], bool]
    """From the value of the field and the values of the rule."""
    of_numbers: bool = False


def _same(found: Any, value: Any) -> bool:
    """Equal, and of one kind: `true` is not 1, and the text "1" is not the number."""
    if _is_number(found) and _is_number(value):
        return bool(found == value)
    return type(found) is type(value) and bool(found == value)


def _among(found: Any, values: tuple[Any, ...]) -> bool:
    return any(_same(found, value) for value in values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, tuple[Any, ...]], bool]:
    return lambda found, values: bool(compare(found, values[0]))


COMPARISONS: Mapping[str, ComparisonOperator] = {
    row.symbol: row
    for row in (
        ComparisonOperator("=", "the field has this value", lambda found, values: _same(found, values[0])),
        ComparisonOperator("!=", "the field has another value", lambda found, values: not _same(found, values[0])),
        ComparisonOperator("<", "the number is less", _ordered(operator.lt), of_numbers=True),
        ComparisonOperator("<=", "the number is at most this", _ordered(operator.le), of_numbers=True),
        ComparisonOperator(">", "the number is greater", _ordered(operator.gt), of_numbers=True),
        ComparisonOperator(">=", "the number is at least this", _ordered(operator.ge), of_numbers=True),
        ComparisonOperator("in", "the field has one of these values", _among),
        ComparisonOperator(
            "not in", "the field has none of these values", lambda found, values: not _among(found, values)
        ),
        ComparisonOperator(
            "exists", "the answer has the field, and it is not null", lambda found, _: found is not None
        ),
    )
}
"""Operator to its row. Every one fails on an answer without the field."""


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """`mode = semantic`: what a field of every answer must be."""

    field: str
    comparison: str
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return " ".join(filter(None, (self.field, self.comparison, ", ".join(map(_written, self.values)))))

    def violation(self, fields: Mapping[str, Any]) -> str | None:
        """How the fields of an answer break the rule: `mode is "lexical"`; None where they keep it."""
        found = field_of(fields, self.field)
        row = COMPARISONS[self.comparison]
        if found is _ABSENT:
            return f"no field {self.field}"
        if row.of_numbers and not _is_number(found):
            return f"{self.field} is {_shown(found)}, not a number"
        return None if row.holds(found, self.values) else f"{self.field} is {_shown(found)}"


def parse_answer_rule(text: str) -> AnswerRule:
    """Read a rule.

        >>> parse_answer_rule("mode = semantic").violation({"mode": "lexical"})
        'mode is "lexical"'

    Raises:
        UsageError: it is no rule, or compares with what is not a number.
    """
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise UsageError(f"{shorten(text)} is not a rule on a field of an answer", expected=EXPECTED)
    if match["exists"]:
        return AnswerRule(match["field"], "exists")
    if match["word"]:
        comparison = " ".join(match["word"].split())
        return AnswerRule(match["field"], comparison, tuple(map(_value, _listed(match["values"]))))
    comparison = "=" if match["symbol"] == "==" else match["symbol"]
    value = _value(match["value"])
    if COMPARISONS[comparison].of_numbers and not _is_number(value):
        raise UsageError(
            f"{shorten(text)} compares with {match['value']}",
            expected=f"a number after {comparison}",
            got=match["value"],
        )
    return AnswerRule(match["field"], comparison, (value,))


def field_of(fields: Mapping[str, Any], name: str) -> Any:
    """A field by its name, or by its path of names with dots in nested objects; `is_absent` tells whether it is there."""
    if name in fields:
        return fields[name]
    first, dot, rest = name.partition(".")
    inner = fields.get(first) if dot else None
    return field_of(inner, rest) if isinstance(inner, Mapping) else _ABSENT


def is_absent(value: object) -> bool:
    """Whether `field_of` found nothing."""
    return value is _ABSENT


def answers_with_fields(run: Run) -> Iterator[tuple[str, Answer]]:
    """Query id and answer of all answers that a rule is about.

    Failures are no answers, and are counted elsewhere; an answer without results that states no field is none either.
    """
    for query_id, answer in run.answers.items():
        if answer.outcome is Outcome.ANSWERED or (answer.outcome is Outcome.EMPTY and answer.fields):
            yield query_id, answer


def violations(rule: AnswerRule, run: Run) -> dict[str, str]:
    """Query id to how its answer breaks the rule, in the order of the run."""
    found = ((query_id, rule.violation(answer.fields)) for query_id, answer in answers_with_fields(run))
    return {query_id: why for query_id, why in found if why is not None}


def some_broken(broken: Mapping[str, str]) -> str:
    """The first few violating answers of a rule: `q1 (mode is "lexical"), q2 (no field mode)`."""
    return join_first([f"{query_id} ({why})" for query_id, why in broken.items()], SHOWN)


def _listed(text: str) -> list[str]:
    """The parts between commas; a comma inside quotes belongs to its part."""
    inner = text.removeprefix("[").removesuffix("]") if text.startswith("[") and text.endswith("]") else text
    return [
        part.strip() for part in re.findall(r"""(?:"(?:[^"\\]|\\.)*"|(?<!\w)'[^']*'|[^,])+""", inner) if part.strip()
    ]


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        if _POINT_FIRST.fullmatch(text):
            return float(text)
        quoted = _QUOTED.fullmatch(text)
        return quoted[1] if quoted else text
    return text if isinstance(value, float) and not math.isfinite(value) else value


def _written(value: Any) -> str:
    """As it is read again: text without quotes where that is the same text."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and _value(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"
