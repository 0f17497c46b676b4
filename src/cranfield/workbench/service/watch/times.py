"""When a schedule is due: its times with their delay, the last one that was missed, those that passed during a run.

All follows from the schedule, its last job and the time: nothing else is stored, and two servers come to the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice, takewhile

from cranfield.workbench.service.values import JobInfo
from cranfield.workbench.watch_config import AnyWatch

MAX_SKIPPED = 1_000
"""Times that are counted of one run."""
_KEY_TIME = "%Y-%m-%dT%H:%MZ"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule of the operator's file, by name, on one database."""

    name: str
    watch: AnyWatch
    where: str
    """The database, as an absolute path where it is a file: other databases have other delays."""

    @property
    def prefix(self) -> str:
        """Prefix of the keys of its jobs."""
        return f"watch:{self.name}:"

    def key(self, time: datetime) -> str:
        """The key of the job of a time: however many servers start it, it is one job."""
        return f"{self.prefix}{time.astimezone(UTC):{_KEY_TIME}}"

    def compare_key(self, evaluation_id: int) -> str:
        """The key of the job that compares an evaluation of the schedule; no other key begins so."""
        return f"compare:{self.name}:{evaluation_id}:"

    def due(self, time: datetime) -> datetime:
        """A time with its delay, UTC."""
        if not self.watch.jitter_s:
            return time.astimezone(UTC)
        digest = sha256(f"{self.where}\n{self.key(time)}".encode()).digest()
        delay = int.from_bytes(digest[:8]) % (self.watch.jitter_s + 1)
        return time.astimezone(UTC) + timedelta(seconds=delay)

    def time_of(self, job: JobInfo) -> datetime:
        """The time of a job of this schedule; of one that was started by hand, when it was made."""
        text = (job.key or "").removeprefix(self.prefix)
        try:
            return datetime.strptime(text, _KEY_TIME).replace(tzinfo=UTC)
        except ValueError:
            return moment(job.created_at)

    def upcoming(self, after: datetime) -> Iterator[datetime]:
        """The times that are due after a time, with their delays, UTC."""
        begin = after - timedelta(seconds=self.watch.jitter_s)
        return (due for time in self.watch.times(begin) if (due := self.due(time)) > after)

    def missed(self, since: datetime, now: datetime) -> datetime | None:
        """The last time, without its delay, that became due since then: of many only this one is run."""
        for time in self.watch.times_before(now):
            if (due := self.due(time)) <= now:
                return time if due > since else None
        return None

    def n_skipped(self, job: JobInfo, now: datetime) -> int:
        """How many times became due while a job was waiting or running: none of them is run."""
        end = moment(job.finished_at) if job.finished_at is not None else now
        due = takewhile(lambda time: time <= end, self.upcoming(self.due(self.time_of(job))))
        return sum(1 for _ in islice(due, MAX_SKIPPED))


def moment(ms: int) -> datetime:
    """A stored time."""
    return datetime.fromtimestamp(ms / 1000, UTC)
