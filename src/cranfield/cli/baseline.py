"""Accept a run as the baseline of a gate, or show the baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.gate import ConfigArgument, FromOption, ResumeOption, RunOption
from cranfield.cli.named import takes_runs
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver, refuse_planted_folder, today

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides

SUBCOMMANDS = dict.fromkeys(("accept", "show"), __name__)


@takes_runs("run")
@option_groups
def accept_command(
    config: ConfigArgument = Path("cranfield.yaml"),
    *,
    folder: FromOption = None,
    run: RunOption = None,
    resume: ResumeOption = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason for the change, stored in the baseline file.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change without writing anything.")
    ] = False,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Output folder for the run, if the system is queried now.",
            callback=refuse_planted_folder,
        ),
    ] = Path("cranfield-gate"),
    output: Output,
    overrides: SetOverrides,
) -> None:
    """Show what changes and write the baseline file, which is to be committed.

    No other command writes the baseline file. Pilots, and runs with more failures than the gate allows, are rejected.
    """
    from cranfield.app.baseline import accept
    from cranfield.app.gate import Source

    done = accept(
        config,
        out=out,
        accepted=today().isoformat(),
        reason=reason,
        source=Source(folder, run, resume),
        dry_run=dry_run,
        overrides=overrides,
    )
    deliver(done.document, output, written=done.written)
    if dry_run:
        typer.echo("nothing was written: --dry-run", err=True)


@option_groups
def show_command(
    config: ConfigArgument = Path("cranfield.yaml"),
    *,
    baseline_ref: Annotated[
        str | None,
        typer.Option("--baseline-ref", metavar="REF", help="Read the baseline from this git ref, such as origin/main."),
    ] = None,
    output: Output,
) -> None:
    """Show the accepted baseline: system, date and means."""
    from cranfield.app.baseline import show

    deliver(show(config, baseline_ref), output)
