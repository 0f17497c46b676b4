"""Threads that call functions for threads that wait no longer than they have to.

A thread cannot be ended from outside. One whose function does not come back in time is left to itself: it is a daemon, so
it ends with the process at the latest. The others are used again, so that a function called one at a time is always
called in the same thread, which some libraries insist on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import TypeVar

from cranfield.systems.system import CallInterruptedError

_POLL_S = 0.05
Result = TypeVar("Result")


class Workers:
    """As many threads as calls are under way at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[_Worker] = []
        self._lock = Lock()

    def run(self, function: Callable[[], Result], *, timeout_s: float | None, interrupted: Event) -> Result:
        """Call a function in a thread; what it returns, or raises.

        Args:
            function: what is called. It goes on in its thread where it is no longer waited for.
            timeout_s: seconds that are waited; None waits for ever.
            interrupted: once set, nobody waits any more.

        Raises:
            TimeoutError: it has not come back in time.
            CallInterruptedError: `interrupted` was set.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        with self._lock:
            worker = self._idle.pop() if self._idle else _Worker(self._name)
        call = _Call(function)
        worker.calls.put(call)
        while not call.is_done.wait(_POLL_S if until is None else max(0.0, min(_POLL_S, until - time.monotonic()))):
            if interrupted.is_set():
                worker.calls.put(None)
                raise CallInterruptedError
            if until is not None and time.monotonic() >= until:
                worker.calls.put(None)
                raise TimeoutError
        with self._lock:
            self._idle.append(worker)
        if call.error is not None:
            raise FunctionError(call.error)
        return call.result  # type: ignore[return-value]

    def close(self) -> None:
        """Let idle threads go."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.calls.put(None)


class FunctionError(Exception):
    """The function raised something; `error` is it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class _Call:
    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function
        self.result: object = None
        self.error: BaseException | None = None
        self.is_done = Event()


class _Worker:
    """One thread, which ends when it is given None."""

    def __init__(self, name: str) -> None:
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()
        Thread(target=self._work, name=f"{name} function", daemon=True).start()

    def _work(self) -> None:
        while (call := self.calls.get()) is not None:
            try:
                call.result = call.function()
            except BaseException as error:  # noqa: BLE001 - a function may raise anything, SystemExit too
                call.error = error
            call.is_done.set()
