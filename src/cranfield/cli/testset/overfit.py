"""`cranfield testset overfit`: the evaluated part against the part held out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.option_groups import ConventionOption
from cranfield.cli.shared import Format, FormatOption, MeasureOption, SeedOption, deliver
from cranfield.cli.testset.common import SetArgument, SetFormatOption, load_set


def overfit_command(
    testset: SetArgument,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run with results for the queries of both parts.")],
    *,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
    seed: SeedOption = 0,
    output: FormatOption = Format.TEXT,
    testset_format: SetFormatOption = None,
) -> None:
    """Compare the scores of evaluated and held-out queries. A higher score on evaluated queries indicates overfitting."""
    from cranfield.project.versions import overfitting
    from cranfield.reporting.documents.testset_versions import overfit_document

    judged = load_set(testset, testset_format, ask=True)
    found = overfitting(judged, run, measures=measures or None, convention=convention, seed=seed)
    deliver(overfit_document(judged, found), output, None)
