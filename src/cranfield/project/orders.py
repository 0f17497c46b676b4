"""Evaluations under a convention that orders equal scores by measure: each measure on its own order of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cranfield.evaluation.columns import joined
from cranfield.evaluation.values import Evaluation
from cranfield.measures import Measure
from cranfield.measures.orders import by_convention
from cranfield.model import TestSet
from cranfield.options.scoring import ScoringOptions
from cranfield.project.inputs import RunLike
from cranfield.project.scoring import score


def evaluate_in_orders(
    testset: TestSet, run: RunLike, measures: Sequence[Measure] | None, options: ScoringOptions
) -> Evaluation:
    """Score one run, each measure on the order that its convention has for it.

    The ranking, hits and failures are those of the first measure. Raises as `score`.
    """
    _, rules = options.resolved()
    if measures is None:
        measures = score(testset, run, None, options).measures
    parts = [
        score(testset, run, group, replace(options, convention=convention))
        for convention, group in by_convention(measures, rules).items()
    ]
    if not parts:
        return score(testset, run, measures, options)
    return joined(measures, parts)
