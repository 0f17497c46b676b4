"""`cranfield golden status`: where every record of a run stands."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.app.command import Report, note
from cranfield.app.commands.golden.options import RunArgument


def status_command(run: RunArgument) -> Iterator[Report]:
    """Show where every record of a run stands: counts by state, the records with their reasons, and the next step.

    The counts add up to the number of drafts: every draft ends in exactly one state.
    """
    from cranfield.app.golden_review import after_status
    from cranfield.golden.folder import RunFolder
    from cranfield.golden.run import run_status
    from cranfield.reporting.documents.golden import run_document

    folder = RunFolder.open(run)
    status = run_status(folder)
    yield Report(document=run_document(status))
    note(f"next: {after_status(folder, status.records)}")
