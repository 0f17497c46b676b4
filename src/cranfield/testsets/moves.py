"""How the scores of systems move from one version of a test set to the next, and how they fit the part that is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cranfield.app.evaluate import evaluate
from cranfield.base.numbers import format_delta, format_delta_interval, format_level, format_value
from cranfield.evaluation.testset.split import only, part
from cranfield.evaluation.values import Evaluation
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import DEFAULT_CONVENTION, Split, TestSet
from cranfield.model.results import Record, TestSetRecord
from cranfield.stats.contrast import GroupContrast, two_groups
from cranfield.testsets.diff import ScoreMove


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
        outcome = "does worse on the queries it was evaluated on, so there is no sign of overfitting"
    else:
        outcome = "shows no significant overfitting on these queries"
    return Overfit(system, measure, contrast, is_overfit, f"{system} {outcome}: {facts}.")


def score_moves(
    old: TestSet,
    new: TestSet,
    runs: Mapping[str, Path],
    *,
    measures: Sequence[str] | None = None,
    convention: str = DEFAULT_CONVENTION,
) -> tuple[ScoreMove, ...]:
    """How the mean of each system moves from one version to the next: on all queries, and on those that both have.

    Args:
        old: the version before.
        new: the version after.
        runs: name of a system to its run; a run answers the queries of both versions.
        measures: None is the default list.
        convention: whose choices score them.

    Raises:
        InputError: a run that cannot be read, or shares no query with a version.
        UsageError: an unknown measure or convention.
    """
    common = [query_id for query_id in new.query_ids if query_id in old.by_id]
    versions = {"old": old, "new": new}
    if common:
        versions |= {"common old": only(old, common), "common new": only(new, common)}
    moves = []
    for name, run in runs.items():
        scored = {
            version: evaluate(testset, run, measures=measures, convention=convention, name=name)
            for version, testset in versions.items()
        }
        moves += [_move(name, measure, scored) for measure in scored["new"].measures]
    return tuple(moves)


def _move(system: str, measure: Measure, scored: Mapping[str, Evaluation]) -> ScoreMove:
    summaries = {
        version: evaluation.summaries[measure]
        for version, evaluation in scored.items()
        if measure in evaluation.summaries
    }
    means = {version: summary.mean for version, summary in summaries.items()}
    counts = {version: summary.n for version, summary in summaries.items()}
    return ScoreMove(
        system=system,
        measure=str(measure),
        old=means.get("old"),
        n_old=counts.get("old", 0),
        new=means.get("new"),
        n_new=counts.get("new", 0),
        common_old=means.get("common old"),
        common_new=means.get("common new"),
        n_common=counts.get("common new", 0),
    )


def overfitting(
    testset: TestSet,
    run: Path,
    *,
    measures: Sequence[str] | None = None,
    convention: str = DEFAULT_CONVENTION,
    alpha: float = 0.05,
    seed: int = 0,
) -> Overfitting:
    """Contrast what a system earns on the evaluated part and on the part held out.

    Raises:
        TestSetError: the set has no split.
        InputError: a run that cannot be read, or shares no query with the test set.
        UsageError: an unknown measure or convention.
    """
    held_out = set(part(testset, "held-out").query_ids)
    evaluation = evaluate(testset, run, measures=measures, convention=convention)
    found = []
    for measure in evaluation.measures:
        parts: tuple[list[float], list[float]] = ([], [])
        for query_id in evaluation.query_ids:
            value = evaluation.value(measure, query_id)
            if value is not None:
                parts[query_id in held_out].append(value)
        higher_is_better = CATALOGUE[measure.name].higher_is_better
        contrast = two_groups(*parts, alpha=alpha, seed=seed)  # Welch's interval of the difference of the means
        found.append(overfit(evaluation.name, str(measure), contrast, higher_is_better=higher_is_better))
    return Overfitting(testset=TestSetRecord.of(testset), split=testset.meta.split, measures=tuple(found))
