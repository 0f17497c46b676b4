"""Where the variance comes from, and what would narrow an interval: more tasks, or more seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from cranfield.base.numbers import format_percent
from cranfield.benefit.analysis.observation import CellObservation
from cranfield.benefit.analysis.values import AnalysedTask, mean_of_known, success, tokens, values_of
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.result import VarianceAdvice
from cranfield.stats.nested import Components, nested_variance, paired_variance

SEEDS_WHILE = 2 / 3
"""More seeds are advised where they narrow the interval by this part of what more tasks do: a seed costs no new task."""

_Groups = list[list[float]]


def advise(tasks: Sequence[AnalysedTask]) -> tuple[VarianceAdvice, ...]:
    """Split the variance of success and of tokens, of an arm and of the difference between the arms."""
    found = []
    for name, value in (("success", success), ("tokens", tokens)):
        by_arm = _by_task(tasks, value)
        if by_arm is None:
            continue
        treatment, control = by_arm
        n_seeds = _typical_size([*treatment, *control])
        found.append(_of_level(name, [nested_variance(groups) for groups in by_arm], n_seeds))
        found.append(_of_difference(name, paired_variance(treatment, control), len(treatment), n_seeds))
    return tuple(found)


def _by_task(
    tasks: Sequence[AnalysedTask], value: Callable[[CellObservation], float | None]
) -> tuple[_Groups, _Groups] | None:
    """The values of each task in treatment and in control, of the tasks that have some in both."""
    pairs = [
        (values_of(value, task.cells[ArmRole.TREATMENT]), values_of(value, task.cells[ArmRole.CONTROL]))
        for task in tasks
    ]
    known = [(t, c) for t, c in pairs if t and c]
    return ([t for t, _ in known], [c for _, c in known]) if len(known) > 1 else None


def _typical_size(groups: _Groups) -> float:
    """Harmonic mean: that by which the variance of a task's mean falls."""
    return len(groups) / math.fsum(1 / len(group) for group in groups)


def _of_level(name: str, arms: Sequence[Components], n_seeds: float) -> VarianceAdvice:
    """Advice on the level of one arm, from the mean of the components of both."""
    between, within = mean_of_known([each.between for each in arms]), mean_of_known([each.within for each in arms])
    icc = Components(between, within).icc
    if icc is None:
        advice = _nothing_to_split(between, within)
    else:
        worth = n_seeds / (1 + (n_seeds - 1) * icc)
        advice = f"{n_seeds:.3g} runs of a task carry as much information about an arm as {worth:.2g} runs of different tasks: runs of a task are not independent."
    return VarianceAdvice(quantity=name, between_tasks=between, within_tasks=within, icc=icc, advice=advice)


def _of_difference(name: str, found: Components, n_tasks: int, n_seeds: float) -> VarianceAdvice:
    """Advice on the difference between the arms: `between` is the interaction of task and arm."""
    if found.icc is None or found.between is None or found.within is None:
        advice = _nothing_to_split(found.between, found.within)
    else:
        advice = _more(found.between, found.within / n_seeds, n_tasks, n_seeds)
    return VarianceAdvice(
        quantity=f"difference of {name}",
        between_tasks=found.between,
        within_tasks=found.within,
        icc=found.icc,
        advice=advice,
    )


def _more(between: float, noise: float, n_tasks: int, n_seeds: float) -> str:
    by_seeds = 1 - math.sqrt((between + noise / 2) / (between + noise))
    by_tasks = 1 - math.sqrt(1 / 2)
    kind = "seeds" if by_seeds >= SEEDS_WHILE * by_tasks else "tasks"
    return (
        f"More {kind}: doubling the tasks (to {2 * n_tasks}) narrows the interval by {format_percent(by_tasks)}, "
        f"doubling the seeds (to {2 * n_seeds:.0f}) by {format_percent(by_seeds)}."
    )


def _nothing_to_split(between: float | None, within: float | None) -> str:
    if between == within == 0:
        return "All runs have the same value."
    return "With one run per task, variance between tasks and between runs cannot be separated: plan two or more seeds."
