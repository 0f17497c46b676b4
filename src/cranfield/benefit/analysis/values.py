"""From cells to values: each task in each arm, averaged over its seeds. The task is the unit of every test."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from cranfield.benefit.analysis.observation import Arms, CellObservation
from cranfield.benefit.plan import ArmRole, BenefitPlan, TokenWeights
from cranfield.benefit.records import CellUsage


class Quantity(StrEnum):
    """What is averaged over the seeds of a task."""

    SUCCESS = "success"
    LOWEST_SUCCESS = "lowest_success"
    HIGHEST_SUCCESS = "highest_success"
    """Bounds of `success`: what it is if every undecided cell failed, or succeeded."""
    SUCCESS_WHERE_CALLED = "success_where_called"
    """Success of the cells whose tool under test was called, as far as that is known; of all cells in an arm without
    one."""
    TOKENS = "tokens"
    WEIGHTED_TOKENS = "weighted_tokens"
    TOKENS_OF_SUCCESSES = "tokens_of_successes"
    TOOL_CALLS = "tool_calls"
    TURNS = "turns"
    WALL_S = "wall_s"
    MONEY = "money"


@dataclass(frozen=True, slots=True)
class AnalysedTask:
    """A task with its cells and its values."""

    task_id: str
    strata: Mapping[str, str]
    baseline_answerable: bool | None
    cells: Arms
    means: Mapping[ArmRole, Mapping[Quantity, float | None]]
    """Over the scored cells that have a value; None: there is none."""
    binary: Mapping[ArmRole, bool | None]
    """The one success that McNemar's test compares."""

    def pair(self, quantity: Quantity) -> tuple[float, float] | None:
        """Treatment and control; None where one of them has no value."""
        treatment, control = self.means[ArmRole.TREATMENT][quantity], self.means[ArmRole.CONTROL][quantity]
        return None if treatment is None or control is None else (treatment, control)


def tasks_of(observations: Iterable[CellObservation], plan: BenefitPlan) -> tuple[AnalysedTask, ...]:
    """Group cells by task, in the order of their first cell, and average them."""
    by_task: dict[str, list[CellObservation]] = defaultdict(list)
    for each in observations:
        by_task[each.key.task_id].append(each)
    return tuple(_task(task_id, cells, plan) for task_id, cells in by_task.items())


def _task(task_id: str, cells: Sequence[CellObservation], plan: BenefitPlan) -> AnalysedTask:
    arms = {
        role: tuple(sorted((each for each in cells if each.key.arm is role), key=lambda each: each.key.seed))
        for role in ArmRole
    }
    values = _values(plan.weights)
    means = {role: {name: mean_of(of, arms[role]) for name, of in values.items()} for role in ArmRole}
    binary = {role: binary_of(arms[role], plan.rule.binary) for role in ArmRole}
    return AnalysedTask(task_id, cells[0].strata, cells[0].baseline_answerable, arms, means, binary)


Value = Callable[[CellObservation], float | None]


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are there; None where none is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def mean_of(value: Value, cells: Iterable[CellObservation]) -> float | None:
    """Mean over the scored cells that have a value."""
    return mean_of_known(values_of(value, cells))


def values_of(value: Value, cells: Iterable[CellObservation]) -> list[float]:
    """The values of the scored cells that have one."""
    return [found for each in cells if each.is_scored and (found := value(each)) is not None]


def success(cell: CellObservation) -> float | None:
    """1 or 0; None where it is not decided."""
    return None if cell.success is None else float(cell.success)


def tokens(cell: CellObservation) -> float | None:
    """Tokens of all requests, those of the tool under test included."""
    return None if cell.usage is None else cell.usage.total


def weighted_tokens(usage: CellUsage | None, weights: TokenWeights) -> float | None:
    """Tokens of each kind times their weights; None where one kind is not known.

    Writes into a cache that a provider does not report are among the uncached tokens, as it bills them.
    """
    if usage is None:
        return None
    kinds = (usage.uncached, usage.cache_read, usage.cache_write or 0, usage.output)
    by_kind = (weights.uncached, weights.cache_read, weights.cache_write, weights.output)
    found = [weight * count for weight, count in zip(by_kind, kinds, strict=True) if count is not None]
    return math.fsum(found) if len(found) == len(kinds) else None


def _values(weights: TokenWeights) -> Mapping[Quantity, Value]:
    def called(cell: CellObservation) -> float | None:
        return success(cell) if cell.delivery is None or cell.delivery.called else None

    return {
        Quantity.SUCCESS: success,
        Quantity.LOWEST_SUCCESS: lambda cell: float(cell.success or False),
        Quantity.HIGHEST_SUCCESS: lambda cell: float(cell.success is not False),
        Quantity.SUCCESS_WHERE_CALLED: called,
        Quantity.TOKENS: tokens,
        Quantity.WEIGHTED_TOKENS: lambda cell: weighted_tokens(cell.usage, weights),
        Quantity.TOKENS_OF_SUCCESSES: lambda cell: tokens(cell) if cell.success else None,
        Quantity.TOOL_CALLS: lambda cell: None if cell.usage is None else cell.usage.n_tool_calls,
        Quantity.TURNS: lambda cell: None if cell.usage is None else cell.usage.turns,
        Quantity.WALL_S: lambda cell: None if cell.usage is None else cell.usage.wall_s,
        Quantity.MONEY: lambda cell: None if cell.usage is None else cell.usage.money,
    }


def binary_of(cells: Sequence[CellObservation], rule: Literal["first", "majority", "all"]) -> bool | None:
    """The success of a task in an arm, by the rule of the plan; None where undecided or missing cells leave it open."""
    if rule == "first":
        return cells[0].success if cells and cells[0].is_scored else None
    scored = [each.success for each in cells if each.is_scored]
    if not scored:
        return None
    needed = len(scored) // 2 + 1 if rule == "majority" else len(scored)
    if scored.count(True) >= needed:
        return True
    return None if scored.count(True) + scored.count(None) >= needed else False
