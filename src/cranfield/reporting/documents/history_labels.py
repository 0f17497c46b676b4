"""What an evaluation of a history is called: its commit, its time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from cranfield.evaluation.history import HistoryPoint

COMMIT_SHOWN = 8
DAY, YEAR = "%m-%d", "%Y-%m-%d"
TIMES = ("", " %H:%M", " %H:%M:%S")


def commit_of(point: HistoryPoint) -> str:
    """`5e3739da`, with `*` for uncommitted changes; empty outside of a repository."""
    return "" if point.commit is None else point.commit[:COMMIT_SHOWN] + ("*" if point.dirty else "")


def time_of(time: datetime) -> str:
    """`2026-11-21 20:51`."""
    return f"{time:%Y-%m-%d %H:%M}"


def label_maker(points: Iterable[HistoryPoint]) -> Callable[[HistoryPoint], str]:
    """What stands under a point: its commit, else its day, with the year and the time as far as they tell days and points apart."""
    times = {point.time.replace(microsecond=0) for point in points}
    day = DAY if len({time.year for time in times}) <= 1 else YEAR
    forms = [day + time for time in TIMES]
    form = next((form for form in forms if len({time.strftime(form) for time in times}) == len(times)), forms[-1])
    return lambda point: commit_of(point) or point.time.strftime(form)
