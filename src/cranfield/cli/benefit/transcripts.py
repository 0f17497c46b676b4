"""`cranfield benefit transcripts`: what the agents of an experiment were sent, called, read and answered, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.benefit.score import ExperimentArgument


def transcripts_command(
    run: ExperimentArgument,
    *,
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="HTML file to write.")],
    task: Annotated[
        list[str] | None, typer.Option("--task", metavar="ID", help="Only these tasks; may be repeated.")
    ] = None,
    arm: Annotated[str | None, typer.Option("--arm", metavar="ARM", help="Only `treatment` or `control`.")] = None,
) -> None:
    """Write the transcripts of an experiment as one HTML file, by task, seed and arm; it requests nothing from the network."""
    from cranfield.app.benefit import write_transcripts
    from cranfield.benefit.plan import ArmRole
    from cranfield.errors import UnknownNameError
    from cranfield.words import first_of, n_of

    if arm is not None and arm not in set(ArmRole):
        raise UnknownNameError.among("arm", arm, list(ArmRole))
    arms = tuple(ArmRole) if arm is None else (ArmRole(arm),)
    n, without = write_transcripts(run, html, f"Transcripts of {run.resolve().name}", tasks=task or (), arms=arms)
    typer.echo(f"wrote {html}: {n_of(n, 'transcripts')}")
    if without:
        typer.echo(f"{n_of(len(without), 'runs')} without a transcript: {first_of(without)}", err=True)
