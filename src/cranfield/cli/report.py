"""`cranfield report`: a report of saved results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.option_groups import PairsOption, SortOption, option_groups
from cranfield.cli.shared import Output, deliver, today


@option_groups
def report_command(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="A results.json of `cranfield run`, or a JSON report of other commands that has the queries.",
        ),
    ],
    *,
    by_query: Annotated[bool, typer.Option("--by-query", help="Add a table of per-query results.")] = False,
    sort: SortOption = "mean",
    pairs: PairsOption = False,
    output: Output,
) -> None:
    """Make a report of saved results, in any form.

    Nothing is scored again. Times and outputs of the calls are those of the calls.json beside it.
    """
    from cranfield.reporting.documents.comparison import subject_document
    from cranfield.reporting.sections.subject import Subject

    subject = Subject.read(results, by_query=by_query, sort=sort, show_pairs=pairs, today=today())
    deliver(subject_document(subject), output.showing(by_query, pairs))
