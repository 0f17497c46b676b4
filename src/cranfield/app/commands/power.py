"""`cranfield power`: how many queries does a difference need, and what can so many show?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from cranfield.app.command import Report, fields, takes_runs
from cranfield.app.commands.shared import TestSetFormatOption, load_and_evaluate, void_of
from cranfield.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.options.compare import CompareOptions
    from cranfield.options.scoring import ScoringOptions
    from cranfield.options.testset import TestSetOptions


@takes_runs("baseline", "candidate")
def power_command(
    testset: Annotated[Path, Argument("Test set file or TREC qrels.", metavar="TESTSET")],
    baseline: Annotated[Path, Argument("Baseline run.", metavar="BASELINE")],
    candidate: Annotated[
        Path,
        Argument("Candidate run; the spread of the differences depends on both systems.", metavar="CANDIDATE"),
    ],
    *,
    measure: Annotated[
        str | None,
        Option(
            "Measure such as nDCG@10; default: the first default measure.",
            short="-m",
            metavar="MEASURE",
            choices="measures",
        ),
    ] = None,
    difference: Annotated[
        float | None,
        Option("True difference to detect, in units of the measure.", metavar="X"),
    ] = None,
    n_queries: Annotated[
        int | None,
        Option("Number of queries; with --difference, report the power.", metavar="N"),
        Ge(2),
    ] = None,
    power: Annotated[
        float,
        Option("Desired power: the probability of detecting the difference.", metavar="SHARE"),
    ] = 0.8,
    compare: Annotated[CompareOptions, fields("alpha", "seed")],
    scores: ScoringOptions,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> Report:
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
    return Report(document=power_document(found), void=void_of((first, second)))
