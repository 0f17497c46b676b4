"""A guard process that kills our child processes when we are killed ourselves (kill -9) and cannot.

It reads a pipe whose write end only we hold: the start and end of each process group. When the pipe closes, which the
operating system does however we end, it kills the groups that are left, and on Linux what has left its group: child processes,
and theirs, have a mark in their environment. A program that was started less than some milliseconds before kill -9 can survive
elsewhere: its group is not in the pipe yet.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from functools import cache
from itertools import count
from threading import Lock

from cranfield.concurrency import orphans
from cranfield.concurrency.orphans import MARK_NAME


class OrphanGuard:
    """Records every process group that starts and ends; kills the rest when this process is gone."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers = count(1)
        self._mark = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", orphans.__file__, self._mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            text=True,
        )

    def mark(self) -> tuple[str, str]:
        """The mark of a new child process, and the value of `MARK_NAME` in its environment.

        The value is that of this process, if it has one, followed by the mark of this process and of the child.
        """
        mark = f"{self._mark}.{next(self._numbers)}"
        return mark, f"{os.environ.get(MARK_NAME, '')}{self._mark} {mark} "

    def started(self, group: int) -> None:
        """Add a process group."""
        self._write(f"+{group}\n")

    def ended(self, group: int) -> None:
        """Remove a process group: its number may be reused."""
        self._write(f"-{group}\n")

    def close(self) -> None:
        """Have the guard kill what is left, and wait for it."""
        with self._lock, suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.close()
        self._process.wait()

    def _write(self, line: str) -> None:
        # A guard that was killed must not end the collection.
        with self._lock, suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.write(line)
                self._process.stdin.flush()


_starting = Lock()


@cache
def _only_guard() -> OrphanGuard:
    guard = OrphanGuard()
    atexit.register(guard.close)
    return guard


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_only_guard.cache_clear)


def orphan_guard() -> OrphanGuard:
    """The guard of this process; started on the first call."""
    with _starting:
        return _only_guard()
