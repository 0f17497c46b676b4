"""`cranfield agreement`: how far the raters of a test set agree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.option_groups import RULES, SCALES
from cranfield.cli.shared import Format, FormatOption, HtmlOption, SeedOption, TestSetFormatOption, deliver


def agreement_command(
    testset: Annotated[Path, typer.Argument(metavar="TESTSET", help="A test set with ratings, or qrels by judge.")],
    *,
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help=f"Consensus to show: {RULES}; default the set's own, or median.",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option("--scale", metavar="SCALE", help=f"What the ratings are on: {SCALES}."),
    ] = None,
    to_scale: Annotated[
        str | None, typer.Option("--to-scale", metavar="SCALE", help="Map each rating to this scale first.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="STRATUM", help="Show the agreement within each value of a stratum.")
    ] = None,
    seed: SeedOption = 0,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
    testset_format: TestSetFormatOption = None,
) -> None:
    """Say how far raters agree: coverage, kappas and alphas with intervals, the largest disagreements."""
    from cranfield.formats.sniff import read_testset
    from cranfield.reporting.documents.agreement import agreement_document
    from cranfield.testsets.raters import rater_report

    report = rater_report(read_testset(testset, testset_format), rule=rule, scale=scale, to=to_scale, by=by, seed=seed)
    deliver(agreement_document(report), output, html)
