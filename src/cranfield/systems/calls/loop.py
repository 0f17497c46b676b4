"""One event loop in a thread of its own, for everything that is asynchronous: requests, tools, programs that stay."""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as StillWaiting
from threading import Event
from typing import Any, TypeVar

from cranfield.systems.system import CallInterruptedError

_POLL_S = 0.05
_GRACE_S = 2.0
"""Longest wait for a call to clean up after it was cut short."""
_LISTENS_S = 0.5
Result = TypeVar("Result")


class Loop:
    """Runs coroutines for threads that wait for them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, name="cranfield-loop", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def run(
        self, coroutine: Coroutine[Any, Any, Result], *, timeout_s: float, interrupted: Event | None = None
    ) -> Result:
        """Run a coroutine to its end, and return what it returns or raise what it raises.

        Args:
            coroutine: what to run; it is cancelled when its time is over or it is interrupted.
            timeout_s: seconds it may take, all in all.
            interrupted: once set, the coroutine is cancelled.

        Raises:
            TimeoutError: its time was over.
            CallInterruptedError: `interrupted` was set.
        """
        deadline = time.monotonic() + timeout_s
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        while True:
            if interrupted is not None and interrupted.is_set():
                future.cancel()  # it cleans up in its own time, for which nobody waits
                raise CallInterruptedError
            left = deadline - time.monotonic()
            if left <= 0:
                future.cancel()
                raise TimeoutError
            try:
                return future.result(min(_POLL_S, left))
            except StillWaiting:
                if future.done():
                    return future.result()  # or raises: a TimeoutError of the coroutine's own
            except CancelledError:
                raise CallInterruptedError from None

    def stop(self) -> None:
        """Cancel what is left, let it clean up, and end. One that is held up by what runs in it is left to itself."""
        atexit.unregister(self.stop)
        listens = threading.Event()
        self._loop.call_soon_threadsafe(listens.set)
        if listens.wait(_LISTENS_S):
            asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop)
            self._thread.join(_GRACE_S)

    def _work(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_GRACE_S / 2)
        self._loop.stop()


_made: list[Loop] = []
_lock = threading.Lock()


def loop() -> Loop:
    """The one loop of this process, made when it is first asked for."""
    with _lock:
        if not _made:
            _made.append(Loop())
        return _made[0]
