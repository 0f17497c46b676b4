"""Paired estimates over tasks: differences, ratios, and McNemar's test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cranfield.base.numbers import format_percent
from cranfield.benefit.analysis.values import AnalysedTask, Quantity, mean_of_known, success, tokens, values_of
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.result import Estimate, McNemar, VarianceAdvice
from cranfield.stats.bootstrap import bootstrap
from cranfield.stats.describe import describe
from cranfield.stats.nested import Components, nested_variance, paired_variance
from cranfield.stats.paired import mcnemar, noninferiority, paired_t
from cranfield.stats.ratio import ratio_difference
from cranfield.stats.unseen import unanimous_interval, unanimous_p

RESAMPLED_FROM = 30
"""Tasks from which the bootstrap is shown beside Student's t: with fewer its intervals are too narrow."""

NO_PAIR = "no task has a value in both arms"
ONE_TASK = "one task has no spread"
NO_SPREAD = "all tasks differ by the same amount: no interval, p of the sign test"
UNANIMOUS = "all tasks differ by the same amount: exact bound of the share of tasks that differ otherwise"
NO_SUCCESS = "an arm has no success"


@dataclass(frozen=True, slots=True)
class TaskEstimator:
    """Estimates over the tasks of a stratum; a task without a value in both arms is counted as missing."""

    tasks: Sequence[AnalysedTask]
    alpha: float
    seed: int
    """Seed of the bootstrap."""

    def lift(self, treatment: Quantity = Quantity.SUCCESS, control: Quantity = Quantity.SUCCESS) -> Estimate:
        """Treatment less control, of shares."""
        return self._mean(self.deltas(treatment, control), bound=1.0)

    def more(self, quantity: Quantity) -> Estimate:
        """Treatment less control."""
        return self._mean(self.deltas(quantity))

    def saved(self, quantity: Quantity) -> Estimate:
        """Control less treatment."""
        return self._mean([-delta for delta in self.deltas(quantity)])

    def ratio(self, quantity: Quantity) -> Estimate:
        """Geometric mean of treatment over control; a task needs both above 0."""
        logs = [math.log(t / c) for t, c in self.pairs(quantity) if t > 0 and c > 0]
        estimate = self._mean(logs)
        ends = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
        mapped: dict[str, object] = {name: None if end is None else math.exp(end) for name, end in ends.items()}
        if estimate.bootstrap is not None:
            mapped["bootstrap"] = (math.exp(estimate.bootstrap[0]), math.exp(estimate.bootstrap[1]))
        return estimate.model_copy(update=mapped)

    def saved_per_success(self) -> Estimate:
        """Tokens per success, a ratio of sums over tasks, of control less that of treatment."""
        pairs = [(task.pair(Quantity.TOKENS), task.pair(Quantity.SUCCESS)) for task in self.tasks]
        known = [(tokens, success) for tokens, success in pairs if tokens and success]
        missing = len(self.tasks) - len(known)
        treatment, control = (
            ([tokens[arm] for tokens, _ in known], [success[arm] for _, success in known]) for arm in (0, 1)
        )
        found = ratio_difference(control, treatment, 1 - self.alpha)
        if found is None:
            note = NO_PAIR if not known else ONE_TASK if len(known) == 1 else NO_SUCCESS
            return Estimate(value=None, n=len(known), n_missing=missing, note=note)
        value, low, high = found
        return Estimate(value=value, low=low, high=high, n=len(known), n_missing=missing)

    def pairs(self, quantity: Quantity) -> list[tuple[float, float]]:
        """Treatment and control of the tasks that have both."""
        return [pair for task in self.tasks if (pair := task.pair(quantity)) is not None]

    def deltas(self, treatment: Quantity, control: Quantity | None = None) -> list[float]:
        """Treatment less control of the tasks that have both."""
        both = (
            (task.means[ArmRole.TREATMENT][treatment], task.means[ArmRole.CONTROL][control or treatment])
            for task in self.tasks
        )
        return [t - c for t, c in both if t is not None and c is not None]

    def _mean(self, deltas: Sequence[float], bound: float | None = None) -> Estimate:
        found = mean_estimate(deltas, len(self.tasks) - len(deltas), self.alpha, bound)
        if found.n < RESAMPLED_FROM or found.note:
            return found
        return found.model_copy(update={"bootstrap": _resampled(deltas, self.alpha, self.seed)})


def mean_estimate(deltas: Sequence[float], n_missing: int, alpha: float, bound: float | None = None) -> Estimate:
    """Mean of the differences of tasks, with Student's t.

    Args:
        deltas: one per task.
        n_missing: tasks without.
        alpha: intervals cover 1 - alpha.
        bound: the differences lie between -bound and bound. Where all are equal there is an exact interval then; without a
            bound there is none, and the p-value is that of the sign test.
    """
    n, about = len(deltas), describe(deltas)
    if about.mean is None or about.std is None:
        return Estimate(value=about.mean, n=n, n_missing=n_missing, note=ONE_TASK if n else NO_PAIR)
    if not about.std:
        return _unanimous(about.mean, n, n_missing, alpha, bound)
    test = paired_t(deltas, alpha=alpha)
    low, high = test.ci_low, test.ci_high
    if bound is not None and low is not None and high is not None:
        low, high = max(low, -bound), min(high, bound)
    return Estimate(
        value=about.mean,
        low=low,
        high=high,
        p=test.p_two_sided,
        n=n,
        n_missing=n_missing,
    )


def _unanimous(value: float, n: int, n_missing: int, alpha: float, bound: float | None) -> Estimate:
    if bound is None:
        p = min(1.0, 2 * unanimous_p(1.0, n)) if value else 1.0
        return Estimate(value=value, p=p, n=n, n_missing=n_missing, note=NO_SPREAD)
    low, high = unanimous_interval(value, n, alpha=alpha, bound=bound)
    p = min(1.0, 2 * unanimous_p(abs(value), n, bound=bound))
    return Estimate(value=value, low=low, high=high, p=p, n=n, n_missing=n_missing, note=UNANIMOUS)


def _resampled(deltas: Sequence[float], alpha: float, seed: int) -> tuple[float, float] | None:
    found = bootstrap(deltas, alpha=alpha, seed=seed)
    return None if found.ci_low is None or found.ci_high is None else (found.ci_low, found.ci_high)


def p_of_loss(deltas: Sequence[float], margin: float, alpha: float) -> float | None:
    """One-sided p-value of "the mean difference of success is -margin or below"; None under two tasks."""
    about = describe(deltas)
    if about.mean is None or about.std is None:
        return None
    if not about.std:
        return unanimous_p(about.mean, about.n, threshold=-margin)
    p = noninferiority(deltas, margin, alpha=alpha).extra["p_noninferior"]
    return float(p) if isinstance(p, float) else None


def mcnemar_of(tasks: Sequence[AnalysedTask]) -> McNemar:
    """McNemar's exact test on one binary per task; tasks whose binary is open in an arm are left out."""
    known = [(t, c) for task in tasks for t, c in [_binaries(task)] if t is not None and c is not None]
    p = mcnemar([float(c) for _, c in known], [float(t) for t, _ in known]).p_two_sided if known else None
    return McNemar(
        n=len(known),
        both=known.count((True, True)),
        only_treatment=known.count((True, False)),
        only_control=known.count((False, True)),
        neither=known.count((False, False)),
        p=p,
    )


def _binaries(task: AnalysedTask) -> tuple[bool | None, bool | None]:
    return task.binary[ArmRole.TREATMENT], task.binary[ArmRole.CONTROL]


SEEDS_WHILE = 2 / 3
"""More seeds are advised where they narrow the interval by this part of what more tasks do: a seed costs no new task."""

_Groups = list[list[float]]


def advise(tasks: Sequence[AnalysedTask]) -> tuple[VarianceAdvice, ...]:
    """Split the variance of success and of tokens, of an arm and of the difference between the arms."""
    found = []
    for name, value in (("success", success), ("tokens", tokens)):
        # The values of each task in treatment and in control, of the tasks that have some in both.
        pairs = [
            (values_of(value, task.cells[ArmRole.TREATMENT]), values_of(value, task.cells[ArmRole.CONTROL]))
            for task in tasks
        ]
        known = [(t, c) for t, c in pairs if t and c]
        by_arm = ([t for t, _ in known], [c for _, c in known]) if len(known) > 1 else None
        if by_arm is None:
            continue
        treatment, control = by_arm
        n_seeds = _typical_size([*treatment, *control])
        # Advice on the level of one arm, from the mean of the components of both.
        arms = [nested_variance(groups) for groups in by_arm]
        between, within = mean_of_known([each.between for each in arms]), mean_of_known([each.within for each in arms])
        icc = Components(between, within).icc
        if icc is None:
            advice = _nothing_to_split(between, within)
        else:
            worth = n_seeds / (1 + (n_seeds - 1) * icc)
            advice = (
                f"{n_seeds:.3g} runs of a task carry as much information about an arm as {worth:.2g} runs of different "
                "tasks: runs of a task are not independent."
            )
        found.append(VarianceAdvice(quantity=name, between_tasks=between, within_tasks=within, icc=icc, advice=advice))
        found.append(_of_difference(name, paired_variance(treatment, control), len(treatment), n_seeds))
    return tuple(found)


def _typical_size(groups: _Groups) -> float:
    """Harmonic mean: that by which the variance of a task's mean falls."""
    return len(groups) / math.fsum(1 / len(group) for group in groups)


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
