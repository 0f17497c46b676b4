"""Threads that run blocking functions for the event loop.

A thread cannot be ended from outside. One whose caller was cancelled is abandoned: it is a daemon, so it ends with its
function, or with the process. The others are reused, so that functions called one at a time always run in the same
thread, which some libraries require.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Result = TypeVar("Result")
_Call = tuple[Callable[[], Any], asyncio.Future[Any]]


class FunctionError(Exception):
    """The function raised `error`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Threads:
    """As many threads as there are calls under way at a time. Used on the event loop only."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[_Call | None]] = []

    async def call(self, function: Callable[[], Result]) -> Result:
        """Run a function in a thread, and return its result.

        Raises:
            FunctionError: the function raised an exception of any kind, `SystemExit` included.
        """
        thread = self._idle.pop() if self._idle else self._start()
        ended: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        thread.put((function, ended))
        try:
            return await ended
        finally:
            if ended.cancelled():
                thread.put(None)
            else:
                self._idle.append(thread)

    def close(self) -> None:
        """End the idle threads."""
        while self._idle:
            self._idle.pop().put(None)

    def _start(self) -> SimpleQueue[_Call | None]:
        calls: SimpleQueue[_Call | None] = SimpleQueue()
        Thread(target=_work, args=(calls,), name=f"{self._name} function", daemon=True).start()
        return calls


def _work(calls: SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        function, ended = call
        result, error = None, None
        try:
            result = function()
        except BaseException as raised:  # noqa: BLE001 - a function may raise anything, SystemExit too
            error = FunctionError(raised)
        with suppress(RuntimeError):  # the loop was closed at exit
            ended.get_loop().call_soon_threadsafe(_resolve, ended, result, error)


def _resolve(ended: asyncio.Future[Any], result: object, error: FunctionError | None) -> None:
    if ended.done():
        return
    if error is None:
        ended.set_result(result)
    else:
        ended.set_exception(error)
