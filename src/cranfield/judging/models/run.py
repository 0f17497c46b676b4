"""A model rates a book: calls at once within a limit, each kept as it comes, so that a run can end at any time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TypeVar

from cranfield.agents.budget import Budget, Spent
from cranfield.agents.protocol import Backend, Failure, FailureKind, ModelAnswer, read_answer
from cranfield.agents.settings import connected
from cranfield.base.concurrency.loop import FunctionError, event_loop, finish
from cranfield.base.errors import UsageError
from cranfield.books.store.accounts import AccountInfo
from cranfield.books.store.rows import checked_name
from cranfield.books.store.schema import Action, BookState, RaterKind, Role, SkipReason
from cranfield.books.store.store import Store
from cranfield.books.store.values import BookClosedError, BookInfo, CallRow, ItemView, SaveRequest
from cranfield.judging.models.jobs import RateOptions, RatingJob, RatingSelection, Texts, make_jobs, select
from cranfield.judging.models.prompt import BadAnswer, Graded, read_grades

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
