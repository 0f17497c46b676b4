"""Child processes: started, limited, ended with all that they started, also where this process dies.

A command that is called once, a program that answers lines, an MCP server over stdio and the reader of a database file
are all a `ChildProcess`. Used on the event loop. Its process group ends with it, and with us, however we end.

Where we are killed (kill -9), a guard process ends what is left. It reads a pipe whose write end only we hold: the start and the end
of each process group. When the pipe closes, which the operating system does however we end, the guard kills the groups that are
left, and on Linux their descendants in other groups, which have a mark in their environment. A program that was started some
milliseconds before kill -9 can survive elsewhere: its group is not in the pipe yet.
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import cast

from cranfield.base.concurrency import orphans
from cranfield.base.concurrency.loop import event_loop, finish
from cranfield.base.concurrency.orphans import MARK_NAME, end_marked
from cranfield.base.platforms import PROGRAMS, require


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


MAX_OUTPUT_BYTES = 16 * 1024 * 1024
"""Default limit of stdout as a whole, or of one line of it."""
KEPT_STDERR_BYTES = 64 * 1024
"""Kept of stderr; the rest is read and dropped, so that the program never blocks."""

_TERMINATION_S = 0.3
"""Time between SIGTERM and SIGKILL."""
_LINGER_S = 1.0
"""Longest wait for the end of the output after the process has ended: a process that it left behind may hold it open."""
_LAST_WORDS_S = 0.5
"""Longest wait for the end of a program that has closed its stdout."""
_CLOSE_S = 5.0


class NotStartedError(Exception):
    """The program could not be started; the message is the same on every machine."""


class TooMuchOutputError(Exception):
    """stdout, or a line of it, is over the limit."""


class ChildProcess(asyncio.SubprocessProtocol):
    """A program in a process group of its own."""

    def __init__(
        self, mark: str, *, max_output_bytes: int, has_input: bool, keeps_last_stderr: bool, has_own_stderr: bool
    ) -> None:
        self._mark = mark
        self._has_input = has_input
        self.stdout = bytearray()
        """Output that was received and not read by `read_line`."""
        self.stderr = bytearray()
        self.n_stderr = 0
        """Bytes of stderr received, those dropped included."""
        self._limit = max_output_bytes
        self._keeps_last_stderr = keeps_last_stderr
        self._open = {1, 2} if has_own_stderr else {1}
        self._changed = asyncio.Event()
        self._exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bool = False,
        keeps_last_stderr: bool | None = None,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        has_own_stderr: bool = True,
    ) -> ChildProcess:
        """Start a program.

        Args:
            argv: program and arguments.
            cwd: its working directory.
            env: its whole environment.
            stdin: it is written to.
            keeps_last_stderr: of its stderr the end is kept, and not the beginning; None: where it is written to.
            max_output_bytes: limit of stdout, or of one line where it is read by lines.
            has_own_stderr: it is kept here; otherwise the program writes to the stderr of this process.

        Raises:
            NotStartedError: it could not be started.
            PlatformError: this operating system has no process groups.
        """
        require(PROGRAMS)
        mark, marks = orphan_guard().mark()
        try:
            starting = asyncio.ensure_future(
                asyncio.get_running_loop().subprocess_exec(
                    lambda: cls(
                        mark,
                        max_output_bytes=max_output_bytes,
                        has_input=stdin,
                        keeps_last_stderr=stdin if keeps_last_stderr is None else keeps_last_stderr,
                        has_own_stderr=has_own_stderr,
                    ),
                    # Bytes, so that a query is passed on unchanged in every locale.
                    *(argument.encode("utf-8", "surrogateescape") for argument in argv),
                    stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.PIPE if has_own_stderr else None,
                    cwd=cwd,
                    env={**env, MARK_NAME: marks},
                    start_new_session=True,
                )
            )
            _, child = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_end_when_started)
            raise
        except (OSError, ValueError) as error:
            raise NotStartedError(_reason_not_started(error, cwd)) from None
        return child

    @property
    def returncode(self) -> int | None:
        """Exit status; minus the number of the signal that killed it; None while it runs."""
        return self._transport.get_returncode()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._exited.is_set()

    async def write_line(self, line: str) -> None:
        """Write a line to its stdin.

        Raises:
            OSError: it no longer reads.
        """
        stdin = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if stdin is None or stdin.is_closing():
            raise BrokenPipeError
        stdin.write(line.encode("utf-8", "surrogatepass") + b"\n")
        await self._writable.wait()

    async def read_line(self) -> bytes | None:
        """The next line of its stdout without the line end; None at the end.

        Raises:
            TooMuchOutputError: the line is over the limit.
        """
        searched = 0
        while (end := self.stdout.find(b"\n", searched)) < 0 and 1 in self._open:
            searched = len(self.stdout)
            if searched > self._limit:
                raise TooMuchOutputError
            await self._next_change()
        if end < 0 and not self.stdout:
            return None
        length = len(self.stdout) if end < 0 else end
        if length > self._limit:
            raise TooMuchOutputError
        line = bytes(self.stdout[:length])
        del self.stdout[: length + 1]
        self._control_reading()
        await asyncio.sleep(0)  # a program that writes without end must not block the loop
        return line.rstrip(b"\r")

    async def run(self) -> int:
        """Wait for its end and the end of its output, and return its exit status.

        Raises:
            TooMuchOutputError: stdout is over the limit.
        """
        while len(self.stdout) <= self._limit and (self._open or not self.has_ended):
            await self._next_change()
        if len(self.stdout) > self._limit:
            raise TooMuchOutputError
        return cast("int", self.returncode)

    def stderr_from(self, start: int) -> str:
        """Text of stderr from byte `start`, an earlier `n_stderr`; whole lines, if the first part was dropped."""
        dropped = self.n_stderr - len(self.stderr)
        text = self.stderr[max(start - dropped, 0) :].decode("utf-8", "replace")
        return text if start >= dropped else text.partition("\n")[2]  # half a secret would not be redacted

    async def describe_end(self) -> str:
        """Wait for the end of a program whose stdout has ended, and describe it: `ended with exit status 3`.

        A program that has closed its stdout and goes on is ended.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                while self._open or not self.has_ended:
                    await self._next_change()
        status = self.returncode
        await self.end()
        if status is None:
            return "closed its output but did not exit"
        return f"{'was' if status < 0 else 'ended with'} {exit_reason(status)}"

    async def end(self) -> None:
        """End its process group: SIGTERM, a moment later SIGKILL. Nothing of it is left when this returns.

        Of a program that was cut short or has input, processes that left the group are ended too, as far as `end_marked` finds
        them; those of other programs when this process ends.
        """
        await finish(self.ending())

    def ending(self) -> asyncio.Task[None]:
        """Begin to end it, without waiting."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return self._ending

    async def _end(self) -> None:
        is_cut_short = not self.has_ended
        if is_cut_short:
            stdin = self._transport.get_pipe_transport(0)
            if stdin is not None:
                stdin.close()
            _end_group(self.pid)
            with suppress(TimeoutError):
                async with asyncio.timeout(_TERMINATION_S):
                    await self._exited.wait()
        _end_group(self.pid, at_once=True)
        await self._exited.wait()
        if is_cut_short or self._has_input:
            await event_loop().threads.call(lambda: end_marked(self._mark))
        orphan_guard().ended(self.pid)
        _running.discard(self)
        self._transport.close()

    async def _next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _control_reading(self) -> None:
        """Receive no more of stdout while so much of it is unread."""
        pipe = cast("asyncio.ReadTransport | None", self._transport.get_pipe_transport(1))
        if pipe is None or pipe.is_closing():
            return
        if len(self.stdout) > self._limit:
            pipe.pause_reading()
        else:
            pipe.resume_reading()

    # Callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()
        orphan_guard().started(self.pid)
        _end_all_at_exit()
        _running.add(self)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Output came."""
        if fd == 1:
            self.stdout += data
            self._control_reading()
        else:
            self.n_stderr += len(data)
            self.stderr += data
            if self._keeps_last_stderr:
                del self.stderr[:-KEPT_STDERR_BYTES]
            else:
                del self.stderr[KEPT_STDERR_BYTES:]
        self._changed.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        """A pipe was closed."""
        self._open.discard(fd)
        if fd == 0:
            self._writable.set()
        self._changed.set()

    def pause_writing(self) -> None:
        """Its stdin is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Its stdin takes more."""
        self._writable.set()

    def process_exited(self) -> None:
        """The process has ended."""
        self._exited.set()
        self._changed.set()
        asyncio.get_running_loop().call_later(_LINGER_S, self._close_output)

    def _close_output(self) -> None:
        for fd in (1, 2):
            pipe = self._transport.get_pipe_transport(fd)
            if pipe is not None:
                pipe.close()


_running: set[ChildProcess] = set()
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_running.clear)  # they are the parent's


@asynccontextmanager
async def child_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bool = False,
    keeps_last_stderr: bool | None = None,
    max_output_bytes: int = MAX_OUTPUT_BYTES,
) -> AsyncIterator[ChildProcess]:
    """A program that ends with the block; see `ChildProcess.start`."""
    child = await ChildProcess.start(
        argv, cwd=cwd, env=env, stdin=stdin, keeps_last_stderr=keeps_last_stderr, max_output_bytes=max_output_bytes
    )
    try:
        yield child
    finally:
        await child.end()


def exit_reason(status: int) -> str:
    """`exit status 3`, `killed by SIGSEGV`."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


async def end_all() -> None:
    """End every program that still runs; there may be none any more."""
    if endings := [child.ending() for child in _running]:
        await asyncio.wait(endings, timeout=_CLOSE_S)


@cache
def _end_all_at_exit() -> None:
    def end_if_any() -> None:
        if _running:
            event_loop().run(end_all())

    atexit.register(end_if_any)


def _end_when_started(starting: asyncio.Future[tuple[asyncio.SubprocessTransport, ChildProcess]]) -> None:
    """End a program whose caller was cancelled while it started."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result()[1].ending()


def _end_group(group: int, *, at_once: bool = False) -> None:
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL if at_once else signal.SIGTERM)


def _reason_not_started(error: OSError | ValueError, cwd: Path) -> str:
    if not cwd.is_dir():
        return "its working directory does not exist"
    if isinstance(error, FileNotFoundError):
        return "the program does not exist"
    if isinstance(error, PermissionError):
        return "permission to execute it was denied"
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, "the operating system reported an error")
    return "an argument contains a character that is not allowed on a command line"
