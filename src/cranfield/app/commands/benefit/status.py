"""`cranfield benefit status`: where the cells of an experiment stand."""

from __future__ import annotations

from cranfield.app.command import Report
from cranfield.app.commands.benefit.score import ExperimentArgument


def status_command(run: ExperimentArgument) -> Report:
    """Show where an experiment stands: cells by arm and end, complete pairs, errors, tokens, and calls of the tools."""
    from cranfield.benefit.folder import ExperimentFolder
    from cranfield.benefit.status import status_of
    from cranfield.reporting.documents.benefit_run import experiment_status_document

    return Report(document=experiment_status_document(status_of(ExperimentFolder.open(run))))
