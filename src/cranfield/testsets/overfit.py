"""Evaluated against held out: whether a system does better on the queries that it was tuned on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cranfield.numbers import format_delta, format_delta_interval, format_level, format_value
from cranfield.stats.contrast import GroupContrast, two_groups


@dataclass(frozen=True, slots=True)
class Overfit:
    """One system and one measure on both parts of a test set."""

    system: str
    measure: str
    higher_is_better: bool
    contrast: GroupContrast
    """Evaluated minus held out."""

    @property
    def is_overfit(self) -> bool | None:
        """True where the interval says that the evaluated part is better; None where there is no interval."""
        low, high = self.contrast.ci_low, self.contrast.ci_high
        if low is None or high is None:
            return None
        return low > 0 if self.higher_is_better else high < 0

    @property
    def sentence(self) -> str:
        """What can be said, in a line."""
        about = self.contrast
        if about.difference is None or about.ci_low is None:
            return f"{self.system}: nothing can be said of overfitting: {about.note}."
        means = f"{format_value(about.a.mean)} on {about.a.n} evaluated, {format_value(about.b.mean)} on {about.b.n} held out"
        interval = format_delta_interval((about.ci_low, about.ci_high))
        gap = f"difference {format_delta(about.difference)}, {format_level(about.alpha)} CI {interval}"
        facts = f"{self.measure} {means}; {gap}"
        if self.is_overfit:
            return f"{self.system} does better on the queries it was evaluated on than on those held out: {facts}."
        if about.ci_low > 0 or (about.ci_high or 0.0) < 0:
            return f"{self.system} does worse on the queries it was evaluated on, so nothing speaks of overfitting: {facts}."
        return f"{self.system} shows no overfitting that these queries could tell: {facts}."


def overfit(
    system: str,
    measure: str,
    evaluated: Sequence[float],
    held_out: Sequence[float],
    *,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    seed: int = 0,
) -> Overfit:
    """Contrast the values of both parts, which have no query in common: Welch's interval of the difference of the means."""
    contrast = two_groups(evaluated, held_out, alpha=alpha, seed=seed)
    return Overfit(system, measure, higher_is_better, contrast)
