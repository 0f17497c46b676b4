"""Limits of number, time and memory for what sources read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from cranfield.base.concurrency.loop import event_loop
from cranfield.judging.documents.values import DocumentError, DocumentFailureKind

WAIT_S = 2.0
"""Longest wait for another document of the same source to end."""
MOST_WAITING = 16
"""Documents of a source that wait; for further ones it is busy."""
GRACE_S = 0.5
"""Seconds over its limit that a source has to report its own end."""
Value = TypeVar("Value")


class Slots:
    """The documents of one source that are being read, and those that wait."""

    def __init__(self, concurrency: int, timeout_s: float) -> None:
        self._running = threading.BoundedSemaphore(concurrency)
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)
        self._timeout_s = timeout_s

    def run(self, work: Callable[[], Value]) -> Value:
        """Run a function in a thread, with a limit of time. A late one is abandoned, and keeps its slot until it ends.

        Raises:
            DocumentError: the source is busy, or it is late.
        """
        busy = DocumentError(
            DocumentFailureKind.BUSY, "Other documents of this source are being read. Try again in a moment."
        )
        if not self._waiting.acquire(blocking=False):
            raise busy
        try:
            if not self._running.acquire(timeout=WAIT_S):
                raise busy
        finally:
            self._waiting.release()

        def worked() -> Value:
            try:
                return work()
            finally:
                self._running.release()

        try:
            return event_loop().run_function(worked, self._timeout_s + GRACE_S)
        except TimeoutError:
            message = f"The source of this document did not answer within {self._timeout_s:g} s."
            raise DocumentError(DocumentFailureKind.TIMED_OUT, message) from None


class TimedCache(Generic[Value]):
    """Values for some time, the most recently used ones up to a size."""

    def __init__(self, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[float, int, Value]] = OrderedDict()
        self._size = 0

    def get(self, key: tuple[str, str]) -> Value | None:
        """The value; None where there is none, or it is too old."""
        with self._lock:
            until, _, value = self._kept.get(key, (0.0, 0, None))
            if value is None or self._clock() >= until:
                return None
            self._kept.move_to_end(key)
            return value

    def keep(self, key: tuple[str, str], value: Value, size: int) -> None:
        """Keep a value, of a size in the unit of the limit."""
        with self._lock:
            self._size += size - self._kept.pop(key, (0.0, 0, value))[1]
            self._kept[key] = (self._clock() + self._seconds, size, value)
            while self._size > self._most:
                _, (_, oldest, _) = self._kept.popitem(last=False)
                self._size -= oldest
