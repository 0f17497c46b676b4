"""`cranfield compare`: is the candidate better than the baseline?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.shared import (
    ConventionOption,
    DuplicatesChoice,
    DuplicatesOption,
    FailOnOption,
    Format,
    FormatOption,
    HtmlOption,
    MeasureOption,
    MissingChoice,
    MissingOption,
    RunFormatOption,
    SeedOption,
    TestSetFormatOption,
    deliver,
    leave,
)


def compare_command(
    testset: Annotated[Path, typer.Argument(help="A test-set file, or TREC qrels.")],
    baseline: Annotated[Path, typer.Argument(help="The run of the system that is.")],
    candidate: Annotated[Path, typer.Argument(help="The run of the system that would replace it.")],
    *,
    measures: MeasureOption = None,
    primary: Annotated[str | None, typer.Option("--primary", help="Measure of the verdict; default the first.")] = None,
    test: Annotated[
        str,
        typer.Option(
            "--test", help="Procedure of the verdict and its interval: permutation, t, wilcoxon, sign or bootstrap."
        ),
    ] = "permutation",
    margin: Annotated[
        float | None,
        typer.Option("--margin", help="Largest difference that does not matter; without it nothing is equivalent."),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", help="Share of false alarms to accept.")] = 0.05,
    seed: SeedOption = 0,
    convention: ConventionOption = "trec",
    missing: MissingChoice = MissingOption.ZERO,
    duplicates: DuplicatesChoice = DuplicatesOption.ERROR,
    fail_on: FailOnOption = None,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
    testset_format: TestSetFormatOption = None,
    run_format: RunFormatOption = None,
) -> None:
    """Compare two runs query by query, and reach a verdict with its evidence."""
    from cranfield.project.recipe import compare, evaluate, load, told_apart, with_primary
    from cranfield.reporting import comparison_document

    judged = load(testset, format=testset_format)
    runs = [baseline, candidate]
    evaluations = [
        evaluate(
            judged,
            run,
            measures=with_primary(measures, primary),
            convention=convention,
            missing=missing.value,
            duplicates=duplicates.value,
            run_format=run_format,
        )
        for run in runs
    ]
    comparison = compare(
        *told_apart(evaluations, runs), primary=primary, test=test, alpha=alpha, margin=margin, seed=seed
    )
    deliver(comparison_document(comparison), output, html)
    leave(comparison.verdict.name, fail_on)
