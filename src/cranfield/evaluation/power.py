"""Power analysis of the next comparison, from the spread of the differences of this one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cranfield.base.display import Displayed, in_line
from cranfield.base.errors import UsageError
from cranfield.base.words import count_noun
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import Finding
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.pairing import pair_values, primary_measure, shared_measures
from cranfield.evaluation.values import Evaluation
from cranfield.measures import Measure
from cranfield.model.results import Record, TestSetRecord
from cranfield.ranking.value import FloatQ
from cranfield.stats.describe import describe, differences, t_interval
from cranfield.stats.power import (
    TRIALS,
    USUAL_POWER,
    check_power,
    minimal_detectable_effect,
    power_of,
    queries_needed,
    resampled_power,
)

ROUND = (1.0, 2.0, 5.0)
RESAMPLED_UP_TO = 10_000
"""More queries than this are not resampled: the mean is normally distributed by then."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A true difference, a number of queries, and the power."""

    difference: float
    n: int | None
    """None is more than 10 million."""
    power: float | None
    given: str
    """What was given: `difference`, `queries`, or `both`."""
    note: str = ""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class PowerPlan(Displayed, Record):
    """Detectable differences and required numbers of queries, by a two-sided paired t test."""

    testset: TestSetRecord
    baseline: str
    candidate: str
    evidence: tuple[Finding, ...]
    """What the evidence checks find in the two runs."""
    measure: Measure
    n: int
    """Queries with a value on both sides."""
    n_nonzero: int
    delta: float
    ci_low: float
    ci_high: float
    """t interval of the observed mean difference at 1 - alpha."""
    std: float
    """Standard deviation of the differences, from which all is computed."""
    alpha: float
    power: float
    seed: int
    planned: tuple[Planned, ...]
    observed_power: float
    """Power for a true difference as large as the observed one. It only restates the p-value."""
    resampled: Planned | None
    """The power of one of them by resampling these differences; None where there would be too many to draw, or where no
    draw of these has such a mean."""
    trials: int = TRIALS

    def _summary(self) -> str:
        names = f"{in_line(self.baseline)} and {in_line(self.candidate)}"
        return (
            f"{names} by {self.measure}: {count_noun(len(self.planned), 'plans')} from {count_noun(self.n, 'queries')}"
        )


def plan(
    baseline: Evaluation,
    candidate: Evaluation,
    *,
    measure: Measure | None = None,
    difference: float | None = None,
    queries: int | None = None,
    alpha: float = 0.05,
    power: float = USUAL_POWER,
    seed: int = 0,
) -> PowerPlan:
    """Plan from two systems on the same queries.

    Args:
        baseline: the current system.
        candidate: another one: the spread of the differences depends on the pair.
        measure: None is the first that both have.
        difference: true difference to be found; None is a choice of round ones.
        queries: number of queries; None is a choice of round ones. Given both, the power of the two together.
        alpha: of the test.
        power: how often the difference should be found.
        seed: of the resampling.

    Raises:
        UsageError: the two do not belong together; or no query differs, so there is no spread to compute power from.
    """
    check_power(power, alpha)
    sides = (baseline, candidate)
    primary = primary_measure(
        shared_measures(sides),
        CompareOptions(primary=None if measure is None else measure.canonical, alpha=alpha, seed=seed),
    )
    vector = differences(*pair_values(sides, primary).values.T)
    n = len(vector)
    described = describe(vector)
    interval = t_interval(vector, 1 - alpha)
    if described.mean is None or described.std is None or interval is None:
        raise UsageError(
            f"{primary} has a value on both sides for {n} of the queries",
            expected="2 or more, to estimate the spread",
        )
    if not described.std:
        raise UsageError(
            f"{primary} differs by the same amount on all {n} queries: there is no spread to compute power from",
            hint="use two systems that differ about as much as those you want to compare",
        )
    rows = _rows(described.std, n, difference, queries, alpha, power)
    return PowerPlan(
        testset=TestSetRecord.of(baseline.testset),
        baseline=baseline.name,
        candidate=candidate.name,
        evidence=inspect_systems(sides, primary, baseline.limits),
        measure=primary,
        n=n,
        n_nonzero=int(np.count_nonzero(vector)),
        delta=described.mean,
        ci_low=interval[0],
        ci_high=interval[1],
        std=described.std,
        alpha=alpha,
        power=power,
        seed=seed,
        planned=rows,
        observed_power=power_of(described.std, described.mean, n, alpha=alpha),
        resampled=_resampled_plan(vector, rows, n, alpha, seed),
    )


def _rows(
    std: float, n: int, difference: float | None, queries: int | None, alpha: float, power: float
) -> tuple[Planned, ...]:
    if difference is not None and queries is not None:
        return (Planned(difference, queries, power_of(std, difference, queries, alpha=alpha), "both"),)
    if difference is not None:
        return (_needed(std, difference, alpha, power),)
    if queries is not None:
        return (_shown(std, queries, alpha, power, ""),)
    here = minimal_detectable_effect(std, n, alpha, power) or std
    sizes = sorted({n, *(int(size) for size in round_numbers(max(n / 4, 10), n * 10))})
    return (
        *(_shown(std, size, alpha, power, "as many as here" if size == n else "") for size in sizes),
        *(_needed(std, size, alpha, power) for size in round_numbers(here / 5, here * 2)),
    )


def _needed(std: float, difference: float, alpha: float, power: float) -> Planned:
    n = queries_needed(std, difference, alpha=alpha, power=power)
    return Planned(difference, n, None if n is None else power_of(std, difference, n, alpha=alpha), "difference")


def _shown(std: float, n: int, alpha: float, power: float, note: str) -> Planned:
    shown = minimal_detectable_effect(std, n, alpha, power)
    if shown is None:
        raise UsageError(f"{n} queries", expected="2 or more: one has no spread")
    return Planned(shown, n, power, "queries", note)


def _resampled_plan(vector: FloatQ, rows: tuple[Planned, ...], n: int, alpha: float, seed: int) -> Planned | None:
    """The only row, or the row of as many queries as here, by resampling."""
    row = next((row for row in rows if len(rows) == 1 or row.n == n), rows[0])
    if row.n is None or row.n > RESAMPLED_UP_TO:
        return None
    share = resampled_power(vector, row.difference, row.n, alpha=alpha, seed=seed)
    return None if share is None else Planned(row.difference, row.n, share, row.given)


def round_numbers(low: float, high: float) -> list[float]:
    """The numbers 1, 2 and 5 times a power of ten from `low` to `high`.

    Example:
        >>> round_numbers(0.03, 0.3)
        [0.05, 0.1, 0.2]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [float(f"{digit:g}e{decade}") for decade in decades for digit in ROUND]
    return [number for number in numbers if low <= number <= high]
