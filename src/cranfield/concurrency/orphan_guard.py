"""A guard process that kills our child processes when we are killed ourselves (kill -9) and cannot.

It reads a pipe whose write end only we hold: the start and end of each process group. When the pipe closes, which the
operating system does however we end, it kills the groups that are left. A program that was started less than some
milliseconds before kill -9 can survive: its group is not in the pipe yet.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from functools import cache
from threading import Lock

_PROGRAM = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    if line.endswith("\\n"):
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class OrphanGuard:
    """Records every process group that starts and ends; kills the rest when this process is gone."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            text=True,
        )

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


os.register_at_fork(after_in_child=_only_guard.cache_clear)


def orphan_guard() -> OrphanGuard:
    """The guard of this process; started on the first call."""
    with _starting:
        return _only_guard()
