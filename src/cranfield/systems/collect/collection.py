"""Collect runs: send every query of a test set to systems.

`collect` calls one system and keeps the run in memory; `collect_all` calls several, writes runs, and can be interrupted at
any moment and resumed. `collected` keeps the journals until what is made of the runs stands. Nothing is scored here.
"""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from cranfield.concurrency.loop import sigterm_interrupts
from cranfield.errors import UsageError, shorten
from cranfield.formats.io.files import folder_lock, refusal
from cranfield.formats.io.own_folder import folder_inside
from cranfield.formats.runs.jsonl import write_run
from cranfield.model import Answer, CallLog, Run, TestSet
from cranfield.systems.collect.cache import Cache, DamagedError, cache_key
from cranfield.systems.collect.dependencies import UndigestedError, dependency_digest, is_declared
from cranfield.systems.collect.dispatch import Call, Dispatcher, interleave
from cranfield.systems.collect.journal import (
    Answers,
    Journal,
    KeptAnswer,
    difference,
    oldest_time,
    remove_journals,
    utc_time,
)
from cranfield.systems.collect.options import CollectOptions
from cranfield.systems.collect.progress import Progress, Silent
from cranfield.systems.system import System
from cranfield.words import n_of, printable

PARTIAL = ".partial"
"""Folder of the journals, under the output folder."""
RESUME_S = 3600
"""Answers of an interrupted collection that are older, in seconds, are reported with their time."""
RUNS = "runs"
"""Folder of the finished runs, under the output folder."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Of a disk that is full or broken."""
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


_USUAL = CollectOptions()
AT_A_TIME = 200
"""Systems collected at the same time; each holds a file open, so more follow in groups of this size."""


class Interrupted(KeyboardInterrupt):
    """A collection was interrupted by Ctrl-C or SIGTERM; its answers are kept, and the same call resumes it."""

    def __init__(self, collected: int, total: int, out_dir: Path, message: str = "") -> None:
        kept = f"{collected} of {total} answers are kept in {out_dir}; the same command goes on from there."
        super().__init__(f"interrupted: {message or kept}")
        self.collected = collected
        self.total = total
        self.out_dir = out_dir

    def __str__(self) -> str:
        """The message."""
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
    """Send every query to one system and keep the answers in memory.

    Args:
        testset: its queries are sent.
        system: the system; it is not closed.
        k: number of results requested, and depth of the run.
        pilot: mark the run as a pilot, not for the record.
        options: warm-up, repetitions and cache.
        progress: notified of each answer; silent by default.

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
    """Send every query to every system, in turns, and write `runs/NAME.jsonl` for each.

    Every answer is written as it comes. After Ctrl-C, SIGTERM or a kill, the same call resumes the collection; only calls
    that were under way are repeated. Another test set, config, k or pilot starts a new collection.

    Args:
        testset: its queries are sent.
        systems: the systems, with distinct names that are valid file names. They are not closed.
        out_dir: output folder, created if missing.
        k: number of results requested, and depth of the runs.
        pilot: mark the runs as pilots, not for the record.
        options: warm-up, repetitions, order of calls and cache.
        progress: notified of each answer; silent by default.

    Returns:
        System name to run, in the order of `systems`.

    Raises:
        Interrupted: interrupted; what was collected is kept.
        UsageError: the folder cannot be used, or is in use by another call.
    """
    with collected(testset, systems, out_dir=out_dir, k=k, pilot=pilot, options=options, progress=progress) as runs:
        return runs


@contextmanager
def collected(
    testset: TestSet,
    systems: Sequence[System],
    *,
    out_dir: Path | str,
    root: Path | str | None = None,
    k: int = 10,
    pilot: bool = False,
    options: CollectOptions = _USUAL,
    progress: Progress | None = None,
) -> Iterator[dict[str, Run]]:
    """Collect as `collect_all`; the block makes of the runs what they are for, and the answers are kept until it has ended.

    A block that raises, or dies, costs no call: the same call resumes the whole collection. The output folder is locked
    until the block has ended.

    Args:
        testset: as of `collect_all`.
        systems: as of `collect_all`.
        out_dir: as of `collect_all`.
        root: a folder above the output folder, below which no link is followed; None: the output folder, which may be a link.
        k: as of `collect_all`.
        pilot: as of `collect_all`.
        options: as of `collect_all`.
        progress: as of `collect_all`.
    """
    _require_k(k)
    _require_names([system.name for system in systems])
    out_dir = Path(out_dir)
    folder = out_dir.absolute()  # a function under test may change the working directory
    top = folder if root is None else Path(root).absolute()
    groups = [systems[start : start + AT_A_TIME] for start in range(0, len(systems), AT_A_TIME)]
    collections = [_Collection(testset, group, k, pilot, options, progress or Silent()) for group in groups]
    try:
        with ExitStack() as stack:
            with sigterm_interrupts(), _reported(out_dir):
                top.mkdir(parents=True, exist_ok=True)
                with folder_inside(top, folder, make=0o777):
                    stack.enter_context(locked(folder, out_dir))
                runs: dict[str, Run] = {}
                for collection in collections:
                    runs |= _collect_with_journals(collection, top, folder)
            yield runs
            with _reported(out_dir):
                remove_journals(top, folder / PARTIAL, runs)
    except Interrupted:
        raise
    except KeyboardInterrupt:
        n_collected = sum(collection.n_collected for collection in collections)
        raise Interrupted(n_collected, len(testset.queries) * len(systems), out_dir) from None


@contextmanager
def _reported(out_dir: Path) -> Iterator[None]:
    """Report what the system refused; the answers so far are kept."""
    try:
        yield
    except OSError as error:
        problem = refusal(Path(error.filename or out_dir), error)
        hint = "the answers so far are kept: the same command goes on from there."
        raise UsageError(replace(problem, hint=hint) if error.errno in _NO_ROOM else problem) from error


def _collect_with_journals(collection: _Collection, root: Path, out_dir: Path) -> dict[str, Run]:
    """Collect into journals, and write the runs."""
    journals: dict[str, Journal] = {}
    collection.answers = journals
    try:
        for system in collection.systems:
            journals[system.name] = _open_journal(collection, system, root, out_dir / PARTIAL)
        runs = collection.ask(journals)
        for name, run in runs.items():
            write_run(run, out_dir / RUNS / f"{name}.jsonl", root=root)
        return runs
    finally:
        for journal in journals.values():
            journal.close()


def _open_journal(collection: _Collection, system: System, root: Path, folder: Path) -> Journal:
    name, note = system.name, collection.progress.note
    dependencies = collection.dependency_digests.get(name)
    refresh = {"refresh": True} if collection.options.refresh else {}  # its answers will do without it too
    header = {"config": system.config_digest, "surroundings": dependencies, **collection.identity, **refresh}
    journal = Journal(folder, name, header, root=root)
    if journal.restart_reason:
        note(f"{name}: starting over, because {journal.restart_reason}")
    if journal.kept:
        n_kept, total = len(journal.kept), len(collection.testset.queries)
        again = f"remove {folder} to start over"
        since = f", the oldest from {oldest_time(journal.kept.values())}" if _is_long_ago(journal) else ""
        note(f"{name}: resuming after {n_kept} of {total} answers{since} ({again})")
    return journal


def _is_long_ago(journal: Journal) -> bool:
    """Whether the answers of an interrupted collection are older than `RESUME_S`."""
    return any(kept.log.age_s is not None and kept.log.age_s > RESUME_S for kept in journal.kept.values())


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
    """System name to the answers so far."""
    changed: frozenset[str] = frozenset()
    """Systems whose dependencies changed while they were asked."""

    @property
    def n_collected(self) -> int:
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
        folder, hours = self.options.cache_dir, self.options.cache_h
        return None if folder is None or not hours else Cache(folder, hours, self.options.cache_root)

    def _is_cacheable(self, system: System) -> bool:
        """Whether answers of a system may be cached: it says what they depend on, and that can be read."""
        return is_declared(system) and system.name in self.dependency_digests

    def _note_undeclared(self) -> None:
        """Name the systems whose answers are not kept, although the options ask for it."""
        for system in self.systems:
            is_queried = getattr(system, "kind", None) != "run"
            if is_queried and not is_declared(system):
                hint = "name in its `depends` the files, the command or the field that change with its index"
                self.progress.note(f"{system.name}: every query is sent, and no answer is kept: {hint}")

    def ask(self, answers: Mapping[str, Answers]) -> dict[str, Run]:
        """Make the calls whose answers are missing, and add them to `answers`."""
        self.answers = answers
        _ = self.dependency_digests  # before the first query
        if self.cache is not None:
            self._note_undeclared()
        if self.cache is not None and not self.options.refresh:
            for system in self.systems:
                self._read_cache(self.cache, system)
        dispatcher = Dispatcher(self.systems, self.k)
        self._warm_up(dispatcher)
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
            answers.append(query_id, KeptAnswer(answer, log if log.cached else replace(log, at=utc_time(now)), now))
        self.progress.advance(call.system.name, call.query, answer, log)

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
            says_empty=getattr(system, "says_empty", True),
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
def locked(folder: Path, shown: Path) -> Iterator[None]:
    """Lock a folder against other collections; the lock ends with the process."""
    with ExitStack() as stack:
        try:
            stack.enter_context(folder_lock(folder, wait=False))
        except BlockingIOError:
            hint = "wait for it, or choose another folder with {out}."
            message = "another collection is writing here"
            raise UsageError(message, path=str(shown), hint=hint, parameters=("out",)) from None
        yield
