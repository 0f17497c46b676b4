"""Ask systems every query of a test set, and make runs of the answers.

`collect` asks one system and keeps the run in memory; `collect_all` asks several, writes runs, and can be cut short at
any moment and called again. Nothing is scored here.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from cranfield.errors import UsageError, shorten
from cranfield.formats.files import refusal
from cranfield.formats.run_jsonl import write_run
from cranfield.model import Answer, CallLog, Query, Run, TestSet
from cranfield.systems.journal import Journal
from cranfield.systems.progress import Progress, Silent
from cranfield.systems.system import CallInterruptedError, Interruptible, System

PARTIAL = ".partial"
"""Folder of the journals, under the output folder."""
RUNS = "runs"
"""Folder of the finished runs, under the output folder."""

_STOP_POLL_S = 0.1
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_Take = Callable[[Query, Answer, CallLog], None]


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
    testset: TestSet, system: System, *, k: int = 10, pilot: bool = False, progress: Progress | None = None
) -> Run:
    """Ask one system every query and keep the answers in memory.

    Args:
        testset: whose queries are asked.
        system: what is measured.
        k: results asked for, and kept by the ranking.
        pilot: stamp the run as not for the record.
        progress: told of each answer; silent by default.

    Returns:
        The run, its answers in the order of the test set.
    """
    _require_k(k)
    progress = progress or Silent()
    answers: dict[str, Answer] = {}
    logs: dict[str, CallLog] = {}

    def take(query: Query, answer: Answer, log: CallLog) -> None:
        answers[query.id] = answer
        logs[query.id] = log
        progress.advance(query, answer)

    progress.start(system.name, len(testset.queries), 0)
    try:
        _ask(system, testset.queries, k, take)
    finally:
        progress.finish()
    return _run_of(testset, system, answers, logs, k=k, pilot=pilot)


def collect_all(
    testset: TestSet,
    systems: Sequence[System],
    *,
    out_dir: Path | str,
    k: int = 10,
    pilot: bool = False,
    progress: Progress | None = None,
) -> dict[str, Run]:
    """Ask every system every query, one system after the other, and write `runs/NAME.jsonl` for each.

    Every answer is written down as it comes. Cut short by Ctrl-C, SIGTERM or a kill, the same call goes on from there
    and asks nothing twice but what was under way. A call for another test set, config, k or pilot starts afresh.

    Args:
        testset: whose queries are asked.
        systems: what is measured; names are file names and differ.
        out_dir: made where it is not there.
        k: results asked for, and kept by the ranking.
        pilot: stamp the runs as not for the record.
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
    collection = _Collection(testset, systems, out_dir, k, pilot, progress or Silent())
    try:
        with _sigterm_interrupts():
            (out_dir / PARTIAL).mkdir(parents=True, exist_ok=True)
            with _locked(out_dir):
                return collection.run()
    except KeyboardInterrupt:
        total = len(testset.queries) * len(systems)
        raise Interrupted(collection.collected, total, out_dir) from None
    except OSError as error:
        raise UsageError(refusal(Path(error.filename or out_dir), error)) from error


@dataclass
class _Collection:
    """One call of `collect_all`."""

    testset: TestSet
    systems: Sequence[System]
    out_dir: Path
    k: int
    pilot: bool
    progress: Progress
    journals: dict[str, Journal] = field(default_factory=dict)

    @property
    def collected(self) -> int:
        return sum(len(journal.answers) for journal in self.journals.values())

    def run(self) -> dict[str, Run]:
        try:
            for system in self.systems:
                self.journals[system.name] = self._journal(system)
            runs = {system.name: self._collect(system, self.journals[system.name]) for system in self.systems}
            (self.out_dir / RUNS).mkdir(exist_ok=True)
            for name, run in runs.items():
                write_run(run, self.out_dir / RUNS / f"{name}.jsonl")
            # Only now: until every run is written, the journals are all there is.
            for journal in self.journals.values():
                journal.remove()
            with suppress(OSError):  # journals set aside stay
                (self.out_dir / PARTIAL).rmdir()
            return runs
        finally:
            for journal in self.journals.values():
                journal.close()

    def _journal(self, system: System) -> Journal:
        same = {
            "testset": self.testset.digest,
            "config": system.config_digest,
            "k": self.k,
            "pilot": self.pilot,
        }
        journal = Journal(self.out_dir / PARTIAL, system.name, same)
        if journal.set_aside:
            self.progress.note(f"{system.name}: starting afresh, because {journal.set_aside}")
        if journal.answers:
            kept, total = len(journal.answers), len(self.testset.queries)
            again = f"remove {self.out_dir / PARTIAL} to ask all again"
            self.progress.note(f"{system.name}: going on after {kept} of {total} answers collected before ({again})")
        return journal

    def _collect(self, system: System, journal: Journal) -> Run:
        def take(query: Query, answer: Answer, log: CallLog) -> None:
            journal.append(query.id, answer, log)
            self.progress.advance(query, answer)

        left = [query for query in self.testset.queries if query.id not in journal.answers]
        self.progress.start(system.name, len(self.testset.queries), len(journal.answers))
        try:
            _ask(system, left, self.k, take)
        finally:
            self.progress.finish()
        return _run_of(self.testset, system, journal.answers, journal.logs, k=self.k, pilot=self.pilot)


def _ask(system: System, queries: Sequence[Query], k: int, take: _Take) -> None:
    """Ask with as many threads as the system allows; `take` is called by one at a time."""
    lock = threading.Lock()
    stopping = threading.Event()

    def ask_one(query: Query) -> None:
        if stopping.is_set():
            return
        try:
            answer, log = system.search(query, k)
        except CallInterruptedError:
            return
        except BaseException:
            stopping.set()  # here, so that this thread does not go on to the next query
            raise
        if stopping.is_set() and answer.outcome.is_failure:
            return  # it may have failed because everything is being stopped
        with lock:
            take(query, answer, log)

    executor = ThreadPoolExecutor(max_workers=max(system.concurrency, 1), thread_name_prefix=system.name)
    futures: list[Future[None]] = []
    try:
        futures += [executor.submit(ask_one, query) for query in queries]
        for future in _as_finished(futures):
            future.result()
    except BaseException:
        stopping.set()
        _end_calls(system, futures)
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _as_finished(futures: Sequence[Future[None]]) -> Iterator[Future[None]]:
    """Each future when it is done, looking up now and then.

    A signal that comes in the moment before a wait without end is heard only when that wait is over, and by then a
    slow call would have been waited for.
    """
    finished: SimpleQueue[Future[None]] = SimpleQueue()
    for future in futures:
        future.add_done_callback(finished.put)
    left = len(futures)
    while left:
        try:
            future = finished.get(timeout=_STOP_POLL_S)
        except Empty:
            continue
        left -= 1
        yield future


def _end_calls(system: System, futures: Sequence[Future[None]]) -> None:
    under_way = [future for future in futures if not future.cancel()]
    while under_way:
        if isinstance(system, Interruptible):
            system.interrupt()
        # Again and again: a call may have been on its way when the first interruption came.
        under_way = list(wait(under_way, timeout=_STOP_POLL_S).not_done)


def _run_of(
    testset: TestSet,
    system: System,
    answers: Mapping[str, Answer],
    logs: Mapping[str, CallLog],
    *,
    k: int,
    pilot: bool,
) -> Run:
    ids = testset.query_ids
    return Run(
        name=system.name,
        answers={query_id: answers[query_id] for query_id in ids},
        depth=k,
        order=system.order,
        logs={query_id: logs[query_id] for query_id in ids if query_id in logs},
        testset_digest=testset.digest,
        config_digest=system.config_digest,
        pilot=pilot,
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
def _sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C. Only the main thread may say so; elsewhere whoever runs us decides."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One collection at a time in a folder; the lock goes with the process, however it ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "wait for it, or choose another folder with --out."
            raise UsageError("another collection is writing here", path=str(folder), hint=hint) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)
