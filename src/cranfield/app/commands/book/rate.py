"""`cranfield book rate`: a language model rates the items of a book."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Interval

from cranfield.app.command import Exit, Status, note, say
from cranfield.app.commands.book_options import DEFAULT_DATABASE, BookArgument, DbOption, WorkbenchOption, open_books
from cranfield.options.declaration import Option
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.agents.budget import Budget
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.judging.documents.values import DocumentText
    from cranfield.judging.models.jobs import DryRun, RateOptions, Selection
    from cranfield.judging.models.run import RateOutcome
    from cranfield.judging.store.store import Store
    from cranfield.judging.store.values import BookInfo, ItemView

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
BaseUrlOption = Annotated[
    str, Option("Address of the server, such as http://127.0.0.1:8000/v1.", flag="--base-url", metavar="URL")
]
KeyOption = Annotated[str, Option("Environment variable that holds the API key.", flag="--api-key-env", metavar="NAME")]
PromptOption = Annotated[
    Path | None, Option("Own prompt, a YAML file; default: relevance-1.", flag="--prompt", metavar="FILE")
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
        "Documents of a query in one call. Above 1, a document can influence the grades of the others.",
        flag="--batch",
        metavar="N",
    ),
    Interval(ge=1, le=50),
]
TokensOption = Annotated[
    int | None, Option("Stop before more tokens than this are used.", flag="--budget-tokens", metavar="N"), Ge(1)
]
MoneyOption = Annotated[
    float | None,
    Option("Stop before more than this is spent; needs --prices.", flag="--budget-money", metavar="X"),
    Ge(0),
]
PricesOption = Annotated[
    Path | None, Option("Price list, a YAML file; default: costs are not known.", flag="--prices", metavar="FILE")
]
RecordOption = Annotated[
    Path | None, Option("Append requests and answers to this file.", flag="--record", metavar="FILE")
]
ReplayOption = Annotated[
    Path | None, Option("Answer from a recording; call no model.", flag="--replay", metavar="FILE")
]
DryRunOption = Annotated[
    bool, Option("Print the calls, tokens and cost to expect, and call nothing.", flag="--dry-run")
]
TemperatureOption = Annotated[float, Option("Of the sampling.", flag="--temperature", metavar="X"), Ge(0)]
MaxTokensOption = Annotated[
    int, Option("Most tokens of an answer, with its reasoning.", flag="--max-tokens", metavar="N"), Ge(1)
]
SeedOption = Annotated[int, Option("Random seed of the sample and of the model.", flag="--seed", metavar="N"), Ge(0)]


class Mode(StrEnum):
    """How a model is given the schema of its answer."""

    NATIVE = "native"
    TOOL = "tool"
    PROMPTED = "prompted"


OutputOption = Annotated[
    Mode,
    Option("How the model is given the schema of its answer.", flag="--output-mode", metavar="MODE"),
]
AtOnceOption = Annotated[int, Option("Calls at once.", flag="--concurrency", metavar="N"), Interval(ge=1, le=100)]
CharsOption = Annotated[
    int, Option("Characters of a document that are sent.", flag="--max-chars", metavar="N"), Ge(100)
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
    seed: SeedOption = 0,
    output_mode: OutputOption = Mode.NATIVE,
    concurrency: AtOnceOption = 4,
    max_chars: CharsOption = 20_000,
    timeout: TimeoutOption = 120.0,
    workbench: WorkbenchOption = None,
    db: DbOption = DEFAULT_DATABASE,
) -> None:
    """Have a language model rate the items of a book, as a rater of its own kind that fills no person's place.

    Each answer is kept as it comes. Repeat the command after an interruption or an empty budget: no answer is asked twice.
    Exit codes: 0 every item has an answer; 3 calls failed, answers were bad or texts are missing; 4 the budget was reached.
    """
    from cranfield.agents.connect import Connection
    from cranfield.agents.protocol import Sampling
    from cranfield.app.loading import project_config
    from cranfield.judging.documents.texts import open_texts
    from cranfield.judging.models.jobs import RateOptions
    from cranfield.judging.models.prompt import load_prompt

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
    from cranfield.concurrency.signals import sigterm_interrupts
    from cranfield.judging.models.jobs import dry_run, make_jobs, select
    from cranfield.judging.models.run import find_account, rate_book

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
            f"interrupted: {done} items were rated; the same command goes on with the others"
        ) from None
    say(outcome_text(outcome, budget))
    raise Exit(exit_code(outcome))


def read_budget(model: str, tokens: int | None, money: float | None, prices: Path | None) -> Budget:
    """The budget of a run.

    Raises:
        UsageError: a budget of money without a price.
    """
    from cranfield.agents.budget import Budget, PriceList, read_prices
    from cranfield.errors import UsageError

    found = PriceList() if prices is None else read_prices(prices)
    if money is not None and model not in found.models:
        where = "no price list" if prices is None else str(prices)
        hint = f"write `models: {{{model}: {{input: 0.5, output: 1.5}}}}`, prices of a million tokens, to a file for --prices"
        raise UsageError(f"--budget-money needs the price of {model}", got=where, hint=hint)
    return Budget(tokens=tokens, money=money, prices=found)


def show_progress(outcome: RateOutcome) -> None:
    """Count items on stderr, where a person watches."""
    if sys.stderr.isatty():
        total = len(outcome.selection.todo)
        note(f"\r{total - outcome.n_left:,} of {total:,} items, {outcome.spent.tokens:,} tokens ", end="")


def estimate_text(found: DryRun) -> str:
    """What a run would need."""
    chosen = found.selection
    cost = "unknown (no price)" if found.cost is None else f"at most about {found.cost:.4f} {found.currency}"
    lines = [
        f"{n_of(len(chosen.todo), 'items')} to rate, {chosen.n_before} rated before: {n_of(found.n_calls, 'calls')}",
        f"input about {found.input_tokens:,} tokens, output at most {found.output_tokens:,}",
        f"cost {cost}",
        *_text_lines(chosen),
    ]
    return "\n".join(lines)


def _text_lines(chosen: Selection) -> Iterator[str]:
    if chosen.without_text:
        yield f"{n_of(len(chosen.without_text), 'items')} without a text left out; --workbench FILE says where texts are"
        yield from (f"  {each}" for each in chosen.without_text[:SHOWN_ITEMS])
    if chosen.n_cut:
        yield f"{n_of(chosen.n_cut, 'texts')} cut to --max-chars"


def outcome_text(outcome: RateOutcome, budget: Budget) -> str:
    """What came of a run, and what to do next."""
    spent, chosen = outcome.spent, outcome.selection
    rated = f"{outcome.rater}: {n_of(outcome.n_graded, 'items')} rated"
    if outcome.n_declined:
        rated += f", {outcome.n_declined} skipped because the model cannot grade them"
    lines = [f"{rated}; {chosen.n_before} rated before, {outcome.n_left} left of {chosen.n_items}"]
    if outcome.n_cached:
        lines.append(f"{outcome.n_cached} from answers of an earlier run, without a call")
    lines.append(f"{n_of(spent.requests, 'requests')}, {spent.text(budget.prices.currency)}")
    if outcome.n_bad or outcome.n_failed:
        lines.append(
            f"{n_of(outcome.n_bad, 'bad answers')}, {outcome.n_failed} without an answer: these items stay unjudged"
        )
        lines += [f"  {message}" for message in outcome.messages]
    lines += _text_lines(chosen)
    if outcome.stopped is not None:
        lines.append(f"stopped: {outcome.reason}")
    if outcome.stopped == "budget":
        lines.append("The same command with a new budget goes on where this one ended.")
    return "\n".join(lines)


def exit_code(outcome: RateOutcome) -> int:
    """0: every item has an answer."""
    if outcome.stopped == "budget":
        return Status.INCONCLUSIVE
    return Status.VOID if outcome.n_left else 0
