"""A guard process that ends our children when we cannot: after kill -9, nobody else would.

It holds the read end of a pipe whose write end only we have, is told each process group that starts and ends, and
kills those left over when the pipe closes, which the operating system sees to however we die. What was started in the
very moment we were killed, before the guard could be told, ends by itself.
"""

from __future__ import annotations

import atexit
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
    """Told of every process group that starts and ends; ends the rest when we are gone."""

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
        """A process group to end if we die first."""
        self._tell(f"+{group}\n")

    def ended(self, group: int) -> None:
        """A process group that is no more; its number may be given to others."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the guard end what is left, and wait for it."""
        with self._lock, suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        # A guard that somebody killed must not take the collection down with it.
        with self._lock, suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.write(line)
                self._process.stdin.flush()


_starting = Lock()


@cache
def _only_guard() -> OrphanGuard:
    orphan_guard = OrphanGuard()
    atexit.register(orphan_guard.close)
    return orphan_guard


def orphan_guard() -> OrphanGuard:
    """The guard of this process; started on the first call."""
    with _starting:
        return _only_guard()
