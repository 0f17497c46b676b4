"""`cranfield golden review` and `golden reviewed`: the book of a run in the workbench, and what came back from it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.book_options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.cli.golden.options import RepoOption, RunArgument
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver
from cranfield.words import command_word

ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="How much is reviewed, and the ceilings: bootstrap (15 % and one of each cell) or scale (5 %, batches of 40), by "
        "two people; by one who looks again a day later: bootstrap-one-person or scale-one-person; default: that of the plan.",
        show_default=False,
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
    profile: ProfileOption = None,
    book: BookOption = None,
    seed: SeedOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Draw the sample of a finished run, and make a book of everything that people see of it.

    After records were sent back and answered again, the same command adds them to the book. Where one person reviews, it opens
    the second look at what he or she decided a day before.
    """
    from cranfield.app.golden_review import make_review_book, people_steps, second_look_steps
    from cranfield.golden.review import PROFILES
    from cranfield.words import n_of

    with closing(open_books(db, create=True)) as store:
        made = make_review_book(run, repo, store, name=book, profile=profile, seed=seed)
        where = store.where
    sample, reviewers = made.sample, PROFILES[made.sample.profile]
    who = "two reviewers" if made.second is None else "one reviewer, the first look"
    typer.echo(
        f"book {made.book.name}: {n_of(made.n_new, 'new records')} for {who}, in {where}\n"
        f"sample: {len(sample.sampled)} of {n_of(sample.n_batch, 'records')}; "
        f"the share asks for {sample.n_by_share}, one of each cell for {sample.n_by_cells}\n"
        f"must be seen besides: {len(sample.must_see)}"
    )
    option = _db_option(db)
    steps = [f"`cranfield judge {command_word(made.book.name)}{option}`"] if made.is_open else []
    if (second := made.second) is not None:
        typer.echo(f"book {second.book}: {n_of(second.n_new, 'new records')}, the second look")
        steps += second_look_steps(run, second, repo=repo, db=option)
    steps += people_steps(run, reviewers, made.book.name, repo, option)
    for step in steps or [f"`cranfield golden reviewed {command_word(run)}{option}`"]:
        typer.echo(f"next: {step}")


def _db_option(db: str) -> str:
    """The option of a database of books as the next command needs it. An address, which may hold a password, is left out."""
    if db == DEFAULT_DATABASE:
        return ""
    return " --db URL" if "://" in db else f" --db {command_word(db)}"


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
    from cranfield.app.golden_review import after_review, collect_reviews
    from cranfield.cli.ending import EXIT_INCONCLUSIVE, EXIT_VERDICT
    from cranfield.golden.batch_review import review_of, write_feedback
    from cranfield.golden.folder import RunFolder
    from cranfield.golden.review import ReviewOutcome
    from cranfield.reporting.documents.golden_review import review_document
    from cranfield.words import first_of, n_of

    with closing(open_books(db)) as store:
        found = collect_reviews(run, store)
    folder = RunFolder.open(run)
    report = review_of(folder, earlier or ())
    written = write_feedback(folder, report)
    typer.echo(f"{n_of(found.n_new, 'new decisions')} of book {found.book}", err=True)
    for names, what in (
        (found.undecided, "waiting for a reviewer"),
        ((*found.differing, *(found.second.skipped if found.second else ())), "waiting for a lead"),
        (found.skipped, "that could not be judged, and with no other reviewer to ask"),
        (
            found.edited_twice,
            "of which both looks edited one field: the text of the worse verdict holds, else of the second",
        ),
        (found.late, "changed after they were sent back, dropped or compared: what was decided stays"),
    ):
        if names:
            typer.echo(f"{n_of(len(names), 'records')} {what}: {first_of(names)}", err=True)
    report = replace(report, next_steps=after_review(run, found, report, folder.manifest.source, _db_option(db)))
    deliver(review_document(report), output, written=written)
    code = {ReviewOutcome.BREACHED: EXIT_VERDICT, ReviewOutcome.INCOMPLETE: EXIT_INCONCLUSIVE}.get(report.outcome)
    if code is not None:
        raise typer.Exit(code)
