"""`cranfield golden review` and `golden reviewed`: the book of a run in the workbench, and what came back from it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.book_options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.cli.golden.options import RepoOption, RunArgument
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver

ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="How much is reviewed, and the ceilings: bootstrap (15 % and one of each cell) or scale (5 %, batches of 40).",
    ),
]
BookOption = Annotated[
    str | None, typer.Option("--book", metavar="NAME", help="Name of the new book; default: that of the run folder.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", metavar="N", min=0, help="Random seed of the sample; default: that of the run.")
]
EarlierOption = Annotated[
    list[Path] | None,
    typer.Option("--earlier", metavar="RUN", help="Run before this one, for the cumulative rate; repeatable."),
]


def review_command(
    run: RunArgument,
    *,
    repo: RepoOption = Path(),
    profile: ProfileOption = "bootstrap",
    book: BookOption = None,
    seed: SeedOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Draw the sample of a finished run, and make a book of everything that people see of it.

    After records were sent back and answered again, the same command adds them to the book.
    """
    from cranfield.project.golden_review import make_review_book
    from cranfield.words import n_of

    with closing(open_books(db, create=True)) as store:
        made = make_review_book(run, repo, store, name=book, profile=profile, seed=seed)
        where = store.where
    sample = made.sample
    typer.echo(
        f"book {made.book.name}: {n_of(made.n_new, 'new records')} for two reviewers, in {where}\n"
        f"sample: {len(sample.sampled)} of {n_of(sample.n_batch, 'records')}; "
        f"the share asks for {sample.n_by_share}, one of each cell for {sample.n_by_cells}\n"
        f"must be seen besides: {len(sample.must_see)}\n"
        f"next: `cranfield judge {made.book.name}`"
    )


@option_groups
def reviewed_command(
    run: RunArgument,
    *,
    earlier: EarlierOption = None,
    output: Output,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Write the decisions of reviewers into the run, and judge the batch by its ceilings.

    Exits with 0 where the batch passed, 1 where a ceiling is breached, 4 where reviews are missing. What failed is written
    to review_feedback.jsonl: give it to the next run with `golden run --feedback`.
    """
    from cranfield.cli.ending import EXIT_INCONCLUSIVE, EXIT_VERDICT
    from cranfield.golden.batch_review import review_of, write_feedback
    from cranfield.golden.folder import RunFolder
    from cranfield.golden.review import ReviewOutcome
    from cranfield.project.golden_review import collect_reviews
    from cranfield.reporting.documents.golden_review import review_document
    from cranfield.words import first_of, n_of

    with closing(open_books(db)) as store:
        found = collect_reviews(run, store)
    folder = RunFolder.open(run)
    report = review_of(folder, earlier or ())
    written = write_feedback(folder, report)
    typer.echo(f"{n_of(found.n_new, 'new decisions')} of book {found.book}", err=True)
    for names, what in (
        (found.undecided, "wait for a reviewer"),
        (found.differing, "wait for a lead, since the reviewers differ"),
        (found.late, "were changed after they were sent back or dropped: that stays"),
    ):
        if names:
            typer.echo(f"{n_of(len(names), 'records')} {what}: {first_of(names)}", err=True)
    deliver(review_document(run.resolve().name, report), output, written=written)
    code = {ReviewOutcome.BREACHED: EXIT_VERDICT, ReviewOutcome.INCOMPLETE: EXIT_INCONCLUSIVE}.get(report.outcome)
    if code is not None:
        raise typer.Exit(code)
