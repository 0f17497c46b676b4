"""`cranfield baseline show`: what the baseline of the gate says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.gate import ConfigArgument
from cranfield.cli.shared import Format, FormatOption, deliver


def show_command(
    config: ConfigArgument = Path("cranfield.yaml"),
    *,
    baseline_ref: Annotated[
        str | None,
        typer.Option("--baseline-ref", metavar="REF", help="Read the baseline from this git ref, such as origin/main."),
    ] = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the accepted baseline: system, date and means."""
    from cranfield.project.baseline import show

    deliver(show(config, baseline_ref), output, None)
