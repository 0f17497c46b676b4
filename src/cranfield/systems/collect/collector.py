"""The collector: which query goes to which system when, one after another or several at once.

One dispatcher serves all systems, so that a slow hour is slow for all of them. Calls wait in a row, query by query. A call begins
when the concurrency of its system, the overall concurrency and the rate of its system allow it. Later calls may overtake it, up to a
limit: no system runs far ahead of the others.
"""

from __future__ import annotations

import asyncio
import math
import platform
import re
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path

from cranfield.base.concurrency.loop import FunctionError, Threads, event_loop, finish
from cranfield.base.errors import Problem, SystemUnderTestError, TestSetError
from cranfield.base.words import count_noun, join_first, printable
from cranfield.evaluation.options.blocks import CollectOptions
from cranfield.model import Answer, CallLog, Outcome, Query, Run, TestSet
from cranfield.systems.collect.cache import Cache, DamagedError, cache_key
from cranfield.systems.collect.dependencies import UndigestedError, dependency_digest, is_declared
from cranfield.systems.collect.journal import Answers, KeptAnswer, difference, oldest_time, utc_time
from cranfield.systems.collect.progress import Progress
from cranfield.systems.system import AsyncSystem, CallInterruptedError, Interruptible, System

AHEAD = 2
"""A system may be ahead of the slowest by this many queries for each call that may be under way."""

_INTERRUPTION_S = 0.01
"""Between two interruptions of a call in a thread: it may not have begun when the first one came."""
_CUT_SHORT = "the call was cancelled, but not by Cranfield"


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


ALIKE = 10
"""First answers of a system: where all are the same failure, the others are not asked for."""
ALL_FAILED = 30
"""The same, where each is a failure of whatever kind: messages may hold what differs from call to call."""


class AllFailAlikeError(SystemUnderTestError):
    """The first answers of a system are all failures."""

    system = ""
    """Its name."""


def _counted(outcomes: Iterable[Outcome]) -> str:
    """`20 timeout, 10 error`."""
    return ", ".join(f"{n} {outcome.value}" for outcome, n in Counter(outcomes).most_common())


def is_queried(system: System) -> bool:
    """Whether queries are sent to a system, or to a part of it; a run file is read by their ids."""
    parts: Mapping[str, System] = getattr(system, "parts", {})
    return any(map(is_queried, parts.values())) if parts else getattr(system, "kind", None) != "run"


def require_texts(testset: TestSet) -> None:
    """Refuse to send queries that have nothing to send: neither text nor parameters.

    Raises:
        TestSetError: with their number and the first of them.
    """
    blank = [query.id for query in testset.queries if not query.text.strip() and not query.params]
    if blank:
        verb = "has" if len(blank) == 1 else "have"
        raise TestSetError(
            f"{len(blank)} of {count_noun(len(testset.queries), 'queries')} {verb} no text to send",
            path=testset.name,
            expected="a text for each query",
            got=f"no text: {join_first(blank, 3)}",
            hint="name a file of topics: {queries=FILE}, `queries` in the block `options` of a config, or an argument of "
            "`cranfield init`",
            parameters=("queries",),
        )


def this_machine() -> str:
    """A digest of the name and the architecture of this machine; a container with a name of its own is another one."""
    text = f"cranfield machine 1\0{platform.node()}\0{platform.machine()}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass
class Collector:
    """One call of `collect` or `collect_all`."""

    testset: TestSet
    systems: Sequence[System]
    k: int
    pilot: bool
    options: CollectOptions
    progress: Progress
    answers: Mapping[str, Answers] = field(default_factory=dict)
    """System name to the answers so far."""
    calls_before: dict[tuple[str, str], int] = field(default_factory=dict)
    """System and query to the calls that begin before it, the warm-up included."""
    changed: frozenset[str] = frozenset()
    """Systems whose dependencies changed while they were asked."""
    first_failures: dict[str, list[tuple[Outcome, str]]] = field(default_factory=dict)
    """System to outcome and reason of the failures that it began with; missing once it has answered a query."""

    @property
    def n_collected(self) -> int:
        """Number of queries answered so far, of all systems."""
        return sum(len(answers.kept) for answers in self.answers.values())

    @cached_property
    def identity(self) -> dict[str, object]:
        """What identifies a collection, besides the system."""
        return {"testset": self.testset.digest, "k": self.k, "repeats": self.options.repeats, "pilot": self.pilot}

    @cached_property
    def dependency_digests(self) -> dict[str, str]:
        """System name to the digest of its dependencies; missing if it cannot be computed."""
        known: dict[Path, str] = {}
        found = {system.name: self._dependency_digest(system, known) for system in self.systems}
        return {name: digest for name, digest in found.items() if digest is not None}

    @cached_property
    def cache(self) -> Cache | None:
        """Cached answers; None where the options ask for none."""
        folder, hours = self.options.cache_dir, self.options.cache_h
        return None if folder is None or not hours else Cache(folder, hours, self.options.cache_root)

    def _is_cacheable(self, system: System) -> bool:
        """Whether answers of a system may be cached: it says what they depend on, and that can be read."""
        return is_declared(system) and system.name in self.dependency_digests

    def _note_undeclared(self) -> None:
        """Name the systems whose answers are not kept, although the options ask for it."""
        for system in self.systems:
            if is_queried(system) and not is_declared(system):
                hint = "list in its `depends` the files, the command or the field that change with its index"
                self.progress.note(f"{system.name}: every query is sent, and no answer is kept: {hint}")

    def ask(self, answers: Mapping[str, Answers]) -> dict[str, Run]:
        """Make the calls whose answers are missing, and add them to `answers`."""
        self.answers = answers
        if any(map(is_queried, self.systems)):
            require_texts(self.testset)
        _ = self.dependency_digests  # before the first query
        if self.cache is not None:
            self._note_undeclared()
        if self.cache is not None and not self.options.refresh:
            for system in self.systems:
                self._read_cache(self.cache, system)
        dispatcher = Dispatcher(self.systems, self.k)
        self._warm_up(dispatcher)
        self._number_calls()
        if not self.options.keep_going:
            self.first_failures = {
                system.name: []
                for system in self.systems
                if all(kept.answer.outcome.is_failure for kept in answers[system.name].kept.values())
            }
        try:
            for system in self.systems:
                self.progress.start(system.name, self._n_calls, answers[system.name].n_calls)
            for repetition in range(1, self.options.repeats + 1):
                dispatcher.ask(self._remaining(repetition), self._take)
        finally:
            self.progress.finish()
        for system in self.systems:
            self._report_unstable(system)
        self.changed = self._find_changed()
        if self.cache is not None:
            self._write_cache(self.cache)
        return {system.name: self._run(system) for system in self.systems}

    @property
    def _n_calls(self) -> int:
        return len(self.testset.queries) * self.options.repeats

    def _warm_up(self, dispatcher: Dispatcher) -> None:
        first = self.testset.queries[: self.options.warm_up]
        systems = [system for system in self.systems if self.answers[system.name].n_calls < self._n_calls]
        if first and systems:
            self.progress.note(f"warm-up: {count_noun(len(first), 'queries')}, answers discarded")
            dispatcher.ask(interleave(first, systems, seed=self.options.seed, repetition=0), lambda *_: None)

    def _number_calls(self) -> None:
        """Number the first calls that remain, which begin in the order of the queries."""
        for system in self.systems:
            n_sent = min(self.options.warm_up, len(self.testset.queries))
            remaining = [query.id for query in self.testset.queries if query.id not in self.answers[system.name].kept]
            self.calls_before |= {(system.name, query_id): n for n, query_id in enumerate(remaining, start=n_sent)}

    def _remaining(self, repetition: int) -> list[Call]:
        """The calls of the n-th repetition that are still to be made."""
        calls = interleave(self.testset.queries, self.systems, seed=self.options.seed, repetition=repetition)
        return [call for call in calls if self.answers[call.system.name].n_calls_for(call.query.id) < repetition]

    def _take(self, call: Call, answer: Answer, log: CallLog) -> None:
        answers, query_id = self.answers[call.system.name], call.query.id
        if query_id in answers.kept:
            differs = difference(answers.kept[query_id].answer, answer, call.system.order)
            answers.append_again(query_id, log.latency_ms, differs)
        else:
            now = time.time()
            if not log.cached:
                before = self.calls_before.get((call.system.name, query_id))
                log = replace(log, at=utc_time(now), calls_before=before)
            answers.append(query_id, KeptAnswer(answer, log, now))
        self.progress.advance(call.system.name, call.query, answer, log)
        self._stop_where_all_fail(call, answer, log)

    def _stop_where_all_fail(self, call: Call, answer: Answer, log: CallLog) -> None:
        """Stop where the first queries of a system all fail: the others would too, each after its time limit."""
        name = call.system.name
        if name not in self.first_failures:
            return
        if log.cached or not answer.outcome.is_failure:
            del self.first_failures[name]
            return
        failures = self.first_failures[name]
        reason = answer.reason or ""
        own = reason.replace(call.query.text, "") if call.query.text else reason
        failures.append((answer.outcome, re.sub(r"\d+", "0", own)))
        are_alike = len(set(failures)) == 1
        if len(failures) not in (ALIKE, ALL_FAILED) or (len(failures) == ALIKE and not are_alike):
            return
        cause = log.cause(answer.outcome, reason)
        left = len(self.testset.queries) - len(self.answers[name].kept)
        error = AllFailAlikeError(
            Problem(
                f"the first {len(failures)} queries all failed{' in the same way' if are_alike else ''}: "
                + ("" if are_alike else f"{_counted(outcome for outcome, _ in failures)}; the last: ")
                + answer.outcome.value
                + (f": {printable(cause)}" if cause else ""),
                path=f"system {name}",
                hint=f"{count_noun(left, 'queries')} {'was' if left == 1 else 'were'} not sent; "
                "{keep_going} sends every query anyway"
                if left
                else None,
                parameters=("keep_going",) if left else (),
            )
        )
        error.system = name
        raise error

    def _report_unstable(self, system: System) -> None:
        kept = self.answers[system.name].kept
        unstable = [query_id for query_id in self.testset.query_ids if kept[query_id].log.unstable]
        if unstable:
            first = f"{unstable[0]}: {kept[unstable[0]].log.unstable[0]}"
            how_many = f"{len(unstable)} of {len(kept)} queries had different answers in repeated calls"
            self.progress.note(f"{system.name}: {how_many} ({printable(first)})")

    def _dependency_digest(self, system: System, known: dict[Path, str]) -> str | None:
        try:
            return dependency_digest(system, known, query=next(iter(self.testset.queries), None), k=self.k)
        except UndigestedError as why:
            if self.cache is not None and is_declared(system):
                self.progress.note(f"{system.name}: every query is sent, and no answer is kept: {why}")
            return None

    def _read_cache(self, cache: Cache, system: System) -> None:
        """Use the cached answers of a system."""
        if not self._is_cacheable(system):
            return
        try:
            found = cache.read(system.name, self._key(system))
        except DamagedError:
            self.progress.note(f"{system.name}: the cached answers are damaged and not used")
            return
        except OSError as error:
            self.progress.note(f"{system.name}: the cached answers cannot be read: {error.strerror}")
            return
        answers = self.answers[system.name]
        used = {query_id: kept for query_id, kept in found.items() if query_id not in answers.kept}
        answers.kept.update(used)
        if used:
            how_many = f"{len(used)} of {len(self.testset.queries)} answers from the cache"
            oldest = oldest_time(used.values())
            self.progress.note(f"{system.name}: {how_many}, the oldest from {oldest}")

    def _find_changed(self) -> frozenset[str]:
        """Names of the systems whose dependencies are not those from before the first query."""
        known: dict[Path, str] = {}
        queried = [system for system in self.systems if self._is_cacheable(system) and not self._is_all_cached(system)]
        changed = [
            system.name
            for system in queried
            if self._dependency_digest(system, known) != self.dependency_digests[system.name]
        ]
        for name in changed:
            self.progress.note(f"{name}: its dependencies (`depends`) changed while the queries were sent")
        return frozenset(changed)

    def _is_all_cached(self, system: System) -> bool:
        return all(kept.log.cached for kept in self.answers[system.name].kept.values())

    def _write_cache(self, cache: Cache) -> None:
        """Cache the answers of each system whose dependencies did not change meanwhile."""
        for system in self.systems:
            name, kept = system.name, self.answers[system.name].kept
            if name in self.changed or not self._is_cacheable(system) or self._is_all_cached(system):
                continue
            try:
                cache.write(name, self._key(system), kept.items())
            except OSError as error:
                self.progress.note(f"{name}: answers could not be cached: {error.strerror}")
        cache.tidy()

    def _key(self, system: System) -> str:
        return cache_key(system, self.dependency_digests[system.name], self.identity)

    def _run(self, system: System) -> Run:
        kept = {query_id: self.answers[system.name].kept[query_id] for query_id in self.testset.query_ids}
        extra: Callable[[Container[str]], tuple[str, ...]] | None = getattr(system, "extra_queries", None)
        return Run(
            name=system.name,
            answers={query_id: entry.answer for query_id, entry in kept.items()},
            depth=self.k,
            order=system.order,
            logs={query_id: entry.log for query_id, entry in kept.items()},
            testset_digest=self.testset.digest,
            config_digest=system.config_digest,
            pilot=self.pilot or getattr(system, "is_pilot", False),
            config=system.public_config(),
            changed=system.name in self.changed,
            machine=getattr(system, "machine", None) or this_machine(),
            says_empty=getattr(system, "says_empty", True),
            extra_queries=extra(self.testset.by_id) if extra else (),
        )
