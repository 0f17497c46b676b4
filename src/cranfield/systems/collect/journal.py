"""Journal of a collection: every answer is written as it comes, so that an interrupted collection can be resumed.

One file per system under `.partial/`: a header that identifies the collection, then one line per answer. An incomplete
last line is dropped; the journal of another collection is moved to `set-aside/`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cranfield.errors import CranfieldError
from cranfield.formats.runs.record import answer_from_record, answer_record, json_line
from cranfield.model import Answer, CallLog, Order, Run

VERSION = 2
OLD_JOURNALS = "set-aside"
"""Folder of journals of other collections."""

_CHANGES = {
    "journal": "it was written by another version of Cranfield",
    "testset": "the test set changed",
    "config": "the system's config changed",
    "surroundings": "what the system depends on changed",
    "k": "k changed",
    "repeats": "the number of repeats changed",
    "pilot": "the pilot setting changed",
}


UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, RecursionError, CranfieldError)
"""Exceptions raised by reading damaged lines."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The first answer to a query, its log with all repetitions, and its time."""

    answer: Answer
    log: CallLog
    at: float
    """Seconds since 1970, UTC."""


def utc_time(at: float) -> str:
    """Seconds since 1970 as a time in UTC: `2026-11-21T20:51:03Z`."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def with_ages(run: Run) -> Run:
    """A run that an interrupted call collected, with the age of each answer in its log."""
    now = datetime.now(UTC)
    logs = {
        query_id: replace(log, age_s=max(0.0, round((now - datetime.fromisoformat(log.at)).total_seconds())))
        if log.at is not None and log.age_s is None
        else log
        for query_id, log in run.logs.items()
    }
    return replace(run, logs=logs)


def oldest_time(answers: Iterable[KeptAnswer]) -> str:
    """Time of the oldest answer: `2026-11-21 20:51 UTC`."""
    oldest = min(kept.at for kept in answers)
    return f"{datetime.fromtimestamp(oldest, UTC):%Y-%m-%d %H:%M} UTC"


class Answers:
    """Answers collected so far from one system, in memory."""

    def __init__(self) -> None:
        """Begin without answers."""
        self.kept: dict[str, KeptAnswer] = {}

    @property
    def n_calls(self) -> int:
        """Number of calls, repetitions included."""
        return sum(self.n_calls_for(query_id) for query_id in self.kept)

    def n_calls_for(self, query_id: str) -> int:
        """Number of calls for a query so far."""
        return 1 + len(self.kept[query_id].log.repeat_ms) if query_id in self.kept else 0

    def append(self, query_id: str, kept: KeptAnswer) -> None:
        """Add the first answer to a query."""
        self.kept[query_id] = kept

    def append_again(self, query_id: str, latency_ms: float, differs: str | None) -> None:
        """Add a repetition: its latency, and how its answer differs from the first."""
        kept = self.kept[query_id]
        unstable = kept.log.unstable if differs is None else (*kept.log.unstable, differs)
        log = replace(kept.log, repeat_ms=(*kept.log.repeat_ms, latency_ms), unstable=unstable)
        self.kept[query_id] = replace(kept, log=log)


class Journal(Answers):
    """Answers collected so far from one system, each written to disk first."""

    def __init__(self, folder: Path, name: str, collection: Mapping[str, Any]) -> None:
        """Open the journal of `name`, and resume an earlier one of the same collection.

        Args:
            folder: folder of journals; must exist.
            name: the system's name, a valid file name.
            collection: must be equal for an earlier journal to be resumed.
        """
        super().__init__()
        self.path = folder / f"{name}.jsonl"
        self.restart_reason: str | None = None
        """Reason why an earlier journal is not resumed, and its new place."""
        header = {"journal": VERSION, **collection}
        sound_bytes = self._resume(header) if self.path.exists() else 0
        self._stream = self.path.open("ab", buffering=0)
        if sound_bytes:
            self._stream.truncate(sound_bytes)
        else:
            self._stream.truncate(0)
            self._write(header)

    def append(self, query_id: str, kept: KeptAnswer) -> None:
        """Add the first answer to a query; it is with the operating system when this returns."""
        self._write(kept_record(query_id, kept))
        super().append(query_id, kept)

    def append_again(self, query_id: str, latency_ms: float, differs: str | None) -> None:
        """Add a repetition."""
        self._write({"query_id": query_id, "again": [latency_ms, differs]})
        super().append_again(query_id, latency_ms, differs)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def remove(self) -> None:
        """Remove the file: the answers are in a run now."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _write(self, record: Mapping[str, Any]) -> None:
        line = json_line(record).encode("utf-8", "surrogatepass")
        written = self._stream.write(line)
        if written != len(line):
            raise OSError(f"{self.path.name}: {written} of {len(line)} bytes written")

    def _resume(self, header: Mapping[str, Any]) -> int:
        """Read an earlier journal; the number of valid bytes, 0 if it is not resumed."""
        data = self.path.read_bytes()
        sound_bytes = data.rfind(b"\n") + 1  # an incomplete last line is dropped
        if data.count(b"\n") < 2:
            return 0  # no answers
        try:
            found, *records = read_records(data[:sound_bytes])
            differs = [key for key in header if found.get(key) != header[key]]
            if not differs:
                self._replay(records)
        except UNREADABLE:
            self.kept.clear()
            self._move_away("it is damaged")
            return 0
        if differs:
            self._move_away(" and ".join(_CHANGES.get(key, key) for key in differs))
            return 0
        return sound_bytes

    def _replay(self, records: list[Any]) -> None:
        """Add the answers of an earlier call, each with its age."""
        now = time.time()
        for record in records:
            if "again" in record:
                latency_ms, differs = record["again"]
                super().append_again(record["query_id"], float(latency_ms), differs)
            else:
                query_id, kept = kept_from_record(record)
                log = replace(kept.log, at=kept.log.at or utc_time(kept.at), age_s=max(0.0, round(now - kept.at)))
                super().append(query_id, replace(kept, log=log))

    def _move_away(self, reason: str) -> None:
        folder = self.path.parent / OLD_JOURNALS
        folder.mkdir(exist_ok=True)
        number = 1
        while (new_path := folder / f"{self.path.stem}-{number}.jsonl").exists():
            number += 1
        self.path.rename(new_path)
        self.restart_reason = f"{reason}; the earlier answers are in {folder.parent.name}/{folder.name}/{new_path.name}"


def kept_record(query_id: str, kept: KeptAnswer) -> dict[str, Any]:
    """An answer as plain data for `json_line`."""
    return {**answer_record(query_id, kept.answer, kept.log), "at": kept.at}


def kept_from_record(record: Mapping[str, Any]) -> tuple[str, KeptAnswer]:
    """Query id and answer of a record written by `kept_record`.

    Raises:
        UNREADABLE: one of these, if it is damaged.
    """
    query_id, answer, log = answer_from_record({key: value for key, value in record.items() if key != "at"})
    if log is None:
        raise ValueError(query_id)
    return query_id, KeptAnswer(answer, log, float(record["at"]))


def read_records(data: bytes) -> list[Any]:
    """The records of complete JSON lines."""
    *lines, rest = data.split(b"\n")
    if rest:
        raise ValueError(rest)
    return [json.loads(line.decode("utf-8", "surrogatepass")) for line in lines]


def difference(first: Answer, later: Answer, order: Order = "given") -> str | None:
    """The first difference between two answers to the same query; None if they are equal.

    Compares the outcome, then ids and spans rank by rank; scores too, if they order the list.

    Example:
        >>> from cranfield.model import Hit, Outcome
        >>> answers = [Answer(Outcome.ANSWERED, (Hit("d1"), Hit(last))) for last in ("d7", "d9")]
        >>> difference(*answers)
        'rank 2: d7, then d9'
    """
    if first.outcome is not later.outcome:
        return f"{first.outcome.value}, then {later.outcome.value}"
    for rank, (hit, other) in enumerate(zip(first.hits, later.hits, strict=False), start=1):
        if hit.id != other.id:
            return f"rank {rank}: {hit.id}, then {other.id}"
        if hit.span != other.span:
            return f"rank {rank}: {hit.id} at {hit.span}, then at {other.span}"
        if order != "given" and hit.score != other.score:
            return f"rank {rank}: {hit.id} with {hit.score}, then with {other.score}"
    if len(first.hits) != len(later.hits):
        return f"{len(first.hits)} results, then {len(later.hits)}"
    return None
