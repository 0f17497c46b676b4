"""Which call begins when: one dispatcher for all systems, so that a slow hour is slow for all of them.

Calls wait in a row, query by query. A call begins where its system has room, the whole has room and the system's rate
allows. One that cannot begin lets those behind it pass, but not by far: no system runs away from the others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread

from cranfield.model import Answer, CallLog, Outcome, Query
from cranfield.systems.system import CallInterruptedError, Interruptible, System

AHEAD = 2
"""A system may be ahead of the slowest by this many queries for each call that may be under way."""

_POLL_S = 0.1
_CUT_SHORT = "the call was cut short, and not by Cranfield"


@dataclass(frozen=True, slots=True)
class Call:
    """A query for a system."""

    turn: int
    """Place of the query in the test set."""
    system: System
    query: Query


Take = Callable[[Call, Answer, CallLog], None]
"""Called with each answer, by one thread at a time."""
_Ended = SimpleQueue[tuple[Call, Future[None]]]


def in_turn(queries: Sequence[Query], systems: Sequence[System], *, seed: int, time_asked: int) -> list[Call]:
    """Every query for every system: query by query, and within each in an order of its own.

    Args:
        queries: in the order in which they are asked.
        systems: what is asked.
        seed: of the order within a query; it does not depend on which other systems or queries there are.
        time_asked: 1 when the queries are asked for the first time; each time has its own order.
    """

    def drawn(query: Query, system: System) -> bytes:
        text = "\0".join(("cranfield turn 1", str(seed), str(time_asked), query.id, system.name))
        return sha256(text.encode("utf-8", "surrogatepass")).digest()

    return [
        Call(turn, system, query)
        for turn, query in enumerate(queries)
        for system in sorted(systems, key=lambda system: drawn(query, system))
    ]


@dataclass
class _Room:
    """What one system allows: calls at a time, and a distance between them."""

    concurrency: int
    interval_s: float
    under_way: int = 0
    next_at: float = -math.inf

    def wait_s(self, now: float) -> float:
        """Seconds until a call may begin; infinite as long as none of its calls ends."""
        return max(self.next_at - now, 0.0) if self.under_way < self.concurrency else math.inf

    def begin(self, now: float) -> None:
        """Count a call that begins now."""
        self.under_way += 1
        self.next_at = now + self.interval_s


class Dispatcher:
    """Asks systems with as many threads as they allow; the distance between calls is kept from one row to the next."""

    def __init__(self, systems: Sequence[System], k: int) -> None:
        """Prepare for calls to `systems`, whose names differ; `k` results are asked for."""
        self._k = k
        self._rooms = {system.name: _room_of(system) for system in systems}
        self._lock = Lock()
        self._running: list[Call] = []
        self._stopping = Event()

    def ask(self, calls: Sequence[Call], take: Take) -> None:
        """Make every call, and return when the last one has ended.

        At most as many are under way as the one system allows that allows the most. Cut short by any exception, in
        here or of a system, calls under way are ended, and none of them is a failure.
        """
        waiting, left = list(calls), len(calls)
        at_once = max((self._rooms[call.system.name].concurrency for call in calls), default=1)
        ended: _Ended = SimpleQueue()
        executor = ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="cranfield-call")
        try:
            while left:
                for call in self._begin(waiting, at_once):
                    executor.submit(self._ask, call, take).add_done_callback(partial(_hand_back, ended, call))
                # Never without an end: a signal that comes in the moment before a wait is heard only after it.
                try:
                    call, future = ended.get(timeout=self._wait_s())
                except Empty:
                    continue
                left -= 1
                self._rooms[call.system.name].under_way -= 1
                future.result()
        except BaseException:
            self._stopping.set()
            # In a thread of its own, in which no second or third Ctrl-C is heard: a call left behind would keep us here.
            Thread(target=self._end_calls, name="cranfield-end", daemon=True).start()
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)

    def _begin(self, waiting: list[Call], at_once: int) -> Iterator[Call]:
        """Take every call out of `waiting` that may begin now."""
        free = at_once - sum(room.under_way for room in self._rooms.values())
        place = 0
        while free and place < len(waiting) and waiting[place].turn <= waiting[0].turn + AHEAD * at_once:
            now = time.monotonic()
            room = self._rooms[waiting[place].system.name]
            if room.wait_s(now) > 0:
                place += 1
                continue
            room.begin(now)
            free -= 1
            yield waiting.pop(place)

    def _wait_s(self) -> float:
        """Seconds until there is something to look at, where no call ends before."""
        now = time.monotonic()
        return min([_POLL_S, *(wait for room in self._rooms.values() if (wait := room.wait_s(now)) > 0)])

    def _ask(self, call: Call, take: Take) -> None:
        """Make one call, in a thread of its own."""
        with self._lock:
            if self._stopping.is_set():
                return
            self._running.append(call)
        try:
            answer, log = self._answer(call)
            with self._lock:
                # What failed meanwhile may have failed because everything is being stopped.
                if not (self._stopping.is_set() and answer.outcome.is_failure):
                    take(call, answer, log)
        except BaseException:
            self._stopping.set()  # at once, so that nothing begins any more
            raise
        finally:
            with self._lock:
                self._running.remove(call)

    def _answer(self, call: Call) -> tuple[Answer, CallLog]:
        began = time.perf_counter()
        try:
            return call.system.search(call.query, self._k)
        except CallInterruptedError:
            return Answer(Outcome.ERROR, reason=_CUT_SHORT), CallLog((time.perf_counter() - began) * 1000)

    def _end_calls(self) -> None:
        """Interrupt what is under way, and wait until it has ended."""
        while True:
            with self._lock:
                systems = {call.system.name: call.system for call in self._running}
            if not systems:
                return
            for system in systems.values():
                if isinstance(system, Interruptible):
                    system.interrupt()
            # Again and again: a call may have been on its way when the first interruption came.
            time.sleep(_POLL_S / 10)


def _hand_back(ended: _Ended, call: Call, done: Future[None]) -> None:
    ended.put((call, done))


def _room_of(system: System) -> _Room:
    rate_per_s: float | None = getattr(system, "rate_per_s", None)
    return _Room(max(system.concurrency, 1), 1 / rate_per_s if rate_per_s else 0.0)
