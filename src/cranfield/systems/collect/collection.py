"""Collect runs: send every query of a test set to systems.

`collect` calls one system and keeps the run in memory; `collect_all` calls several, writes runs, and can be interrupted at
any moment and resumed. `collected` keeps the journals until what is made of the runs stands. Nothing is scored here.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from cranfield.base.concurrency.interrupts import sigterm_interrupts
from cranfield.base.errors import UsageError, shorten
from cranfield.evaluation.options.blocks import CollectOptions
from cranfield.formats.io.files import folder_inside, path_lock, refusal
from cranfield.formats.runs.jsonl import write_run
from cranfield.model import Run, TestSet
from cranfield.systems.collect.collector import AllFailAlikeError, Collector
from cranfield.systems.collect.journal import (
    Answers,
    Journal,
    oldest_time,
    remove_journals,
)
from cranfield.systems.collect.progress import Progress, Silent
from cranfield.systems.system import System

PARTIAL = ".partial"
"""Folder of the journals, under the output folder."""
RESUME_S = 3600
"""Answers of an interrupted collection that are older, in seconds, are reported with their time."""
RUNS = "runs"
"""Folder of the finished runs, under the output folder."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Errors of a disk that is full or broken."""
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


_USUAL = CollectOptions()
AT_A_TIME = 200
"""Systems collected at the same time; each holds a file open, so more follow in groups of this size."""


class Interrupted(KeyboardInterrupt):
    """A collection was interrupted by Ctrl-C or SIGTERM; its answers are kept, and the same call resumes it."""

    def __init__(self, collected: int, total: int, out_dir: Path, then: str = "") -> None:
        kept = f"are kept in {out_dir}; the same command resumes from there."
        super().__init__(f"interrupted: {collected} of {total} answers {f'were collected; {then}' if then else kept}")
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
    collection = Collector(testset, [system], k, pilot, options, progress or Silent())
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
    collections = [Collector(testset, group, k, pilot, options, progress or Silent()) for group in groups]
    try:
        with ExitStack() as stack:
            with sigterm_interrupts(), _reported(out_dir, options.if_interrupted):
                top.mkdir(parents=True, exist_ok=True)
                with folder_inside(top, folder, make=0o777):
                    stack.enter_context(locked(folder, out_dir))
                runs: dict[str, Run] = {}
                for collection in collections:
                    runs |= _collect_with_journals(collection, top, folder)
            yield runs
            with _reported(out_dir, options.if_interrupted):
                remove_journals(top, folder / PARTIAL, runs)
    except Interrupted:
        raise
    except KeyboardInterrupt:
        n_collected = sum(collection.n_collected for collection in collections)
        raise Interrupted(n_collected, len(testset.queries) * len(systems), out_dir, options.if_interrupted) from None


@contextmanager
def _reported(out_dir: Path, if_interrupted: str) -> Iterator[None]:
    """Report what the system refused; the answers so far are kept."""
    try:
        yield
    except OSError as error:
        problem = refusal(Path(error.filename or out_dir), error)
        hint = if_interrupted or "the answers so far are kept: the same command resumes from there."
        raise UsageError(replace(problem, hint=hint) if error.errno in _NO_ROOM else problem) from error


def _collect_with_journals(collection: Collector, root: Path, out_dir: Path) -> dict[str, Run]:
    """Collect into journals, and write the runs."""
    journals: dict[str, Journal] = {}
    collection.answers = journals
    try:
        for system in collection.systems:
            journals[system.name] = _open_journal(collection, system, root, out_dir / PARTIAL)
        try:
            runs = collection.ask(journals)
        except AllFailAlikeError as error:  # its failures would be taken for answers by the next call
            journals.pop(error.system).close()
            remove_journals(root, out_dir / PARTIAL, [error.system])
            raise
        for name, run in runs.items():
            write_run(run, out_dir / RUNS / f"{name}.jsonl", root=root)
        return runs
    finally:
        for journal in journals.values():
            journal.close()


def _open_journal(collection: Collector, system: System, root: Path, folder: Path) -> Journal:
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


def _require_k(k: int) -> None:
    if k < 1:
        raise UsageError("k is the number of requested results", expected="1 or more", got=str(k))


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
            stack.enter_context(path_lock(folder, wait=False))
        except BlockingIOError:
            hint = "wait for it, or choose another folder with {out}."
            message = "another collection is writing here"
            raise UsageError(message, path=str(shown), hint=hint, parameters=("out",)) from None
        yield
