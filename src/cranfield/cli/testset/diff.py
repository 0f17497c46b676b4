"""`cranfield testset diff`: what changed between two versions, and what it does to scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.option_groups import ConventionOption
from cranfield.cli.shared import Format, FormatOption, MeasureOption, deliver
from cranfield.cli.testset.common import load_set


def diff_command(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Old version.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="New version.")],
    *,
    runs: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="[NAME=]RUN", help="Score this run on both versions; repeat for more."),
    ] = None,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the changes between two versions of a test set. With --run, also show how the means of the runs change."""
    from cranfield.reporting.documents.testset_versions import difference_document
    from cranfield.testsets.diff import ScoreMove, diff

    before, after = load_set(old, ask=bool(runs)), load_set(new, ask=bool(runs))
    moves: tuple[ScoreMove, ...] = ()
    if runs:
        from cranfield.project.versions import named_runs, score_moves

        moves = score_moves(before, after, named_runs(runs), measures=measures or None, convention=convention)
    deliver(difference_document(diff(before, after), moves), output, None)
