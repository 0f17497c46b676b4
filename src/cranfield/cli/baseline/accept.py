"""`cranfield baseline accept`: make a run the baseline of the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.gate import ConfigArgument, FromOption, RunOption
from cranfield.cli.shared import Format, FormatOption, deliver, today


def accept_command(
    config: ConfigArgument = Path("cranfield.yaml"),
    *,
    folder: FromOption = None,
    run: RunOption = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason; it is written into the file.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change; write nothing.")] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the run, where the system is asked now.")
    ] = Path("cranfield-gate"),
    output: FormatOption = Format.TEXT,
) -> None:
    """Say what changes, then write the baseline file; commit it.

    Nothing else ever writes it: no run takes its own results for the bar. A pilot is refused, and so is a run with more
    failures than the gate allows.
    """
    from cranfield.project.baseline import accept
    from cranfield.project.gate import Source

    done = accept(
        config,
        out=out,
        accepted=today().isoformat(),
        reason=reason,
        source=Source(folder, run),
        dry_run=dry_run,
    )
    deliver(done.document, output, None)
    for path in done.written:
        typer.echo(f"wrote {path}", err=True)
    if dry_run:
        typer.echo("nothing was written: --dry-run", err=True)
