"""`cranfield benefit history`: the results of a folder over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver
from cranfield.errors import UsageError

FolderArgument = Annotated[Path, typer.Argument(metavar="[DIR]", help="Folder of results, with its history.")]


@option_groups
def history_command(folder: FolderArgument = Path("benefit-results"), *, output: Output) -> None:
    """Show the results of experiments over time: lift of success, tokens and verdict of each stratum, by version.

    Results of another plan or of other labels are not joined, and an invalid one is marked and not drawn.
    """
    import os

    from cranfield.app.benefit import read_results
    from cranfield.formats.io.files import shown
    from cranfield.reporting.documents.benefit_history import benefit_history_document

    history = read_results(folder)
    if not history.results and not history.damaged:
        raise UsageError(
            "no result of an experiment", path=shown(folder), hint="`cranfield benefit result RUN` writes one"
        )
    start = Path() if output.html is None else output.html.parent
    document = benefit_history_document(
        history, lambda past: Path(os.path.relpath(folder / past.file, start)).as_posix()
    )
    deliver(document, output)
