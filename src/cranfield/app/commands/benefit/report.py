"""`cranfield benefit report`: a result for people, with the transcripts of the tasks where the treatment was worse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import Output, Report, Status
from cranfield.options.declaration import Argument

ResultArgument = Annotated[
    Path,
    Argument(
        "Folder of a scored experiment, a result: benefit_v1.0.json, or a folder of results: its newest version.",
        metavar="RUN|RESULT",
    ),
]


def report_command(source: ResultArgument, *, output: Output) -> Report:
    """Show the verdict of each stratum, what both arms cost, whether the tool was delivered, and what agents read.

    With --html and the folder of an experiment, the transcripts of both arms of every task where the treatment was worse are
    a second page beside it. Exit codes: 0; 4 the comparison is invalid.
    """
    from cranfield.app.benefit import loss_transcripts, read_source, transcripts_file
    from cranfield.reporting.documents.benefit import benefit_document

    result, run = read_source(source)
    page = transcripts_file(output.html) if output.html is not None and run is not None and result.losses else None
    document = benefit_document(result, "" if page is None else page.name)
    return Report(
        document=document,
        written=() if page is None or run is None else loss_transcripts(result, run, page),
        status=Status.INCONCLUSIVE if result.is_void else Status.OK,
    )
