"""Signs of overfitting: a measure on the evaluated queries against the held-out ones."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.base.numbers import format_delta, format_delta_interval, format_level, format_value
from cranfield.model import Split
from cranfield.model.results import Record, TestSetRecord
from cranfield.stats.contrast import GroupContrast


@dataclass(frozen=True, slots=True)
class Overfit:
    """One system and one measure on both parts of a test set."""

    system: str
    measure: str
    contrast: GroupContrast
    """Evaluated minus held out."""
    is_overfit: bool | None
    """True where the interval says that the evaluated part is better; None where there is no interval."""
    sentence: str
    """The difference with its interval, in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overfitting(Record):
    """The overfitting test of each measure."""

    testset: TestSetRecord
    split: Split | None
    measures: tuple[Overfit, ...]


def overfit(system: str, measure: str, contrast: GroupContrast, *, higher_is_better: bool) -> Overfit:
    """What a contrast, evaluated minus held out, says of overfitting."""
    difference, low, high = contrast.difference, contrast.ci_low, contrast.ci_high
    if difference is None or low is None or high is None:
        sentence = f"{system}: overfitting cannot be assessed: {contrast.note}."
        return Overfit(system, measure, contrast, None, sentence)
    is_overfit = low > 0 if higher_is_better else high < 0
    evaluated = f"{format_value(contrast.a.mean)} on {contrast.a.n} evaluated"
    gap = (
        f"difference {format_delta(difference)}, {format_level(contrast.alpha)} CI {format_delta_interval((low, high))}"
    )
    facts = f"{measure} {evaluated}, {format_value(contrast.b.mean)} on {contrast.b.n} held out; {gap}"
    if is_overfit:
        outcome = "does better on the queries it was evaluated on than on those held out"
    elif low > 0 or high < 0:
        outcome = "does worse on the queries it was evaluated on, so nothing speaks of overfitting"
    else:
        outcome = "shows no overfitting that these queries could tell"
    return Overfit(system, measure, contrast, is_overfit, f"{system} {outcome}: {facts}.")
