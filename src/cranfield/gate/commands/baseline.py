"""Accept a run as the baseline of a gate, or show the baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Report, takes_runs
from cranfield.app.commands.shared import today
from cranfield.evaluation.options.declaration import Option
from cranfield.gate.commands.gate import ConfigArgument, FromOption, ResumeOption, RunOption

if TYPE_CHECKING:
    from cranfield.app.loading import SetOverrides

SUBCOMMANDS = dict.fromkeys(("accept", "show"), __name__)


@takes_runs("run")
def accept_command(
    config: ConfigArgument = Path("cranfield.yaml"),
    *,
    folder: FromOption = None,
    run: RunOption = None,
    resume: ResumeOption = None,
    reason: Annotated[str, Option("Reason for the change, stored in the baseline file.", metavar="TEXT")] = "",
    dry_run: Annotated[bool, Option("Show what would change without writing anything.")] = False,
    out: Annotated[
        Path,
        Option("Output folder for the run, if the system is queried now.", metavar="DIR", refuses_link=True),
    ] = Path("cranfield-gate"),
    overrides: SetOverrides,
) -> Report:
    """Show the changes and write the baseline file. Commit this file.

    No other command writes the baseline file. Pilots, and runs with more failures than the gate allows, are rejected.
    """
    from cranfield.gate.use_cases.baseline import accept
    from cranfield.gate.use_cases.gate import AnswerSource

    done = accept(
        config,
        out=out,
        accepted=today().isoformat(),
        reason=reason,
        source=AnswerSource(folder, run, resume),
        dry_run=dry_run,
        overrides=overrides,
    )
    notes = ["nothing was written: --dry-run"] if dry_run else []
    return Report(document=done.document, written=done.written, notes=notes)


def show_command(
    config: ConfigArgument = Path("cranfield.yaml"),
    *,
    baseline_ref: Annotated[
        str | None,
        Option("Read the baseline from this git ref, such as origin/main.", metavar="REF"),
    ] = None,
) -> Report:
    """Show the accepted baseline: system, date and means."""
    from cranfield.gate.use_cases.baseline import show

    return Report(document=show(config, baseline_ref))
