"""Evaluate run files, the first of which is read while the code that scores it is imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.evaluation.options.blocks import ScoringOptions
from cranfield.formats.sniff import sniff_run
from cranfield.model import TestSet
from cranfield.ranking.file import FileReading

if TYPE_CHECKING:
    from cranfield.evaluation.values import Evaluation


def evaluate_files(
    testset: TestSet,
    runs: Sequence[Path],
    measures: Sequence[str] | None,
    options: ScoringOptions,
    *,
    primary: str | None = None,
) -> list[Evaluation]:
    """Score run files; systems of the same name take the name of their file, or are numbered.

    Args:
        testset: the judged queries.
        runs: at least one file, as `evaluate` takes it.
        measures: None, or none at all, is the default list.
        options: how each run is read and scored.
        primary: a measure that is computed too.
    """
    options = options.keeping(primary or next(iter(measures or ()), None))
    reading = _start(testset, runs[0], options)
    try:
        # Imports numpy, measures and statistics while the kernel reads.
        from cranfield.app.evaluate import evaluate_with_options, with_measure

        _ = testset.digest  # computed while the kernel reads
        first = runs[0] if reading is None else reading
        evaluations = [
            with_measure(evaluate_with_options(testset, run, measures or None, options), primary)
            for run in (first, *runs[1:])
        ]
    finally:
        if reading is not None:
            reading.close()
    names = [evaluation.name for evaluation in evaluations]
    if len(set(names)) < len(names):
        names = [path.stem for path in runs]
    if len(set(names)) < len(names):
        names = [f"{name}-{position}" for position, name in enumerate(names, start=1)]
    return [replace(evaluation, name=name) for evaluation, name in zip(evaluations, names, strict=True)]


def _start(testset: TestSet, run: Path, options: ScoringOptions) -> FileReading | None:
    """Begin to read a TREC run file; None for any other run, and where ratings are scored on several scales."""
    if testset.ratings or sniff_run(run, options.run_format).name != "trec":
        return None
    given, rules = options.resolved()
    if rules.repeats == "kept" or rules.orders != "one":
        return None
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
