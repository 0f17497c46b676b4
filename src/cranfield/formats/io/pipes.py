"""Input that gives its bytes once: standard input and pipes, copied to a file. What may have no end is refused."""

from __future__ import annotations

import atexit
import errno
import os
import select
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

WRITER_S = 30.0
"""Longest wait for a program to open a named pipe for writing; one that has opened it may take any time."""
MAX_PIPE_BYTES = 32 * 1024**3
"""More comes out of no pipe: it would fill the disk."""
_POLL_S = 0.01


class UnreadableError(OSError):
    """Neither a file nor a pipe with an end; the message says why."""

    def __init__(self, message: str, expected: str) -> None:
        super().__init__(errno.ENODEV, message)
        self.expected = expected


def refuse_device(place: Path | int, *, pipes: bool = False) -> None:
    """Refuse what may have no end: a device other than the empty one, a socket.

    Args:
        place: a path, or the number of an open file.
        pipes: refuse pipes too.

    Raises:
        UnreadableError: it is one.
    """
    try:
        found = place.stat() if isinstance(place, Path) else os.fstat(place)
    except (OSError, ValueError):
        return  # opening it says why
    mode = found.st_mode
    is_empty = stat.S_ISCHR(mode) and _is_empty_device(found)
    if stat.S_ISFIFO(mode) and pipes:
        raise UnreadableError("this is a pipe", expected="a file")
    if not (is_empty or stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISFIFO(mode)):
        raise UnreadableError("this is a device", expected="a file" if pipes else "a file, or a pipe that ends")


def _is_empty_device(found: os.stat_result) -> bool:
    """Whether a device is the empty one. Windows shows no number of it, and has few others."""
    return sys.platform == "win32" or found.st_rdev == Path(os.devnull).stat().st_rdev


@contextmanager
def standard_input() -> Iterator[tuple[bytes, BinaryIO]]:
    """No bytes, and the stream of standard input.

    Raises:
        UnreadableError: it is a device other than a terminal.
    """
    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError):
        number = None  # replaced by a stream of Python
    if number is not None and not stat.S_ISSOCK(os.fstat(number).st_mode) and not os.isatty(number):
        refuse_device(number)
    yield b"", sys.stdin.buffer


@contextmanager
def opened_pipe(path: Path) -> Iterator[tuple[bytes, RawIOBase]]:
    """The first bytes of a named pipe, and the stream of the others, when a program has opened it for writing.

    Raises:
        UnreadableError: none does.
    """
    if sys.platform == "win32":
        raise UnreadableError("this is a named pipe, which Windows opens in another way", expected="a file")
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb", buffering=0) as stream:
        deadline = time.monotonic() + WRITER_S
        while (first := stream.read(1)) == b"" and not _has_hung_up(handle):
            if time.monotonic() > deadline:
                expected = "one that writes into it"
                raise UnreadableError(f"no program opened this pipe for writing in {WRITER_S:g} s", expected=expected)
            time.sleep(_POLL_S)
        os.set_blocking(handle, True)
        yield first or b"", stream


def _has_hung_up(handle: int) -> bool:
    """Whether a program had opened a pipe for writing, and has closed it."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def copy_of(first: bytes, rest: BinaryIO | RawIOBase) -> Any:
    """A file with bytes, and all that a stream has left; it is there as long as we are."""
    # Windows does not open a second time what is removed when it is closed.
    is_removed = sys.platform != "win32"
    copy = tempfile.NamedTemporaryFile(prefix="cranfield-input-", delete=is_removed)  # noqa: SIM115  closed at the end
    if not is_removed:
        atexit.register(
            Path(copy.name).unlink, missing_ok=True
        )  # after it is closed: the last that is registered comes first
    atexit.register(copy.close)  # what stands in a module may never be collected
    n_bytes = copy.write(first)
    while part := rest.read(1 << 20):
        n_bytes += len(part)
        if n_bytes > MAX_PIPE_BYTES:
            raise UnreadableError(f"over {MAX_PIPE_BYTES // 1024**3} GB came out of this pipe", expected="an end")
        copy.write(part)
    copy.flush()
    return copy
