"""Evaluate run files, the first of which is read while the code that scores it is imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.formats.sniff import sniff_run
from cranfield.model import TestSet
from cranfield.project.scoring_options import ScoringOptions
from cranfield.ranking.file import FileReading

if TYPE_CHECKING:
    from cranfield.evaluation.values import Evaluation


def evaluate_files(
    testset: TestSet, runs: Sequence[Path], measures: Sequence[str] | None, options: ScoringOptions
) -> list[Evaluation]:
    """Score run files against a test set; see `recipe.evaluate`."""
    reading = _start(testset, runs[0], options)
    try:
        from cranfield.project.recipe import (
            evaluate_with_options,  # numpy, measures, statistics: the kernel reads meanwhile
        )

        first = runs[0] if reading is None else reading
        return [evaluate_with_options(testset, run, measures, options) for run in (first, *runs[1:])]
    finally:
        if reading is not None:
            reading.close()


def _start(testset: TestSet, run: Path, options: ScoringOptions) -> FileReading | None:
    """Begin to read a TREC run file; None for any other run, and where ratings are scored on several scales."""
    if testset.ratings or sniff_run(run, options.run_format).name != "trec":
        return None
    given, rules = options.resolved()
    reading = FileReading(
        testset,
        run,
        rules,
        given.missing or "zero",
        given.duplicates or "error",
        depth=given.depth,
        keep=given.keep,
        cache=given.cache,
    )
    reading.start()
    return reading
