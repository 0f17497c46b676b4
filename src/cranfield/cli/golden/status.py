"""`cranfield golden status`: where every record of a run stands."""

from __future__ import annotations

import typer

from cranfield.cli.golden.options import RunArgument
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver


@option_groups
def status_command(run: RunArgument, *, output: Output) -> None:
    """Show where every record of a run stands: counts by state, the records with their reasons, and the next step.

    The counts add up to the number of drafts: every draft ends in exactly one state.
    """
    from cranfield.app.golden_review import after_status
    from cranfield.golden.folder import RunFolder
    from cranfield.golden.run import run_status
    from cranfield.reporting.documents.golden import run_document

    folder = RunFolder.open(run)
    status = run_status(folder)
    deliver(run_document(status), output)
    typer.echo(f"next: {after_status(folder, status.records)}", err=True)
