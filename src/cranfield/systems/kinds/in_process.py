"""What systems in the same process have in common: something is loaded once, asked many times, and closed."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from typing import Any

from cranfield.model import Scalar
from cranfield.systems.calls.redirect_stdout import redirect_stdout
from cranfield.systems.calls.workers import FunctionError, Workers
from cranfield.systems.configured import HEAD_CHARS, CheckFailedError, ConfiguredSystem, Reply, failed
from cranfield.systems.kinds.function import Function, callable_of


class InProcessSystem(ConfiguredSystem):
    """A system whose calls are calls of a function.

    A plain function is called in a thread: one that is out of time cannot be ended, and is left to itself. Where it is
    called one at a time, it is always the same thread, in which it is loaded too.
    """

    def prepare(self) -> None:
        """Nothing is loaded yet."""
        self._came_from = _folder()
        self._workers = Workers(self.name)
        self._loading = Lock()
        self._function: Function | None = None
        self._made: object = None

    @abstractmethod
    def load(self) -> tuple[object, object]:
        """What is asked, and what was made for it and is ours to close; None where nothing was.

        Raises:
            CheckFailedError: it is not there, or cannot be made.
        """

    def attempt(self, query: str, k: int, params: Mapping[str, Scalar], interrupted: Event) -> Reply:
        """Call the function once."""
        try:
            function = self.loaded(interrupted)
        except CheckFailedError as problem:
            return failed(f"{problem.expected}: {problem.found}")
        with redirect_stdout():
            reply = function.ask(query, k, params, self.config.timeout_s, interrupted)
        return replace(reply, stderr=self.redactor.redact(reply.stderr)[-HEAD_CHARS:])

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The call as Python writes it."""
        named = "".join(f", {name}={value!r}" for name, value in params.items())
        return f"{self.called}({query!r}, {k}{named})"

    @property
    def called(self) -> str:
        """The name of what is called, for messages."""
        return self.name

    def loaded(self, interrupted: Event) -> Function:
        """The function; loaded the first time.

        Raises:
            CheckFailedError: it cannot be.
        """
        with self._loading:
            if self._function is None:
                try:
                    with redirect_stdout():
                        found = self._workers.run(self._load, timeout_s=None, interrupted=interrupted)
                except FunctionError as raised:
                    raise raised.error from None
                self._function = Function(found, self._workers, order=self.order, extract=self.config.extract)
            return self._function

    def close(self) -> None:
        """Close what was made, where it can be closed, let the threads go, and be back in the folder we came from."""
        with self._loading:
            made, self._made = self._made, None
            function, self._function = self._function, None
        close = getattr(made, "close", None)
        if callable(close):
            with suppress(FunctionError, TimeoutError), redirect_stdout():
                self._workers.run(close, timeout_s=self.config.timeout_s, interrupted=Event())
        self._workers.close()
        if function is not None:
            function.close()
            if self._came_from is not None and _folder() != self._came_from:
                with suppress(OSError):
                    os.chdir(self._came_from)

    def _load(self) -> Callable[..., Any]:
        found, self._made = self.load()
        return callable_of(found, self.called)


def _folder() -> Path | None:
    """The folder we are in; None where somebody has removed it."""
    try:
        return Path.cwd()
    except OSError:
        return None
