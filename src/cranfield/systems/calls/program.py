"""A program that stays: one life of it, from start to end, on the event loop. Lines in, lines out, stderr drained.

Knows nothing of queries. Its whole process group ends with it, and with us, however we end.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cranfield.systems.calls.orphan_guard import orphan_guard
from cranfield.systems.calls.process import KEPT_STDERR_BYTES, MAX_OUTPUT_BYTES, why_not_started
from cranfield.systems.kinds.command import exit_reason

_POLL_S = 0.01
_POLITE_S = 0.3
_LAST_WORDS_S = 0.5
"""How long a program's stderr is read after its stdout has ended, for what it says of its own end."""


class NotStartedError(Exception):
    """The program could not be started; the message says why, in words that are the same on every machine."""


class Program:
    """A program that is running, or has ended. All of it is used on the loop."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr = bytearray()
        self._written = 0
        """Bytes of stderr, those forgotten included."""
        self._drain = asyncio.create_task(self._drain_stderr())
        self._watch = asyncio.create_task(self._end_output_with_it())
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Program:
        """Start it in a process group of its own.

        Raises:
            NotStartedError: it could not be.
        """
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *(argument.encode("utf-8", "surrogateescape") for argument in argv),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd,
                env=dict(env),
                start_new_session=True,
                limit=MAX_OUTPUT_BYTES,
            )
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_end_unwanted)
            raise
        except (OSError, ValueError) as error:
            raise NotStartedError(why_not_started(error, cwd)) from None
        orphan_guard().started(process.pid)
        return cls(process)

    @property
    def pid(self) -> int:
        """Of the program, and of its group."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True once it is no more."""
        return self._process.returncode is not None

    @property
    def n_stderr(self) -> int:
        """Bytes it has written to stderr until now: where `stderr_from` begins."""
        return self._written

    def stderr_from(self, start: int) -> str:
        """What it wrote to stderr since; of very much only the end."""
        forgotten = self._written - len(self._stderr)
        text = self._stderr[max(start - forgotten, 0) :].decode("utf-8", "replace")
        return text if start >= forgotten else text.partition("\n")[2]  # whole lines: half a secret is not known as one

    async def write_line(self, line: str) -> None:
        """Give it a line.

        Raises:
            OSError: it does not read any more.
        """
        stdin = self._stdin()
        if stdin.is_closing():
            raise BrokenPipeError
        stdin.write(line.encode("utf-8", "surrogatepass") + b"\n")
        await stdin.drain()

    async def lines(self) -> AsyncIterator[bytes]:
        """Its lines, without their ends, until its stdout ends.

        Raises:
            ValueError: a line is longer than anybody reads.
        """
        stdout = self._process.stdout
        while stdout is not None and (line := await stdout.readline()):
            yield line.rstrip(b"\r\n")
            await asyncio.sleep(
                0
            )  # lines that are there already are read without a pause: a flood would be all there is

    async def how_it_ended(self) -> str:
        """Wait for the end of a program whose stdout has ended, and say how that was: `ended with exit status 3`.

        One that closed its stdout and goes on is ended.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._drain), _LAST_WORDS_S)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._gone(), _LAST_WORDS_S)
        status = self._process.returncode
        await self.end()
        if status is None:
            return "closed its output and went on"
        return f"{'was' if status < 0 else 'ended with'} {exit_reason(status)}"

    async def end(self) -> None:
        """End it and its group, politely first; nothing of it is left when this returns."""
        await asyncio.shield(self.ending())

    def ending(self) -> asyncio.Task[None]:
        """Begin to end it, without waiting."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return self._ending

    async def _end(self) -> None:
        if not self.has_ended:
            self._stdin().close()
            _signal_group(self.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._gone(), _POLITE_S)
        _signal_group(self.pid, signal.SIGKILL)
        await self._gone()
        orphan_guard().ended(self.pid)
        for task in (self._drain, self._watch):
            task.cancel()
        await asyncio.wait([self._drain, self._watch])
        self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - nothing public closes the pipes

    async def _gone(self) -> None:
        """Wait until it is no more, whoever still holds its pipes."""
        while not self.has_ended:  # noqa: ASYNC110 - what asyncio waits for may be the end of the pipes too
            await asyncio.sleep(_POLL_S)

    async def _end_output_with_it(self) -> None:
        """Close its stdout a moment after its end: something that it left behind may hold it open for ever."""
        await self._gone()
        await asyncio.sleep(_LAST_WORDS_S)
        transport = self._process._transport  # type: ignore[attr-defined]  # noqa: SLF001 - nothing public closes a pipe
        stdout = transport.get_pipe_transport(1)
        if stdout is not None:
            stdout.close()

    def _stdin(self) -> asyncio.StreamWriter:
        stdin = self._process.stdin
        if stdin is None:
            raise BrokenPipeError
        return stdin

    async def _drain_stderr(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (data := await stderr.read(65536)):
            self._written += len(data)
            self._stderr += data
            del self._stderr[:-KEPT_STDERR_BYTES]


def _end_unwanted(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """End a program for which nobody waited."""
    if not starting.cancelled() and starting.exception() is None:
        process = starting.result()
        _signal_group(process.pid, signal.SIGKILL)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
