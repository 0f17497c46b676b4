"""`cranfield testset diff`: what changed between two versions, and what it does to scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.option_groups import ConventionOption
from cranfield.cli.shared import Format, FormatOption, MeasureOption, deliver
from cranfield.cli.testset.common import load_set


def diff_command(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The version before.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The version after.")],
    *,
    runs: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="[NAME=]RUN", help="A run whose means on both are shown; repeat for more."),
    ] = None,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
    output: FormatOption = Format.TEXT,
) -> None:
    """Say what changed between two versions. With runs: how their means move because of it."""
    from cranfield.reporting.documents.testset_versions import difference_document
    from cranfield.testsets.diff import ScoreMove, diff

    before, after = load_set(old, ask=bool(runs)), load_set(new, ask=bool(runs))
    moves: tuple[ScoreMove, ...] = ()
    if runs:
        from cranfield.project.versions import named_runs, score_moves

        moves = score_moves(before, after, named_runs(runs), measures=measures or None, convention=convention)
    deliver(difference_document(diff(before, after), moves), output, None)
