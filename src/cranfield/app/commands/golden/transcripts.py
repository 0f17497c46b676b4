"""`cranfield golden transcripts`: what each role was sent, called, read and answered, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import say
from cranfield.app.commands.golden.options import RunArgument
from cranfield.options.declaration import Option


def transcripts_command(
    run: RunArgument,
    *,
    html: Annotated[Path, Option("HTML file to write.", metavar="FILE")],
    record: Annotated[list[str] | None, Option("Only these records; may be repeated.", metavar="ID")] = None,
) -> None:
    """Write the transcripts of a run, or of `golden check`, as one HTML file, by record and role; it requests nothing from the network."""
    from cranfield.agents.record_folder import read_lines
    from cranfield.errors import UnknownNameError
    from cranfield.formats.io.files import write_text
    from cranfield.golden.folder import RunFolder, Step
    from cranfield.golden.outcomes import TranscriptLine
    from cranfield.golden.records import SCHEMA_VERSION
    from cranfield.reporting.transcripts import transcripts_page

    path = run / Step.TRANSCRIPTS
    lines = (
        read_lines(path, TranscriptLine, SCHEMA_VERSION)
        if path.is_file()
        else RunFolder.open(run).read(Step.TRANSCRIPTS, TranscriptLine)
    )
    known = list(dict.fromkeys(line.query_id for line in lines))
    for name in record or ():
        if name not in known:
            raise UnknownNameError.among("record", name, known)
    shown = [line.model_dump(mode="json") for line in lines if not record or line.query_id in record]
    write_text(html, [transcripts_page(shown, f"Transcripts of {run.resolve().name}")])
    say(f"wrote {html}")
