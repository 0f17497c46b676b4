"""Commands that report on a test set and change no file: show, validate, stats, diff, overfit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.ending import report_error
from cranfield.cli.option_groups import ConventionOption, SeedOption, option_groups
from cranfield.cli.shared import Format, MeasureOption, Output, deliver
from cranfield.cli.testset.common import SetArgument, SetFormatOption, TodayOption, day_of, load_set, note
from cranfield.errors import CranfieldError, UsageError

if TYPE_CHECKING:
    from cranfield.options.testset import TestSetOptions
    from cranfield.testsets.validate import Finding, Validation

EXIT_ERRORS = 2
EXIT_WARNINGS = 1


@option_groups
def show_command(
    testset: SetArgument,
    query_ids: Annotated[
        list[str] | None, typer.Argument(metavar="QUERY_ID", help="Show these queries in full; default: list all.")
    ] = None,
    *,
    output: Output,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Show queries with their judgments and expected items. Without ids, list all queries, one per line."""
    from cranfield.reporting.documents.testset import queries_document
    from cranfield.testsets.expected import queries_of

    judged = load_set(testset, testset_format, options=options)
    query_ids = query_ids or []
    missing = [query_id for query_id in query_ids if query_id not in judged.by_id]
    if missing:
        some = ", ".join(map(repr, judged.query_ids[:3]))
        raise UsageError(f"there is no query {', '.join(map(repr, missing))}", path=str(testset), expected=f"{some}, …")
    deliver(queries_document(queries_of(judged, query_ids), in_full=bool(query_ids)), output)


@option_groups
def validate_command(
    testsets: Annotated[
        list[Path], typer.Argument(metavar="SET", help="Test set, in any supported format; one or more.")
    ],
    *,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--run", metavar="RUN", help="Run to check patterns, ids and places against; repeat for more."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also exit with 1 on warnings.")] = False,
    today: TodayOption = None,
    output: Output,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Check test sets and report all findings with their rules. Exits with 2 on errors."""
    day = day_of(today)
    if len(testsets) == 1:
        _exit_on(_validate(testsets[0], runs, day, output, testset_format, options), strict=strict)
        return
    _refuse_several(testsets, runs, output)
    found: list[Finding] = []
    failed = False
    for testset in testsets:
        try:
            found += _validate(testset, runs, day, output, testset_format, options)
        except CranfieldError as error:  # the others are checked too
            report_error(error, validate_command)
            failed = True
    if failed:
        raise typer.Exit(EXIT_ERRORS)
    _exit_on(found, strict=strict)


def _refuse_several(testsets: Sequence[Path], runs: Sequence[Path] | None, output: Output) -> None:
    """Refuse what is of one test set."""
    given = {
        "--run": bool(runs),
        "--html": output.html is not None,
        "--open": output.open,
        f"--format {output.format}": output.format in {Format.JSON, Format.CSV},
    }
    if names := [name for name, is_given in given.items() if is_given]:
        raise UsageError(f"{names[0]} is for one test set", expected="one SET", got=f"{len(testsets)}")


def _validate(
    testset: Path,
    runs: Sequence[Path] | None,
    day: date,
    output: Output,
    testset_format: str | None,
    options: TestSetOptions,
) -> Sequence[Finding]:
    """Check one test set, print its report, and return what was found."""
    from cranfield.reporting.documents.testset import findings_document
    from cranfield.testsets.validate import validate

    if not runs and (large := _validated_in_parts(testset, testset_format, options)) is not None:
        for each in large.testset.notes:
            note(f"note: {each}")
        deliver(findings_document(large), output)
        return large.findings
    judged = load_set(testset, testset_format, ask=bool(runs), options=options)
    answers = {}
    if runs:
        from cranfield.app.named_runs import answers_of

        answers = {f"{place} {run}": answers_of(judged, run)[1] for place, run in enumerate(runs)}
    found = validate(judged, today=day, runs=answers)
    deliver(findings_document(found), output)
    return found.findings


def _validated_in_parts(path: Path, testset_format: str | None, options: TestSetOptions) -> Validation | None:
    """The findings of a large set, with progress on stderr; None where it is read whole, which is noted if that costs memory."""
    from cranfield.app.large_runs import LARGE_BYTES, size_of, validate_large
    from cranfield.cli.large import RowProgress

    progress = RowProgress(typer.get_text_stream("stderr"))
    try:
        large = validate_large(path, testset_format, options, progress.count)
    finally:
        progress.finish()
    if large is None and size_of(path) >= LARGE_BYTES:
        note(
            "note: this test set is read whole, which takes many times its size in memory; TREC qrels, CSV, TSV, Parquet "
            "and BEIR folders are checked in parts, with no option but --queries FILE (lines of id and text, or JSON lines)"
        )
    return large


def _exit_on(findings: Sequence[Finding], *, strict: bool) -> None:
    """End with the exit code of the findings."""
    levels = {finding.level for finding in findings}
    if "error" in levels:
        raise typer.Exit(EXIT_ERRORS)
    if strict and levels:
        raise typer.Exit(EXIT_WARNINGS)


@option_groups
def stats_command(
    testset: SetArgument,
    *,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="KEY",
            help="Stratum to cross-tabulate with the others; repeat to cross these alone; default: all strata that group queries.",
        ),
    ] = None,
    output: Output,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Count the queries, judgments, grades and strata of a test set. Pairs of strata are cross-tabulated."""
    from itertools import combinations

    from cranfield.reporting.documents.testset import statistics_document
    from cranfield.testsets.drawing import check_keys, strata_keys
    from cranfield.testsets.statistics import statistics

    judged = load_set(testset, testset_format, options=options)
    check_keys(judged, by or ())
    keys = list(dict.fromkeys(by or ()))
    pairs = list(combinations(keys, 2)) if keys else None
    if len(keys) == 1:
        pairs = [(keys[0], other) for other in strata_keys(judged) if other != keys[0]]
    deliver(statistics_document(statistics(judged, pairs)), output)


@option_groups
def diff_command(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Old version.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="New version.")],
    *,
    runs: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="[NAME=]RUN", help="Score this run on both versions; repeat for more."),
    ] = None,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
    output: Output,
) -> None:
    """Show the changes between two versions of a test set. With --run, also show how the means of the runs change."""
    from cranfield.reporting.documents.testset_versions import difference_document
    from cranfield.testsets.diff import ScoreMove, diff

    before, after = load_set(old, ask=bool(runs)), load_set(new, ask=bool(runs))
    moves: tuple[ScoreMove, ...] = ()
    if runs:
        from cranfield.app.named_runs import named_runs, score_moves

        moves = score_moves(before, after, named_runs(runs), measures=measures or None, convention=convention)
    deliver(difference_document(diff(before, after, moves)), output)


@option_groups
def overfit_command(
    testset: SetArgument,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run with results for the queries of both parts.")],
    *,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
    seed: SeedOption = 0,
    output: Output,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Compare the scores of evaluated and held-out queries. A higher score on evaluated queries indicates overfitting."""
    from cranfield.app.named_runs import overfitting
    from cranfield.reporting.documents.testset_versions import overfit_document

    judged = load_set(testset, testset_format, ask=True, options=options)
    found = overfitting(judged, run, measures=measures or None, convention=convention, seed=seed)
    deliver(overfit_document(found), output)
