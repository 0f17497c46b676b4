"""The order of calls: one dispatcher for all systems, so that a slow hour is slow for all of them.

Calls wait in a row, query by query. A call begins when the concurrency of its system, the overall concurrency and the rate
of its system allow it. Later calls may overtake it, up to a limit: no system runs far ahead of the others.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from cranfield.concurrency.loop import FunctionError, Threads, event_loop, finish
from cranfield.model import Answer, CallLog, Outcome, Query
from cranfield.systems.system import AsyncSystem, CallInterruptedError, Interruptible, System

AHEAD = 2
"""A system may be ahead of the slowest by this many queries for each call that may be under way."""

_INTERRUPTION_S = 0.01
"""Between two interruptions of a call in a thread: it may not have begun when the first one came."""
_CUT_SHORT = "the call was cut short, and not by Cranfield"


@dataclass(frozen=True, slots=True)
class Call:
    """A query for a system."""

    turn: int
    """Place of the query in the test set."""
    system: System
    query: Query


Take = Callable[[Call, Answer, CallLog], None]
"""Called with each answer in a thread, one answer at a time."""


def interleave(queries: Sequence[Query], systems: Sequence[System], *, seed: int, repetition: int) -> list[Call]:
    """Every query for every system: query by query, the systems of each in a random order.

    Args:
        queries: in the order in which they are sent.
        systems: systems under test.
        seed: of the order within a query; it does not depend on which other systems or queries there are.
        repetition: 0 for the warm-up, then 1, 2, ...; the order differs between repetitions.
    """

    def order_key(query: Query, system: System) -> bytes:
        text = "\0".join(("cranfield turn 1", str(seed), str(repetition), query.id, system.name))
        return sha256(text.encode("utf-8", "surrogatepass")).digest()

    return [
        Call(turn, system, query)
        for turn, query in enumerate(queries)
        for system in sorted(systems, key=lambda system: order_key(query, system))
    ]


@dataclass
class _Room:
    """The limits of one system: calls at a time, and the interval between them."""

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
    """Calls systems as fast as their limits allow; intervals are kept from one row of calls to the next."""

    def __init__(self, systems: Sequence[System], k: int) -> None:
        """Prepare for calls to `systems`, whose names differ; `k` results are requested."""
        self._k = k
        self._rooms = {system.name: _room_of(system) for system in systems}
        self._calling = Threads("cranfield-call")
        self._taking = Threads("cranfield-take")
        self._one_take = asyncio.Lock()
        self._running: list[Call] = []
        self._is_stopping = False
        self._error: BaseException | None = None

    def ask(self, calls: Sequence[Call], take: Take) -> None:
        """Make every call, and return when the last one has ended.

        At most as many are under way as the system allows that allows the most. An exception (of a system, of `take`, or
        Ctrl-C) cancels the calls under way, and none of them becomes a failure.
        """
        event_loop().run(self._ask(list(calls), take))
        if self._error is not None:
            raise self._error

    async def _ask(self, waiting: list[Call], take: Take) -> None:
        at_once = max((self._rooms[call.system.name].concurrency for call in waiting), default=1)
        tasks: set[asyncio.Task[None]] = set()
        try:
            while (waiting or tasks) and self._error is None:
                tasks |= {asyncio.create_task(self._make(call, take)) for call in self._begin(waiting, at_once)}
                if tasks:
                    _, tasks = await asyncio.wait(tasks, timeout=self._wait_s(), return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(self._wait_s() or 0)
        finally:
            self._is_stopping = True
            for task in tasks:
                task.cancel()
            if tasks:
                await finish(asyncio.wait(tasks))
            self._is_stopping = False
            self._calling.close()
            self._taking.close()

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

    def _wait_s(self) -> float | None:
        """Seconds until a call may begin, where none ends before; None: only the end of a call changes anything."""
        now = time.monotonic()
        waits = [wait for room in self._rooms.values() if 0 < (wait := room.wait_s(now)) < math.inf]
        return min(waits, default=None)

    async def _make(self, call: Call, take: Take) -> None:
        """Make one call, and have its answer taken."""
        self._running.append(call)
        try:
            answer, log = await self._answer(call)
            # A failure while everything is being stopped may be caused by that.
            if not (self._is_stopping and answer.outcome.is_failure):
                await finish(self._take(partial(take, call, answer, log)))
        except asyncio.CancelledError:
            raise
        except FunctionError as raised:
            self._error = self._error or raised.error
        except Exception as error:  # noqa: BLE001 - raised by `ask`
            self._error = self._error or error
        finally:
            self._running.remove(call)
            self._rooms[call.system.name].under_way -= 1

    async def _take(self, take: Callable[[], None]) -> None:
        async with self._one_take:
            await self._taking.call(take)

    async def _answer(self, call: Call) -> tuple[Answer, CallLog]:
        began = time.perf_counter()
        try:
            if isinstance(call.system, AsyncSystem):
                return await call.system.search_async(call.query, self._k)
            return await self._answer_in_thread(call)
        except (asyncio.CancelledError, CallInterruptedError):
            if self._is_stopping:
                raise asyncio.CancelledError from None
            return Answer(Outcome.ERROR, reason=_CUT_SHORT), CallLog((time.perf_counter() - began) * 1000)

    async def _answer_in_thread(self, call: Call) -> tuple[Answer, CallLog]:
        """The answer of a system that is called in a thread; cancelled, it is interrupted until it has ended."""
        searching = asyncio.ensure_future(self._calling.call(partial(call.system.search, call.query, self._k)))
        try:
            await asyncio.wait([searching])
        except asyncio.CancelledError:
            while isinstance(call.system, Interruptible) and not searching.done():
                with suppress(FunctionError):
                    await self._calling.call(call.system.interrupt)
                await asyncio.wait([searching], timeout=_INTERRUPTION_S)
            await asyncio.wait([searching])
        try:
            return searching.result()
        except FunctionError as raised:
            if isinstance(raised.error, CallInterruptedError):
                raise raised.error from None
            raise


def _room_of(system: System) -> _Room:
    rate_per_s: float | None = getattr(system, "rate_per_s", None)
    return _Room(max(system.concurrency, 1), 1 / rate_per_s if rate_per_s else 0.0)
