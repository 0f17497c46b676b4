"""`cranfield run`: collect, evaluate, compare, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.shared import EXIT_SYSTEM, FailOnOption, Format, FormatOption, SeedOption, deliver, leave


def run_command(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The configuration: test set, systems, measures.")
    ] = Path("cranfield.yaml"),
    *,
    systems: Annotated[
        list[str] | None,
        typer.Option("--system", metavar="NAME", help="Only this system; twice: baseline, then candidate."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for results.json, report.html, report.md and runs.")
    ] = Path("cranfield-out"),
    seed: SeedOption = 0,
    pilot: Annotated[bool, typer.Option("--pilot", help="Stamp everything made as not for the record.")] = False,
    fail_on: FailOnOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Ask every query of every system, score, compare and report.

    An interrupted collection is kept: the same command goes on from there.
    """
    from cranfield.project.job import run_job

    job = run_job(config, out=out, systems=systems or None, seed=seed, pilot=pilot)
    deliver(job.document, output, None)
    for path in job.written:
        typer.echo(f"wrote {path}", err=True)
    if job.comparison is not None:
        leave(job.comparison.verdict.name, fail_on)
    if job.broken_limits:
        raise typer.Exit(EXIT_SYSTEM)
