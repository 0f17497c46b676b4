"""What a model is asked of a book: which items, with which texts, in which requests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from cranfield.agents.budget import TYPICAL_BYTES, PriceList, estimate
from cranfield.agents.prompt import Prompt
from cranfield.agents.protocol import Message, OutputMode, Request, Sampling, Usage
from cranfield.agents.settings import Connection
from cranfield.base.errors import UsageError
from cranfield.books.settings import Mode
from cranfield.books.store.schema import Action, Origin
from cranfield.books.store.values import BookInfo, ItemView
from cranfield.judging.documents.values import DocumentText
from cranfield.judging.models.prompt import Question, answer_schema, fill

DEFAULT_SAMPLING = Sampling(temperature=0.0, max_tokens=1_000)
DEFAULT_CHARS = 20_000
DEFAULT_CONCURRENCY = 4
Texts = Callable[[ItemView], DocumentText]


@dataclass(frozen=True)
class RateOptions:
    """How a model rates a book."""

    connection: Connection
    prompt: Prompt
    sampling: Sampling = DEFAULT_SAMPLING
    output_mode: OutputMode = "native"
    timeout_s: float = 120.0
    batch: int = 1
    """Documents of a query in one call."""
    sample: int | None = None
    """A random sample of so many items; None: all."""
    seed: int = 0
    """Seed of the sample: a larger one contains the smaller."""
    concurrency: int = DEFAULT_CONCURRENCY
    max_chars: int = DEFAULT_CHARS
    """Longer texts are cut."""
    name: str = ""
    """Name of the rater; default: model and version of the prompt."""

    @property
    def rater(self) -> str:
        """Name of the rater's account."""
        return self.name or f"{self.connection.model} {self.prompt.label}"


@dataclass(frozen=True)
class RatingJob:
    """A request, and the items that it is about."""

    items: tuple[ItemView, ...]
    documents: tuple[DocumentText, ...]
    request: Request
    key: str
    """Key of the cache: everything that was sent, and where to."""


@dataclass
class RatingSelection:
    """The items of a book that are to be rated."""

    todo: list[ItemView]
    n_items: int
    """Number of items of the book, or of the sample."""
    n_before: int
    """Rated before, under the same guideline, and unchanged since."""
    without_text: list[str] = field(default_factory=list)
    """`query, document: why`: known when the jobs were made."""
    n_cut: int = 0
    """Texts that were longer than is sent."""


def select(items: Iterable[ItemView], book: BookInfo, account_id: int | None, options: RateOptions) -> RatingSelection:
    """The items that the model has not rated yet: those it rated of an earlier text or guideline are rated again.

    Raises:
        UsageError: the book compares lists, or reviews records.
    """
    if book.settings.mode is not Mode.GRADE:
        raise UsageError(
            f"book {book.name} collects {book.settings.mode}s", expected="a book whose documents are graded"
        )
    wanted = [item for item in items if item.origin is not Origin.REPEAT]
    if options.sample is not None:
        ordered = sorted(wanted, key=lambda item: _shuffled(options.seed, item.query, item.doc))
        chosen = {item.id for item in ordered[: options.sample]}
        wanted = [item for item in wanted if item.id in chosen]
    todo = [item for item in wanted if not _is_rated(item, book, account_id)]
    return RatingSelection(todo, len(wanted), len(wanted) - len(todo))


def _shuffled(seed: int, *names: str) -> str:
    return hashlib.sha256("\0".join([str(seed), *names]).encode("utf-8", "surrogatepass")).hexdigest()


def _is_rated(item: ItemView, book: BookInfo, account_id: int | None) -> bool:
    return any(
        row.account_id == account_id
        and row.action in (Action.GRADE, Action.SKIP)
        and not row.stale
        and row.guideline_version == book.guideline_version
        for row in item.ratings
    )


def make_jobs(selection: RatingSelection, book: BookInfo, texts: Texts, options: RateOptions) -> Iterator[RatingJob]:
    """Requests for the selected items, one at a time: a text is read when its turn comes."""
    for _, of_query in groupby(selection.todo, key=lambda item: item.query_id):
        waiting: list[tuple[ItemView, DocumentText]] = []
        for item in of_query:
            document = texts(item)
            if document.problem is not None or not document.text.strip():
                why = "its text is empty" if document.problem is None else document.problem.message
                selection.without_text.append(f"{item.query}, {item.doc}: {why}")
                continue
            selection.n_cut += len(document.text) > options.max_chars
            waiting.append((item, document))
            if len(waiting) == options.batch:
                yield _job(waiting, book, options)
                waiting = []
        if waiting:
            yield _job(waiting, book, options)


def _job(pairs: Sequence[tuple[ItemView, DocumentText]], book: BookInfo, options: RateOptions) -> RatingJob:
    first, is_batch = pairs[0][0], options.batch > 1
    shown = [_shown(document, options.max_chars) for _, document in pairs]
    scale = book.settings.scale
    question = Question(first.query_text, first.need, first.notes)
    system, user = fill(options.prompt, question, shown, scale=scale, guideline=book.guideline, is_batch=is_batch)
    request = Request(
        model=options.connection.model,
        system=system,
        messages=(Message("user", user),),
        output=answer_schema(scale.grades, is_batch=is_batch),
        sampling=options.sampling,
        output_mode=options.output_mode,
        timeout_s=options.timeout_s,
    )
    items, documents = zip(*pairs, strict=True)
    key = hashlib.sha256(f"{options.connection.place} {request.digest}".encode()).hexdigest()
    return RatingJob(tuple(items), tuple(documents), request, key)


def _shown(document: DocumentText, max_chars: int) -> str:
    """Title and text; no id, rank, run or grade."""
    title = "" if document.title == document.doc_id else document.title
    text = document.text if len(document.text) <= max_chars else document.text[:max_chars] + "\n[cut here]"
    return f"{title}\n\n{text}" if title and not text.startswith(title) else text


@dataclass(frozen=True, slots=True)
class RatingDryRun:
    """What a run would cost, by the size of its requests."""

    selection: RatingSelection
    n_calls: int
    input_tokens: int
    """About: 4 bytes of text to a token."""
    output_tokens: int
    """At most."""
    cost: float | None
    currency: str


def dry_run(selection: RatingSelection, jobs: Iterable[RatingJob], prices: PriceList) -> RatingDryRun:
    """Estimate calls, tokens and cost without a call."""
    n = tokens_in = tokens_out = 0
    model = ""
    for job in jobs:
        size = estimate(job.request, TYPICAL_BYTES)
        n, tokens_in, tokens_out = n + 1, tokens_in + size.input, tokens_out + size.output
        model = job.request.model
    cost = prices.cost(model, Usage(input=tokens_in, output=tokens_out)) if n else 0.0
    return RatingDryRun(selection, n, tokens_in, tokens_out, cost, prices.currency)
