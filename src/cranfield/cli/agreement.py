"""`cranfield agreement`: how far the raters of a test set agree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.shared import Format, FormatOption, HtmlOption, SeedOption, TestSetFormatOption, deliver
from cranfield.model.testset_options import RULES, SCALES


def agreement_command(
    testset: Annotated[Path, typer.Argument(metavar="TESTSET", help="Test set with ratings, or qrels by judge.")],
    *,
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help=f"Consensus rule: {RULES}; default: the rule of the test set, or median.",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option("--scale", metavar="SCALE", help=f"Scale of the ratings: {SCALES}."),
    ] = None,
    to_scale: Annotated[
        str | None, typer.Option("--to-scale", metavar="SCALE", help="Convert the ratings to this scale first.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="STRATUM", help="Also show the agreement for each value of this stratum."),
    ] = None,
    seed: SeedOption = 0,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
    testset_format: TestSetFormatOption = None,
) -> None:
    """Report rater agreement: coverage, kappas and alphas with confidence intervals, largest disagreements."""
    from cranfield.formats.sniff import read_testset
    from cranfield.reporting.documents.agreement import agreement_document
    from cranfield.testsets.raters import rater_report

    report = rater_report(read_testset(testset, testset_format), rule=rule, scale=scale, to=to_scale, by=by, seed=seed)
    deliver(agreement_document(report), output, html)
