"""Locks of folders and files against other processes; they end with the process. Windows has none: see `cranfield.platforms`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cranfield.platforms import LOCKS, missing


@contextmanager
def path_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock a folder or a file against other processes that lock it; the lock ends with the process.

    Where there are no locks, nothing is locked.

    Raises:
        BlockingIOError: another process holds the lock, and `wait` is off.
    """
    if missing(LOCKS):
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            lock(handle, wait=wait)
        except BlockingIOError:
            raise
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


def lock(handle: int, *, wait: bool = True) -> None:
    """Lock an open file, as `path_lock` does, until it is closed; an error of the system is raised."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
