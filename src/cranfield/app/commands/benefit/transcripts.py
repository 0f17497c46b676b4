"""`cranfield benefit transcripts`: what the agents of an experiment were sent, called, read and answered, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import note, say
from cranfield.app.commands.benefit.score import ExperimentArgument
from cranfield.options.declaration import Option


def transcripts_command(
    run: ExperimentArgument,
    *,
    html: Annotated[Path, Option("HTML file to write.", metavar="FILE")],
    task: Annotated[list[str] | None, Option("Only these tasks; may be repeated.", metavar="ID")] = None,
    arm: Annotated[str | None, Option("Only `treatment` or `control`.", metavar="ARM")] = None,
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
    say(f"wrote {html}: {n_of(n, 'transcripts')}")
    if without:
        note(f"{n_of(len(without), 'runs')} without a transcript: {first_of(without)}")
