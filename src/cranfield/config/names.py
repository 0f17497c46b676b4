"""Names in a config that are looked up in a table: measures, statistical tests, conventions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cranfield.config.strict import Finding, checked
from cranfield.errors import CranfieldError, Problem, unknown_name
from cranfield.model import CONVENTIONS


def _check_measure(name: str) -> Iterator[Finding]:
    from cranfield.measures import parse

    try:
        parse(name)
    except CranfieldError as error:
        yield from (((), problem) for problem in error.problems)


def _check_mean(name: str) -> Iterator[Finding]:
    from cranfield.measures import CATALOGUE, parse

    problems = list(_check_measure(name))
    yield from problems
    if not problems and CATALOGUE[parse(name).name].aggregate != "mean":
        hint = "choose one that is averaged over queries, such as AP."
        yield (), Problem(f"{name} is one number over all queries, and no mean", hint=hint)


def _check_test(name: str) -> Iterator[Finding]:
    from cranfield.stats.table import TESTS

    if name not in TESTS:
        yield (), unknown_name("test", name, TESTS)


def _check_adjustment(name: str) -> Iterator[Finding]:
    from cranfield.stats.table import ADJUSTMENTS

    if name not in ADJUSTMENTS:
        yield (), unknown_name("adjustment", name, ADJUSTMENTS)


def _check_convention(name: str) -> Iterator[Finding]:
    if name not in CONVENTIONS:
        yield (), unknown_name("convention", name, CONVENTIONS)


MeasureName = Annotated[str, checked(_check_measure)]
MeanMeasureName = Annotated[str, checked(_check_mean)]
"""A measure that is averaged over queries."""
TestName = Annotated[str, checked(_check_test)]
AdjustmentName = Annotated[str, checked(_check_adjustment)]
ConventionName = Annotated[str, checked(_check_convention)]
