"""`cranfield book models`: how far the models that rated a book agree with people."""

from __future__ import annotations

from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from cranfield.app.command import Report, takes_runs
from cranfield.app.commands.book_options import DEFAULT_DATABASE, BookArgument, DbOption, open_books
from cranfield.app.commands.shared import ConventionOption, MeasureOption, SeedOption, require_single_stdin
from cranfield.options.declaration import Argument, Option


class Sample(StrEnum):
    """What people judged a random sample of."""

    QUERIES = "queries"
    ITEMS = "items"


RunsArgument = Annotated[
    list[Path] | None,
    Argument("Run files: the order of these systems by people and by the model.", metavar="[RUN]..."),
]
SampleOption = Annotated[
    Sample | None,
    Option(
        "Correct means: people judged a random sample of the queries (every document of them), or of the items.",
        flag="--people-sample",
    ),
]


@takes_runs("runs")
def models_command(
    book: BookArgument,
    runs: RunsArgument = None,
    *,
    measure: MeasureOption = None,
    people_sample: SampleOption = None,
    convention: ConventionOption = "trec",
    seed: SeedOption = 0,
    db: DbOption = DEFAULT_DATABASE,
) -> Report:
    """Compare models with people on the documents that both graded: kappa, confusion, order of systems, corrected means."""
    from cranfield.app.judging import model_report
    from cranfield.options.scoring import ScoringOptions
    from cranfield.reporting.documents.model_raters import model_document

    require_single_stdin(runs or [])
    with closing(open_books(db)) as store:
        options = ScoringOptions(convention=convention)
        sample = people_sample.value if people_sample else ""
        report = model_report(store, book, runs or (), measure, sample=sample, options=options, seed=seed)
    return Report(document=model_document(report))
