"""Rules of a gate on the fields of answers: each field, a stated confidence, a predicted stratum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field, model_validator

from cranfield.base.errors import CranfieldError, Problem
from cranfield.config.amount import Amount, AnAmount, Bound
from cranfield.config.reading import check_answer_rule
from cranfield.config.strict import Finding, Strict, checked
from cranfield.model.kinds import Text

Where = Annotated[dict[str, Text], Field(min_length=1, json_schema_extra={"additionalProperties": {"type": "string"}})]
"""Stratum to value."""


def _check_correct(text: str) -> Iterator[Finding]:
    from cranfield.measures.threshold import parse_threshold

    try:
        parse_threshold(text)
    except CranfieldError as error:
        yield from (((), problem) for problem in error.problems)


CorrectRule = Annotated[str, checked(_check_correct)]


def _shares(model: Strict, *names: str) -> Iterator[Finding]:
    for name in names:
        bound = getattr(model, name)
        if bound is not None and not 0 <= bound <= 1:
            yield (name,), Problem(f"{name} is {bound:f}", expected="a number from 0 to 1")


class EveryAnswer(Strict):
    """Rule that a field of every answer must satisfy."""

    rule: Annotated[Text, checked(check_answer_rule)]
    """Rule on a field: `mode = semantic`, `confidence >= 0.5`."""
    at_most: AnAmount | None = None
    """Number of answers, `3`, or share of them, `2 %`, that may break it; default: none."""
    where: Where | None = None
    """Only queries of these strata."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"rule": value} if isinstance(value, str) else value

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A number of answers that is not whole."""
        if self.at_most is not None:
            yield from whole_number(self.at_most, "answers")


def whole_number(amount: Amount, things: str) -> Iterator[Finding]:
    """The problem that a number of things is not whole."""
    number = amount.number
    if not amount.is_percent and number != number.to_integral_value():
        yield (), Problem(f"at_most is {amount}: write a whole number of {things}, or a share such as 2 %")


class StatedConfidenceRule(Strict):
    """What rules on a confidence have in common."""

    field: Text
    """Field of the answers with the confidence, a number from 0 to 1."""
    correct: CorrectRule
    """What makes an answer correct: a measure, with a bound unless it is 1: `Success@5`, `R@10 >= 0.5`."""
    where: Where | None = None
    """Only queries of these strata."""
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Significance level; default: that of the config."""


class Ece(StatedConfidenceRule):
    """Largest expected calibration error of a confidence."""

    at_most: Bound
    """Largest ECE, in 10 bins of equal width."""
    significant: bool = False
    """An ECE above the bound that a calibrated score could have by chance, with these scores, is inconclusive."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """A bound that is no share."""
        yield from _shares(self, "at_most")


class CorrectAt(StatedConfidenceRule):
    """Smallest share of correct answers among the confident ones."""

    threshold: Bound = Decimal("0.8")
    """Confidence from which on an answer counts."""
    at_least: Bound
    """Smallest share of correct answers among them."""
    significant: bool = False
    """Use Wilson's interval of the share: the rule passes if its lower bound is at least `at_least`, fails if its upper bound
    is under it, and is inconclusive otherwise."""

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """Bounds that are no shares."""
        yield from _shares(self, "threshold", "at_least")


class Accuracy(Strict):
    """How often a field of the answers is the expected value of a stratum."""

    field: Text
    """Field of the answers that predicts a stratum: `task_type`."""
    stratum: Text | None = None
    """Stratum of the queries that it predicts; default: the one of the same name."""
    at_least: Bound | None = None
    """Smallest share of right predictions."""
    each_at_least: Bound | None = None
    """Smallest share of right predictions for each expected value."""

    @property
    def expected_stratum(self) -> str:
        """The stratum that is predicted."""
        return self.stratum or self.field

    def problems(self, _: Mapping[str, Any]) -> Iterator[Finding]:
        """No bound at all, or one that is no share."""
        if self.at_least is None and self.each_at_least is None:
            yield (), Problem("no bound", expected="at_least or each_at_least")
        yield from _shares(self, "at_least", "each_at_least")


AnswerTerms = EveryAnswer | Ece | CorrectAt | Accuracy
"""What has to hold, of a rule on the fields of answers."""
