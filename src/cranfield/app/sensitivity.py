"""Sensitivity analysis of a comparison, with the grades that other consensus rules make of the ratings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.app.evaluate import evaluate_with_options
from cranfield.app.loading import RunLike
from cranfield.base.errors import CranfieldError
from cranfield.evaluation.options.blocks import ScoringOptions
from cranfield.evaluation.sensitivity import SENSITIVITY_DRAWS, Regraded, Sensitivity
from cranfield.evaluation.sensitivity import sensitivity as vary
from cranfield.evaluation.values import RATED_BY_SLOT, Comparison, Evaluation
from cranfield.stats.consensus import CONSENSUS, DEFAULT_RULE

if TYPE_CHECKING:
    from cranfield.model import TestSet


NO_RUN = "the runs are not available to be scored again"


def sensitivity(
    comparison: Comparison,
    *,
    runs: tuple[RunLike, RunLike] | None = None,
    scale: str | None = None,
    to_scale: str | None = None,
    scoring: ScoringOptions | None = None,
    n_draws: int = SENSITIVITY_DRAWS,
) -> Sensitivity:
    """Vary one choice of a comparison at a time; where the test set has ratings, the consensus rule too.

    Args:
        comparison: what `compare` returned.
        runs: baseline and candidate as `evaluate` took them; None takes the collected runs of the evaluations.
        scale: of the ratings, where it was given.
        to_scale: what each rating was mapped to, where it was.
        scoring: how the runs were read and scored; None is as the evaluations record it.
        n_draws: random draws of each variation.
    """
    testset = comparison.baseline.testset
    sides = comparison.baseline, comparison.candidate
    given: tuple[RunLike | None, ...] = tuple(side.run for side in sides) if runs is None else runs
    convention = comparison.baseline.ranking.convention.name
    by_slot = convention == RATED_BY_SLOT
    declared = testset.consensus or (RATED_BY_SLOT if by_slot else DEFAULT_RULE)  # a rule has the convention's name
    scales = (None, None) if by_slot else (scale, to_scale)  # by slot, each measure has a scale of its own

    def regraded(rule: str) -> Regraded:
        """Both runs scored on the grades that a rule makes, or why they were not."""
        from cranfield.evaluation.testset.consensus import with_consensus

        known = [run for run in given if run is not None]
        if len(known) < len(given):
            return NO_RUN
        try:
            graded = with_consensus(testset, rule, scale=scales[0], to=scales[1])
            first, second = (
                _rescored(graded, side, run, str(comparison.primary), scoring)
                for side, run in zip(sides, known, strict=True)
            )
        except CranfieldError as error:
            return str(error).splitlines()[0]
        return first, second

    rules = [rule for rule in CONSENSUS if rule != declared] if testset.ratings else []
    return vary(comparison, regraded={rule: regraded(rule) for rule in rules}, n_draws=n_draws)


def _rescored(
    testset: TestSet, side: Evaluation, run: RunLike, primary: str, scoring: ScoringOptions | None
) -> Evaluation:
    recorded = replace(scoring or ScoringOptions(), convention=side.ranking.convention, name=side.name, **side.reading)  # type: ignore[arg-type]  # what it records are these fields
    return evaluate_with_options(testset, run, [primary], recorded)
