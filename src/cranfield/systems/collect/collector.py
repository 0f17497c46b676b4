"""The calls of a collection: what is missing is asked, in turns, and added to the answers; what is cached is not asked."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from cranfield.errors import Problem, SystemUnderTestError, TestSetError
from cranfield.model import Answer, CallLog, Run, TestSet
from cranfield.options.blocks import CollectOptions
from cranfield.systems.collect.cache import Cache, DamagedError, cache_key
from cranfield.systems.collect.dependencies import UndigestedError, dependency_digest, is_declared
from cranfield.systems.collect.dispatch import Call, Dispatcher, interleave
from cranfield.systems.collect.journal import Answers, KeptAnswer, difference, oldest_time, utc_time
from cranfield.systems.collect.progress import Progress
from cranfield.systems.system import System
from cranfield.words import first_of, n_of, printable

ALIKE = 10
"""First answers of a system: where all are the same failure, the others are not asked for."""


class AllFailAlikeError(SystemUnderTestError):
    """The first answers of a system are all the same failure."""

    system = ""
    """Its name."""


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
            f"{len(blank)} of {n_of(len(testset.queries), 'queries')} {verb} no text to send",
            path=testset.name,
            expected="a text for each query",
            got=f"no text: {first_of(blank, 3)}",
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
    first_failures: dict[str, list[tuple[object, str]]] = field(default_factory=dict)
    """System to the failures that it began with; missing once it has answered a query."""

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
                hint = "name in its `depends` the files, the command or the field that change with its index"
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
            self.first_failures = {system.name: [] for system in self.systems if not answers[system.name].kept}
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
            self.progress.note(f"warm-up: {n_of(len(first), 'queries')}, answers discarded")
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
        """Stop where the first queries of a system all fail alike: the others would too, each after its time limit."""
        name = call.system.name
        if name not in self.first_failures:
            return
        failures = self.first_failures[name]
        reason = answer.reason or ""
        own = reason.replace(call.query.text, "") if call.query.text else reason
        failures.append((answer.outcome, re.sub(r"\d+", "0", own)))
        if log.cached or not answer.outcome.is_failure or failures[-1] != failures[0]:
            del self.first_failures[name]
        elif len(failures) == ALIKE:
            cause = log.cause(answer.outcome, reason)
            left = len(self.testset.queries) - len(self.answers[name].kept)
            error = AllFailAlikeError(
                Problem(
                    f"the first {ALIKE} queries all failed alike: {answer.outcome.value}"
                    + (f": {printable(cause)}" if cause else ""),
                    path=f"system {name}",
                    hint=f"{n_of(left, 'queries')} {'was' if left == 1 else 'were'} not sent; "
                    "{keep_going} sends every query all the same"
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
            self.progress.note(f"{name}: what it depends on changed while it was asked")
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
