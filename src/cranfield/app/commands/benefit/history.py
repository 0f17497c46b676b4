"""`cranfield benefit history`: the results of a folder over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import Output, Report
from cranfield.errors import UsageError
from cranfield.options.declaration import Argument

FolderArgument = Annotated[Path, Argument("Folder of results, with its history.", metavar="[DIR]")]


def history_command(folder: FolderArgument = Path("benefit-results"), *, output: Output) -> Report:
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
    return Report(document=document)
