"""Runs scored with the alternatives of a test set, and without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cranfield.errors import UsageError
from cranfield.judging.pools.alternatives import (
    BothScores,
    WithAndWithout,
    alternatives_of,
    without_alternatives,
)
from cranfield.measures import DEFAULT_MEASURES
from cranfield.model import TestSet
from cranfield.options.scoring import ScoringOptions
from cranfield.project.read_ahead import evaluate_files
from cranfield.results.testset import TestSetRecord


def with_and_without(
    testset: TestSet, runs: Sequence[Path], measures: Sequence[str] | None, options: ScoringOptions
) -> WithAndWithout:
    """Score run files twice.

    Raises:
        UsageError: the test set has no alternatives.
    """
    alternatives = alternatives_of(testset)
    if not alternatives:
        hint = "`cranfield pool accept TESTSET POOL --book NAME --out FILE` adds them"
        raise UsageError(f"the test set {testset.name!r} has no alternatives", hint=hint)
    names = tuple(measures or DEFAULT_MEASURES)
    first = evaluate_files(without_alternatives(testset), runs, names, options)
    second = evaluate_files(testset, runs, names, options)
    scores = []
    for a, b in zip(first, second, strict=True):
        for name in names:
            without, with_them = a.mean(name), b.mean(name)
            change = None if without is None or with_them is None else with_them - without
            scores.append(BothScores(a.name, name, without, with_them, change))
    return WithAndWithout(testset=TestSetRecord.of(testset), alternatives=alternatives, scores=tuple(scores))
