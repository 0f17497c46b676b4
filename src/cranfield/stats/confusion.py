"""Confusion matrices of two raters: how often one gave each grade where the other gave each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
