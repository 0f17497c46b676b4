"""What changed on this server since a time: what the first page shows to those who see evaluations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.store.schema import ItemState
from cranfield.judging.store.values import ItemFilter
from cranfield.server.testsets import Refresh, refresh_of
from cranfield.service.responses import JobState
from cranfield.service.values import EvaluationFilter

if TYPE_CHECKING:
    from cranfield.judging.store.store import Store
    from cranfield.server.access import Caller
    from cranfield.service.service import Service
    from cranfield.service.values import ComparisonInfo, EvaluationInfo, JobInfo, SetInfo

DAY_MS = 86_400_000
VISIT_MS = 1_800_000
"""Pages that are opened within half an hour are one visit."""
SHOWN = 10
"""Rows of each list."""
MOST = 200
"""Evaluations, comparisons and failed jobs that are counted."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What changed, and what waits."""

    evaluations: tuple[EvaluationInfo, ...]
    n_void: int
    void: tuple[EvaluationInfo, ...]
    """The first of those that do not count."""
    comparisons: tuple[ComparisonInfo, ...]
    verdicts: tuple[tuple[str, int], ...]
    """Words of a verdict, and how many comparisons have it: better and worse first."""
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
    void = tuple(info for info in evaluations if info.void)
    comparisons = tuple(each for each in service.comparisons.all(limit=MOST) if each.at >= since)
    failed = tuple(each for each in service.jobs.all(JobState.FAILED, limit=MOST) if (each.finished_at or 0) >= since)
    testsets = service.testsets.names()
    due = [(info, refresh) for info in testsets if (refresh := refresh_of(service, info)) and refresh.overdue]
    n_jobs = service.jobs.counts()
    n_verdicts = Counter(each.verdict for each in comparisons)
    return Overview(
        evaluations=evaluations,
        n_void=len(void),
        void=void[:SHOWN],
        comparisons=comparisons,
        verdicts=tuple((code.text, n_verdicts[code.value]) for code in VerdictCode if n_verdicts[code.value]),
        failed=failed,
        n_running=n_jobs[JobState.RUNNING] + n_jobs[JobState.QUEUED],
        overdue=tuple(due),
        is_new=not evaluations and not service.evaluations.all(EvaluationFilter(limit=1)),
        testsets=testsets,
    )


def to_decide(store: Store, caller: Caller) -> list[tuple[str, int]]:
    """Books in which items wait for a decision, with their number; none for those who do not decide."""
    if not caller.may("manage"):
        return []
    waiting = (
        (book.name, store.reading.count(book.id, ItemFilter(state=ItemState.ADJUDICATE))) for book in store.books.all()
    )
    return [(name, n) for name, n in waiting if n]


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
