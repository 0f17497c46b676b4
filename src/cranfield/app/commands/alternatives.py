"""`cranfield pool accept` and `pool alternatives`: results that answer besides the expected ones, and scores with and without."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

from cranfield.app.command import Report, note, takes_runs
from cranfield.app.commands.book_options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.app.commands.shared import ConventionOption, MeasureOption
from cranfield.app.commands.testset.common import ForceOption, TodayOption, day_of, refuse_existing, save_set
from cranfield.options.declaration import Argument, Option

TestSetArgument = Annotated[Path, Argument("Test set.", metavar="TESTSET")]


def accept_command(
    testset: TestSetArgument,
    pool: Annotated[Path, Argument("Pool of `--preset alternatives`.", metavar="POOL")],
    *,
    book: Annotated[str, Option("Book in which persons graded the pool.", metavar="NAME")],
    out: Annotated[Path, Option("Test set to write.", metavar="FILE")],
    force: ForceOption = False,
    today: TodayOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Add the results of a pool that persons graded above 0 to a test set, at grade 1, with the systems that found them."""
    from cranfield.app.loading import read_stored
    from cranfield.judging.book.contents import contents_of
    from cranfield.judging.book.grades import people_grades
    from cranfield.judging.pools.alternatives import with_alternatives
    from cranfield.judging.pools.pool_io import read_pool

    refuse_existing(out, force=force)
    with closing(open_books(db)) as store:
        grades = people_grades(contents_of(store, book))
    changed = with_alternatives(read_stored(testset), read_pool(pool), grades, day_of(today))
    for path in save_set(changed, testset, out):
        note(f"wrote {path}: {changed.meta.history[-1]}")


@takes_runs("runs")
def alternatives_command(
    testset: TestSetArgument,
    runs: Annotated[list[Path], Argument("Run files.", metavar="RUN...")],
    *,
    measures: MeasureOption = None,
    convention: ConventionOption = "trec",
) -> Report:
    """Score runs with the alternatives of a test set and without them."""
    from cranfield.app.judging import with_and_without
    from cranfield.app.loading import load
    from cranfield.options.scoring import ScoringOptions
    from cranfield.reporting.documents.alternatives import alternatives_document

    found = with_and_without(load(testset), runs, measures, ScoringOptions(convention=convention))
    return Report(document=alternatives_document(found))
