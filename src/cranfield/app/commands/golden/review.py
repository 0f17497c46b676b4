"""`cranfield golden review` and `golden reviewed`: the book of a run in the workbench, and what came back from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from cranfield.app.command import Exit, Report, note, say
from cranfield.app.commands.book_options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.app.commands.golden.options import RepoOption, RunArgument
from cranfield.options.declaration import Option
from cranfield.words import command_word

ProfileOption = Annotated[
    str | None,
    Option(
        "How much is reviewed, and the ceilings: bootstrap (15 % and one of each cell) or scale (5 %, batches of 40), by "
        "two people; by one who looks again a day later: bootstrap-one-person or scale-one-person; default: that of the plan.",
        flag="--profile",
        metavar="NAME",
        shows_default=False,
    ),
]
BookOption = Annotated[
    str | None, Option("Name of the new book; default: that of the run folder.", flag="--book", metavar="NAME")
]
SeedOption = Annotated[
    int | None, Option("Random seed of the sample; default: that of the run.", flag="--seed", metavar="N"), Ge(0)
]
EarlierOption = Annotated[
    list[Path] | None,
    Option("Run before this one, for the cumulative rate; repeatable.", flag="--earlier", metavar="RUN"),
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
    say(
        f"book {made.book.name}: {n_of(made.n_new, 'new records')} for {who}, in {where}\n"
        f"sample: {len(sample.sampled)} of {n_of(sample.n_batch, 'records')}; "
        f"the share asks for {sample.n_by_share}, one of each cell for {sample.n_by_cells}\n"
        f"must be seen besides: {len(sample.must_see)}"
    )
    option = _db_option(db)
    steps = [f"`cranfield judge {command_word(made.book.name)}{option}`"] if made.is_open else []
    if (second := made.second) is not None:
        say(f"book {second.book}: {n_of(second.n_new, 'new records')}, the second look")
        steps += second_look_steps(run, second, repo=repo, db=option)
    steps += people_steps(run, reviewers, made.book.name, repo, option)
    for step in steps or [f"`cranfield golden reviewed {command_word(run)}{option}`"]:
        say(f"next: {step}")


def _db_option(db: str) -> str:
    """The option of a database of books as the next command needs it. An address, which may hold a password, is left out."""
    if db == DEFAULT_DATABASE:
        return ""
    return " --db URL" if "://" in db else f" --db {command_word(db)}"


def reviewed_command(
    run: RunArgument,
    *,
    earlier: EarlierOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> Iterator[Report]:
    """Write the decisions of reviewers into the run, and judge the batch by its ceilings.

    Exits with 0 where the batch passed, 1 where a ceiling is breached, 4 where reviews are missing. What failed is written
    to review_feedback.jsonl: give it to the next run with `golden run --feedback`.
    """
    from cranfield.app.command import Status
    from cranfield.app.golden_review import after_review, collect_reviews
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
    note(f"{n_of(found.n_new, 'new decisions')} of book {found.book}")
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
            note(f"{n_of(len(names), 'records')} {what}: {first_of(names)}")
    report = replace(report, next_steps=after_review(run, found, report, folder.manifest.source, _db_option(db)))
    yield Report(document=review_document(report), written=written)
    code = {ReviewOutcome.BREACHED: Status.FAILED, ReviewOutcome.INCOMPLETE: Status.INCONCLUSIVE}.get(report.outcome)
    if code is not None:
        raise Exit(code)
