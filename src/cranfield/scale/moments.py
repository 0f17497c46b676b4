"""Sums over values that come in blocks: moments of columns, and sums within units. NaN is no value.

Axes: C columns, n values of a block, U units. What comes out is what `stats.describe` gives of the whole, without the median.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.bootstrap import describe_clusters
from cranfield.stats.describe import TOLERANCE, Description, FloatN

FloatCN = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(eq=False)
class Moments:
    """Number, mean, squares about the mean, and range of each of C columns."""

    n_columns: int
    n: Ints = field(init=False)
    mean: FloatN = field(init=False)
    squares: FloatN = field(init=False)
    low: FloatN = field(init=False)
    high: FloatN = field(init=False)
    n_above: Ints = field(init=False)
    """Values above 0."""
    n_below: Ints = field(init=False)
    """Values below 0."""

    def __post_init__(self) -> None:
        self.n, self.n_above, self.n_below = (np.zeros(self.n_columns, dtype=np.int64) for _ in range(3))
        self.mean, self.squares = np.zeros(self.n_columns), np.zeros(self.n_columns)
        self.low, self.high = np.full(self.n_columns, np.inf), np.full(self.n_columns, -np.inf)

    def add(self, values: FloatCN) -> None:
        """Add the values of a block, [C, n]."""
        known = ~np.isnan(values)
        n = known.sum(axis=1)
        mean = np.where(known, values, 0.0).sum(axis=1) / np.maximum(n, 1)
        centred = np.where(known, values - mean[:, np.newaxis], 0.0)
        # The second term is 0 but for the rounding of the mean.
        squares = (centred**2).sum(axis=1) - centred.sum(axis=1) ** 2 / np.maximum(n, 1)
        self.low = np.fmin(self.low, np.fmin.reduce(values, axis=1, initial=np.inf))
        self.high = np.fmax(self.high, np.fmax.reduce(values, axis=1, initial=-np.inf))
        self.n_above += (values > 0).sum(axis=1)
        self.n_below += (values < 0).sum(axis=1)
        self._merge(n, mean, squares)

    def merge(self, other: Moments) -> None:
        """Add what another one has seen."""
        self.low, self.high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        self.n_above, self.n_below = self.n_above + other.n_above, self.n_below + other.n_below
        self._merge(other.n, other.mean, other.squares)

    def describe(self, column: int) -> Description:
        """A column as one vector is described; see `stats.describe`."""
        n, low, high = int(self.n[column]), float(self.low[column]), float(self.high[column])
        if not n:
            return Description(None, None, None, 0)
        mean = min(max(float(self.mean[column]), low), high)
        if n == 1:
            return Description(mean, None, None, 1)
        is_flat = high - low <= TOLERANCE * max(abs(low), abs(high))
        return Description(mean, None, 0.0 if is_flat else math.sqrt(float(self.squares[column]) / (n - 1)), n)

    def ends(self, column: int) -> FloatN:
        """The smallest and the largest value; empty without any."""
        ends = np.array([self.low[column], self.high[column]])
        return ends if self.n[column] else ends[:0]

    def largest(self, column: int) -> float:
        """The largest absolute value."""
        return float(np.abs(self.ends(column)).max(initial=0.0))

    def _merge(self, n: Ints, mean: FloatN, squares: FloatN) -> None:
        """Chan, Golub & LeVeque 1983, The American Statistician 37(3)."""
        total = self.n + n
        share = n / np.maximum(total, 1)
        distance = mean - self.mean
        self.squares = self.squares + squares + distance**2 * self.n * share
        self.mean = self.mean + distance * share
        self.n = total


@dataclass(eq=False)
class UnitSums:
    """Sums of some columns within U units, and how many values each is of."""

    n_units: int
    columns: Sequence[int]
    sums: FloatCN = field(init=False)
    """float64[columns, U]."""
    counts: NDArray[np.float64] = field(init=False)
    """The same: whole numbers."""

    def __post_init__(self) -> None:
        self.place = {column: place for place, column in enumerate(self.columns)}
        self.sums, self.counts = (np.zeros((len(self.columns), self.n_units)) for _ in range(2))

    def add(self, unit: Ints, values: FloatCN) -> None:
        """Add the values of a block, [C, n], in their units, [n]."""
        for column, place in self.place.items():
            known = ~np.isnan(values[column])
            units, weights = (unit, values[column]) if known.all() else (unit[known], values[column][known])
            self.sums[place] += np.bincount(units, weights, minlength=self.n_units)
            self.counts[place] += np.bincount(units, minlength=self.n_units)

    def of(self, column: int) -> tuple[FloatN, FloatN]:
        """Sums and sizes of the units that have a value of a column."""
        sums, counts = self.sums[self.place[column]], self.counts[self.place[column]]
        kept = counts > 0
        return sums[kept], counts[kept]

    def describe(self, column: int) -> Description:
        """The mean of a column with the spread between units."""
        return describe_clusters(*self.of(column))


@dataclass(eq=False)
class WeightedSums:
    """Weighted means of C columns."""

    n_columns: int
    sums: FloatN = field(init=False)
    weights: FloatN = field(init=False)
    low: FloatN = field(init=False)
    high: FloatN = field(init=False)

    def __post_init__(self) -> None:
        self.sums, self.weights = np.zeros(self.n_columns), np.zeros(self.n_columns)
        self.low, self.high = np.full(self.n_columns, np.inf), np.full(self.n_columns, -np.inf)

    def add(self, values: FloatCN, weight: FloatN) -> None:
        """Add the values of a block, [C, n], with their weights, [n]."""
        known = ~np.isnan(values)
        weights = np.where(known, weight, np.nan)
        self.sums += np.where(known, values * weight, 0.0).sum(axis=1)
        self.weights += np.where(known, weight, 0.0).sum(axis=1)
        self.low = np.fmin(self.low, np.fmin.reduce(weights, axis=1, initial=np.inf))
        self.high = np.fmax(self.high, np.fmax.reduce(weights, axis=1, initial=-np.inf))

    def mean(self, column: int) -> float | None:
        """As `stats.describe.weighted_mean`: None where all weights are equal, or none is above 0."""
        if self.low[column] >= self.high[column] or self.weights[column] <= 0:
            return None
        return float(self.sums[column] / self.weights[column])
