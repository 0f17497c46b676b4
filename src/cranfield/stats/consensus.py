"""Consensus rules: several raters' grades of one item combined into one grade.

A slot holds one rater's grade of one item (a document of a query), or is empty. A rule gives an item a grade, or none where
all slots are empty or the votes are tied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.stats.describe import FloatN
from cranfield.stats.scale import Scale

Slots = Sequence[float | None]
FloatNS = NDArray[np.float64]
"""float64[n, S]: grades of n items in S slots, NaN where a slot is not filled."""

DEFAULT_RULE = "median"


@dataclass(frozen=True, slots=True, eq=False)
class SlotTable:
    """The filled slots of n items, as columns."""

    item: NDArray[np.int64]  # [N] ascending
    rater: NDArray[np.int64]  # [N] position in `raters`
    grade: FloatN  # [N]
    n_items: int
    n_slots: int
    """Filled or not."""
    raters: tuple[str, ...]

    @property
    def filled(self) -> NDArray[np.int64]:
        """int64[n]: filled slots of each item."""
        return np.bincount(self.item, minlength=self.n_items)

    def packed(self) -> FloatNS:
        """The grades of each item side by side, NaN after the last."""
        filled = self.filled
        starts = np.cumsum(filled) - filled
        matrix = np.full((self.n_items, int(filled.max(initial=0))), np.nan)
        matrix[self.item, np.arange(len(self.item)) - starts[self.item]] = self.grade
        return matrix


def slot_table(items: Sequence[Slots], raters: Sequence[str] | None = None) -> SlotTable:
    """Make a table of slots, one column per rater.

    Args:
        items: per item one grade or None of each rater.
        raters: their names; by default `1`, `2`, ...

    Raises:
        UsageError: items with different numbers of slots.
    """
    widths = {len(slots) for slots in items}
    if len(widths) > 1 or (raters is not None and widths - {len(raters)}):
        raise UsageError("items have different numbers of slots", expected="one of each rater, None where not filled")
    width = max(widths, default=0)
    matrix = np.array([list(slots) for slots in items], dtype=np.float64).reshape(len(items), width)
    item, rater = np.nonzero(~np.isnan(matrix))
    names = tuple(str(number) for number in range(1, width + 1)) if raters is None else tuple(raters)
    return SlotTable(item, rater, matrix[item, rater], len(items), matrix.size, names)


@dataclass(frozen=True, slots=True)
class ConsensusRule:
    """One row of the table."""

    name: str
    sentence: str
    source: str
    combine: Callable[[FloatNS], FloatN]
    """Grades float64[n, S], S at least 1, to float64[n]; NaN where there is no grade."""
    on_binary: Callable[[FloatNS], FloatN] | None = None
    """The same on the binary scale, if it differs there."""
    needs_binary: bool = False
    """Grades are mapped to the binary scale first."""


def combined(grades: FloatNS, rule: str = DEFAULT_RULE, *, scale: Scale | None = None) -> FloatN:
    """Combine the slots of many items.

    Args:
        grades: float64[n, S], NaN where a slot is not filled.
        rule: a name of `CONSENSUS`.
        scale: of the grades.

    Returns:
        float64[n]; NaN for a tie, and where all slots are empty.

    Raises:
        UnknownNameError: there is no such rule.
    """
    row = rule_named(rule)
    combine = row.on_binary if row.on_binary is not None and scale == "binary" else row.combine
    some = ~np.isnan(grades).all(axis=1) if grades.shape[1] else np.zeros(len(grades), dtype=np.bool_)
    result = np.full(len(grades), np.nan)
    if some.any():
        result[some] = combine(grades[some])
    return result


def rule_named(name: str) -> ConsensusRule:
    """Look a rule up.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if name not in CONSENSUS:
        raise UnknownNameError.among("consensus rule", name, CONSENSUS)
    return CONSENSUS[name]


def _counts(grades: FloatNS) -> NDArray[np.int64]:
    return np.asarray(np.count_nonzero(~np.isnan(grades), axis=1), dtype=np.int64)


def _at(grades: FloatNS, place: NDArray[np.int64]) -> FloatN:
    """The grade at a position of each item, from the lowest; empty slots come last."""
    return np.asarray(np.take_along_axis(np.sort(grades, axis=1), place[:, np.newaxis], axis=1)[:, 0])


def _median(grades: FloatNS) -> FloatN:
    return _at(grades, (_counts(grades) - 1) // 2)


def _mean(grades: FloatNS) -> FloatN:
    return np.asarray(np.nansum(grades, axis=1) / _counts(grades))


def _majority(grades: FloatNS) -> FloatN:
    balance = 2 * np.count_nonzero(grades > 0, axis=1) - _counts(grades)
    return np.where(balance == 0, np.nan, (balance > 0).astype(np.float64))


def _quepid(grades: FloatNS) -> FloatN:
    counts = _counts(grades)
    value = np.where(counts < 3, _mean(grades), _at(grades, np.maximum(counts - 3, 0)))
    return np.copysign(np.floor(np.abs(value) + 0.5), value)


CONSENSUS: Mapping[str, ConsensusRule] = {
    rule.name: rule
    for rule in (
        ConsensusRule(
            "median",
            "The lower median: the middle grade, or the lower of the two middle ones.",
            "Order statistics; the lower median",
            _median,
        ),
        ConsensusRule(
            "majority",
            "Majority vote on the binary scale; no grade for a tie.",
            "Majority vote",
            _majority,
            needs_binary=True,
        ),
        ConsensusRule("mean", "The mean of the grades; may lie between two grades of the scale.", "Mean", _mean),
        ConsensusRule(
            "searchtweak",
            "Majority vote on the binary scale, no grade for a tie; the mean on the others.",
            "SearchTweak, Evaluation Metrics: two-stage aggregation",
            _mean,
            on_binary=_majority,
        ),
        ConsensusRule(
            "quepid",
            "The mean of one or two grades; of three or more the lowest of the three highest; rounded, halves up.",
            "Quepid, RatingsManager, for books of whole grades",
            _quepid,
        ),
    )
}
"""Name to rule, in the order help and docs list them."""
