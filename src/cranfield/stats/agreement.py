"""Inter-rater agreement: every coefficient of `coefficients` with a bootstrap interval."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield.base.display import Displayed
from cranfield.base.words import count_noun
from cranfield.stats.bootstrap import index_blocks, key_blocks
from cranfield.stats.coefficients import (
    COEFFICIENTS,
    DISTANCES,
    MAX_RATERS,
    TWO_RATERS,
    Estimator,
    Floats,
    Integers,
    Patterns,
    Statistic,
    alpha_ordinal,
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


Unit = Literal["query", "pair"]
MIN_UNITS = 6
"""Under this many groups of items, each item is a unit; under this many items nothing is drawn."""
MIN_RATERS = 3
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class RaterFit:
    """Agreement without one rater."""

    rater: str
    alpha_without: float | None
    """Krippendorff's ordinal alpha of the others; None where they have no item in common, or one grade only."""
    change: float | None
    """The same minus alpha of all raters: above 0, the others agree better without this rater."""
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    """Share of permutations whose largest change over all raters is at least this one; adjusted for all raters."""
    bias: float | None
    """Mean of this rater's grade minus the mean grade of the others, over the items that both rated."""
    n: int
    """Items that this rater and another one rated."""
    fits: bool | None
    """False where the rater does not fit at the level; None where that is not known."""


@dataclass(frozen=True)
class Misfit:
    """Agreement without each rater."""

    alpha_all: float | None
    raters: tuple[RaterFit, ...]
    unit: Unit
    """What is resampled and permuted within."""
    n_units: int
    level: float
    """Significance level."""
    n_draws: int
    seed: int
    note: str = ""
    """Why there is nothing, or no p-value."""

    @property
    def misfits(self) -> tuple[RaterFit, ...]:
        """Raters who do not fit, the largest change first."""
        found = [rater for rater in self.raters if rater.fits is False]
        return tuple(sorted(found, key=lambda rater: -(rater.change or 0.0)))


def misfit(
    table: SlotTable,
    groups: NDArray[np.int64] | None = None,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    n_draws: int = 1_000,
) -> Misfit:
    """Find the rater who does not fit.

    Args:
        table: who gave which item what.
        groups: int64[n], group of each item, such as its query; None: each item by itself.
        alpha: significance level, and intervals cover 1 - alpha.
        seed: of resamples and permutations.
        n_draws: number of each.

    Conventions:
        fewer than 3 raters, or more than `MAX_RATERS`: nothing is computed · fewer than 6 groups: items are the units ·
        a rater is permuted only within units in which he or she rated something.

    Source:
        the permutation test of exchangeability with the maximum statistic: Westfall & Young 1993, Resampling-Based Multiple
        Testing; percentile bootstrap of clusters: Efron & Tibshirani 1993, An Introduction to the Bootstrap.
    """
    check_alpha(alpha)
    check_draws(seed, n_draws)
    patterns = patterns_of(table)
    n_raters = len(table.raters)
    empty = Misfit(None, (), "pair", 0, alpha, n_draws, seed)
    if n_raters < MIN_RATERS:
        return replace(empty, note=f"{n_raters} raters: at least three are needed to identify one who does not fit")
    if patterns.codes is None:
        return replace(empty, note=f"not computed: {n_raters} raters are more than {MAX_RATERS}")
    statistic = alpha_ordinal(patterns).statistic
    if statistic is None:
        return replace(empty, note="no item was rated twice")
    place, n_units, unit = _units(table, groups, len(patterns.of_item))
    work = _Work(patterns, statistic, place, n_units)
    return _found(work, empty, unit)


def _units(table: SlotTable, groups: NDArray[np.int64] | None, n: int) -> tuple[Integers, int, Unit]:
    """Unit of each item with two ratings or more, how many units there are, and what they are."""
    if groups is not None:
        named, place = np.unique(groups[table.filled >= 2], return_inverse=True)
        if len(named) >= MIN_UNITS:
            return place.astype(np.int64), len(named), "query"
    return np.arange(n), n, "pair"


class _Work:
    """The items as codes by rater, and alpha of all raters, or of all but one, for any weights of the items."""

    def __init__(self, patterns: Patterns, statistic: Statistic, unit: Integers, n_units: int) -> None:
        if patterns.codes is None:
            raise ValueError("codes")
        self.raters = patterns.raters
        self.grades = patterns.grades
        self.codes = patterns.codes[patterns.of_item]  # [n, R]
        self.unit, self.n_units = unit, n_units
        self.n_codes = len(patterns.grades) + 1
        _, example, multiset = np.unique(patterns.counts, axis=0, return_index=True, return_inverse=True)
        self._multiset = multiset.reshape(-1)[patterns.of_item]  # [n]
        counts = patterns.counts[example]
        less = np.vstack([np.eye(len(patterns.grades)), np.zeros(len(patterns.grades))])
        left = (counts[:, np.newaxis, :] - less).reshape(-1, len(patterns.grades))  # [C, K]
        self._usable = (left.sum(axis=1) >= 2) & (left >= 0).all(axis=1)
        self._without = alpha_ordinal(replace(patterns, counts=left[self._usable])).statistic or statistic
        self._all = statistic
        self._of_item = patterns.of_item
        self._n_patterns = len(patterns.counts)

    def alpha_all(self, weights: Floats | None = None) -> float:
        """Alpha of all raters; `weights` is float64[n]."""
        counted = np.bincount(self._of_item, weights=weights, minlength=self._n_patterns)
        return float(self._all(counted[np.newaxis].astype(np.float64))[0])

    def without_each(self, codes: Integers, weights: Floats | None = None) -> FloatN:
        """float64[R]: alpha without each rater; NaN where it is not defined."""
        cells = self._multiset[:, np.newaxis] * self.n_codes + np.where(codes < 0, self.n_codes - 1, codes)
        size = len(self._usable)
        tables = [np.bincount(column, weights=weights, minlength=size)[self._usable] for column in cells.T]
        return self._without(np.array(tables, dtype=np.float64))

    def permuted(self, seed: int, n_draws: int) -> Iterator[Integers]:
        """The codes with the raters of each unit in random order."""
        n_raters = len(self.raters)
        there = np.zeros((self.n_units, n_raters), dtype=np.bool_)
        np.logical_or.at(there, self.unit, self.codes >= 0)
        order = np.argsort(~there, axis=1, kind="stable")  # raters who rated something in the unit first
        absent = np.arange(n_raters) >= there.sum(axis=1)[:, np.newaxis]
        for _, block in key_blocks(seed, n_draws, there.size):
            for row in block:
                keys = np.where(absent, np.iinfo(np.uint64).max, row.reshape(there.shape))
                drawn = np.take_along_axis(order, np.argsort(keys, axis=1, kind="stable"), axis=1)
                columns = np.empty_like(order)
                np.put_along_axis(columns, order, drawn, axis=1)
                yield np.take_along_axis(self.codes, columns[self.unit], axis=1)

    def resampled(self, seed: int, n_draws: int) -> Iterator[Floats]:
        """float64[n]: weights of the items when units are drawn with replacement."""
        for _, block in index_blocks(seed, n_draws, self.n_units):
            for row in block:
                yield np.bincount(row, minlength=self.n_units).astype(np.float64)[self.unit]


def _found(work: _Work, empty: Misfit, unit: Unit) -> Misfit:
    overall = work.alpha_all()
    without = work.without_each(work.codes)
    changes = without - overall
    n_draws, seed = empty.n_draws, empty.seed
    few = work.n_units < MIN_UNITS
    known = not few and not np.isnan(overall)
    largest = np.array(
        [_largest(work.without_each(codes) - overall) for codes in work.permuted(seed, n_draws)] if known else []
    )
    samples = np.array(
        [work.without_each(work.codes, w) - work.alpha_all(w) for w in work.resampled(seed, n_draws)] if known else []
    ).reshape(-1, len(work.raters))
    raters = []
    for place, name in enumerate(work.raters):
        change = None if np.isnan(changes[place]) else float(changes[place])
        p_value = None
        if change is not None and known:
            p_value = float((1 + np.count_nonzero(largest >= change - ROUNDING)) / (1 + n_draws))
        sample = samples[:, place]
        valued = np.sort(sample[~np.isnan(sample)])
        rank = int(empty.level / 2 * (len(valued) + 1))
        low, high = (float(valued[rank - 1]), float(valued[len(valued) - rank])) if rank >= 1 else (None, None)
        bias, n = _bias(work, place)
        fits = None if p_value is None or change is None else not (change > 0 and p_value <= empty.level)
        value = None if np.isnan(without[place]) else float(without[place])
        raters.append(RaterFit(name, value, change, low, high, p_value, bias, n, fits))
    note = f"too few units for intervals and p-values ({work.n_units}, {MIN_UNITS} are needed)" if few else ""
    alpha_all = None if np.isnan(overall) else overall
    return replace(empty, alpha_all=alpha_all, raters=tuple(raters), unit=unit, n_units=work.n_units, note=note)


def _largest(changes: FloatN) -> float:
    known = changes[~np.isnan(changes)]
    return float(known.max()) if len(known) else -np.inf


def _bias(work: _Work, place: int) -> tuple[float | None, int]:
    """Mean of a rater's grade minus the mean of the others', and the items that count."""
    codes = work.codes
    grades = np.where(codes >= 0, work.grades[np.maximum(codes, 0)], np.nan)
    own, others = grades[:, place], np.delete(grades, place, axis=1)
    both = ~np.isnan(own) & (~np.isnan(others)).any(axis=1)
    if not both.any():
        return None, 0
    return float((own[both] - np.nanmean(others[both], axis=1)).mean()), int(np.count_nonzero(both))
