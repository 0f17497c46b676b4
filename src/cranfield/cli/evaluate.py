"""`cranfield evaluate`: one or more runs against a test set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.named import takes_runs
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import (
    ContrastOption,
    FloorOption,
    Format,
    MeansOption,
    MeasureOption,
    Output,
    TestSetFormatOption,
    check_means_file,
    contrasts_of,
    deliver,
    floors_exit_code,
    load_and_evaluate,
    require_evidence,
    show,
    today,
    write_means,
)

if TYPE_CHECKING:
    from cranfield.app.large_runs import LargeOptions
    from cranfield.evaluation.values import Evaluation
    from cranfield.options.scoring import ScoringOptions
    from cranfield.options.testset import TestSetOptions
    from cranfield.reporting import Document


@takes_runs("runs")
@option_groups
def evaluate_command(
    testset: Annotated[Path, typer.Argument(metavar="TESTSET", help="Test set file or TREC qrels.")],
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run files, or folders and quoted patterns of Parquet files.")
    ],
    *,
    measures: MeasureOption = None,
    by_query: Annotated[bool, typer.Option("--by-query", help="Add a table of per-query results.")] = False,
    contrast: ContrastOption = None,
    floor: FloorOption = None,
    scoring: ScoringOptions,
    large: LargeOptions,
    output: Output,
    means: MeansOption = None,
    sort: Annotated[
        str, typer.Option("--sort", metavar="KEY", help="Order of several runs: given, name or a measure.")
    ] = "given",
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="DIR", help="Append the means to the history in this folder."),
    ] = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Score runs against a test set.

    Means with confidence intervals, failures and judged share.
    """
    from cranfield.app.large_runs import is_large

    if is_large(runs, large):
        from cranfield.cli.large import evaluate_large_runs
        from cranfield.reporting import scale_document

        refused = {
            "--floor": floor,
            "--by-query": by_query,
            "--contrast": contrast,
            "--means": means,
            "--history": history,
        }
        summary = evaluate_large_runs(
            *(testset, runs, measures, testset_format, options, scoring, large),
            refused=refused | {"--sort": sort != "given"},
        )
        deliver(scale_document(summary), output.showing(large.stratum))
        return
    from cranfield.app.floors import judge_floors, parse_floors

    contrasts, floors = contrasts_of(contrast), parse_floors(floor or ())
    if means is not None:
        check_means_file(means)
    only_numbers = output.format is Format.JSON and output.html is None and not contrasts and history is None
    evaluations = load_and_evaluate(
        testset, runs, measures, testset_format=testset_format, options=options, scoring=scoring
    )
    judged = judge_floors(floors, evaluations)
    if sort != "given":
        from cranfield.reporting.sections.leaderboard import sorted_evaluations

        evaluations = sorted_evaluations(evaluations, sort)
    if means is not None:
        write_means(evaluations, means)
    if only_numbers:
        from cranfield.evaluation.result import result_of
        from cranfield.results import to_json, to_jsonable

        record: dict[str, object] = {}
        if judged:
            from cranfield.reporting.documents.gate import floors_record

            record = floors_record(judged)
        show([to_json({**to_jsonable(result_of(evaluations)), **record})])
    else:
        from cranfield.reporting import evaluation_document

        document = evaluation_document(evaluations, by_query=by_query, contrasts=contrasts, today=today())
        if judged:
            from cranfield.reporting.documents.gate import with_floors

            document = with_floors(document, judged)
        if history is not None and not any(finding.is_void for each in evaluations for finding in each.evidence):
            _add_to_history(history, evaluations, document)
        deliver(document, output.showing(by_query, contrast))
    code = floors_exit_code(judged)
    require_evidence(evaluations, output)
    if code:
        raise typer.Exit(code)


def _add_to_history(folder: Path, evaluations: list[Evaluation], document: Document) -> None:
    """Add the means to a history; it was requested, so the call fails where that is not possible."""
    import tempfile

    from cranfield.app.history import remember
    from cranfield.errors import UsageError
    from cranfield.reporting import save_report

    if not folder.is_dir():
        raise UsageError("this is no folder", path=str(folder), expected="the folder of a history, --history")
    primary = evaluations[0].measures[0] if evaluations[0].measures else None
    with tempfile.TemporaryDirectory() as made:
        report = Path(made) / "report.html"
        save_report(document, report)
        if why := remember(folder, evaluations, primary, report=report):
            raise UsageError(why)
