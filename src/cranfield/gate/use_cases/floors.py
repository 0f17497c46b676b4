"""Floors of a call: `Hit@5=0.70` and `Hit@5=0.60:difficulty=hard` as floor rules of a gate, without a config."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from cranfield.app.evaluate import with_measure
from cranfield.base.errors import CranfieldError, UsageError
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.validation import problems_of
from cranfield.gate.config import Floor, FloorRule, GateConfig
from cranfield.gate.gate_input import GateInput, direction
from cranfield.gate.judge import floor
from cranfield.gate.reports.gate import outcomes_of_rules
from cranfield.gate.result import RuleResult
from cranfield.gate.rules import check_fit
from cranfield.measures import CATALOGUE, parse
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import VOID_STAMP, Document, Section, without_tones

FORM = "MEASURE=BOUND, such as Hit@5=0.70, Hit@5=0.60:difficulty or Hit@5=0.60:difficulty=hard"
_SPEC = re.compile(r"(?P<measure>.+?)\s*=\s*(?P<bound>\d*\.?\d{1,30})\s*(?::(?P<key>[^=]+)(?:=(?P<value>.+))?)?")


def parse_floors(specs: Sequence[str]) -> Floors:
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
    return Floors(tuple(found))


def _floor_of(spec: str) -> Floor:

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


@dataclass(frozen=True)
class Floors:
    """The floors of a call."""

    floors: tuple[Floor, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that they are on."""
        return tuple(floor.measure for floor in self.floors)

    def check(self, evaluation: Evaluation) -> None:
        """Refuse floors on strata that the test set does not have, and on measures that no query allows.

        Args:
            evaluation: of any run on the test set, one without results too.

        Raises:
            UsageError: with everything that is wrong.
        """
        rules = GateConfig(rules=[FloorRule(floor=each) for each in self.floors])
        problems = [problem for _, problem in check_fit(rules, "", evaluation.testset)]
        for each in self.floors:
            try:
                with_measure(evaluation, each.measure)
            except CranfieldError as error:
                problems += error.problems
        if problems:
            raise UsageError([replace(problem, path="--floor") for problem in problems])

    def judge(self, evaluations: Sequence[Evaluation]) -> JudgedFloors:
        """The result of each floor for each system, as `cranfield gate` judges it.

        Raises:
            UsageError: as `check`.
        """
        for first in evaluations[:1]:
            self.check(first)
        results = ((system.name, floor(each, GateInput(system))) for system in evaluations for each in self.floors)
        return JudgedFloors(tuple(results))

    @staticmethod
    def join(judged: Mapping[str, JudgedFloors]) -> JudgedFloors:
        """The results on several test sets, by name, together."""
        named = [(f"{name}: {system}", each) for name, part in judged.items() for system, each in part.results]
        return JudgedFloors(tuple(named))


@dataclass(frozen=True)
class JudgedFloors:
    """What the floors of a call came to."""

    results: tuple[tuple[str, RuleResult], ...]
    """Name of a system and the result of a floor on it; of several test sets `SET: SYSTEM`."""

    @property
    def is_broken(self) -> bool:
        """Whether a system does not keep one."""
        return any(result.status != "passed" for _, result in self.results)

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each floor, with its system."""
        return tuple(
            f"floor {'kept' if result.status == 'passed' else 'broken'}: {system}: {result.sentence}"
            for system, result in self.results
        )

    @property
    def record(self) -> dict[str, Any]:
        """What the JSON of a report says of them."""
        return {"floors": [{"system": name, **to_jsonable(rule)} for name, rule in self.results]}

    def added_to(self, document: Document) -> Document:
        """A report with the floors of its call: a table before its sections and in its short form, and records in its JSON."""
        several = len({name for name, _ in self.results}) > 1
        rows = [(name if several else "", rule) for name, rule in self.results]
        table = outcomes_of_rules(rows, "Floors of this call").table(wrap=True)
        section = Section("floors", "Floors", (table,))
        if VOID_STAMP in document.stamps:
            section = replace(section, blocks=without_tones(section.blocks))
        brief, payload, record = document.brief, document.payload, document.record
        return replace(
            document,
            sections=(section, *document.sections),
            brief=None if brief is None else lambda: replace(brief(), rules=table),
            payload=lambda: {**payload(), **self.record},
            record=None if record is None else lambda: {**record(), **self.record},
        )
