"""The first page: what changed, and the books of the account; and the list of all books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from cranfield.base.words import count_noun
from cranfield.books.store.schema import BookState, ItemState, Role
from cranfield.books.store.values import ItemFilter
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.reporting.document import Section
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.pages import render_page
from cranfield.workbench.server.tables import blocks, comparison_table, evaluation_table, job_table
from cranfield.workbench.server.testsets import Refresh, refresh_of
from cranfield.workbench.service.responses import EvaluationState, JobState
from cranfield.workbench.service.values import EvaluationFilter

if TYPE_CHECKING:
    from markupsafe import Markup

    from cranfield.books.store.store import Store
    from cranfield.books.store.values import BookInfo, JudgingProgress
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo, JobInfo, SetInfo


DAY_MS = 86_400_000
VISIT_MS = 1_800_000
"""Pages that are opened within half an hour are one visit."""
SHOWN = 10
"""Rows of each list."""
MOST = 200
"""Evaluations, comparisons and failed jobs that are counted."""


@dataclass(frozen=True, slots=True)
class Regression:
    """An evaluation that lost against another, or breaks rules of the gate."""

    info: EvaluationInfo
    comparison: ComparisonInfo | None
    """In which it lost; None: in none."""

    @property
    def sentence(self) -> str:
        """What it lost, and what it breaks."""
        rules = self.info.broken_rules
        broken = f"it breaks {count_noun(len(rules), 'rules')} of the gate: {'; '.join(rules)}" if rules else ""
        lost = "" if self.comparison is None else self.comparison.record.verdict_sentence
        return ". ".join(filter(None, (lost.rstrip("."), broken)))


@dataclass(frozen=True, slots=True)
class Overview:
    """What changed, and what waits."""

    evaluations: tuple[EvaluationInfo, ...]
    regressions: tuple[Regression, ...]
    void: tuple[EvaluationInfo, ...]
    """Those that do not count; a pilot never does."""
    waiting: tuple[EvaluationInfo, ...]
    """Those that wait for grades."""
    comparisons: tuple[ComparisonInfo, ...]
    verdicts: tuple[tuple[str, int], ...]
    """Words of a verdict, and how many comparisons have it, those of pilots and of parts of a system not counted: better and worse first."""
    failed: tuple[JobInfo, ...]
    n_running: int
    overdue: tuple[tuple[SetInfo, Refresh], ...]
    is_new: bool
    """Nothing was evaluated yet."""
    testsets: tuple[SetInfo, ...]

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to read."""
        return not (self.evaluations or self.comparisons or self.failed or self.overdue)


def overview(service: Service, since: int) -> Overview:
    """What changed since a time, in milliseconds."""
    evaluations = service.evaluations.all(EvaluationFilter(since=since, limit=MOST))
    comparisons = tuple(each for each in service.comparisons.all(limit=MOST) if each.at >= since)
    failed = tuple(each for each in service.jobs.all(JobState.FAILED, limit=MOST) if (each.finished_at or 0) >= since)
    testsets = service.testsets.names()
    due = [(info, refresh) for info in testsets if (refresh := refresh_of(service, info)) and refresh.overdue]
    n_jobs = service.jobs.counts()
    n_verdicts = Counter(each.record.verdict for each in comparisons if each.is_of_record)
    return Overview(
        evaluations=evaluations,
        regressions=tuple(_regressions(evaluations, comparisons)),
        void=tuple(info for info in evaluations if info.void and not info.pilot),
        waiting=tuple(info for info in evaluations if info.state is EvaluationState.WAITING),
        comparisons=comparisons,
        verdicts=tuple((code.text, n_verdicts[code]) for code in VerdictCode if n_verdicts[code]),
        failed=failed,
        n_running=n_jobs[JobState.RUNNING] + n_jobs[JobState.QUEUED],
        overdue=tuple(due),
        is_new=not evaluations and not service.evaluations.all(EvaluationFilter(limit=1)),
        testsets=testsets,
    )


def _regressions(evaluations: Sequence[EvaluationInfo], comparisons: Sequence[ComparisonInfo]) -> Iterator[Regression]:
    """Evaluations that lost or break rules, the latest first."""
    lost = {each.candidate.id: each for each in reversed(comparisons) if each.is_regression}
    known = {info.id: info for info in evaluations if info.broken_rules}
    known |= {number: each.candidate for number, each in lost.items()}
    for number in sorted(known, reverse=True):
        yield Regression(known[number], lost.get(number))


def to_decide(store: Store, caller: Caller) -> list[tuple[str, int]]:
    """Books in which items wait for a decision, with their number; none for those who do not decide."""
    if not caller.may("manage"):
        return []
    waiting = store.reading.counts(ItemFilter(state=ItemState.ADJUDICATE))
    return [(book.name, waiting[book.id]) for book in store.books.all() if book.id in waiting]


def visits(cookie: str, now: int) -> tuple[int, str]:
    """Since when a browser has not seen the page, from its cookie, and the next value of that.

    The cookie holds the end of the visit before and the last time in this one: `PREVIOUS.LAST`, in seconds. What is shown
    goes back to the visit before, and at least a day.
    """
    first, _, second = cookie.partition(".")
    previous, last = (
        int(each) * 1000 if each.isascii() and each.isdecimal() and len(each) < 12 else 0 for each in (first, second)
    )
    if last and now - last > VISIT_MS:
        previous = last
    since = min(previous or now, now - DAY_MS)
    return max(since, now - 30 * DAY_MS), f"{previous // 1000}.{now // 1000}"


router = APIRouter()
Self = Annotated[Caller, Depends(require("account"))]
Reader = Annotated[Caller, Depends(require("read"))]
BookRow = tuple["BookInfo", "JudgingProgress | None"]


def book_rows(store: Store, caller: Caller) -> list[BookRow]:
    """The books that an account may see, with its progress in those of which it is a member."""
    mine = set(store.people.books_of(caller.account.id))
    sees_all = caller.account.role != Role.RATER
    return [
        (book, store.reading.progress(book.id, caller.account.id) if book.id in mine else None)
        for book in store.books.all()
        if sees_all or book.id in mine
    ]


@router.get("/")
def home(request: Request, caller: Self) -> HTMLResponse:
    """Show raters their books, and other users recent changes and open tasks."""
    store: Store = request.app.state.store
    rows = book_rows(store, caller)
    service = getattr(request.app.state, "service", None)
    if service is None or not caller.may("read"):
        return render_page(request, "books.html", caller, rows=rows)
    name = request.app.state.options.cookie("visits")
    since, cookie = visits(request.cookies.get(name, ""), service.clock())
    found = overview(service, since)
    page = render_page(
        request,
        "home.html",
        caller,
        rows=rows,
        since=since,
        found=found,
        shown=SHOWN,
        content=_lists(found),
        waiting=[
            (book, progress) for book, progress in rows if progress and progress.n_left and book.state == BookState.OPEN
        ],
        deciding=to_decide(store, caller),
        has_config=service.config() is not None,
        config_problems=service.config_problems if caller.may("manage") else (),
    )
    page.set_cookie(
        name, cookie, max_age=365 * 86_400, httponly=True, samesite="lax", secure=request.app.state.options.secure
    )
    return page


def _caption(things: str, n: int) -> str:
    """How many there are, where not all are shown."""
    shown = f"{SHOWN} of {n}" + (" or more" if n == MOST else "")
    return f"{things}, the latest {shown if n > SHOWN else 'first'}"


def _lists(found: Overview) -> Markup | str:
    sections = [
        Section(
            "comparisons",
            "Verdicts",
            (comparison_table(found.comparisons[:SHOWN], _caption("New comparisons", len(found.comparisons))),),
        ),
        Section(
            "failed", "Failed jobs", (job_table(found.failed[:SHOWN], _caption("Failed jobs", len(found.failed))),)
        ),
        Section(
            "evaluations",
            "New evaluations",
            (evaluation_table(found.evaluations[:SHOWN], _caption("New evaluations", len(found.evaluations))),),
        ),
    ]
    counts = (found.comparisons, found.failed, found.evaluations)
    shown = [section for section, rows in zip(sections, counts, strict=True) if rows]
    return blocks(shown) if shown else ""


@router.get("/books")
def books(request: Request, caller: Reader) -> HTMLResponse:
    """List the books."""
    return render_page(request, "books.html", caller, rows=book_rows(request.app.state.store, caller))
