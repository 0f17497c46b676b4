"""From cells to values: each task in each arm, averaged over its seeds. The task is the unit of every test."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from cranfield.benefit.plan import ArmRole, BenefitPlan, TokenWeights
from cranfield.benefit.records import CellEnd, CellKey, CellUsage, Delivery
from cranfield.benefit.result import ArmMeans, Loss, StratumResult, VarianceAdvice
from cranfield.stats.ratio import ratio_of_sums


@dataclass(frozen=True, slots=True)
class CellObservation:
    """A planned cell, whether it was run or not. What is unknown is None, which is not 0."""

    key: CellKey
    strata: Mapping[str, str]
    """Strata of the task: name to value."""
    baseline_answerable: bool | None = None
    """Whether an agent without the tool under test can plausibly do the task; None: not known."""
    end: CellEnd | None = None
    """End of its last run; None: it has none. A cell without a scored run is counted, and in no mean."""
    success: bool | None = None
    """None: not decided."""
    usage: CellUsage | None = None
    delivery: Delivery | None = None
    """None: its arm has no tool under test."""
    transcript: str = ""

    @property
    def is_scored(self) -> bool:
        """Whether it counts in its arm."""
        return self.end is not None and self.end.is_scored


@dataclass(frozen=True, slots=True)
class Analysis:
    """The parts of a result that are computed from observations alone."""

    strata: tuple[StratumResult, ...]
    """Cells of the matrix first, then margins, then by `baseline_answerable`, all tasks last."""
    variance: tuple[VarianceAdvice, ...]
    losses: tuple[Loss, ...]
    """Worst first."""


Arms = Mapping[ArmRole, tuple[CellObservation, ...]]
"""The cells of a task, by seed."""


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


_MEANS = (
    Quantity.SUCCESS,
    Quantity.TOKENS,
    Quantity.WEIGHTED_TOKENS,
    Quantity.TOOL_CALLS,
    Quantity.TURNS,
    Quantity.WALL_S,
    Quantity.MONEY,
)
_DEBITS = ("schema_tokens", "schema_tokens_estimated", "payload_tokens", "instructions_tokens")
_PLACE = {ArmRole.TREATMENT: 0, ArmRole.CONTROL: 1}


def arm_means(tasks: Sequence[AnalysedTask], role: ArmRole) -> ArmMeans:
    """Means over the tasks that have a value in both arms, so that they differ by the estimate of the difference."""
    cells = [each for task in tasks for each in task.cells[role]]
    scored = [each for each in cells if each.is_scored]
    delivered = [each.delivery for each in scored if each.delivery is not None]
    return ArmMeans(
        **{name.value: _mean_of_tasks(tasks, role, name) for name in _MEANS},
        **{name: mean_of_known(getattr(each, name) for each in delivered) for name in _DEBITS},
        n_cells=len(cells),
        n_failed=sum(each.end is not CellEnd.ANSWERED for each in scored),
        n_unscored=sum(each.success is None for each in scored),
        n_infrastructure=len(cells) - len(scored),
        offered=mean_of_known(each.offered for each in delivered),
        called=mean_of_known(None if each.called is None else each.called > 0 for each in delivered),
        answered=mean_of_known(None if each.answered is None else each.answered > 0 for each in delivered),
        tokens_per_success=_tokens_per_success(tasks, role),
    )


def _mean_of_tasks(tasks: Sequence[AnalysedTask], role: ArmRole, quantity: Quantity) -> float | None:
    return mean_of_known(pair[_PLACE[role]] for task in tasks if (pair := task.pair(quantity)) is not None)


def _tokens_per_success(tasks: Sequence[AnalysedTask], role: ArmRole) -> float | None:
    pairs = [(task.pair(Quantity.TOKENS), task.pair(Quantity.SUCCESS)) for task in tasks]
    known = [(tokens[_PLACE[role]], success[_PLACE[role]]) for tokens, success in pairs if tokens and success]
    return ratio_of_sums([tokens for tokens, _ in known], [success for _, success in known])


def losses_of(tasks: Sequence[AnalysedTask]) -> tuple[Loss, ...]:
    """The tasks whose success is lower with the treatment, the greatest loss first."""
    lost = [(pair[0] - pair[1], task) for task in tasks if (pair := task.pair(Quantity.SUCCESS)) and pair[0] < pair[1]]
    return tuple(
        Loss(
            task_id=task.task_id,
            stratum=task.strata,
            success={role: task.means[role][Quantity.SUCCESS] for role in ArmRole},
            tokens={role: task.means[role][Quantity.TOKENS] for role in ArmRole},
            transcripts={
                role: tuple(each.transcript for each in task.cells[role] if each.is_scored and each.transcript)
                for role in ArmRole
            },
        )
        for _, task in sorted(lost, key=lambda each: each[0])
    )
