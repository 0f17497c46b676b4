"""`cranfield power`: how many queries does a difference need, and what can so many show?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import (
    Format,
    FormatOption,
    HtmlOption,
    SeedOption,
    TestSetFormatOption,
    deliver,
    load_and_evaluate,
)

if TYPE_CHECKING:
    from cranfield.project.scoring_options import ScoringOptions
    from cranfield.project.testset_options import TestSetOptions


@option_groups
def power_command(
    testset: Annotated[Path, typer.Argument(metavar="TESTSET", help="A test-set file, or TREC qrels.")],
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="A run, such as the baseline's.")],
    candidate: Annotated[
        Path,
        typer.Argument(metavar="CANDIDATE", help="Another run: how far differences spread depends on the two systems."),
    ],
    *,
    measure: Annotated[
        str | None,
        typer.Option(
            "-m", "--measure", metavar="MEASURE", help="A measure such as nDCG@10; default the first of the list."
        ),
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option("--difference", metavar="X", help="True difference to be found, in units of the measure."),
    ] = None,
    n_queries: Annotated[
        int | None,
        typer.Option(
            "--n-queries", metavar="N", min=2, help="Number of queries; with --difference: how often it is found."
        ),
    ] = None,
    power: Annotated[
        float, typer.Option("--power", metavar="SHARE", help="How often the difference should be found.")
    ] = 0.8,
    alpha: Annotated[float, typer.Option("--alpha", metavar="X", help="Significance level (alpha).")] = 0.05,
    seed: SeedOption = 0,
    scoring: ScoringOptions,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Say how many queries a difference needs, or what so many can show, from the spread between two runs."""
    from cranfield.evaluation.power import plan
    from cranfield.reporting.documents.power import power_document

    first, second = load_and_evaluate(
        testset,
        [baseline, candidate],
        [measure] if measure else None,
        testset_format=testset_format,
        options=options,
        scoring=scoring,
    )
    found = plan(first, second, difference=difference, queries=n_queries, alpha=alpha, power=power, seed=seed)
    deliver(power_document(found), output, html)
