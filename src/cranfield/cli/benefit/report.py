"""`cranfield benefit report`: a result for people, with the transcripts of the tasks where the treatment was worse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.ending import EXIT_INCONCLUSIVE
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver

ResultArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN|RESULT",
        help="Folder of a scored experiment, a result: benefit_v1.0.json, or a folder of results: its newest version.",
    ),
]


@option_groups
def report_command(source: ResultArgument, *, output: Output) -> None:
    """Show the verdict of each stratum, what both arms cost, whether the tool was delivered, and what agents read.

    With --html and the folder of an experiment, the transcripts of both arms of every task where the treatment was worse are
    a second page beside it. Exit codes: 0; 4 the comparison is invalid.
    """
    from cranfield.app.benefit import loss_transcripts, read_source, transcripts_file
    from cranfield.reporting.documents.benefit import benefit_document

    result, run = read_source(source)
    page = transcripts_file(output.html) if output.html is not None and run is not None and result.losses else None
    document = benefit_document(result, "" if page is None else page.name)
    deliver(document, output, written=() if page is None or run is None else loss_transcripts(result, run, page))
    if result.is_void:
        raise typer.Exit(EXIT_INCONCLUSIVE)
