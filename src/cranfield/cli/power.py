"""`cranfield power`: how many queries does a difference need, and what can so many show?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli import registries
from cranfield.cli.named import takes_runs
from cranfield.cli.option_groups import fields, option_groups
from cranfield.cli.shared import Output, TestSetFormatOption, deliver, load_and_evaluate, require_evidence

if TYPE_CHECKING:
    from cranfield.options.compare import CompareOptions
    from cranfield.options.scoring import ScoringOptions
    from cranfield.options.testset import TestSetOptions


@takes_runs("baseline", "candidate")
@option_groups
def power_command(
    testset: Annotated[Path, typer.Argument(metavar="TESTSET", help="Test set file or TREC qrels.")],
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="Baseline run.")],
    candidate: Annotated[
        Path,
        typer.Argument(
            metavar="CANDIDATE", help="Candidate run; the spread of the differences depends on both systems."
        ),
    ],
    *,
    measure: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--measure",
            metavar="MEASURE",
            help="Measure such as nDCG@10; default: the first default measure.",
            autocompletion=registries.measures,
        ),
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option("--difference", metavar="X", help="True difference to detect, in units of the measure."),
    ] = None,
    n_queries: Annotated[
        int | None,
        typer.Option("--n-queries", metavar="N", min=2, help="Number of queries; with --difference, report the power."),
    ] = None,
    power: Annotated[
        float,
        typer.Option("--power", metavar="SHARE", help="Desired power: the probability of detecting the difference."),
    ] = 0.8,
    compare: Annotated[CompareOptions, fields("alpha", "seed")],
    scores: ScoringOptions,
    output: Output,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Power analysis: how many queries does a difference need?

    From two runs: queries needed for a difference, or the difference that N queries can detect.
    """
    from cranfield.evaluation.power import plan
    from cranfield.reporting.documents.power import power_document

    runs, measures = [baseline, candidate], [measure] if measure else None
    first, second = load_and_evaluate(
        testset, runs, measures, testset_format=testset_format, options=options, scoring=scores
    )
    found = plan(
        first, second, difference=difference, queries=n_queries, alpha=compare.alpha, power=power, seed=compare.seed
    )
    deliver(power_document(found), output)
    require_evidence((first, second), output)
