"""The event loop of the program.

Blocking functions run in threads for the loop. A thread cannot be ended from outside. One whose caller was cancelled is
abandoned: it is a daemon, so it ends with its function, or with the process. The others are reused, so that functions
called one at a time always run in the same thread, which some libraries require.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures import TimeoutError as NotYetDone
from contextlib import suppress
from functools import cache, partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar, TypeVarTuple, Unpack

SIGNALS_S = 0.1
"""Longest time until a signal is noticed by a thread that waits for a result."""
_GRACE_S = 2.0
"""Longest wait for tasks to clean up at exit."""
_RESPONSE_S = 0.5
Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")
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


class CallInterruptedError(Exception):
    """A call was cancelled: it has no outcome, and is repeated when the collection is resumed."""


class _Loop(asyncio.SelectorEventLoop):
    """Its own blocking calls, which are look-ups of host names, are made in threads that do not delay the end of the process."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = Threads("cranfield-look-up")

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Arguments]], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """As asyncio; without an executor, in a thread that is abandoned where the call is cancelled."""
        if executor is not None:
            return super().run_in_executor(executor, func, *args)
        return self.create_task(self._call(partial(func, *args)))

    async def _call(self, function: Callable[[], Result]) -> Result:
        try:
            return await self._threads.call(function)
        except FunctionError as raised:
            raise raised.error from None


class EventLoop:
    """An asyncio event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop = _Loop()
        self.threads = Threads("cranfield-worker")
        """For blocking work of calls: reading long outputs, loading certificates."""
        if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
            # Ignored, SIGCHLD would take the exit status of every child process.
            if sys.platform != "win32" and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._thread = threading.Thread(target=self._work, name="cranfield-loop", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine from another thread, and wait until it has ended.

        An exception in the waiting thread (Ctrl-C) cancels it; it is raised when the coroutine has cleaned up.

        Raises:
            CallInterruptedError: the coroutine was cancelled.
            RuntimeError: called on the loop itself, which would wait for ever.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("EventLoop.run on its own loop: await the coroutine")
        waited = _Waited(self._loop, coroutine)
        try:
            self._loop.call_soon_threadsafe(waited.start)
            while True:
                try:
                    return waited.ended.result(SIGNALS_S)
                except NotYetDone:
                    if waited.ended.done():
                        return waited.ended.result()  # or raises a TimeoutError of the coroutine
                    if not self._thread.is_alive():
                        raise RuntimeError("the event loop has ended") from None
        except CancelledError:
            raise CallInterruptedError from None
        except BaseException:
            if not waited.ended.done() and self._thread.is_alive():
                self._loop.call_soon_threadsafe(waited.cancel)
                while not waited.ended.done() and self._thread.is_alive():
                    time.sleep(SIGNALS_S / 10)
            raise

    def run_function(self, function: Callable[[], Result], seconds: float) -> Result:
        """Run a function in a thread, which is abandoned when it is late; this one hears Ctrl-C meanwhile.

        Raises:
            TimeoutError: it is late.
        """

        async def call() -> Result:
            async with asyncio.timeout(seconds):
                return await self.threads.call(function)

        try:
            return self.run(call())
        except FunctionError as raised:
            raise raised.error from None

    def post(self, callback: Callable[[], object]) -> None:
        """Have a function called on the loop; does not wait."""
        self._loop.call_soon_threadsafe(callback)

    async def call(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine from another event loop. Cancelled without waiting for its cleanup."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def stop(self) -> None:
        """Cancel all tasks, wait a moment for their cleanup, and end. A loop that is blocked is abandoned."""
        atexit.unregister(self.stop)
        responds = threading.Event()
        self._loop.call_soon_threadsafe(responds.set)
        if responds.wait(_RESPONSE_S):
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


_starting = threading.Lock()
_only_loop = cache(EventLoop)
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_only_loop.cache_clear)  # threads do not survive a fork


def event_loop() -> EventLoop:
    """The event loop of this process; started on the first call."""
    with _starting:
        return _only_loop()


async def finish(awaitable: Awaitable[Result]) -> Result:
    """Wait for the end of `awaitable` even if the current task is cancelled meanwhile; the cancellation follows."""
    task = asyncio.ensure_future(awaitable)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        task.cancelled() or task.exception()  # retrieved, so that asyncio does not report it
        raise asyncio.CancelledError
    return task.result()


class _Waited(Generic[Result]):
    """A coroutine that another thread waits for. All but `ended` is used on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Result]) -> None:
        self.ended: Future[Result] = Future()
        self._loop = loop
        self._coroutine = coroutine
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the coroutine, unless it was cancelled before."""
        if not self.ended.done():
            self._task = self._loop.create_task(self._copy_result())
            self._task.add_done_callback(lambda _: self._end_unstarted())

    def cancel(self) -> None:
        """Cancel it, started or not."""
        if self._task is None:
            self._end_unstarted()
        else:
            self._task.cancel()

    def _end_unstarted(self) -> None:
        if not self.ended.done():
            self.ended.cancel()
            self._coroutine.close()

    async def _copy_result(self) -> None:
        """Await it. `SystemExit` and `KeyboardInterrupt` would end the loop: they are raised in the waiting thread."""
        try:
            self.ended.set_result(await self._coroutine)
        except asyncio.CancelledError:
            self.ended.cancel()
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            self.ended.set_exception(error)


async def run_all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do several things at the same time. Where one raises an error, the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
    else:
        return
    raise first
