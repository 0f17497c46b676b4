"""Confusion matrices of two raters: how often one gave each grade where the other gave each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from cranfield.base.errors import UsageError
from cranfield.stats.consensus import SlotTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionMatrix:
    """Counts of the items that two raters rated, by the grade of each."""

    first: str
    second: str
    grades: tuple[float, ...]
    """Ascending: of rows and of columns."""
    counts: tuple[tuple[int, ...], ...]
    """A row for each grade of the first rater, a column for each of the second."""
    n: int
    """Items that both rated."""


def confusion_matrices(
    table: SlotTable, levels: Sequence[float] = (), *, most_raters: int
) -> tuple[ConfusionMatrix, ...]:
    """The matrix of each pair of raters with an item in common.

    Args:
        table: who gave which item what.
        levels: grades that have a row and a column even where no rating has them.
        most_raters: no matrix for more raters than that.
    """
    if len(table.raters) > most_raters:
        return ()
    grades = np.unique(np.concatenate([table.grade, np.asarray(levels, dtype=np.float64)]))
    codes = np.full((table.n_items, len(table.raters)), -1, dtype=np.int64)
    codes[table.item, table.rater] = np.searchsorted(grades, table.grade)
    k = len(grades)
    found = []
    for first, second in itertools.combinations(range(len(table.raters)), 2):
        both = (codes[:, first] >= 0) & (codes[:, second] >= 0)
        if both.any():
            cells = codes[both, first] * k + codes[both, second]
            counts = np.bincount(cells, minlength=k * k).reshape(k, k)
            matrix = ConfusionMatrix(
                first=table.raters[first],
                second=table.raters[second],
                grades=tuple(grades.tolist()),
                counts=tuple(map(tuple, counts.tolist())),
                n=len(cells),
            )
            found.append(matrix)
    return tuple(found)


def wilson_interval(right: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion.

        (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n),  p = right / n

    Args:
        right: successes, from 0 to n.
        n: trials, at least 1.
        level: of the interval.

    Raises:
        UsageError: counts or a level out of bounds.

    Source: Wilson (1927), "Probable inference, the law of succession, and statistical inference", JASA 22.

    Example:
        >>> low, high = wilson_interval(8, 10)
        >>> round(low, 4), round(high, 4)
        (0.4902, 0.9433)
    """
    _check(right, n, level)
    z, p = NormalDist().inv_cdf((1 + level) / 2), right / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


def exact_interval(right: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of Clopper and Pearson: the proportions that the exact binomial test does not reject.

    Args:
        right: successes, from 0 to n.
        n: trials, at least 1.
        level: of the interval.

    Raises:
        UsageError: counts or a level out of bounds.

    Source: Clopper and Pearson (1934), Biometrika 26(4). Equal to `scipy.stats.binomtest(right, n).proportion_ci()`.

    Example:
        >>> low, high = exact_interval(8, 10)
        >>> round(low, 4), round(high, 4)
        (0.4439, 0.9748)
    """
    from scipy.special import betaincinv

    _check(right, n, level)
    tail = (1 - level) / 2
    low = float(betaincinv(right, n - right + 1, tail)) if right else 0.0
    high = float(betaincinv(right + 1, n - right, 1 - tail)) if right < n else 1.0
    return low, high


def _check(right: int, n: int, level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level is {level:g}", expected="a number between 0 and 1, such as 0.95")
    if not 0 <= right <= n or not n:
        raise UsageError(f"{right} of {n}", expected="a number of successes from 0 to n, and an n of 1 or more")
