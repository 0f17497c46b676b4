"""`cranfield benefit status`: where the cells of an experiment stand."""

from __future__ import annotations

from cranfield.cli.benefit.score import ExperimentArgument
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver


@option_groups
def status_command(run: ExperimentArgument, *, output: Output) -> None:
    """Show where an experiment stands: cells by arm and end, complete pairs, errors, tokens, and calls of the tools."""
    from cranfield.benefit.folder import ExperimentFolder
    from cranfield.benefit.status import status_of
    from cranfield.reporting.documents.benefit_run import experiment_status_document

    deliver(experiment_status_document(status_of(ExperimentFolder.open(run))), output)
