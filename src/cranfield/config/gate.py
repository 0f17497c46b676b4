"""The `gate:` block of cranfield.yaml as pydantic models: the rules that a system must keep.

A bound is kept as it is written, in exact decimals: 0.70 is seventy hundredths and not the float next to it. What a rule
means is in the table of rules, `cranfield.gate.rules`; a rule of it is a key of `Rule` here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from cranfield.config.strict import Strict
from cranfield.formats.io.located import Text
from cranfield.formats.io.tree import SourceFloat, SourceInt, describe

TESTSET_PART = "{testset}"
"""In the path of a baseline: the name of the test set, where a config has several."""
BASELINE_FILE = "cranfield-baseline.json"
BASELINE_FILES = "cranfield-baseline-{testset}.json"
MOST_DIGITS = 30
"""A bound has no more digits than this, before or after its point."""

_PERCENT = re.compile(r"\s*(\S+?)\s*%\s*")


def _decimal(value: Any) -> Any:
    """A number as it was written."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{describe(value)} is no number")  # noqa: TRY004 - pydantic collects this kind
    text = value.source if isinstance(value, (SourceInt, SourceFloat)) else repr(value)
    number = _read(text)
    if number is None:
        raise ValueError(f"{text} is no number of at most {MOST_DIGITS} digits")
    return number


def _read(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or len(number.as_tuple().digits) > MOST_DIGITS or abs(number.adjusted()) > MOST_DIGITS:
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
        raise ValueError(f"{describe(value)} is no amount: write a number, or a share such as 5 %")
    if number < 0:
        raise ValueError(f"{number:f}{' %' if found else ''} is under 0")
    return Amount(number, is_percent=found is not None)


Bound = Annotated[Decimal, BeforeValidator(_decimal), WithJsonSchema({"type": "number"})]
AnAmount = Annotated[
    Amount,
    BeforeValidator(_amount),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^\s*\S+\s*%\s*$"}]}),
]
Where = Annotated[dict[str, Text], Field(min_length=1, json_schema_extra={"additionalProperties": {"type": "string"}})]


def _one_of(*names: str) -> ConfigDict:
    return ConfigDict(json_schema_extra={"oneOf": [{"required": [name]} for name in names]})


def _require_one(part: Strict, *names: str) -> None:
    said = [name for name in names if getattr(part, name) is not None]
    if len(said) != 1:
        raise ValueError(f"needs exactly one of {', '.join(names)}, and has {' and '.join(said) or 'none'}")


class Floor(Strict):
    """A measure has a bound that it must keep."""

    model_config = _one_of("at_least", "above", "at_most", "every_query")

    measure: str
    """A measure that is averaged over queries."""
    at_least: Bound | None = None
    """The mean is this or more."""
    above: Bound | None = None
    """The mean is more than this."""
    at_most: Bound | None = None
    """The mean is this or less: for measures of which less is better."""
    every_query: Bound | None = None
    """Each single query has this or better."""
    where: Where | None = None
    """Only queries of these strata: `{difficulty: easy}`."""
    by: Text | None = None
    """The bound is kept within each stratum of this name, and not only over all."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _require_one(self, "at_least", "above", "at_most", "every_query")
        if self.every_query is not None and self.by is not None:
            raise ValueError("every_query looks at each query already: leave `by` out")
        return self


class Drop(Strict):
    """The mean of a measure may fall below that of the baseline by so much and no more."""

    measure: str
    """A measure that is averaged over queries."""
    at_most: AnAmount
    """Largest fall: `0.02` in units of the measure, `5 %` of the baseline's mean. Exactly that much is allowed."""
    significant: bool = False
    """Fail only where the whole interval of the fall lies beyond `at_most`; inside, the rule is kept; across, the queries
    cannot tell, and the gate is inconclusive."""
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Of that interval; without it, as at the top."""
    test: str | None = None
    """Whose interval it is: a test about the mean difference; without it, as at the top."""
    where: Where | None = None
    """Only queries of these strata."""
    by: Text | None = None
    """Within each stratum of this name, and not only over all."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.significant and (self.alpha is not None or self.test is not None):
            raise ValueError("alpha and test go with `significant: true`")
        return self


class Ratchet(Strict):
    """Named queries may not get worse than they are in the baseline."""

    model_config = _one_of("queries", "where")

    measure: str
    """Compared query by query."""
    queries: Annotated[list[Text], Field(min_length=1)] | None = None
    """Their ids."""
    where: Where | None = None
    """Or all queries of these strata."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _require_one(self, "queries", "where")
        return self


class JudgedShare(Strict):
    """So many of the results must have been judged by somebody, or the other numbers say little."""

    k: Annotated[int, Field(ge=1)] = 10
    """Results looked at, of each query."""
    at_least: AnAmount
    """Mean share that is judged: `0.8` or `80 %`."""
    where: Where | None = None
    """Only queries of these strata."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.at_least.share > 1:
            raise ValueError(f"at_least is {self.at_least}, and no share is above 1")
        return self


class Failures(Strict):
    """So many queries may fail or have no answer, and no more."""

    at_most: AnAmount
    """A number of queries, `0`, or a share of them, `2 %`."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        number = self.at_most.number
        if not self.at_most.is_percent and number != number.to_integral_value():
            raise ValueError(f"at_most is {self.at_most}: write a whole number of queries, or a share such as 2 %")
        return self


class LatencyCeiling(Strict):
    """Calls may take so long, and no longer."""

    p50_ms: Bound | None = None
    """Half of the calls take at most this many milliseconds."""
    p95_ms: Bound | None = None
    """19 of 20 do."""
    p99_ms: Bound | None = None
    """99 of 100 do."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.bounds:
            raise ValueError("needs one of p50_ms, p95_ms, p99_ms, or several")
        return self

    @property
    def bounds(self) -> Mapping[int, Decimal]:
        """Percentile to its ceiling."""
        said = {50: self.p50_ms, 95: self.p95_ms, 99: self.p99_ms}
        return {percentile: bound for percentile, bound in said.items() if bound is not None}


AnyRule = Floor | Drop | Ratchet | JudgedShare | Failures | LatencyCeiling


class Rule(Strict):
    """One rule: its kind, and what it asks."""

    model_config = _one_of("floor", "drop", "ratchet", "judged", "failures", "latency")

    floor: Floor | None = None
    """A bound of a measure: of its mean, of its mean in each stratum, or of each query."""
    drop: Drop | None = None
    """How far a mean may fall below the baseline's."""
    ratchet: Ratchet | None = None
    """Queries that may not get worse."""
    judged: JudgedShare | None = None
    """How much of the results somebody must have judged."""
    failures: Failures | None = None
    """How many queries may fail or have no answer."""
    latency: LatencyCeiling | None = None
    """How long calls may take."""
    testsets: Annotated[list[str], Field(min_length=1)] | None = None
    """Names of the test sets it is about, where a config has several; without it, all."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _require_one(self, *RULE_KINDS)
        return self

    @property
    def kind(self) -> str:
        """The one that it is."""
        return next(kind for kind in RULE_KINDS if getattr(self, kind) is not None)

    @property
    def asked(self) -> AnyRule:
        """What it asks."""
        asked: AnyRule = getattr(self, self.kind)
        return asked


RULE_KINDS = tuple(name for name in Rule.model_fields if name != "testsets")
"""The keys of a rule: exactly one of them says what it is."""


class GateConfig(Strict):
    """Rules that a system must keep, and the baseline that some of them hold it against."""

    baseline: Text | None = None
    """The committed file of `cranfield baseline accept`, relative to the config; `cranfield-baseline.json` without it.
    With several test sets each has its own: `{testset}` in the path is the name."""
    system: str | None = None
    """Which system is gated; without it the candidate, or the only one."""
    rules: Annotated[list[Rule], Field(min_length=1)]
    """All of them have to be kept."""

    def baseline_of(self, testset: str) -> str:
        """Path of the baseline of a test set; its name is empty where there is one set alone."""
        path = self.baseline or (BASELINE_FILES if testset else BASELINE_FILE)
        return path.replace(TESTSET_PART, testset) if testset else path
