"""`cranfield benefit result`: the result of an experiment as a versioned file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.benefit.score import ExperimentArgument
from cranfield.cli.ending import EXIT_INCONCLUSIVE
from cranfield.cli.shared import refuse_planted_folder

OutOption = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder of results.", callback=refuse_planted_folder)
]


def result_command(run: ExperimentArgument, *, out: OutOption = Path("benefit-results")) -> None:
    """Write the result of a scored experiment, `benefit_v1.0.json`, and add it to the history of its folder.

    Another run of the same plan is the next minor version. Exit codes: 0 written; 4 written, and the comparison is invalid.
    """
    from cranfield.app.benefit import publish, result_of
    from cranfield.words import printable

    result = result_of(run)
    path, not_remembered = publish(result, out)
    for row in () if result.is_void else result.first_strata:
        name = ", ".join(row.stratum.values()) or "all tasks"
        typer.echo(printable(f"{name}: {row.verdict.value}{f' ({row.claims})' if row.claims else ''}. {row.reason}"))
    typer.echo(printable(result.sentence if result.is_void else f"Over all tasks: {result.sentence}"))
    for each in result.validity:
        if not each.is_void:
            typer.echo(printable(f"caveat: {each.message}"))
    typer.echo(f"wrote {path}", err=True)
    if not_remembered:
        typer.echo(not_remembered, err=True)
    if result.is_void:
        raise typer.Exit(EXIT_INCONCLUSIVE)
