"""Runs that are read in parts, for commands: the summary and its report, with progress on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cranfield.app.command import note
from cranfield.base.errors import Problem, UsageError
from cranfield.scale.runs import LARGE_ROWS, evaluate_large, is_large, rows_of

if TYPE_CHECKING:
    from cranfield.evaluation.options.blocks import CompareOptions, LargeOptions, ScoringOptions, TestSetOptions
    from cranfield.reporting.document import Document
    from cranfield.scale.checkpoint import Pace
    from cranfield.scale.judgments import JudgmentTable
    from cranfield.scale.values import ScaleSummary


__all__ = ["LARGE_ROWS", "document_of", "evaluate_large_runs", "is_large", "rows_of"]
PLAIN_INTERVAL_S = 5.0
"""A log has a line this often."""
STEPS = {"find": "reading, first pass", "count": "reading, second pass"}


def evaluate_large_runs(
    testset: Path,
    runs: Sequence[Path],
    measures: Sequence[str] | None,
    testset_format: str | None,
    options: TestSetOptions,
    scoring: ScoringOptions,
    large: LargeOptions,
    *,
    refused: Mapping[str, object],
    compare: CompareOptions | None = None,
) -> ScaleSummary:
    """Evaluate runs in parts, with progress on stderr.

    Args:
        testset: of graded document ids.
        runs: files, folders and patterns.
        measures: None is the default list.
        testset_format: of the test set.
        options: of the test set.
        scoring: how each run is scored.
        large: how it is read.
        refused: options of the command that runs which are read in parts do not have, with their values.
        compare: what was declared of the comparison.
    """
    given = [name for name, value in refused.items() if value]
    if given:
        hint = "leave it out; the values of each query are in the folder of --out"
        raise UsageError(
            [Problem(f"{name} cannot be used with runs that are read in parts", hint=hint) for name in given]
        )

    progress = RowProgress(sys.stderr)
    try:
        return evaluate_large(
            lambda: judgments_of(testset, testset_format, options),
            runs,
            measures or None,
            scoring,
            large,
            compare=compare,
            on_progress=progress,
        )
    except KeyboardInterrupt:
        progress.finish()
        again = "the same command resumes from here" if large.out else "with --out DIR it could be resumed"
        if large.engine == "spark":
            again = "the same command starts from the beginning"
        note(f"interrupted: {again}")
        raise
    finally:
        progress.finish()


def document_of(summary: ScaleSummary) -> Document:
    """The report of a summary."""
    from cranfield.scale.report import scale_document

    return scale_document(summary)


def judgments_of(testset: Path, testset_format: str | None, options: TestSetOptions) -> JudgmentTable:
    """The judgments of a test set, read in columns where its format allows that."""
    from cranfield.app.loading import load, named_testset
    from cranfield.evaluation.options.blocks import NO_OPTIONS
    from cranfield.scale.judgment_files import read_judgments
    from cranfield.scale.judgments import JudgmentTable

    table = read_judgments(named_testset(testset), format=testset_format) if options == NO_OPTIONS else None
    if table is None:
        table = JudgmentTable.of_testset(load(testset, format=testset_format, options=options))
    return table


class RowProgress:
    """A redrawn line on a terminal, a line now and then in a log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._shown = time.monotonic()
        self._width = 0

    def __call__(self, pace: Pace) -> None:
        """Show how far it is."""
        if self._is_due():
            self._show(line_of(pace))

    def count(self, things: str, n: int) -> None:
        """Show how many were read, where their number is not known."""
        if self._is_due():
            self._show(f"reading: {n:,} {things}")

    def _is_due(self) -> bool:
        now = time.monotonic()
        if not self._live and now < self._shown + PLAIN_INTERVAL_S:
            return False
        self._shown = now
        return True

    def _show(self, line: str) -> None:
        end = "" if self._live else "\n"
        start = "\r" if self._live else ""
        self._stream.write(f"{start}{line.ljust(self._width)}{end}")
        self._stream.flush()
        self._width = len(line)

    def finish(self) -> None:
        """Take the line away."""
        if self._live and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0


def line_of(pace: Pace) -> str:
    """`reading, first pass: 31 % of 40,000,000 rows, 9,200,000 rows/s, 3 s left`."""
    share = pace.done / pace.total if pace.total else 1.0
    text = f"{STEPS.get(pace.step, pace.step)}: {share:.0%} of {pace.total:,} rows"
    left = pace.seconds_left
    if left is None:
        return text
    minutes, seconds = divmod(round(left), 60)
    spoken = f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
    return f"{text}, {round(pace.rate, -5):,.0f} rows/s, {spoken} left"
