"""`cranfield power`: how many queries does a difference need, and what can so many show?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.shared import (
    ConventionOption,
    DepthOption,
    DuplicatesChoice,
    Format,
    FormatOption,
    HtmlOption,
    MissingChoice,
    NoCacheOption,
    RunFormatOption,
    SeedOption,
    TestSetFormatOption,
    deliver,
    note_reader,
    one_stdin,
)
from cranfield.cli.testset_options import testset_options

if TYPE_CHECKING:
    from cranfield.project.testset_options import TestSetOptions


@testset_options
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
    convention: ConventionOption = "trec",
    missing: MissingChoice = None,
    duplicates: DuplicatesChoice = None,
    depth: DepthOption = None,
    no_cache: NoCacheOption = False,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
    testset_format: TestSetFormatOption = None,
    run_format: RunFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Say how many queries a difference needs, or what so many can show, from the spread between two runs."""
    from cranfield.evaluation.power import plan
    from cranfield.project.loading import load
    from cranfield.project.recipe import evaluate, make_names_unique
    from cranfield.reporting.documents.power import power_document

    runs = [baseline, candidate]
    one_stdin([testset, *runs])
    judged = load(testset, format=testset_format, options=options)
    note_reader(runs)
    evaluations = [
        evaluate(
            judged,
            run,
            measures=[measure] if measure else None,
            convention=convention,
            missing=missing.value if missing else None,
            duplicates=duplicates.value if duplicates else None,
            run_format=run_format,
            depth=depth,
            cache=not no_cache,
        )
        for run in runs
    ]
    first, second = make_names_unique(evaluations, runs)
    found = plan(first, second, difference=difference, queries=n_queries, alpha=alpha, power=power, seed=seed)
    deliver(power_document(found), output, html)
