"""Run one program to its end: bounded in time and output, in a process group of its own, never through a shell.

Knows nothing of queries and results; says how the program ended and what it wrote.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from threading import Event
from typing import IO, Self

from cranfield.systems.calls.orphan_guard import orphan_guard

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
"""A program that writes more than this to stdout is stopped."""
KEPT_STDERR_BYTES = 64 * 1024
"""Of stderr only the beginning is kept; the rest is read and forgotten, so that the program is never held up."""

_POLL_S = 0.05
_POLITE_S = 0.3
_LINGER_S = 1.0


class End(Enum):
    """How a program came to its end."""

    EXIT = "exit"
    NOT_STARTED = "not started"
    TIMEOUT = "timeout"
    TOO_MUCH_OUTPUT = "too much output"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Finished:
    """What is left of a program that has ended."""

    end: End
    status: int | None = None
    """Exit status; under 0, the number of the signal that killed it. None unless `end` is EXIT."""
    stdout: bytes = b""
    stderr: bytes = b""
    why: str = ""
    """Why it could not be started, in words that are the same on every machine."""


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    interrupted: Event,
    max_output_bytes: int = MAX_OUTPUT_BYTES,
) -> Finished:
    """Run `argv` in `cwd` and wait for it; when this returns, nothing of its process group is left."""
    guard = orphan_guard()
    deadline = time.monotonic() + timeout_s
    try:
        # Bytes, so that a query reads the same whatever the locale of the machine.
        process = subprocess.Popen(
            [argument.encode("utf-8", "surrogateescape") for argument in argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        return Finished(End.NOT_STARTED, why=why_not_started(error, cwd))
    try:
        guard.started(process.pid)
        with _Output(process, max_output_bytes) as output:
            end = _follow(process, output, deadline, interrupted)
    finally:
        _end_group(process)
        guard.ended(process.pid)
    status = process.returncode if end is End.EXIT else None
    return Finished(end, status, bytes(output.stdout), bytes(output.stderr))


class _Output:
    """Both pipes of a process, read as they fill."""

    def __init__(self, process: subprocess.Popen[bytes], max_output_bytes: int) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._limit = max_output_bytes
        self._selector = selectors.DefaultSelector()
        self._streams: list[IO[bytes]] = []
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                self._streams.append(stream)
                self._selector.register(stream, selectors.EVENT_READ, stream is process.stdout)

    @property
    def is_open(self) -> bool:
        """False once both pipes have come to their end."""
        return bool(self._selector.get_map())

    @property
    def is_too_much(self) -> bool:
        """True once stdout holds more than is allowed."""
        return len(self.stdout) > self._limit

    def read(self, wait_s: float) -> None:
        """Read what there is, waiting at most `wait_s`."""
        for key, _ in self._selector.select(wait_s):
            data = os.read(key.fd, 65536)
            if not data:
                self._selector.unregister(key.fileobj)
            elif key.data:
                self.stdout += data
            elif len(self.stderr) < KEPT_STDERR_BYTES:
                self.stderr += data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for stream in self._streams:
            stream.close()


def _follow(process: subprocess.Popen[bytes], output: _Output, deadline: float, interrupted: Event) -> End:
    """Read until the program has ended, or must be."""
    gone_at = None
    while True:
        now = time.monotonic()
        if interrupted.is_set():
            return End.INTERRUPTED
        if now >= deadline:
            return End.TIMEOUT
        wait_s = min(_POLL_S, deadline - now)
        if output.is_open:
            output.read(wait_s)
            if output.is_too_much:
                return End.TOO_MUCH_OUTPUT
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(wait_s)
        if process.poll() is None:
            continue
        # Something the program left behind may hold its output open; that is waited for only a moment.
        gone_at = gone_at or now
        if not output.is_open or now >= gone_at + _LINGER_S:
            return End.EXIT


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ask, then force, everything in the group to end; reap the leader."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLITE_S)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def why_not_started(error: OSError | ValueError, cwd: Path) -> str:
    """Why a program could not be started, in words that are the same on every machine."""
    if not cwd.is_dir():
        return "its working directory is not there"
    if isinstance(error, FileNotFoundError):
        return "there is no such program"
    if isinstance(error, PermissionError):
        return "it may not be executed"
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, "the operating system refused")
    return "an argument holds a character that no command line can carry"
