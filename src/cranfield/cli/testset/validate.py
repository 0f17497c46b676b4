"""`cranfield testset validate`: everything that may be wrong with a test set, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.shared import Format, FormatOption, deliver
from cranfield.cli.testset.common import SetArgument, SetFormatOption, TodayOption, day_of, load_set

EXIT_ERRORS = 2
EXIT_WARNINGS = 1


def validate_command(
    testset: SetArgument,
    *,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--run", metavar="RUN", help="Run to check patterns, ids and places against; repeat for more."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also exit with 1 on warnings.")] = False,
    today: TodayOption = None,
    output: FormatOption = Format.TEXT,
    testset_format: SetFormatOption = None,
) -> None:
    """Check a test set and report all findings with their rules. Exits with 2 on errors."""
    from cranfield.reporting.documents.testset import findings_document
    from cranfield.testsets.validate import validate

    judged = load_set(testset, testset_format, ask=bool(runs))
    answers = {}
    if runs:
        from cranfield.project.versions import answers_of

        answers = {f"{place} {run}": answers_of(judged, run)[1] for place, run in enumerate(runs)}
    findings = validate(judged, today=day_of(today), runs=answers)
    deliver(findings_document(judged, findings, with_runs=bool(answers)), output, None)
    levels = {finding.level for finding in findings}
    if "error" in levels:
        raise typer.Exit(EXIT_ERRORS)
    if strict and levels:
        raise typer.Exit(EXIT_WARNINGS)
