"""`cranfield compare`: is the candidate better than the baseline?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.shaping import shaping_options
from cranfield.cli.shared import (
    EXIT_SYSTEM,
    ContrastOption,
    ConventionOption,
    DepthOption,
    DuplicatesChoice,
    FailOnOption,
    Format,
    FormatOption,
    HtmlOption,
    MeasureOption,
    MissingChoice,
    NoCacheOption,
    RunFormatOption,
    SeedOption,
    TestSetFormatOption,
    contrasts_of,
    deliver,
    leave,
    note_reader,
    one_stdin,
    today,
)

if TYPE_CHECKING:
    from cranfield.project.shaping import Shaping


@shaping_options
def compare_command(
    testset: Annotated[Path, typer.Argument(metavar="TESTSET", help="A test-set file, or TREC qrels.")],
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="The run of the system that is.")],
    candidate: Annotated[
        Path, typer.Argument(metavar="CANDIDATE", help="The run of the system that would replace it.")
    ],
    *,
    measures: MeasureOption = None,
    primary: Annotated[
        str | None, typer.Option("--primary", metavar="MEASURE", help="Measure of the verdict; default the first.")
    ] = None,
    test: Annotated[
        str,
        typer.Option(
            "--test",
            metavar="NAME",
            help="Procedure of the verdict and its interval: permutation, t, wilcoxon, sign or bootstrap.",
        ),
    ] = "permutation",
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin", metavar="X", help="Largest difference that does not matter; without it nothing is equivalent."
        ),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", metavar="X", help="Share of false alarms to accept.")] = 0.05,
    seed: SeedOption = 0,
    convention: ConventionOption = "trec",
    missing: MissingChoice = None,
    duplicates: DuplicatesChoice = None,
    contrast: ContrastOption = None,
    depth: DepthOption = None,
    no_cache: NoCacheOption = False,
    max_failed: Annotated[
        float, typer.Option("--max-failed", metavar="SHARE", help="More failed queries than this, and it is invalid.")
    ] = 0.1,
    min_judged: Annotated[
        float | None, typer.Option("--min-judged", metavar="SHARE", help="Less judged than this, and it is invalid.")
    ] = None,
    fail_on: FailOnOption = None,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
    testset_format: TestSetFormatOption = None,
    run_format: RunFormatOption = None,
    shaping: Shaping,
) -> None:
    """Compare two runs query by query, and reach a verdict with its evidence."""
    from cranfield.evaluation.values import Limits
    from cranfield.project.recipe import compare, evaluate, load, told_apart, with_primary
    from cranfield.reporting import comparison_document

    contrasts = contrasts_of(contrast)
    judged = load(testset, format=testset_format, shaping=shaping)
    runs = [baseline, candidate]
    one_stdin([testset, *runs])
    note_reader(runs)
    evaluations = [
        with_primary(
            evaluate(
                judged,
                run,
                measures=measures or None,
                convention=convention,
                missing=missing.value if missing else None,
                duplicates=duplicates.value if duplicates else None,
                run_format=run_format,
                depth=depth,
                cache=not no_cache,
            ),
            primary,
        )
        for run in runs
    ]
    comparison = compare(
        *told_apart(evaluations, runs),
        primary=primary,
        test=test,
        alpha=alpha,
        margin=margin,
        seed=seed,
        limits=Limits(max_failed, min_judged),
    )
    deliver(comparison_document(comparison, contrasts=contrasts, today=today()), output, html)
    leave(comparison.verdict.name, fail_on)
    if comparison.verdict.name == "invalid":
        raise typer.Exit(EXIT_SYSTEM)
