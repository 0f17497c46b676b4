"""Commands that report on a test set and change no file: show, validate, stats, diff, overfit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Exit, Format, Output, Report, note
from cranfield.app.commands.shared import ConventionOption, MeasureOption, SeedOption
from cranfield.app.commands.testset.common import SetArgument, SetFormatOption, TodayOption, day_of, load_set
from cranfield.errors import CranfieldError, UsageError
from cranfield.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.options.testset import TestSetOptions
    from cranfield.testsets.validate import Validation

EXIT_ERRORS = 2
EXIT_WARNINGS = 1


def show_command(
    testset: SetArgument,
    query_ids: Annotated[
        list[str] | None, Argument("Show these queries in full; default: list all.", metavar="QUERY_ID")
    ] = None,
    *,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Show queries with their judgments and expected items. Without ids, list all queries, one per line."""
    from cranfield.reporting.documents.testset import queries_document
    from cranfield.testsets.expected import queries_of

    judged = load_set(testset, testset_format, options=options)
    query_ids = query_ids or []
    missing = [query_id for query_id in query_ids if query_id not in judged.by_id]
    if missing:
        some = ", ".join(map(repr, judged.query_ids[:3]))
        raise UsageError(f"there is no query {', '.join(map(repr, missing))}", path=str(testset), expected=f"{some}, …")
    return Report(document=queries_document(queries_of(judged, query_ids), in_full=bool(query_ids)))


def validate_command(
    testsets: Annotated[list[Path], Argument("Test set, in any supported format; one or more.", metavar="SET")],
    *,
    runs: Annotated[
        list[Path] | None,
        Option("Run to check patterns, ids and places against; repeat for more.", flag="--run", metavar="RUN"),
    ] = None,
    strict: Annotated[bool, Option("Also exit with 1 on warnings.")] = False,
    today: TodayOption = None,
    output: Output,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> Iterator[Report | CranfieldError]:
    """Check test sets and report all findings with their rules. Exits with 2 on errors."""
    from cranfield.reporting.documents.testset import findings_document

    if len(testsets) > 1:
        _refuse_several(testsets, runs, output)
    levels: set[str] = set()
    for testset in testsets:
        try:
            found = _validated(testset, runs, day_of(today), testset_format, options)
        except CranfieldError as error:
            if len(testsets) == 1:
                raise
            yield error  # the others are checked too
            levels.add("error")
        else:
            yield Report(document=findings_document(found))
            levels |= {finding.level for finding in found.findings}
    if "error" in levels:
        raise Exit(EXIT_ERRORS)
    if strict and levels:
        raise Exit(EXIT_WARNINGS)


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


def _validated(
    testset: Path, runs: Sequence[Path] | None, day: date, testset_format: str | None, options: TestSetOptions
) -> Validation:
    """Check one test set."""
    from cranfield.testsets.validate import validate

    if not runs and (large := _validated_in_parts(testset, testset_format, options)) is not None:
        for each in large.testset.notes:
            note(f"note: {each}")
        return large
    judged = load_set(testset, testset_format, ask=bool(runs), options=options)
    answers = {}
    if runs:
        from cranfield.app.named_runs import answers_of

        answers = {f"{place} {run}": answers_of(judged, run)[1] for place, run in enumerate(runs)}
    return validate(judged, today=day, runs=answers)


def _validated_in_parts(path: Path, testset_format: str | None, options: TestSetOptions) -> Validation | None:
    """The findings of a large set, with progress on stderr; None where it is read whole, which is noted if that costs memory."""
    from cranfield.app.commands.large import RowProgress
    from cranfield.app.large_runs import LARGE_BYTES, size_of, validate_large

    progress = RowProgress(sys.stderr)
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


def stats_command(
    testset: SetArgument,
    *,
    by: Annotated[
        list[str] | None,
        Option(
            "Stratum to cross-tabulate with the others; repeat to cross these alone; default: all strata that group queries.",
            metavar="KEY",
        ),
    ] = None,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> Report:
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
    return Report(document=statistics_document(statistics(judged, pairs)))


def diff_command(
    old: Annotated[Path, Argument("Old version.", metavar="OLD")],
    new: Annotated[Path, Argument("New version.", metavar="NEW")],
    *,
    runs: Annotated[
        list[str] | None,
        Option("Score this run on both versions; repeat for more.", flag="--run", metavar="[NAME=]RUN"),
    ] = None,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
) -> Report:
    """Show the changes between two versions of a test set. With --run, also show how the means of the runs change."""
    from cranfield.reporting.documents.testset_versions import difference_document
    from cranfield.testsets.diff import ScoreMove, diff

    before, after = load_set(old, ask=bool(runs)), load_set(new, ask=bool(runs))
    moves: tuple[ScoreMove, ...] = ()
    if runs:
        from cranfield.app.named_runs import named_runs, score_moves

        moves = score_moves(before, after, named_runs(runs), measures=measures or None, convention=convention)
    return Report(document=difference_document(diff(before, after, moves)))


def overfit_command(
    testset: SetArgument,
    run: Annotated[Path, Argument("Run with results for the queries of both parts.", metavar="RUN")],
    *,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
    seed: SeedOption = 0,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Compare the scores of evaluated and held-out queries. A higher score on evaluated queries indicates overfitting."""
    from cranfield.app.named_runs import overfitting
    from cranfield.reporting.documents.testset_versions import overfit_document

    judged = load_set(testset, testset_format, ask=True, options=options)
    found = overfitting(judged, run, measures=measures or None, convention=convention, seed=seed)
    return Report(document=overfit_document(found))
