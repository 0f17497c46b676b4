"""`cranfield testset stats`: what a test set holds, counted."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli.shared import Format, FormatOption, deliver
from cranfield.cli.testset.common import SetArgument, SetFormatOption, load_set


def stats_command(
    testset: SetArgument,
    *,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="KEY",
            help="Stratum to cross-tabulate; repeat for more; default: all strata that group queries.",
        ),
    ] = None,
    output: FormatOption = Format.TEXT,
    testset_format: SetFormatOption = None,
) -> None:
    """Count the queries, judgments, grades and strata of a test set. Pairs of strata are cross-tabulated."""
    from itertools import combinations

    from cranfield.errors import UsageError
    from cranfield.reporting.documents.testset import statistics_document
    from cranfield.testsets.drawing import check_keys
    from cranfield.testsets.statistics import statistics

    judged = load_set(testset, testset_format)
    check_keys(judged, by or ())
    if by and len(set(by)) == 1:
        raise UsageError(f"--by {by[0]} is one stratum", expected="two or more to cross; each alone is counted anyway")
    deliver(statistics_document(statistics(judged, list(combinations(by, 2)) if by else None)), output, None)
