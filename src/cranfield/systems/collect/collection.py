"""Ask systems every query of a test set, and make runs of the answers.

`collect` asks one system and keeps the run in memory; `collect_all` asks several, writes runs, and can be cut short at
any moment and called again. Nothing is scored here.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cranfield.concurrency.signals import sigterm_interrupts
from cranfield.errors import UsageError, shorten
from cranfield.formats.io.files import refusal
from cranfield.formats.runs.jsonl import write_run
from cranfield.model import Answer, CallLog, Run, TestSet
from cranfield.systems.collect.cache import Cache, DamagedError, cache_key, kept_since
from cranfield.systems.collect.dispatch import Call, Dispatcher, in_turn
from cranfield.systems.collect.fingerprint import UndigestedError, dependency_digest
from cranfield.systems.collect.journal import Answers, Journal, Kept, difference
from cranfield.systems.collect.progress import Progress, Silent
from cranfield.systems.system import System
from cranfield.words import printable

PARTIAL = ".partial"
"""Folder of the journals, under the output folder."""
RUNS = "runs"
"""Folder of the finished runs, under the output folder."""

DAY_H = 24.0
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """How systems are asked, and which earlier answers are good enough."""

    warm_up: int = 0
    """Queries asked of each system beforehand, the first of the test set; their answers are thrown away."""
    repeats: int = 1
    """Times each query is asked. The first answer counts; how the others differ is noted in its log."""
    seed: int = 0
    """Of the order in which systems take turns."""
    cache_dir: Path | None = None
    """Folder of the answers that are kept for another time; None neither uses nor keeps any."""
    cache_h: float | None = None
    """Hours after which an answer is too old to be used again; 0 neither uses nor keeps any. None is a day, and nothing of
    a system that is elsewhere: reached over a network, it changes and no file shows it."""
    refresh: bool = False
    """Use no kept answer, and keep the new ones in their place."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        for name, least in (("warm_up", 0), ("repeats", 1), ("cache_h", 0)):
            given = getattr(self, name)
            if given is not None and not given >= least:
                raise UsageError(f"{name} is too small", expected=f"{least} or more", got=str(given))


_USUAL = CollectOptions()


class Interrupted(KeyboardInterrupt):
    """A collection was cut short by Ctrl-C or SIGTERM; what was collected is kept, and the same call goes on."""

    def __init__(self, collected: int, total: int, out_dir: Path) -> None:
        super().__init__(
            f"interrupted: {collected} of {total} answers are kept in {out_dir}; the same command goes on from there."
        )
        self.collected = collected
        self.total = total
        self.out_dir = out_dir

    def __str__(self) -> str:
        """The line to show."""
        return str(self.args[0])


def collect(
    testset: TestSet,
    system: System,
    *,
    k: int = 10,
    pilot: bool = False,
    options: CollectOptions = _USUAL,
    progress: Progress | None = None,
) -> Run:
    """Ask one system every query and keep the answers in memory.

    Args:
        testset: whose queries are asked.
        system: what is measured; it is left open.
        k: results asked for, and kept by the ranking.
        pilot: stamp the run as not for the record.
        options: warm-up, repeats and kept answers.
        progress: told of each answer; silent by default.

    Returns:
        The run, its answers in the order of the test set.
    """
    _require_k(k)
    if options.cache_dir is not None:
        _require_names([system.name])
    collection = _Collection(testset, [system], k, pilot, options, progress or Silent())
    return collection.ask({system.name: Answers()})[system.name]


def collect_all(
    testset: TestSet,
    systems: Sequence[System],
    *,
    out_dir: Path | str,
    k: int = 10,
    pilot: bool = False,
    options: CollectOptions = _USUAL,
    progress: Progress | None = None,
) -> dict[str, Run]:
    """Ask every system every query, the systems taking turns, and write `runs/NAME.jsonl` for each.

    Every answer is written down as it comes. Cut short by Ctrl-C, SIGTERM or a kill, the same call goes on from there
    and asks nothing twice but what was under way. A call for another test set, config, k or pilot starts afresh.

    Args:
        testset: whose queries are asked.
        systems: what is measured; names are file names and differ. They are left open.
        out_dir: made where it is not there.
        k: results asked for, and kept by the ranking.
        pilot: stamp the runs as not for the record.
        options: warm-up, repeats, turns and kept answers.
        progress: told of each answer; silent by default.

    Returns:
        System name to run, in the order of `systems`.

    Raises:
        Interrupted: cut short; what was collected is kept.
        UsageError: the folder cannot be used, or is being used by another call.
    """
    _require_k(k)
    _require_names([system.name for system in systems])
    out_dir = Path(out_dir)
    folder = out_dir.absolute()  # a function that is asked may go to another
    collection = _Collection(testset, systems, k, pilot, options, progress or Silent())
    try:
        with sigterm_interrupts():
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder, out_dir):
                (folder / PARTIAL).mkdir(exist_ok=True)
                return _written(collection, folder)
    except KeyboardInterrupt:
        total = len(testset.queries) * len(systems)
        raise Interrupted(collection.n_collected, total, out_dir) from None
    except OSError as error:
        raise UsageError(refusal(Path(error.filename or out_dir), error)) from error


def _written(collection: _Collection, out_dir: Path) -> dict[str, Run]:
    """Collect with journals, and write the runs."""
    journals: dict[str, Journal] = {}
    collection.answers = journals
    try:
        for system in collection.systems:
            journals[system.name] = _journal(collection, system, out_dir / PARTIAL)
        runs = collection.ask(journals)
        (out_dir / RUNS).mkdir(exist_ok=True)
        for name, run in runs.items():
            write_run(run, out_dir / RUNS / f"{name}.jsonl")
        # Only now: until every run is written, the journals are all there is.
        for journal in journals.values():
            journal.remove()
        with suppress(OSError):  # journals set aside stay
            (out_dir / PARTIAL).rmdir()
        return runs
    finally:
        for journal in journals.values():
            journal.close()


def _journal(collection: _Collection, system: System, folder: Path) -> Journal:
    name, note = system.name, collection.progress.note
    around = collection.around.get(name)
    journal = Journal(folder, name, {"config": system.config_digest, "surroundings": around, **collection.same})
    if journal.set_aside:
        note(f"{name}: starting afresh, because {journal.set_aside}")
    if journal.kept:
        n_kept, total = len(journal.kept), len(collection.testset.queries)
        again = f"remove {folder} to ask all again"
        note(f"{name}: going on after {n_kept} of {total} answers collected before ({again})")
    return journal


@dataclass
class _Collection:
    """One call of `collect` or `collect_all`."""

    testset: TestSet
    systems: Sequence[System]
    k: int
    pilot: bool
    options: CollectOptions
    progress: Progress
    answers: Mapping[str, Answers] = field(default_factory=dict)
    """System name to what is there so far."""

    @property
    def n_collected(self) -> int:
        return sum(len(answers.kept) for answers in self.answers.values())

    @cached_property
    def same(self) -> dict[str, object]:
        """What makes two collections from one system the same, besides what the system is."""
        return {"testset": self.testset.digest, "k": self.k, "repeats": self.options.repeats, "pilot": self.pilot}

    @cached_property
    def around(self) -> dict[str, str]:
        """System name to the digest of what it depends on; what cannot be told is not there."""
        known: dict[Path, str] = {}
        found = {system.name: self._surroundings(system, known) for system in self.systems}
        return {name: digest for name, digest in found.items() if digest is not None}

    @cached_property
    def cache(self) -> Cache | None:
        folder = self.options.cache_dir
        hours = DAY_H if self.options.cache_h is None else self.options.cache_h
        return None if folder is None or not hours else Cache(folder, hours)

    def _is_kept(self, system: System) -> bool:
        """Whether answers of a system may be used another time."""
        is_elsewhere: bool = getattr(system, "is_elsewhere", False)
        return system.name in self.around and not (self.options.cache_h is None and is_elsewhere)

    def ask(self, answers: Mapping[str, Answers]) -> dict[str, Run]:
        """Ask whatever is not among `answers` yet, and add it to them."""
        self.answers = answers
        if self.cache is not None and not self.options.refresh:
            for system in self.systems:
                self._reuse(self.cache, system)
        dispatcher = Dispatcher(self.systems, self.k)
        self._warm_up(dispatcher)
        try:
            for system in self.systems:
                self.progress.start(system.name, self._n_calls, answers[system.name].n_calls)
            for time_asked in range(1, self.options.repeats + 1):
                dispatcher.ask(self._left(time_asked), self._take)
        finally:
            self.progress.finish()
        for system in self.systems:
            self._say_what_differs(system)
        if self.cache is not None:
            self._keep(self.cache)
        return {system.name: self._run(system) for system in self.systems}

    @property
    def _n_calls(self) -> int:
        return len(self.testset.queries) * self.options.repeats

    def _warm_up(self, dispatcher: Dispatcher) -> None:
        first = self.testset.queries[: self.options.warm_up]
        systems = [system for system in self.systems if self.answers[system.name].n_calls < self._n_calls]
        if first and systems:
            self.progress.note(f"warming up: the first {len(first)} of the queries, whose answers are thrown away")
            dispatcher.ask(in_turn(first, systems, seed=self.options.seed, time_asked=0), lambda *_: None)

    def _left(self, time_asked: int) -> list[Call]:
        """The calls for the n-th time a query is asked that are still to be made."""
        calls = in_turn(self.testset.queries, self.systems, seed=self.options.seed, time_asked=time_asked)
        return [call for call in calls if self.answers[call.system.name].times_asked(call.query.id) < time_asked]

    def _take(self, call: Call, answer: Answer, log: CallLog) -> None:
        answers, query_id = self.answers[call.system.name], call.query.id
        if query_id in answers.kept:
            differs = difference(answers.kept[query_id].answer, answer, call.system.order)
            answers.append_again(query_id, log.latency_ms, differs)
        else:
            answers.append(query_id, Kept(answer, log, time.time()))
        self.progress.advance(call.system.name, call.query, answer, log)

    def _say_what_differs(self, system: System) -> None:
        kept = self.answers[system.name].kept
        unstable = [query_id for query_id in self.testset.query_ids if kept[query_id].log.unstable]
        if unstable:
            said = f"{unstable[0]}: {kept[unstable[0]].log.unstable[0]}"
            how_many = f"{len(unstable)} of {len(kept)} queries had another answer when they were asked again"
            self.progress.note(f"{system.name}: {how_many} ({printable(said)})")

    def _surroundings(self, system: System, known: dict[Path, str]) -> str | None:
        try:
            return dependency_digest(system, known)
        except UndigestedError as why:
            if self.cache is not None:
                hint = "name in `depends` a small file that changes with them"
                self.progress.note(f"{system.name}: its answers are not kept for another time: {why} ({hint})")
            return None

    def _reuse(self, cache: Cache, system: System) -> None:
        """Take over answers that an earlier collection kept."""
        if not self._is_kept(system):
            return
        try:
            found = cache.read(system.name, self._key(system))
        except DamagedError:
            self.progress.note(f"{system.name}: what was kept of it is damaged, and is not used")
            return
        except OSError as error:
            self.progress.note(f"{system.name}: what was kept of it cannot be read: {error.strerror}")
            return
        answers = self.answers[system.name]
        used = {query_id: kept for query_id, kept in found.items() if query_id not in answers.kept}
        answers.kept.update(used)
        if used:
            how_many = f"{len(used)} of {len(self.testset.queries)} answers kept from {kept_since(used.values())}"
            self.progress.note(f"{system.name}: {how_many}")

    def _keep(self, cache: Cache) -> None:
        """Keep answers for another time, those of each system where they are all of one and the same."""
        known: dict[Path, str] = {}
        for system in self.systems:
            name, kept = system.name, self.answers[system.name].kept
            if not self._is_kept(system) or all(one.log.cached for one in kept.values()):
                continue
            if self._surroundings(system, known) != self.around[name]:
                self.progress.note(f"{name}: its answers are not kept for another time: its files changed meanwhile")
                continue
            try:
                cache.write(name, self._key(system), kept.items())
            except OSError as error:
                self.progress.note(f"{name}: its answers could not be kept for another time: {error.strerror}")
        cache.tidy()

    def _key(self, system: System) -> str:
        return cache_key(system, self.around[system.name], self.same)

    def _run(self, system: System) -> Run:
        kept = {query_id: self.answers[system.name].kept[query_id] for query_id in self.testset.query_ids}
        return Run(
            name=system.name,
            answers={query_id: one.answer for query_id, one in kept.items()},
            depth=self.k,
            order=system.order,
            logs={query_id: one.log for query_id, one in kept.items()},
            testset_digest=self.testset.digest,
            config_digest=system.config_digest,
            pilot=self.pilot or getattr(system, "is_pilot", False),
            config=system.public_config(),
        )


def _require_k(k: int) -> None:
    if k < 1:
        raise UsageError("k is the number of results asked for", expected="1 or more", got=str(k))


def _require_names(names: Sequence[str]) -> None:
    for name in names:
        if not _FILE_NAME.fullmatch(name) or name.endswith(".log"):  # NAME.log.jsonl is the log of NAME
            expected = "letters, digits, dots, dashes and underscores, not .log at the end"
            raise UsageError("a system's name is the name of its run's file", expected=expected, got=shorten(name))
    if len({name.casefold() for name in names}) < len(names):
        raise UsageError("two systems have the same name", got=", ".join(names))


@contextmanager
def _locked(folder: Path, shown: Path) -> Iterator[None]:
    """One collection at a time in a folder; the lock goes with the process, however it ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "wait for it, or choose another folder with {out}."
            message = "another collection is writing here"
            raise UsageError(message, path=str(shown), hint=hint, parameters=("out",)) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)
