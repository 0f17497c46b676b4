"""What comes of a book: model raters, agreement, sensitivity, a frozen test set, files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Interval

from cranfield.agents.options import (
    AtOnceOption,
    BaseUrlOption,
    KeyOption,
    MoneyOption,
    OutputOption,
    PricesOption,
    SchemaMode,
    TokensOption,
    read_budget,
)
from cranfield.app.command import Exit, Report, Status, note, say, takes_runs
from cranfield.app.commands.shared import (
    ConventionOption,
    ForceOption,
    MeasureOption,
    SeedOption,
    SetFormatOption,
    TodayOption,
    day_of,
    load_set,
    refuse_existing,
    require_single_stdin,
)
from cranfield.base.words import command_word, count_noun
from cranfield.books.options import DEFAULT_DATABASE, DbOption, WorkbenchOption, open_books
from cranfield.evaluation.options.blocks import RULES, TARGETS
from cranfield.evaluation.options.declaration import Argument, Option
from cranfield.judging.commands.book import BookArgument, ByOption, acting_account

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cranfield.agents.budget import Budget
    from cranfield.books.store.store import Store
    from cranfield.books.store.values import BookInfo, ItemView
    from cranfield.evaluation.options.blocks import ScoringOptions
    from cranfield.judging.book.freeze import Freezing
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.judging.documents.values import DocumentText
    from cranfield.judging.models.run import RateOptions, RateOutcome, RatingDryRun, RatingSelection


SHOWN_ITEMS = 5
"""Items without a text that are named."""
ModelOption = Annotated[
    str,
    Option(
        "Model: openai:NAME for OpenAI, or with --base-url for any compatible server; ollama:NAME; others of pydantic-ai.",
        flag="--model",
        metavar="PROVIDER:NAME",
    ),
]
PromptOption = Annotated[
    Path | None, Option("Custom prompt, a YAML file; default: relevance-1.", flag="--prompt", metavar="FILE")
]
NameOption = Annotated[
    str, Option("Name of the rater; default: model and version of the prompt.", flag="--name", metavar="NAME")
]
SampleOption = Annotated[
    int | None, Option("Rate a random sample of N items; default: all.", flag="--sample", metavar="N"), Ge(1)
]
BatchOption = Annotated[
    int,
    Option(
        "Number of documents of a query per call. Above 1, a document can influence the grades of the others.",
        flag="--batch",
        metavar="N",
    ),
    Interval(ge=1, le=50),
]
RecordOption = Annotated[
    Path | None, Option("Append requests and answers to this file.", flag="--record", metavar="FILE")
]
ReplayOption = Annotated[
    Path | None, Option("Use the answers of a recording; call no model.", flag="--replay", metavar="FILE")
]
DryRunOption = Annotated[bool, Option("Print the expected calls, tokens and cost; call no model.", flag="--dry-run")]
TemperatureOption = Annotated[
    float, Option("Sampling temperature of the model.", flag="--temperature", metavar="X"), Ge(0)
]
MaxTokensOption = Annotated[
    int,
    Option("Maximum number of tokens of an answer, including its reasoning.", flag="--max-tokens", metavar="N"),
    Ge(1),
]
RateSeedOption = Annotated[
    int, Option("Random seed of the sample and of the model.", flag="--seed", metavar="N"), Ge(0)
]
CharsOption = Annotated[
    int, Option("Maximum number of characters of a document to send.", flag="--max-chars", metavar="N"), Ge(100)
]
TimeoutOption = Annotated[float, Option("Seconds for one call.", flag="--timeout", metavar="S"), Ge(0.1)]


def rate_command(
    book: BookArgument,
    *,
    model: ModelOption,
    base_url: BaseUrlOption = "",
    api_key_env: KeyOption = "",
    prompt: PromptOption = None,
    name: NameOption = "",
    sample: SampleOption = None,
    batch: BatchOption = 1,
    budget_tokens: TokensOption = None,
    budget_money: MoneyOption = None,
    prices: PricesOption = None,
    record: RecordOption = None,
    replay: ReplayOption = None,
    is_dry_run: DryRunOption = False,
    temperature: TemperatureOption = 0.0,
    max_tokens: MaxTokensOption = 1_000,
    seed: RateSeedOption = 0,
    output_mode: OutputOption = SchemaMode.NATIVE,
    concurrency: AtOnceOption = 4,
    max_chars: CharsOption = 20_000,
    timeout: TimeoutOption = 120.0,
    workbench: WorkbenchOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Rate the items of a book with a language model. Its ratings do not replace those of persons.

    Each answer is kept as it comes. Repeat the command after an interruption or an empty budget: no answer is asked twice.
    Exit codes: 0 every item has an answer; 3 calls failed, answers were bad or texts are missing; 4 the budget was reached.
    """
    from cranfield.agents.protocol import Sampling
    from cranfield.agents.settings import Connection
    from cranfield.app.loading import project_config
    from cranfield.judging.documents.texts import open_texts
    from cranfield.judging.models.prompt import load_prompt
    from cranfield.judging.models.run import RateOptions

    connection = Connection(model, base_url, api_key_env, record=record, replay=replay)
    sampling, template = Sampling(temperature, seed=seed, max_tokens=max_tokens), load_prompt(prompt)
    limits: dict[str, Any] = {
        "batch": batch,
        "sample": sample,
        "seed": seed,
        "concurrency": concurrency,
        "max_chars": max_chars,
    }
    options = RateOptions(connection, template, sampling, output_mode.value, timeout, name=name, **limits)
    budget = read_budget(model, budget_tokens, budget_money, prices)
    with closing(open_books(db)) as store, closing(open_texts(workbench, project_config())) as texts:
        rate(store, store.books.get(book), options, texts, budget, is_dry_run=is_dry_run)


def rate(
    store: Store, book: BookInfo, options: RateOptions, texts: DocumentTexts, budget: Budget, *, is_dry_run: bool
) -> None:
    """Rate, or estimate; print the outcome; exit."""
    from cranfield.base.concurrency.interrupts import sigterm_interrupts
    from cranfield.judging.models.run import dry_run, find_account, make_jobs, rate_book, select

    def text_of(item: ItemView) -> DocumentText:
        return texts.get(item.doc, item.fields)

    if is_dry_run:
        account = find_account(store, options)
        selection = select(store.reading.items(book.id), book, account.id if account else None, options)
        say(estimate_text(dry_run(selection, make_jobs(selection, book, text_of, options), budget.prices)))
        return
    if options.batch > 1:
        note(f"note: {options.batch} documents in one call: a document can influence the grades of the others")
    last: list[RateOutcome] = []

    def keep(outcome: RateOutcome) -> None:
        last[:] = [outcome]
        show_progress(outcome)

    try:
        with sigterm_interrupts():
            outcome = rate_book(store, book, options, text_of, budget=budget, progress=keep)
    except KeyboardInterrupt:
        done = sum(each.n_graded + each.n_declined for each in last)
        raise KeyboardInterrupt(
            f"interrupted: {done} items were rated; run the same command again to continue"
        ) from None
    say(outcome_text(outcome, budget))
    raise Exit(exit_code(outcome))


def show_progress(outcome: RateOutcome) -> None:
    """Count items on stderr, where a person watches."""
    if sys.stderr.isatty():
        total = len(outcome.selection.todo)
        note(f"\r{total - outcome.n_left:,} of {total:,} items, {outcome.spent.tokens:,} tokens ", end="")


def estimate_text(found: RatingDryRun) -> str:
    """What a run would need."""
    chosen = found.selection
    cost = "unknown (no price)" if found.cost is None else f"at most about {found.cost:.4f} {found.currency}"
    lines = [
        f"{count_noun(len(chosen.todo), 'items')} to rate, {chosen.n_before} rated before: {count_noun(found.n_calls, 'calls')}",
        f"input about {found.input_tokens:,} tokens, output at most {found.output_tokens:,}",
        f"cost {cost}",
        *_text_lines(chosen),
    ]
    return "\n".join(lines)


def _text_lines(chosen: RatingSelection) -> Iterator[str]:
    if chosen.without_text:
        yield (
            f"{count_noun(len(chosen.without_text), 'items')} without a text left out; --workbench FILE sets the "
            "sources of texts"
        )
        yield from (f"  {each}" for each in chosen.without_text[:SHOWN_ITEMS])
    if chosen.n_cut:
        yield f"{count_noun(chosen.n_cut, 'texts')} cut to --max-chars"


def outcome_text(outcome: RateOutcome, budget: Budget) -> str:
    """What came of a run, and what to do next."""
    spent, chosen = outcome.spent, outcome.selection
    rated = f"{outcome.rater}: {count_noun(outcome.n_graded, 'items')} rated"
    if outcome.n_declined:
        rated += f", {outcome.n_declined} skipped because the model cannot grade them"
    lines = [f"{rated}; {chosen.n_before} rated before, {outcome.n_left} left of {chosen.n_items}"]
    if outcome.n_cached:
        lines.append(f"{outcome.n_cached} from answers of an earlier run, without a call")
    lines.append(f"{count_noun(spent.requests, 'requests')}, {spent.text(budget.prices.currency)}")
    if outcome.n_bad or outcome.n_failed:
        lines.append(
            f"{count_noun(outcome.n_bad, 'bad answers')}, {outcome.n_failed} without an answer: these items stay unjudged"
        )
        lines += [f"  {message}" for message in outcome.messages]
    lines += _text_lines(chosen)
    if outcome.stopped is not None:
        lines.append(f"stopped: {outcome.reason}")
    if outcome.stopped == "budget":
        lines.append("Run the same command with a new budget to continue.")
    return "\n".join(lines)


def exit_code(outcome: RateOutcome) -> int:
    """0: every item has an answer."""
    if outcome.stopped == "budget":
        return Status.INCONCLUSIVE
    return Status.VOID if outcome.n_left else 0


class SampleUnit(StrEnum):
    """What people judged a random sample of."""

    QUERIES = "queries"
    ITEMS = "items"


RunsArgument = Annotated[
    list[Path] | None,
    Argument("Run files: compare the order of these systems by people and by the model.", metavar="[RUN]..."),
]
PeopleSampleOption = Annotated[
    SampleUnit | None,
    Option(
        "Correct the means: people judged a random sample of the queries (all documents of each), or of the items.",
        flag="--people-sample",
    ),
]


@takes_runs("runs")
def models_command(
    book: BookArgument,
    runs: RunsArgument = None,
    *,
    measure: MeasureOption = None,
    people_sample: PeopleSampleOption = None,
    convention: ConventionOption = "trec",
    seed: SeedOption = 0,
    db: DbOption = DEFAULT_DATABASE,
) -> Report:
    """Compare models with people on the documents that both graded: kappa, confusion, order of systems, corrected means."""
    from cranfield.evaluation.options.blocks import ScoringOptions
    from cranfield.judging.reports.model_raters import model_document
    from cranfield.judging.use_cases import model_report

    require_single_stdin(runs or [])
    with closing(open_books(db)) as store:
        options = ScoringOptions(convention=convention)
        sample = people_sample.value if people_sample else ""
        report = model_report(store, book, runs or (), measure, sample=sample, options=options, seed=seed)
    return Report(document=model_document(report))


EXIT_NO_AGREEMENT = 1
RuleOption = Annotated[
    str | None,
    Option(f"Consensus rule: {RULES}; default: the rule of the book.", flag="--rule", metavar="RULE"),
]
ToScaleOption = Annotated[
    str | None,
    Option(f"Convert the ratings first, to {TARGETS}.", flag="--to-scale", metavar="SCALE"),
]
ModelsOption = Annotated[bool, Option("Use the grade of a model if there is no other grade.", flag="--models")]
OutOption = Annotated[
    Path, Option("Test set to write; its extension selects the format.", flag="--out", metavar="FILE")
]
OntoOption = Annotated[
    Path | None,
    Option(
        "Test set to update; its other judgments are kept. Default: the test set of the pool.",
        flag="--onto",
        metavar="SET",
    ),
]
WithoutEarlierOption = Annotated[
    bool,
    Option("Leave out judgments of the test set of the pool that are not in the book.", flag="--without-earlier"),
]
PartialOption = Annotated[
    bool, Option("Freeze an unfinished book; other documents stay unjudged.", flag="--allow-partial")
]
PseudonymsOption = Annotated[
    bool, Option("Replace the names of persons by `rater 1`, `rater 2`, ...", flag="--pseudonyms")
]


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
    """Freeze a book as a version of a test set, with a manifest of raters, rules and agreement."""
    from cranfield.base.errors import UsageError
    from cranfield.base.words import count_noun
    from cranfield.formats.testsets.storage import write_new
    from cranfield.judging.book.freeze import NoAgreementError, freeze, record_frozen
    from cranfield.judging.book.grades import contents_of
    from cranfield.judging.book.onto import left_out, onto_earlier
    from cranfield.judging.use_cases import earlier_set

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
        note(f"next version of {onto or contents.info.source['testset_file']}, other judgments kept")
    note(
        f"wrote {out}: version {frozen.number} of book {book}, {count_noun(len(made.testset.queries), 'queries')}, {frozen.digest[:19]}"
    )


def _note_frozen(book: str, made: Freezing, losses: Sequence[str], without: str) -> None:
    from cranfield.base.words import count_noun
    from cranfield.evaluation.testset.judging_notes import judging_notes

    for sentence in (*losses, *judging_notes(made.testset)):
        note(f"note: {sentence}")
    if without:
        note(f"note: {without}")
    if made.kappa is not None:
        note(made.kappa.sentence)
    if made.rated.differences:
        n = count_noun(len(made.rated.differences), "grades")
        note(
            f"note: {n} of other sources differ from those in effect: "
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
    """Report the agreement of the persons of a book: coefficients with intervals, confusion, outlying raters."""
    from cranfield.base.errors import UsageError
    from cranfield.judging.book.freeze import persons_testset
    from cranfield.judging.book.grades import contents_of
    from cranfield.judging.raters.raters import rater_report
    from cranfield.judging.reports.agreement import agreement_document

    with closing(open_books(db)) as store:
        testset = persons_testset(contents_of(store, book))
    if not any(testset.ratings.values()):
        raise UsageError(
            f"no person has graded a document of book {book!r}",
            hint=f"`cranfield book show {command_word(book)}` shows its progress",
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
        Option("Primary measure.", short="-m", metavar="MEASURE", choices="measures"),
    ] = "nDCG@10",
    rule: RuleOption = None,
    to_scale: ToScaleOption = None,
    models: ModelsOption = False,
    seed: SeedOption = 0,
    scoring: ScoringOptions,
    db: DbOption = DEFAULT_DATABASE,
) -> Report:
    """Compare two runs on the grades of a book under each consensus rule, and without each of its raters."""
    from cranfield.evaluation.options.blocks import CompareOptions
    from cranfield.evaluation.sensitivity import SENSITIVITY_DRAWS
    from cranfield.judging.book.grades import contents_of
    from cranfield.judging.reports.book import book_sensitivity_document
    from cranfield.judging.use_cases import book_sensitivity

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


WHOLE = "book"


def import_command(
    book: BookArgument,
    file: Annotated[
        Path, Argument("Book file from `export`, or judgments in any format of test sets.", metavar="FILE")
    ],
    *,
    testset_format: SetFormatOption = None,
    unknown: Annotated[
        Literal["error", "add", "skip"],
        Option("Documents that are not in the book: report an error, add them, or leave them out."),
    ] = "error",
    by: ByOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Import a whole book, or judgments into a book. A new book is created if it does not exist.

    Raters that the file names are accounts of persons, without a password; judgments without a rater are carried over.
    """
    from cranfield.base.words import count_noun
    from cranfield.judging.book.exports import is_book, read_book

    with closing(open_books(db, create=True)) as store:
        if testset_format is None and file.is_file() and is_book(file):
            dump = read_book(file)
            store.transfer.restore(dump, book)
            queries, items = count_noun(len(dump.query), "queries"), count_noun(len(dump.item), "items")
            note(f"imported book {book}: {queries}, {items}, {count_noun(len(dump.event), 'events')}")
            return
        _import_judgments(store, book, file, testset_format, unknown, by)


def _import_judgments(
    store: Store,
    book: str,
    file: Path,
    testset_format: str | None,
    unknown: Literal["error", "add", "skip"],
    by: str | None,
) -> None:
    from cranfield.app.loading import read_stored
    from cranfield.base.words import count_noun, join_first
    from cranfield.judging.book.imports import book_of, import_judgments

    testset = read_stored(file, testset_format)
    for each in testset.notes:
        note(f"note: {each}")
    if book not in {info.name for info in store.books.all()}:
        info = book_of(store, book, testset)
        note(f"created book {book}: {count_noun(info.n_queries, 'queries')}, {count_noun(info.n_items, 'items')}")
    done = import_judgments(store, book, testset, file, by=acting_account(store, by), unknown=unknown)
    if done.skipped:
        n = count_noun(len(done.skipped), "queries and documents")
        note(f"left out: {n} not in the book ({join_first(done.skipped)})")
    if done.n_added:
        note(f"added: {count_noun(done.n_added, 'documents')} that were not in the book")
    known = f"; {done.n_known} were already there" if done.n_known else ""
    final = f", {count_noun(done.n_final, 'adjudicated grades')}" if done.n_final else ""
    note(f"imported into book {book}: {count_noun(done.n_new, 'judgments')}{final}{known}")


def export_command(
    book: BookArgument,
    out: Annotated[
        Path,
        Argument(
            "File to write: with the extension .book.jsonl a whole book, else a test set or, with --run, a run.",
            metavar="FILE",
        ),
    ],
    *,
    file_format: Annotated[
        str | None,
        Option(
            "book, or a format of test sets (of runs with --run); default: from the extension.",
            flag="--format",
            metavar="FORMAT",
        ),
    ] = None,
    run: Annotated[str | None, Option("Export the pooled results of this run, as TREC run.", metavar="NAME")] = None,
    rule: RuleOption = None,
    models: ModelsOption = False,
    pseudonyms: PseudonymsOption = False,
    force: ForceOption = False,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Export a whole book, its judgments in a format of another tool, or the pooled results of a run."""
    from cranfield.base.words import count_noun
    from cranfield.formats.convert import write_run, write_testset
    from cranfield.judging.book.exports import JUDGES, judgments_of, pooled_run
    from cranfield.judging.book.grades import contents_of

    refuse_existing(out, force=force)
    with closing(open_books(db)) as store:
        if run is None and (file_format == WHOLE or (file_format is None and out.name.endswith(".book.jsonl"))):
            _export_whole(store, book, out, pseudonyms=pseudonyms)
            return
        contents = contents_of(store, book)
    if run is not None:
        found = pooled_run(contents, run)
        for sentence in write_run(found, out, "trec" if file_format in {None, "trec-run"} else file_format):
            note(f"note: {sentence}")
        note(f"wrote {out}: the pooled results of {run}, {count_noun(len(found.answers), 'queries')}")
        return
    testset = judgments_of(contents, rule=rule, models=models, pseudonyms=pseudonyms, by_judge=file_format == JUDGES)
    for sentence in (*map(str, testset.notes), *write_testset(testset, out, file_format)):
        note(f"note: {sentence}")
    note(
        f"wrote {out}: {count_noun(sum(map(len, testset.grades.values())), 'documents')}, grades by {testset.consensus or 'judge'}"
    )


def _export_whole(store: Store, book: str, out: Path, *, pseudonyms: bool) -> None:
    from cranfield.base.words import count_noun
    from cranfield.judging.book.exports import write_book

    dump = store.transfer.dump(book, pseudonyms=pseudonyms)
    write_book(dump, out)
    note(f"wrote {out}: {count_noun(len(dump.item), 'items')}, {count_noun(len(dump.event), 'events')}")
