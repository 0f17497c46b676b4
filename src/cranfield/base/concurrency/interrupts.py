"""Signals that interrupt the program: remembered, and stronger than what a library makes of them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = threading.Event()
"""A signal has interrupted this process: a library that wraps every error, as pydantic does, may have hidden it."""


def interrupt(*_: object) -> None:
    """Remember the signal, and interrupt: a handler of signals."""
    INTERRUPTED.set()
    raise KeyboardInterrupt


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, and remember either. Does nothing outside the main thread, where Python sets no handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupts_prevail() -> Iterator[None]:
    """Let Ctrl-C end the block as an interrupt, whatever error calls make of it that the handler of a library cuts off.

    The handler that there is when the block begins, such as pyspark's, is called. Does nothing outside the main thread.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came = threading.Event()

    def hear(number: int, frame: FrameType | None) -> None:
        came.set()
        handler(number, frame)

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    except Exception as error:
        if came.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, handler)
