"""What an evaluation of a history is called: its commit, its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from cranfield.evaluation.history import HistoryPoint

COMMIT_SHOWN = 8


def commit_of(point: HistoryPoint) -> str:
    """`5e3739da`, with `*` for uncommitted changes; empty outside of a repository."""
    return "" if point.commit is None else point.commit[:COMMIT_SHOWN] + ("*" if point.dirty else "")


def time_of(time: datetime) -> str:
    """`2026-11-21 20:51`."""
    return f"{time:%Y-%m-%d %H:%M}"


def label_maker(points: Iterable[HistoryPoint]) -> Callable[[HistoryPoint], str]:
    """What stands under a point: its commit, else its day; the time too, where a day has several points."""
    days = Counter(time.date() for time in {point.time for point in points})
    form = "%m-%d" if max(days.values(), default=0) <= 1 else "%m-%d %H:%M"
    return lambda point: commit_of(point) or point.time.strftime(form)
