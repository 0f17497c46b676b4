"""`cranfield benefit result`: the result of an experiment as a versioned file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import Exit, Status, note, say
from cranfield.app.commands.benefit.score import ExperimentArgument
from cranfield.options.declaration import Option

OutOption = Annotated[Path, Option("Folder of results.", flag="--out", metavar="DIR", refuses_link=True)]


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
        say(printable(f"{name}: {row.verdict.value}{f' ({row.claims})' if row.claims else ''}. {row.reason}"))
    say(printable(result.sentence if result.is_void else f"Over all tasks: {result.sentence}"))
    for each in result.validity:
        if not each.is_void:
            say(printable(f"caveat: {each.message}"))
    note(f"wrote {path}")
    if not_remembered:
        note(not_remembered)
    if result.is_void:
        raise Exit(Status.INCONCLUSIVE)
