"""Journal of a collection: every answer is written as it comes, so that an interrupted collection can be resumed.

One file per system under `.partial/`: a header that identifies the collection, then one line per answer. An incomplete
last line is dropped; the journal of another collection is moved to `set-aside/`. It is removed when the report stands.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cranfield.base.errors import CranfieldError
from cranfield.formats.io.files import PRIVATE_FOLDER, Folder, flush, folder_inside, open_inside
from cranfield.formats.runs.record import answer_from_record, answer_record, json_line
from cranfield.model import Answer, CallLog, Order, Run

VERSION = 1
OLD_JOURNALS = "set-aside"
"""Folder of journals of other collections."""
FLUSH_S = 1.0
"""A power cut costs the answers of this time at most, in seconds: flushing each one would take milliseconds of every call."""

_CHANGES = {
    "journal": "it was written by another version of Cranfield",
    "testset": "the test set changed",
    "config": "the system's config changed",
    "surroundings": "the dependencies of the system changed",
    "k": "k changed",
    "repeats": "the number of repeats changed",
    "pilot": "the pilot setting changed",
    "refresh": "new answers are requested",
}


UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError, CranfieldError)
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


def age_s(at: float, now: float) -> float:
    """Age of an answer in seconds. One from the future, by a wrong clock or a file that was made up, is not new either."""
    return float(round(abs(now - at)))


def with_ages(run: Run) -> Run:
    """A run that an interrupted call collected, with the age of each answer in its log."""
    now = time.time()
    logs = {
        query_id: replace(log, age_s=age_s(datetime.fromisoformat(log.at).timestamp(), now))
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

    def __init__(self, folder: Path, name: str, collection: Mapping[str, Any], *, root: Path | None = None) -> None:
        """Open the journal of `name`, and resume an earlier one of the same collection.

        Args:
            folder: folder of journals, made where it is missing.
            name: the system's name, a valid file name.
            collection: must be equal for an earlier journal to be resumed.
            root: a folder that exists, `folder` or above it, below which no link is followed; None: `folder`.

        Raises:
            UsageError: a link, or what is no file, is in its place.
        """
        super().__init__()
        self.path = folder / f"{name}.jsonl"
        self.restart_reason: str | None = None
        """Reason why an earlier journal is not resumed, and its new place."""
        self._root = root or folder
        self._failure: OSError | None = None
        self._flushed = 0.0
        header = {"journal": VERSION, **collection}
        with folder_inside(self._root, folder, make=PRIVATE_FOLDER) as opened:
            self._open()
            try:
                self._size = self._resume(header, opened)
                self._stream.truncate(self._size)
                if not self._size:
                    self._write(header)
                opened.flush()
            except BaseException:
                self._stream.close()
                raise

    def append(self, query_id: str, kept: KeptAnswer) -> None:
        """Add the first answer to a query; a kill does not lose it when this returns."""
        self._write(kept_record(query_id, kept))
        super().append(query_id, kept)

    def append_again(self, query_id: str, latency_ms: float, differs: str | None) -> None:
        """Add a repetition."""
        self._write({"query_id": query_id, "again": [latency_ms, differs]})
        super().append_again(query_id, latency_ms, differs)

    def close(self) -> None:
        """Flush and close the file."""
        if not self._stream.closed:
            with self._stream, suppress(OSError):  # what it wrote is known, and an earlier error is on its way
                flush(self._stream.fileno())

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        self._stream = os.fdopen(open_inside(self._root, self.path, flags), "a+b", buffering=0)

    def _write(self, record: Mapping[str, Any]) -> None:
        """Write a line as a whole, or raise: after that nothing more is written, which would stand behind half a line."""
        if self._failure is not None:
            raise self._failure
        line = memoryview(json_line(record).encode("utf-8", "surrogatepass"))
        try:
            written = 0
            while written < len(line):
                written += self._stream.write(line[written:])
            if time.monotonic() - self._flushed >= FLUSH_S:
                flush(self._stream.fileno())
                self._flushed = time.monotonic()
        except OSError as error:
            error.filename, self._failure = str(self.path), error
            with suppress(OSError):
                self._stream.truncate(self._size)
            raise
        self._size += len(line)

    def _resume(self, header: Mapping[str, Any], folder: Folder) -> int:
        """Read an earlier journal; the number of valid bytes, 0 if it is not resumed."""
        self._stream.seek(0)
        data = self._stream.readall()
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
            self._move_away("it is damaged", folder)
            return 0
        if differs:
            self._move_away(" and ".join(_CHANGES.get(key, key) for key in differs), folder)
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
                log = replace(kept.log, at=kept.log.at or utc_time(kept.at), age_s=age_s(kept.at, now))
                super().append(query_id, replace(kept, log=log))

    def _move_away(self, reason: str, folder: Folder) -> None:
        """Move the journal to those of other collections, and open a new one."""
        place = self.path.parent / OLD_JOURNALS
        with folder_inside(self._root, place, make=PRIVATE_FOLDER) as others:
            number, taken = 1, set(others.names())
            while (name := f"{self.path.stem}-{number}.jsonl") in taken:
                number += 1
            self._stream.close()  # Windows renames no open file
            folder.replace(self.path.name, others, name)
            others.flush()
        self._open()
        self.restart_reason = f"{reason}; the earlier answers are in {place.parent.name}/{place.name}/{name}"


def remove_journals(root: Path, folder: Path, names: Iterable[str]) -> None:
    """Remove journals whose answers are in a report, and their folder when nothing else is in it.

    Args:
        root: as of `Journal`.
        folder: as of `Journal`.
        names: of the systems.
    """
    with folder_inside(root, folder) as opened:
        for name in names:
            with suppress(FileNotFoundError):
                opened.unlink(f"{name}.jsonl")
        opened.flush()
    with suppress(OSError), folder_inside(root, folder.parent) as parent:  # journals that were set aside remain
        parent.rmdir(folder.name)


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
    at = float(record["at"])
    utc_time(at)  # a time that no calendar has is damage
    return query_id, KeptAnswer(answer, log, at)


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
            return f"rank {rank}: {hit.public_id}, then {other.public_id}"
        if hit.span != other.span:
            return f"rank {rank}: {hit.public_id} at {hit.public_span}, then at {other.public_span}"
        if order != "given" and hit.score != other.score:
            return f"rank {rank}: {hit.public_id} with {hit.score}, then with {other.score}"
    if len(first.hits) != len(later.hits):
        return f"{len(first.hits)} results, then {len(later.hits)}"
    return None
