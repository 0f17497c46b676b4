"""What is done around the queries of a system: commands before the first and after the last, a program that runs meanwhile.

Systems with the same commands, folder and environment share one `SetUp`, so that the points of a grid and the test sets of a config
do not build an index again, or start a server on a port that is taken. Used on the event loop, but for `set_up_of` and `end_all`.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit
from weakref import WeakValueDictionary, finalize

from cranfield.base.concurrency.child_process import (
    MAX_OUTPUT_BYTES,
    ChildProcess,
    NotStartedError,
    TooMuchOutputError,
    child_process,
    exit_reason,
)
from cranfield.base.concurrency.loop import event_loop
from cranfield.config.strict import fill, with_port
from cranfield.config.systems import Serve, SystemConfig
from cranfield.systems.calls.answer_schema import output_hint
from cranfield.systems.calls.stages import CheckFailedError, Step

LOG = logging.getLogger(__name__)
AFTER_S = 600.0
"""Time limit of a command of `after`, in seconds: an interruption must come to an end."""
DYING_S = 0.3
"""Longest wait for the end of a program whose connections broke, in seconds."""
_POLL_S = 0.05
_REQUEST_S = 5.0
"""Time limit of one request that asks whether a program is ready, in seconds."""
_KEPT_LINES = 20
"""Last lines of stdout that are kept for a message."""
HOST = "localhost"


class SetUp:
    """The commands of one or more systems, run once for all of them."""

    def __init__(self, config: SystemConfig, cwd: Path, environment: Mapping[str, str]) -> None:
        """Choose the port; nothing is started yet."""
        self._serve: Serve | None = config.serve
        self._reserved: socket.socket | None = None
        self.port: int | None = None if self._serve is None else self._serve.port or self._reserve()
        """Port of the program of `serve`; None without one."""
        self._cwd = cwd
        self._environment = dict(environment) | ({} if self.port is None else {"PORT": str(self.port)})
        self._after = list(config.after)
        self._steps = [(f"before {' '.join(command)}", partial(self._run, command)) for command in config.before]
        self.commands = list(config.before)
        """The commands of the steps before the first query, as written."""
        if self._serve is not None and self.port is not None:
            label = f"serve {' '.join(self._serve.command)}"
            self._steps.append((label, partial(self._start, self._serve, self.port)))
            self.commands.append(self._serve.command)
        self._users: set[int] = set()
        self._found: list[str] = []
        """The results of the steps so far."""
        self._failure: CheckFailedError | None = None
        self._changing = asyncio.Lock()
        self._served: _Served | None = None

    @property
    def label(self) -> str:
        """The step that was made last, or failed: `serve node server.mjs`."""
        return self._steps[min(len(self._found), len(self._steps) - 1)][0] if self._steps else "after"

    @property
    def is_open(self) -> bool:
        """Whether every step was made."""
        return len(self._found) == len(self._steps)

    def steps(self, user: int) -> list[Step]:
        """Label and function of each step before the first query; a function returns its result, and is called in order.

        Args:
            user: identifies the system that uses the set-up until its `close`.
        """
        return [(label, partial(self._reach_from_thread, user, n)) for n, (label, _) in enumerate(self._steps, start=1)]

    async def open(self, user: int) -> None:
        """Make all steps that were not made yet, and check that the program still runs.

        Raises:
            CheckFailedError: a command failed, or the program is not ready, or it has ended.
        """
        await self._reach(user, len(self._steps))

    async def check(self, *, broke: bool = False) -> None:
        """Check that the program still runs.

        Args:
            broke: a connection to it could not be made, or broke: its end may be under way.

        Raises:
            CheckFailedError: it has ended.
        """
        served = self._served
        if served is None:
            return
        if broke and not served.child.has_ended:
            await asyncio.wait([served.reading], timeout=DYING_S)
        if served.child.has_ended or served.reading.done():
            raise await served.failure("a program that runs until the last query")

    async def close(self, user: int) -> None:
        """Give it up; with its last user the program is ended, and the commands of `after` are run."""
        async with self._changing:
            was_used = user in self._users
            self._users.discard(user)
            if not was_used or self._users:
                return
            try:
                if self._served is not None:
                    await self._served.child.end()
            finally:
                self._served, self._failure, self._found = None, None, []
                for command in self._after:
                    with suppress(CheckFailedError):
                        await self._run(command, is_last=True)
                _open.discard(self)

    def _reserve(self) -> int:
        """A free port, which no other program is given until the program is started."""
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        finalize(self, self._reserved.close)
        self._reserved.bind(("127.0.0.1", 0))
        port: int = self._reserved.getsockname()[1]
        return port

    def _reach_from_thread(self, user: int, n: int) -> str:
        return event_loop().run(self._reach(user, n))

    async def _reach(self, user: int, n: int) -> str:
        """Make the first `n` steps, unless they were made; returns the result of the last of them."""
        async with self._changing:
            self._users.add(user)
            _open.add(self)
            _end_all_at_exit()
            if self._failure is not None and len(self._found) < n:
                raise self._failure
            try:
                for _, make in self._steps[len(self._found) : n]:
                    self._found.append(await make())
            except CheckFailedError as failure:
                self._failure = failure
                raise
            await self.check()
            return self._found[n - 1] if n else ""

    async def _run(self, command: Sequence[str], *, is_last: bool = False) -> str:
        """Run a command to its end; one of `after` has a time limit, and its failure is noted."""
        expected, seconds = "exit status 0", AFTER_S if is_last else None
        words: deque[str] = deque(maxlen=_KEPT_LINES)
        try:
            async with (
                asyncio.timeout(seconds),
                child_process(
                    self._argv(command), cwd=self._cwd, env=self._environment, keeps_last_stderr=True
                ) as child,
            ):
                while (line := await child.read_line()) is not None:
                    words.append(line.decode("utf-8", "replace"))
                status = await child.run()
                if status == 0:
                    return "exit status 0"
                failure = CheckFailedError(expected, exit_reason(status), _hint(child, words))
        except NotStartedError as error:
            failure = CheckFailedError("a program that starts", str(error))
        except TooMuchOutputError:
            failure = CheckFailedError(expected, _TOO_LONG)
        except TimeoutError:
            failure = CheckFailedError(f"its end in {seconds:g} s", "it still ran, and was ended")
        if is_last:
            found = "; ".join(filter(None, (failure.found, failure.hint)))
            LOG.warning("note: after %s: expected %s, got %s", " ".join(command), failure.expected, found)
        raise failure

    async def _start(self, serve: Serve, port: int) -> str:
        """Start the program, and wait until it is ready."""
        if await _accepts(port):
            hint = "end it, or leave out serve.port: a free port is taken."
            raise CheckFailedError(f"a free port {port}", "another program that listens on it", hint)
        if self._reserved is not None:
            self._reserved.close()
        try:
            child = await ChildProcess.start(
                self._argv(serve.command), cwd=self._cwd, env=self._environment, stdin=True
            )
        except NotStartedError as error:
            raise CheckFailedError("a program that starts", str(error)) from None
        self._served = served = _Served(child, serve, port)
        try:
            async with asyncio.timeout(serve.start_s):
                while not await served.is_ready():
                    if served.reading.done():
                        raise await served.failure(served.expected)
                    await asyncio.wait([served.reading], timeout=_POLL_S)
        except TimeoutError:
            expected = f"{served.expected} in {serve.start_s:g} s"
            raise CheckFailedError(expected, served.state, served.hint or _LISTENS) from None
        if served.reading.done():
            raise await served.failure(served.expected)
        return served.expected

    def _argv(self, command: Sequence[str]) -> list[str]:
        written = list(command) if self.port is None else with_port(list(command), self.port)
        return fill(written, query="", k=0, python=sys.executable, params={})


_TOO_LONG = f"a line of over {MAX_OUTPUT_BYTES // 1024**2} MB of output"
_LISTENS = "its port is {port} in its command, and the variable PORT; serve.port names another, serve.line what it writes when it is ready."


class _Served:
    """A running program of `serve`."""

    def __init__(self, child: ChildProcess, serve: Serve, port: int) -> None:
        self.child = child
        self._serve = serve
        self._address = None if serve.ready is None else _address(serve.ready, port)
        self._port = port
        self._words: deque[str] = deque(maxlen=_KEPT_LINES)
        self._wrote_line = serve.line is None
        self.state = ""
        """What it was found to do when it was not ready."""
        self.reading = asyncio.create_task(self._read())
        """Done when the program has ended."""

    @property
    def expected(self) -> str:
        """What makes it ready, in the words of the config."""
        found = [] if self._serve.line is None else [f"a line with {self._serve.line!r}"]
        found += [] if self._serve.ready is None else [f"status 200 from {self._serve.ready}"]
        return " and ".join(found) or "a program that listens on its port"

    @property
    def hint(self) -> str | None:
        """The last lines that it wrote."""
        return _hint(self.child, self._words)

    async def is_ready(self) -> bool:
        """Whether queries can be sent."""
        if not self._wrote_line and (self._serve.line or "") not in self.child.stderr_from(0):
            self.state = "no such line"
            return False
        self._wrote_line = True
        if self._address is not None:
            self.state = await _status(self._address)
            return self.state == "status 200"
        self.state = f"nothing listens on port {self._port}"
        return self._serve.line is not None or await _accepts(self._port)

    async def failure(self, expected: str) -> CheckFailedError:
        """The failure of a program that has ended, with the last lines that it wrote."""
        with suppress(asyncio.CancelledError):
            await self.reading
        status = self.child.returncode
        how = _TOO_LONG if status is None else exit_reason(status)
        hint = self.hint
        if status == 0 and hint is None:
            hint = "it has to stay in the foreground."
        return CheckFailedError(expected, how, hint)

    async def _read(self) -> None:
        """Receive what it writes, so that it never waits for that, until it has ended."""
        with suppress(TooMuchOutputError):
            while (line := await self.child.read_line()) is not None:
                text = line.decode("utf-8", "replace")
                self._words.append(text)
                self._wrote_line = self._wrote_line or (self._serve.line or "") in text
            await self.child.run()


def _hint(child: ChildProcess, words: Sequence[str]) -> str | None:
    return output_hint(child.stderr_from(0)) or output_hint("\n".join(words))


def _address(ready: str, port: int) -> str:
    address: str = with_port(f"http://{HOST}:{port}{ready}" if ready.startswith("/") else ready, port)
    return address


async def _accepts(port: int) -> bool:
    """Whether a connection to a port of this machine is accepted."""
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


async def _status(address: str) -> str:
    """What a GET of an address comes to: `status 200`, or why there is none."""
    parts = urlsplit(address)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    request = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(_REQUEST_S):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            try:
                writer.write(request.encode("utf-8", "surrogateescape"))
                words = (await reader.readline()).decode("latin-1").split(" ")
            finally:
                writer.close()
    except TimeoutError:
        return f"no answer in {_REQUEST_S:g} s"
    except (OSError, ValueError):
        return "no connection"
    return f"status {words[1]}" if len(words) > 1 and words[0].startswith("HTTP/") else "an answer that is not HTTP"


_known: WeakValueDictionary[str, SetUp] = WeakValueDictionary()
_making = Lock()
_open: set[SetUp] = set()
"""Those that have to be closed."""
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_known.clear)  # they are the parent's
    os.register_at_fork(after_in_child=_open.clear)


def set_up_of(config: SystemConfig, cwd: Path, environment: Mapping[str, str]) -> SetUp | None:
    """The set-up of a system, shared with other systems of the same commands, folder and variables; None where it has none."""
    if not (config.before or config.serve or config.after):
        return None
    serve = None if config.serve is None else config.serve.model_dump()
    own = {name: value.get_secret_value() for name, value in config.env.items()}
    key = json.dumps([str(cwd), own, config.before, serve, config.after], sort_keys=True)
    with _making:
        found = _known.get(key)
        if found is None:
            found = _known[key] = SetUp(config, cwd, environment)
        return found


@cache
def _end_all_at_exit() -> None:
    """Have what is still open closed when this process ends."""
    atexit.register(end_all)


def end_all() -> None:
    """Close what is still open, for all of its users."""
    for each in list(_open):
        users = list(each._users)  # noqa: SLF001 - its own file
        for user in users:
            event_loop().run(each.close(user))
