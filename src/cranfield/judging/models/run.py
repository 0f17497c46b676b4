"""A model rates a book: calls at once within a limit, each kept as it comes, so that a run can end at any time."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import groupby
from typing import TypeVar

from cranfield.agents.budget import TYPICAL_BYTES, Budget, PriceList, Spent, estimate
from cranfield.agents.loop import Prompt
from cranfield.agents.protocol import (
    Backend,
    Failure,
    FailureKind,
    Message,
    ModelAnswer,
    OutputMode,
    Request,
    Sampling,
    Usage,
    read_answer,
)
from cranfield.agents.settings import Connection, connected
from cranfield.base.concurrency.loop import FunctionError, event_loop, finish
from cranfield.base.errors import UsageError
from cranfield.books.settings import Mode
from cranfield.books.store.accounts import AccountInfo
from cranfield.books.store.rows import checked_name
from cranfield.books.store.schema import Action, BookState, Origin, RaterKind, Role, SkipReason
from cranfield.books.store.store import Store
from cranfield.books.store.values import BookClosedError, BookInfo, CallRow, ItemView, SaveRequest
from cranfield.judging.documents.values import DocumentText
from cranfield.judging.models.prompt import BadAnswer, Graded, Question, answer_schema, fill, read_grades

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


FAILURES_IN_A_ROW = 5
"""After so many calls without an answer, all retries included, the others would fail too."""
HOPELESS = frozenset({401, 403, 404})
"""HTTP status that every other call would have."""
OF_THE_ITEM = frozenset({FailureKind.BAD_OUTPUT, FailureKind.FILTERED})
"""Failures that say nothing of the other calls."""
SHOWN_FAILURES = 5
Result = TypeVar("Result")


class Stop(StrEnum):
    """Why a run ended before its end."""

    BUDGET = "budget"
    NOT_RECORDED = "not_recorded"
    FAILING = "failing"


@dataclass
class RateOutcome:
    """What became of a run."""

    rater: str
    selection: RatingSelection
    spent: Spent = field(default_factory=Spent)
    n_graded: int = 0
    n_declined: int = 0
    """The model says that it cannot grade them: kept as skipped."""
    n_cached: int = 0
    """Number of these from answers of an earlier run."""
    n_bad: int = 0
    """Items whose answer was bad."""
    n_failed: int = 0
    """Items whose call had no answer."""
    messages: list[str] = field(default_factory=list)
    """The first failures."""
    stopped: Stop | None = None
    reason: str = ""

    @property
    def n_left(self) -> int:
        """Items that the model has still not rated."""
        return len(self.selection.todo) - self.n_graded - self.n_declined


Grades = Mapping[int, Graded | BadAnswer]
Progress = Callable[[RateOutcome], None]


def find_account(store: Store, options: RateOptions) -> AccountInfo | None:
    """The account of the rater; None where it has none yet.

    Raises:
        UsageError: it is no name, or that of a rater of another kind, model, prompt or temperature.
    """
    account = store.people.find(checked_name(options.rater))
    if account is None:
        return None
    if account.kind is not RaterKind.MODEL:
        raise UsageError(f"the rater {options.rater!r} is a {account.kind}, not a model", hint="give another --name")
    for key, value in _identity(options).items():
        if account.settings.get(key, value) != value:
            raise UsageError(
                f"the rater {options.rater!r} exists with a different {key.replace('_', ' ')}",
                got=str(value),
                expected=str(account.settings[key]),
                hint="give another --name; an edited prompt needs a new version",
            )
    return account


def _identity(options: RateOptions) -> dict[str, object]:
    """What makes a rater: grades by another model, prompt or temperature are those of another rater."""
    return {
        "model": options.connection.model,
        "prompt": options.prompt.label,
        "prompt_digest": options.prompt.digest,
        "temperature": options.sampling.temperature,
    }


def _kept_account(store: Store, options: RateOptions) -> AccountInfo:
    """The account of the rater, made where it is not there yet, with the settings of this run."""
    account = find_account(store, options) or store.people.add(options.rater, Role.RATER, RaterKind.MODEL)
    settings = {"base_url": options.connection.place, "max_tokens": options.sampling.max_tokens, **_identity(options)}
    if {name: account.settings.get(name) for name in settings} != settings:
        store.people.set_settings(account.id, {**account.settings, **settings})
    return account


def rate_book(
    store: Store,
    book: BookInfo,
    options: RateOptions,
    texts: Texts,
    *,
    budget: Budget | None = None,
    source: Backend | None = None,
    progress: Progress | None = None,
) -> RateOutcome:
    """Have a model rate the items that it has not rated yet.

    Ctrl-C, a crash or an empty budget ends it at any time: what was answered is kept, and is not asked again.

    Args:
        store: the database.
        book: of it.
        options: model, prompt and settings.
        texts: reads the text of an item.
        budget: limits; None: none.
        source: answers in the place of the model, for tests.
        progress: called after each call.

    Raises:
        BookClosedError: the book takes no judgments.
        UsageError: the book compares lists, or the name of the rater is taken.
    """
    if book.state is BookState.CLOSED:
        raise BookClosedError(f"book {book.name} is closed and accepts no judgments", hint="a lead can reopen it")
    account = find_account(store, options)
    budget = budget or Budget()
    selection = select(store.reading.items(book.id), book, account.id if account else None, options)
    outcome = RateOutcome(options.rater, selection, budget.spent)
    jobs = make_jobs(selection, book, texts, options)
    run = _Run(store, book, account, options, budget, outcome, jobs, progress or (lambda _: None))
    event_loop().run(run.all(source))
    return outcome


class _Run:
    def __init__(
        self,
        store: Store,
        book: BookInfo,
        account: AccountInfo | None,
        options: RateOptions,
        budget: Budget,
        outcome: RateOutcome,
        jobs: Iterator[RatingJob],
        progress: Progress,
    ) -> None:
        self.store = store
        self.book = book
        self._account = account
        """Made with the first call that reaches the model: a run without one leaves no rater."""
        self._is_kept = False
        self.options = options
        self.budget = budget
        self.outcome = outcome
        self.jobs = jobs
        self.progress = progress
        self._next = asyncio.Lock()
        self._same: dict[str, asyncio.Lock] = {}
        """One for each key: of two documents with the same text, the second takes the answer of the first."""
        self._failures = 0
        self._making = threading.Lock()

    async def all(self, source: Backend | None) -> None:
        """Run as many workers as calls are allowed at once."""
        async with connected(self.options.connection, self.budget, source) as backend:
            workers = [asyncio.create_task(self._work(backend)) for _ in range(self.options.concurrency)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, backend: Backend) -> None:
        while self.outcome.stopped is None:
            async with self._next:
                job = await _in_thread(partial(next, self.jobs, None))
            if job is None:
                return
            async with self._same.setdefault(job.key, asyncio.Lock()):
                await self._answer(backend, job)

    async def _answer(self, backend: Backend, job: RatingJob) -> None:
        """Take the answer of the cache, or ask."""
        call = await _in_thread(partial(self.store.calls.answered, self.book.id, job.key))
        if call is not None:
            answer = read_answer(call.response, job.request)
            await finish(_in_thread(partial(self._keep, job, answer, is_cached=True)))
            return
        answer = await backend.ask(job.request)
        if answer.failure is None or not self._stops(answer.failure):
            await finish(_in_thread(partial(self._keep, job, answer)))

    def _stops(self, failure: Failure) -> bool:
        """Whether the run ends with this failure, of which nothing is kept: there was no call."""
        if failure.kind not in (FailureKind.BUDGET, FailureKind.NOT_RECORDED):
            return False
        outcome = self.outcome
        outcome.stopped = Stop.BUDGET if failure.kind is FailureKind.BUDGET else Stop.NOT_RECORDED
        outcome.reason = failure.message
        return True

    def _keep(self, job: RatingJob, answer: ModelAnswer, *, is_cached: bool = False) -> None:
        """Keep the call first, then what follows from it: a run that ends between finds the call in the cache."""
        grades = read_grades(answer, len(job.items))
        with self._making:
            if not self._is_kept and _has_reached(answer):
                self._account, self._is_kept = _kept_account(self.store, self.options), True
            account = self._account
        if account is not None:
            self.store.calls.add(self._call(job, answer, grades, account.id, is_cached=is_cached))
            for place, graded in grades.items():
                item, digest = job.items[place], job.documents[place].digest
                if digest and item.doc_digest not in {None, digest}:
                    self.store.books.set_digest(item.id, digest)
                if isinstance(graded, Graded):
                    self.store.log.save(self._save(job, item, digest, graded, answer, account.id))
        self._count(job, answer, grades, is_cached=is_cached)
        self.progress(self.outcome)

    def _save(
        self, job: RatingJob, item: ItemView, digest: str, graded: Graded, answer: ModelAnswer, account_id: int
    ) -> SaveRequest:
        is_grade = graded.grade is not None
        before = max((row.event_id for row in item.ratings if row.account_id == account_id), default=0)
        return SaveRequest(
            book_id=self.book.id,
            item_id=item.id,
            account_id=account_id,
            action=Action.GRADE if is_grade else Action.SKIP,
            client_key=f"{job.key[-40:]}:{item.id}:{before}",
            grade=graded.grade,
            skip_reason=None if is_grade else SkipReason.UNCLEAR_DOCUMENT,
            reason=graded.reason,
            duration_ms=round(answer.wall_s * 1000),
            guideline_version=self.book.guideline_version,
            method="model",
            doc_digest=digest or None,
        )

    def _call(
        self, job: RatingJob, answer: ModelAnswer, grades: Grades, account_id: int, *, is_cached: bool
    ) -> CallRow:
        failure, usage = answer.failure, answer.usage
        bad = [f"{job.items[place].doc}: {each.message}" for place, each in _bad(grades)]
        outcome = "cached" if is_cached else "ok"
        if failure is not None and failure.kind is not FailureKind.BAD_OUTPUT:
            outcome = "error"
        elif bad:
            outcome = "bad_answer"
        cost = 0.0 if is_cached else self.budget.prices.cost(job.request.model, usage)
        return CallRow(
            book_id=self.book.id,
            account_id=account_id,
            cache_key=job.key,
            item_ids=tuple(item.id for item in job.items),
            request={**job.request.record(), "prompt": self.options.prompt.label},
            response=answer.record(),
            outcome=outcome,
            error="; ".join(bad) if failure is None else f"{failure.kind}: {failure.message}",
            input_tokens=0 if is_cached else usage.input,
            output_tokens=0 if is_cached else usage.output,
            cost=cost,
            duration_ms=0 if is_cached else round(answer.wall_s * 1000),
        )

    def _count(self, job: RatingJob, answer: ModelAnswer, grades: Grades, *, is_cached: bool) -> None:
        outcome, failure = self.outcome, answer.failure
        given = [each for each in grades.values() if isinstance(each, Graded)]
        outcome.n_graded += sum(each.grade is not None for each in given)
        outcome.n_declined += sum(each.grade is None for each in given)
        outcome.n_cached += len(given) if is_cached else 0
        bad = list(_bad(grades))
        if failure is not None and failure.kind is not FailureKind.BAD_OUTPUT:
            outcome.n_failed += len(bad)
            self._failures += failure.kind not in OF_THE_ITEM
            if failure.status in HOPELESS or self._failures >= FAILURES_IN_A_ROW:
                outcome.stopped, outcome.reason = Stop.FAILING, failure.message
        else:
            outcome.n_bad += len(bad)
            self._failures = 0
        for place, each in bad:
            if len(outcome.messages) < SHOWN_FAILURES:
                outcome.messages.append(f"{job.items[place].query}, {job.items[place].doc}: {each.message}")


def _has_reached(answer: ModelAnswer) -> bool:
    """Whether the request may have reached the model."""
    failure = answer.failure
    return failure is None or failure.kind is not FailureKind.CONNECTION or answer.usage.unmeasured > 0


def _bad(grades: Grades) -> Iterator[tuple[int, BadAnswer]]:
    for place, each in grades.items():
        if isinstance(each, BadAnswer):
            yield place, each


async def _in_thread(function: Callable[[], Result]) -> Result:
    """Run a function that waits for the database or a document in a thread of the event loop."""
    try:
        return await event_loop().threads.call(function)
    except FunctionError as raised:
        raise raised.error from None
