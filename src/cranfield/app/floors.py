"""Floors of a call: `Hit@5=0.70` and `Hit@5=0.60:difficulty=hard` as floor rules of a gate, without a config."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from cranfield.errors import CranfieldError, UsageError

if TYPE_CHECKING:
    from cranfield.config.gate import Floor
    from cranfield.evaluation.values import Evaluation
    from cranfield.gate.result import RuleResult


FORM = "MEASURE=BOUND, such as Hit@5=0.70, Hit@5=0.60:difficulty or Hit@5=0.60:difficulty=hard"
_SPEC = re.compile(r"(?P<measure>.+?)\s*=\s*(?P<bound>\d*\.?\d{1,30})\s*(?::(?P<key>[^=]+)(?:=(?P<value>.+))?)?")


def parse_floors(specs: Sequence[str]) -> tuple[Floor, ...]:
    """The floors of a call: `MEASURE=BOUND`, and after a colon a stratum, or one value of it.

    Of a measure where lower is better, the bound is the largest mean.

    Raises:
        UsageError: with everything that is wrong.
    """
    found, problems = [], []
    for spec in specs:
        try:
            found.append(_floor_of(spec.strip()))
        except CranfieldError as error:
            problems += [replace(problem, path=f"--floor {spec}") for problem in error.problems]
    if problems:
        raise UsageError(problems)
    return tuple(found)


def _floor_of(spec: str) -> Floor:
    from cranfield.config.gate import Floor
    from cranfield.formats.io.validation import problems_of
    from cranfield.gate.gate_input import direction
    from cranfield.measures import CATALOGUE, parse

    match = _SPEC.fullmatch(spec)
    if match is None:
        raise UsageError("not a floor", expected=FORM)
    measure, key, value = match["measure"], match["key"], match["value"]
    bound = Decimal(match["bound"])
    largest = CATALOGUE[parse(measure).name].range[1]
    if bound > largest:
        hint = f"{bound.scaleb(-2)}?" if bound.scaleb(-2) <= largest else None
        raise UsageError(f"{bound} is above the largest value of {measure}, {largest:g}", hint=hint)
    part = {} if key is None else {"by": key} if value is None else {"where": {key: value}}
    side = "at_least" if direction(measure) > 0 else "at_most"
    values = {"measure": measure, side: bound, **part}
    if problems := [problem for _, problem in problems_of(Floor, values)]:
        raise UsageError(problems)
    return Floor.model_validate(values)


def check_floors(floors: Sequence[Floor], evaluation: Evaluation) -> None:
    """Refuse floors on strata that the test set does not have, and on measures that no query allows.

    Args:
        floors: of a call.
        evaluation: of any run on the test set, one without results too.

    Raises:
        UsageError: with everything that is wrong.
    """
    if not floors:
        return
    from cranfield.app.evaluate import with_measure
    from cranfield.config.gate import FloorRule, GateConfig
    from cranfield.gate.rules import check_fit

    rules = GateConfig(rules=[FloorRule(floor=each) for each in floors])
    problems = [problem for _, problem in check_fit(rules, "", evaluation.testset)]
    for each in floors:
        try:
            with_measure(evaluation, each.measure)
        except CranfieldError as error:
            problems += error.problems
    if problems:
        raise UsageError([replace(problem, path="--floor") for problem in problems])


def judge_floors(floors: Sequence[Floor], evaluations: Sequence[Evaluation]) -> tuple[tuple[str, RuleResult], ...]:
    """The name of each system with the result of each floor for it, as `cranfield gate` judges it.

    Raises:
        UsageError: as `check_floors`.
    """
    if not floors:
        return ()
    from cranfield.gate.gate_input import GateInput
    from cranfield.gate.judge import floor

    for first in evaluations[:1]:
        check_floors(floors, first)
    return tuple((system.name, floor(each, GateInput(system))) for system in evaluations for each in floors)
