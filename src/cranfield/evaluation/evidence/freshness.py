"""Checks of the age of answers: kept from an earlier collection, of a call that was interrupted, of two versions of an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cranfield.evaluation.evidence.values import Found, Scored
from cranfield.model import CallLog
from cranfield.numbers import format_duration

HOUR_S = 3600
VERIFIED_H = 1
"""Hours for which resumed answers of a system whose `depends` is unchanged are as good as new."""


def kept_answers(system: Scored, limit: float) -> Iterator[Found]:
    """More answers than the limit that the system was not asked for: they were kept from an earlier collection."""
    logs = _logs(system)
    is_file = system.run is not None and "run" in system.run.config  # a run file is not asked
    kept = {query_id: log for query_id, log in logs.items() if log.cached and not (is_file and log.age_s is None)}
    if len(kept) > limit:
        yield Found.of(
            f"{len(kept)} of {len(system.query_ids)} answers were kept from an earlier run{_since(kept)}, and "
            "not asked for again",
            kept,
            len(system.query_ids),
        )


def resumed_answers(system: Scored, limit_h: float) -> Iterator[Found]:
    """Answers of an interrupted call that were older than the limit when it was resumed.

    A journal is resumed only where what the system depends on is unchanged; without `depends` that is unknown.
    """
    config = system.run.config if system.run is not None else {}
    limit_s = HOUR_S * (max(limit_h, VERIFIED_H) if {"depends", "run"} & config.keys() else limit_h)
    old = {
        query_id: log
        for query_id, log in _logs(system).items()
        if not log.cached and log.age_s is not None and log.age_s > limit_s
    }
    if old:
        yield Found.of(
            f"{len(old)} of {len(system.query_ids)} answers are of the interrupted part of the run{_since(old)}: "
            "the system may have changed since",
            old,
            len(system.query_ids),
        )


def changed_meanwhile(system: Scored, _limit: float) -> Iterator[Found]:
    """What the system depends on was another when the last query had been sent than before the first."""
    if system.run is not None and system.run.changed:
        yield Found(
            "what it depends on changed while it was asked: the answers may be of two versions of its index",
            count=1,
            total=1,
        )


def _logs(system: Scored) -> Mapping[str, CallLog]:
    logs = system.run.logs if system.run is not None else {}
    return {query_id: logs[query_id] for query_id in system.query_ids if query_id in logs}


def _since(logs: Mapping[str, CallLog]) -> str:
    """The time and the age of the oldest: ` (the oldest from 2026-11-21 20:51 UTC, 23 h before)`."""
    known = [(log.at, log.age_s) for log in logs.values() if log.at is not None and log.age_s is not None]
    if not known:
        return " (their time is unknown)"
    at, age_s = min(known, key=lambda log: (-log[1], log[0]))
    return f" (the oldest from {at[:10]} {at[11:16]} UTC, {format_duration(age_s)} before)"
