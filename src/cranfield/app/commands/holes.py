"""`cranfield holes`: which unjudged results could change the verdict on two runs?"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from cranfield.app.command import Report, fields, note, takes_runs
from cranfield.app.commands.book_options import DEFAULT_DATABASE, DbOption, open_books
from cranfield.app.commands.shared import TestSetFormatOption
from cranfield.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.judging.pools.rule_view import Grades
    from cranfield.options.compare import CompareOptions
    from cranfield.options.scoring import ScoringOptions
    from cranfield.options.testset import TestSetOptions

MANY_QUERIES = 500
"""The bounds of fewer queries take no time worth counting."""


BaselineArgument = Annotated[str, Argument("Baseline run: FILE or NAME=FILE.", metavar="BASELINE")]
CandidateArgument = Annotated[str, Argument("Candidate run: FILE or NAME=FILE.", metavar="CANDIDATE")]
TestSetOption = Annotated[Path, Option("Test set file or TREC qrels.", flag="--testset", metavar="TESTSET")]
PrimaryOption = Annotated[
    str | None,
    Option(
        "Primary measure; default: the first default measure.",
        flag="--measure",
        short="-m",
        metavar="MEASURE",
        choices="measures",
    ),
]
TopOption = Annotated[int, Option("Holes to list, and to put into the pool.", flag="--top", metavar="N"), Ge(1)]
OutOption = Annotated[
    Path | None, Option("Write the first holes as a pool, to be judged.", flag="--out", metavar="FILE")
]
BookOption = Annotated[
    str | None,
    Option("Book whose grades by persons replace those of the test set.", flag="--book", metavar="NAME"),
]


@takes_runs("baseline", "candidate")
def holes_command(
    baseline: BaselineArgument,
    candidate: CandidateArgument,
    *,
    testset: TestSetOption,
    measure: PrimaryOption = None,
    top: TopOption = 20,
    out: OutOption = None,
    book: BookOption = None,
    db: DbOption = DEFAULT_DATABASE,
    compare: Annotated[CompareOptions, fields("test", "margin", "alpha", "seed")],
    scoring: ScoringOptions,
    testset_format: TestSetFormatOption = None,
    options: TestSetOptions,
) -> Report:
    """Find the unjudged results that could change a verdict.

    The verdict on two runs, with its best and worst case.
    """
    from cranfield.app.judging import holes_of_files
    from cranfield.app.loading import load
    from cranfield.reporting.documents.holes import holes_document
    from cranfield.testsets.split import evaluated_part

    declared = replace(compare, primary=measure)
    loaded = load(testset, format=testset_format, options=options)
    found = holes_of_files(
        evaluated_part(loaded) if options.part is None else loaded,
        (baseline, candidate),
        declared,
        scoring=scoring,
        people=_people(book, db),
        n_turns=top,
        progress=_progress(),
    )
    written = []
    if out is not None:
        from cranfield.judging.pools.pool_io import made_over, write_pool

        pool = found.pool(top, out.name.removesuffix(".json").removesuffix(".pool"))
        write_pool(made_over(pool, testset if options.qrels is None else None, options.queries), out)
        written.append(out)
    document = holes_document(found.result(), top=top, written="" if out is None else str(out))
    return Report(document=document, written=written)


def _people(book: str | None, db: str) -> Grades | None:
    """The grades by persons of a book."""
    if book is None:
        return None
    with closing(open_books(db)) as store:
        from cranfield.judging.book.contents import contents_of
        from cranfield.judging.book.grades import people_grades

        return people_grades(contents_of(store, book))


def _progress() -> Callable[[int, int], None] | None:
    """Count queries on stderr, where a person watches; None elsewhere."""
    if not sys.stderr.isatty():
        return None

    def count(done: int, total: int) -> None:
        if total >= MANY_QUERIES and (done == total or not done % 50):
            note(f"\rbounds: {done:,} of {total:,} queries" + ("\n" if done == total else ""), end="")

    return count
