"""Commands that make figures and test sets of a book: freeze, agreement, sensitivity."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Exit, Report, note, takes_runs
from cranfield.app.commands.book_options import DEFAULT_DATABASE, BookArgument, DbOption, open_books
from cranfield.app.commands.shared import SeedOption
from cranfield.app.commands.testset.common import ForceOption, TodayOption, day_of, load_set, refuse_existing
from cranfield.options.declaration import Argument, Option
from cranfield.options.testset import RULES, TARGETS
from cranfield.words import command_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.judging.book.freeze import Freezing
    from cranfield.options.scoring import ScoringOptions

EXIT_NO_AGREEMENT = 1
RuleOption = Annotated[
    str | None,
    Option(f"Consensus rule: {RULES}; default: the rule of the book.", flag="--rule", metavar="RULE"),
]
ToScaleOption = Annotated[
    str | None,
    Option(f"Convert the ratings first, to {TARGETS}.", flag="--to-scale", metavar="SCALE"),
]
ModelsOption = Annotated[bool, Option("Use the grade of a model where nothing else gives one.", flag="--models")]
OutOption = Annotated[
    Path, Option("Test set to write; its extension selects the format.", flag="--out", metavar="FILE")
]
OntoOption = Annotated[
    Path | None,
    Option(
        "Test set whose next version it is: its other judgments stay; default: the one that the pool was made over.",
        flag="--onto",
        metavar="SET",
    ),
]
WithoutEarlierOption = Annotated[
    bool,
    Option("Leave out what the test set of the pool had judged and the book has not.", flag="--without-earlier"),
]
PartialOption = Annotated[
    bool, Option("Freeze a book that is not finished: the rest stays unjudged.", flag="--allow-partial")
]
PseudonymsOption = Annotated[bool, Option("Call persons `rater 1`, `rater 2`, ...", flag="--pseudonyms")]


def freeze_command(
    book: BookArgument,
    *,
    out: OutOption,
    onto: OntoOption = None,
    without_earlier: WithoutEarlierOption = False,
    rule: RuleOption = None,
    allow_partial: PartialOption = False,
    models: ModelsOption = False,
    pseudonyms: PseudonymsOption = False,
    seed: SeedOption = 0,
    force: ForceOption = False,
    today: TodayOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Freeze a book as a version of a test set, with a manifest of who judged, how, and how far they agree."""
    from cranfield.app.judging import earlier_set
    from cranfield.errors import UsageError
    from cranfield.judging.book.contents import contents_of
    from cranfield.judging.book.freeze import NoAgreementError, freeze, record_frozen
    from cranfield.judging.book.onto import left_out, onto_earlier
    from cranfield.testsets.storage import write_new
    from cranfield.words import n_of

    if onto is not None and without_earlier:
        raise UsageError("--onto with --without-earlier", expected="one of them")
    refuse_existing(out, force=force)
    with closing(open_books(db)) as store:
        contents = contents_of(store, book)
        earlier = None
        if not without_earlier:
            earlier = earlier_set(contents.info.source) if onto is None else load_set(onto, ask=True)
        try:
            made = freeze(
                contents,
                today=day_of(today),
                rule=rule,
                models=models,
                allow_partial=allow_partial,
                pseudonyms=pseudonyms,
                seed=seed,
            )
            made = onto_earlier(contents, made, earlier, day_of(today), without_earlier=without_earlier)
        except NoAgreementError as error:
            note(f"error: {error}")
            raise Exit(EXIT_NO_AGREEMENT) from None
        losses = (*map(str, made.testset.notes), *write_new(made.testset, out))
        frozen = record_frozen(store, contents, made)
    _note_frozen(book, made, losses, left_out(contents.info) if without_earlier else "")
    if earlier is not None:
        note(f"next version of {onto or contents.info.source['testset_file']}, whose other judgments stay")
    note(
        f"wrote {out}: version {frozen.number} of book {book}, {n_of(len(made.testset.queries), 'queries')}, {frozen.digest[:19]}"
    )


def _note_frozen(book: str, made: Freezing, losses: Sequence[str], without: str) -> None:
    from cranfield.testsets.judging_notes import judging_notes
    from cranfield.words import n_of

    for sentence in (*losses, *judging_notes(made.testset)):
        note(f"note: {sentence}")
    if without:
        note(f"note: {without}")
    if made.kappa is not None:
        note(made.kappa.sentence)
    if made.rated.differences:
        n = n_of(len(made.rated.differences), "grades")
        note(
            f"note: {n} of other sources differ from those that hold: "
            f"`cranfield book sensitivity {command_word(book)} BASELINE CANDIDATE` lists them"
        )


def agreement_command(
    book: BookArgument,
    *,
    rule: RuleOption = None,
    to_scale: ToScaleOption = None,
    binary_at: Annotated[
        list[float] | None,
        Option(
            "Map each grade to relevant (from GRADE on) or not first; repeat to compare thresholds.", metavar="GRADE"
        ),
    ] = None,
    by: Annotated[
        str | None,
        Option("Also show the agreement for each value of this stratum.", metavar="STRATUM"),
    ] = None,
    seed: SeedOption = 0,
    db: DbOption = DEFAULT_DATABASE,
) -> Report:
    """Report how far the persons of a book agree: coefficients with intervals, confusion, the rater who does not fit."""
    from cranfield.errors import UsageError
    from cranfield.judging.book.contents import contents_of
    from cranfield.judging.book.freeze import persons_testset
    from cranfield.reporting.documents.agreement import agreement_document
    from cranfield.testsets.raters import rater_report

    with closing(open_books(db)) as store:
        testset = persons_testset(contents_of(store, book))
    if not any(testset.ratings.values()):
        raise UsageError(
            f"no person has graded a document of book {book!r}",
            hint=f"`cranfield book show {command_word(book)}` has its progress",
        )
    report = rater_report(testset, rule=rule, to=to_scale, binary_at=binary_at or (), by=by, seed=seed)
    return Report(document=agreement_document(report))


@takes_runs("baseline", "candidate")
def sensitivity_command(
    book: BookArgument,
    baseline: Annotated[Path, Argument("Baseline run.", metavar="BASELINE")],
    candidate: Annotated[Path, Argument("Candidate run.", metavar="CANDIDATE")],
    *,
    measure: Annotated[
        str,
        Option("Measure that decides.", short="-m", metavar="MEASURE", choices="measures"),
    ] = "nDCG@10",
    rule: RuleOption = None,
    to_scale: ToScaleOption = None,
    models: ModelsOption = False,
    seed: SeedOption = 0,
    scoring: ScoringOptions,
    db: DbOption = DEFAULT_DATABASE,
) -> Report:
    """Compare two runs on the grades of a book under each consensus rule, and without each of its raters."""
    from cranfield.app.judging import book_sensitivity
    from cranfield.evaluation.sensitivity import SENSITIVITY_DRAWS
    from cranfield.judging.book.contents import contents_of
    from cranfield.options.compare import CompareOptions
    from cranfield.reporting.documents.book import book_sensitivity_document

    with closing(open_books(db)) as store:
        contents = contents_of(store, book)
    options = CompareOptions(draws=SENSITIVITY_DRAWS, seed=seed)
    found = book_sensitivity(
        contents,
        (baseline, candidate),
        primary=measure,
        rule=rule,
        to=to_scale,
        options=options,
        scoring=scoring,
        models=models,
    )
    return Report(document=book_sensitivity_document(found))
