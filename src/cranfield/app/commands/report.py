"""`cranfield report`: a report of saved results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import Report
from cranfield.app.commands.shared import PairsOption, SortOption, today
from cranfield.options.declaration import Argument, Option


def report_command(
    results: Annotated[
        Path,
        Argument(
            "A results.json of `cranfield run`, or a JSON report of other commands that has the queries.",
            metavar="RESULTS",
        ),
    ],
    *,
    by_query: Annotated[bool, Option("Add a table of per-query results.")] = False,
    sort: SortOption = "mean",
    pairs: PairsOption = False,
) -> Report:
    """Make a report of saved results, in any form.

    Nothing is scored again. Times and outputs of the calls are those of the calls.json beside it.
    """
    from cranfield.reporting.documents.comparison import subject_document
    from cranfield.reporting.sections.subject import Subject

    subject = Subject.read(results, by_query=by_query, sort=sort, show_pairs=pairs, today=today())
    return Report(document=subject_document(subject), full=any((by_query, pairs)))
