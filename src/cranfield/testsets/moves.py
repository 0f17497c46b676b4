"""How the scores of systems move from one version of a test set to the next, and how they fit the part that is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cranfield.app.evaluate import evaluate
from cranfield.evaluation.testset.split import only, part
from cranfield.evaluation.values import Evaluation
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import DEFAULT_CONVENTION, TestSet
from cranfield.model.results import TestSetRecord
from cranfield.stats.contrast import two_groups
from cranfield.testsets.diff import ScoreMove
from cranfield.testsets.overfit import Overfitting, overfit


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
