"""`cranfield evaluate`: one or more runs against a test set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Report, takes_runs
from cranfield.app.commands.shared import (
    ContrastOption,
    FloorOption,
    MeansOption,
    MeasureOption,
    TestSetFormatOption,
    check_means_file,
    contrasts_of,
    floor_lines,
    load_and_evaluate,
    today,
    void_of,
    write_means,
)
from cranfield.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.evaluation.values import Evaluation
    from cranfield.options.large import LargeOptions
    from cranfield.options.scoring import ScoringOptions
    from cranfield.options.testset import TestSetOptions
    from cranfield.reporting import Document


@takes_runs("runs")
def evaluate_command(
    testset: Annotated[Path, Argument("Test set file or TREC qrels.", metavar="TESTSET")],
    runs: Annotated[list[Path], Argument("Run files, or folders and quoted patterns of Parquet files.", metavar="RUN")],
    *,
    measures: MeasureOption = None,
    by_query: Annotated[bool, Option("Add a table of per-query results.")] = False,
    contrast: ContrastOption = None,
    floor: FloorOption = None,
    scoring: ScoringOptions,
    large: LargeOptions,
    means: MeansOption = None,
    sort: Annotated[str, Option("Order of several runs: given, name or a measure.", metavar="KEY")] = "given",
    history: Annotated[
        Path | None,
        Option("Append the means to the history in this folder.", metavar="DIR"),
    ] = None,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Score runs against a test set.

    Means with confidence intervals, failures and judged share.
    """
    from cranfield.app.large_runs import is_large

    if is_large(runs, large):
        from cranfield.app.commands.large import evaluate_large_runs
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
        return Report(document=scale_document(summary), full=bool(large.stratum))
    from cranfield.app.floors import judge_floors, parse_floors

    contrasts, floors = contrasts_of(contrast), parse_floors(floor or ())
    if means is not None:
        check_means_file(means)
    evaluations = load_and_evaluate(
        testset, runs, measures, testset_format=testset_format, options=options, scoring=scoring
    )
    judged = judge_floors(floors, evaluations)
    if sort != "given":
        from cranfield.reporting.sections.leaderboard import sorted_evaluations

        evaluations = sorted_evaluations(evaluations, sort)
    if means is not None:
        write_means(evaluations, means)

    def document() -> Document:
        from cranfield.reporting import evaluation_document

        made = evaluation_document(evaluations, by_query=by_query, contrasts=contrasts, today=today())
        if not judged:
            return made
        from cranfield.reporting.documents.gate import with_floors

        return with_floors(made, judged)

    def record() -> object:
        from cranfield.evaluation.result import result_of
        from cranfield.results import to_jsonable

        if not judged:
            return result_of(evaluations)
        from cranfield.reporting.documents.gate import floors_record

        return {**to_jsonable(result_of(evaluations)), **floors_record(judged)}

    void = void_of(evaluations)
    if history is not None and not void:
        _add_to_history(history, evaluations, document())
    status, notes = floor_lines(judged)
    return Report(
        document=document,
        record=None if contrasts else record,
        full=by_query or bool(contrast),
        notes=notes,
        void=void,
        status=status,
    )


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
