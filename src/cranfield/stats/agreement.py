"""Inter-rater agreement: every coefficient of `coefficients` with a bootstrap interval."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cranfield.base.display import Displayed
from cranfield.base.words import count_noun
from cranfield.stats.bootstrap import index_blocks
from cranfield.stats.coefficients import (
    COEFFICIENTS,
    DISTANCES,
    MAX_RATERS,
    TWO_RATERS,
    Estimator,
    Floats,
    Patterns,
    Statistic,
    kappa,
    patterns_of,
    raw_agreement,
)
from cranfield.stats.consensus import Slots, SlotTable, slot_table
from cranfield.stats.describe import FloatN, check_alpha, check_draws

DEFAULT_DRAWS = 1_000
MIN_ITEMS = 6
"""Under this many items nothing is resampled, as for the queries of `bootstrap`."""
FEW_COMMON = 20
"""Pairs of raters with fewer common items are named in a note."""
MAX_CELLS = 1 << 22
"""Weights in memory at once; does not change the result."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One coefficient of agreement; None where undefined, with the reason in `note`."""

    name: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    """Items it is computed from."""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class RaterPair:
    """Two raters on their common items."""

    first: str
    second: str
    n: int
    coefficients: tuple[Coefficient, ...]
    """Those of `TWO_RATERS`."""


@dataclass(frozen=True, repr=False)
class Agreement(Displayed):
    """Agreement of all raters, with the coverage of the ratings."""

    n_items: int
    n_slots: int
    n_filled: int
    n_rated: int
    """Items with a rating."""
    n_twice: int
    """Items with two or more."""
    by_rater: Mapping[str, int]
    """Rater to items rated."""
    coefficients: Mapping[str, Coefficient]
    """Those of `COEFFICIENTS`, by name."""
    pairs: tuple[RaterPair, ...]
    alpha: float
    seed: int
    n_draws: int
    notes: tuple[str, ...]
    """Caveats."""

    def _summary(self) -> str:
        found = self.coefficients.get("alpha-ordinal")
        value = f": alpha-ordinal {found.value:.4f}" if found is not None and found.value is not None else ""
        return f"{count_noun(len(self.by_rater), 'raters')}, {self.n_twice} of {count_noun(self.n_items, 'items')} rated twice or more{value}"


def agreement(
    table: SlotTable, *, alpha: float = 0.05, seed: int = 0, n_draws: int = DEFAULT_DRAWS, pairwise: bool = True
) -> Agreement:
    """Measure inter-rater agreement.

    Args:
        table: who gave which item what.
        alpha: intervals cover 1 - alpha.
        seed: of the resamples.
        n_draws: resamples of the items.
        pairwise: also compare each pair where there are more than two raters.

    Conventions:
        items with fewer than two ratings are left out, and counted · no item rated twice: no value · all ratings one grade:
        no value but raw agreement · an interval lies between percentiles of the resamples that have a value; none under
        6 items.

    Source:
        see `COEFFICIENTS`; the interval is the percentile bootstrap of Efron 1979, Ann. Stat. 7(1), over items.
    """
    check_alpha(alpha)
    check_draws(seed, n_draws)
    patterns = patterns_of(table)
    of_pairs = list(_rater_pairs(patterns)) if pairwise else []
    estimators = [(name, spec.estimator(patterns)) for name, spec in COEFFICIENTS.items()]
    for _, _, of_pair in of_pairs:
        estimators += zip(TWO_RATERS, of_pair, strict=True)
    found = iter(_with_intervals(estimators, patterns, alpha, seed, n_draws))
    rated = np.bincount(table.rater, minlength=len(table.raters)).tolist()
    coefficients = {name: next(found) for name in COEFFICIENTS}
    pairs = tuple(
        RaterPair(first, second, of_pair[0].n, tuple(next(found) for _ in TWO_RATERS))
        for first, second, of_pair in of_pairs
    )
    return Agreement(
        n_items=table.n_items,
        n_slots=table.n_slots,
        n_filled=len(table.item),
        n_rated=int(np.count_nonzero(table.filled)),
        n_twice=len(patterns.of_item),
        by_rater=dict(zip(table.raters, rated, strict=True)),
        coefficients=coefficients,
        pairs=pairs,
        alpha=alpha,
        seed=seed,
        n_draws=n_draws,
        notes=tuple(_notes(table, pairs, pairwise=pairwise)),
    )


def cohens_kappa(
    first: Slots,
    second: Slots,
    weights: str = "cohen",
    *,
    alpha: float = 0.05,
    seed: int = 0,
    n_draws: int = DEFAULT_DRAWS,
) -> Coefficient:
    """Cohen's kappa of two raters, item by item.

    Args:
        first: one grade or None per item.
        second: the same of the other rater.
        weights: `cohen`, `cohen-linear` or `cohen-quadratic`.
        alpha: the interval covers 1 - alpha.
        seed: of the resamples.
        n_draws: resamples of the items.

    Example:
        >>> cohens_kappa([1, 1, 0, 0], [1, 0, 0, 0]).value  # observed 3/4, chance 1/2 * 1/4 + 1/2 * 3/4 = 1/2
        0.5
    """
    table = slot_table(list(zip(first, second, strict=True)))
    return agreement(table, alpha=alpha, seed=seed, n_draws=n_draws, pairwise=False).coefficients[weights]


def _rater_pairs(patterns: Patterns) -> Sequence[tuple[str, str, list[Estimator]]]:
    """Every pair of raters, where there are more than two."""
    names = patterns.raters
    if not 2 < len(names) <= MAX_RATERS:
        return []
    return [
        (names[a], names[b], [raw_agreement(patterns, a, b), *(kappa(patterns, a, b, kind) for kind in DISTANCES)])
        for a, b in itertools.combinations(range(len(names)), 2)
    ]


def _with_intervals(
    estimators: Sequence[tuple[str, Estimator]], patterns: Patterns, alpha: float, seed: int, n_draws: int
) -> list[Coefficient]:
    statistics = [estimator.statistic for _, estimator in estimators if estimator.statistic is not None]
    values = iter([float(statistic(patterns.weights)[0]) for statistic in statistics])
    samples = iter(_resampled(statistics, patterns, seed, n_draws))
    found = []
    for name, (statistic, n, why) in estimators:
        if statistic is None:
            found.append(Coefficient(name, None, None, None, n, why))
            continue
        value, sample = next(values), next(samples)
        if np.isnan(value):
            found.append(Coefficient(name, None, None, None, n, why))
            continue
        low, high, note = _ends(sample, n, alpha)
        found.append(Coefficient(name, value, low, high, n, note))
    return found


def _resampled(statistics: Sequence[Statistic], patterns: Patterns, seed: int, n_draws: int) -> list[FloatN]:
    """Each statistic of each resample of the items; empty where there are too few items."""
    n, width = len(patterns.of_item), len(patterns.counts)
    values: list[list[FloatN]] = [[np.empty(0)] for _ in statistics]
    if n < MIN_ITEMS or not statistics:
        return [np.empty(0) for _ in statistics]
    weights = np.empty((min(n_draws, max(1, MAX_CELLS // width)), width))
    used = 0
    for _, indices in index_blocks(seed, n_draws, n):
        for row in patterns.of_item[indices]:
            weights[used] = np.bincount(row, minlength=width)
            used += 1
            if used == len(weights):
                _take(values, statistics, weights)
                used = 0
    _take(values, statistics, weights[:used])
    return [np.concatenate(parts) for parts in values]


def _take(values: list[list[FloatN]], statistics: Sequence[Statistic], weights: Floats) -> None:
    for parts, statistic in zip(values, statistics, strict=True):
        parts.append(statistic(weights))


def _ends(sample: FloatN, n: int, alpha: float) -> tuple[float | None, float | None, str | None]:
    """The ends of the interval, and a note."""
    if n < MIN_ITEMS:
        return None, None, f"too few items to resample (n < {MIN_ITEMS})"
    valued = np.sort(sample[~np.isnan(sample)])
    rank = int(alpha / 2 * (len(valued) + 1))
    if rank < 1:
        return None, None, "too few resamples have a value for an interval"
    low, high = float(valued[rank - 1]), float(valued[len(valued) - rank])
    if low == high:
        return low, high, "all resamples are the same: the interval is not informative"
    lost = len(sample) - len(valued)
    return low, high, f"{lost} of {len(sample)} resamples have a single grade and no value" if lost else None


def _notes(table: SlotTable, pairs: Sequence[RaterPair], *, pairwise: bool) -> list[str]:
    notes = []
    if len(table.raters) == 1:
        notes.append(f"only one rater, {table.raters[0]!r}: agreement needs two")
    if pairwise and len(table.raters) > MAX_RATERS:
        notes.append(f"pairs of raters are not compared: {len(table.raters)} raters are more than {MAX_RATERS}")
    few = [f"{pair.first} and {pair.second} ({pair.n})" for pair in pairs if pair.n < FEW_COMMON]
    if few:
        more = f" and {len(few) - 5} more pairs" if len(few) > 5 else ""
        notes.append(f"raters with fewer than {FEW_COMMON} items in common: {', '.join(few[:5])}{more}")
    return notes
