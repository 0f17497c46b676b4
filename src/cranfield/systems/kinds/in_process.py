"""Base class of systems in this process: a function is loaded once, called for each query, and closed."""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.concurrency.loop import event_loop
from cranfield.concurrency.threads import FunctionError, Threads
from cranfield.model import Scalar
from cranfield.systems.calls.redirect_stdout import redirect_stdout
from cranfield.systems.configured import HEAD_CHARS, CheckFailedError, ConfiguredSystem, Received, Reply, failed
from cranfield.systems.kinds.function import Function, find_callable


class InProcessSystem(ConfiguredSystem):
    """A system that is a function in this process.

    A plain function is called in a thread, which is abandoned when its time is over. With one call at a time it is always
    the same thread, in which the function is loaded too.
    """

    def prepare(self) -> None:
        """Initialise; nothing is loaded yet."""
        self._came_from = _folder()
        self._threads = Threads(self.name)
        self._loading = asyncio.Lock()
        self._function: Function | None = None
        self._made: object = None

    @abstractmethod
    def load(self) -> tuple[object, object]:
        """What is called, and the object to close in the end, or None.

        Raises:
            CheckFailedError: it is not there, or cannot be made.
        """

    async def make_ready(self) -> Reply | None:
        """Load the function."""
        try:
            await self.loaded()
        except CheckFailedError as problem:
            return failed(f"{problem.expected}: {problem.found}")
        return None

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:  # noqa: ARG002
        """Call the function once."""
        function = await self.loaded()
        with redirect_stdout():
            reply = await function.ask(query, k, params)
        return replace(reply, stderr=self.redactor.redact(reply.stderr)[-HEAD_CHARS:])

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The call as Python writes it."""
        named = "".join(f", {name}={value!r}" for name, value in params.items())
        return f"{self.called}({query!r}, {k}{named})"

    @property
    def called(self) -> str:
        """Name of the function, for messages."""
        return self.name

    async def loaded(self) -> Function:
        """The function; loaded by the first call.

        Raises:
            CheckFailedError: it cannot be loaded.
        """
        async with self._loading:
            if self._function is None:
                try:
                    with redirect_stdout():
                        found = await self._threads.call(self._load)
                except FunctionError as raised:
                    raise raised.error from None
                self._function = Function(found, self._threads, order=self.order, extract=self.config.extract)
            return self._function

    def close(self) -> None:
        """Call the method `close` of a made object, end the threads, and restore the working directory."""
        function = event_loop().run(self._close())
        if function is not None:
            function.close()
            if self._came_from is not None and _folder() != self._came_from:
                with suppress(OSError):
                    os.chdir(self._came_from)

    async def _close(self) -> Function | None:
        async with self._loading:
            made, self._made = self._made, None
            function, self._function = self._function, None
        close = getattr(made, "close", None)
        if callable(close):
            with suppress(FunctionError, TimeoutError), redirect_stdout():
                await asyncio.wait_for(self._threads.call(close), self.config.timeout_s)
        self._threads.close()
        return function

    def _load(self) -> Callable[..., Any]:
        found, self._made = self.load()
        return find_callable(found, self.called)


def _folder() -> Path | None:
    """The working directory; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None
