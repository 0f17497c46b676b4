"""`cranfield evaluate`: one or more runs against a test set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.shared import (
    ContrastOption,
    ConventionOption,
    DepthOption,
    DuplicatesChoice,
    Format,
    FormatOption,
    HtmlOption,
    MeasureOption,
    MissingChoice,
    NoCacheOption,
    RunFormatOption,
    TestSetFormatOption,
    contrasts_of,
    deliver,
    note_reader,
    one_stdin,
    show,
    today,
)
from cranfield.cli.testset_options import testset_options

if TYPE_CHECKING:
    from cranfield.evaluation.values import Evaluation
    from cranfield.project.testset_options import TestSetOptions


@testset_options
def evaluate_command(
    testset: Annotated[Path, typer.Argument(metavar="TESTSET", help="A test-set file, or TREC qrels.")],
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="TREC run files, or runs that `run` wrote.")],
    *,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
    missing: MissingChoice = None,
    duplicates: DuplicatesChoice = None,
    by_query: Annotated[bool, typer.Option("--by-query", help="A row for every query.")] = False,
    contrast: ContrastOption = None,
    depth: DepthOption = None,
    no_cache: NoCacheOption = False,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="DIR", help="Add the means to the history kept in this folder."),
    ] = None,
    testset_format: TestSetFormatOption = None,
    run_format: RunFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Score runs against a test set: means with their intervals, failures and judged share."""
    from cranfield.project.loading import load
    from cranfield.project.read_ahead import evaluate_files
    from cranfield.project.scoring_options import ScoringOptions
    from cranfield.ranking.scan import REPORTED_HITS

    contrasts = contrasts_of(contrast)
    one_stdin([testset, *runs])
    note_reader(runs)
    only_numbers = output is Format.JSON and html is None and not contrasts
    scoring = ScoringOptions(
        convention=convention,
        missing=missing.value if missing else None,
        duplicates=duplicates.value if duplicates else None,
        run_format=run_format,
        depth=depth,
        cache=not no_cache,
        keep=0 if only_numbers else REPORTED_HITS,
    )
    judged = load(testset, format=testset_format, options=options)
    evaluations = evaluate_files(judged, runs, measures or None, scoring)
    from cranfield.project.recipe import make_names_unique

    evaluations = make_names_unique(evaluations, runs)
    if history is not None:
        _remembered(history, evaluations)
    if only_numbers:
        from cranfield.reporting.payload import json_parts, payload_of

        show(json_parts(payload_of(evaluations)))
        return
    from cranfield.reporting import evaluation_document

    deliver(evaluation_document(evaluations, by_query=by_query, contrasts=contrasts, today=today()), output, html)


def _remembered(folder: Path, evaluations: list[Evaluation]) -> None:
    """Add to a history; the call asked for it, so that it fails where that is not possible."""
    from cranfield.errors import UsageError
    from cranfield.project.history import remember

    if not folder.is_dir():
        raise UsageError("this is no folder", path=str(folder), expected="the folder of a history, --history")
    if why := remember(folder, evaluations, evaluations[0].measures[0] if evaluations[0].measures else None):
        raise UsageError(why)
