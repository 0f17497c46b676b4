"""Calling a function of somebody else's as a system: in its time, whatever it raises, whatever it returns."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

from cranfield.config.models import Extract
from cranfield.model import Answer, Order, Outcome, Scalar
from cranfield.systems.adapter import HEAD_CHARS, CheckFailedError, Reply, failed
from cranfield.systems.loop import loop
from cranfield.systems.own_form import answer_in, one_line, plain
from cranfield.systems.values import UnreadableError, type_of
from cranfield.systems.workers import FunctionError, Workers

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def what(error: BaseException) -> str:
    """`ValueError: the message`, in one line, without addresses of objects, which differ from call to call."""
    words = one_line(_ADDRESS.sub("", str(error)))
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def what_and_where(error: BaseException) -> str:
    """The same with file and line, for what went wrong in a module or a factory."""
    frames = traceback.extract_tb(error.__traceback__)
    named = [frame for frame in frames if not frame.filename.startswith("<")]
    theirs = [frame for frame in named if "importlib" not in frame.filename and not _is_ours(frame.filename)]
    place = f"{Path(theirs[-1].filename).name}, line {theirs[-1].lineno}: " if theirs else ""
    return place + what(error)


def _is_ours(filename: str) -> bool:
    return Path(filename).parent == Path(__file__).parent


def callable_of(found: object, name: str) -> Callable[..., Any]:
    """What is called for a query: the object itself, or its method `search`.

    Raises:
        CheckFailedError: it is neither a function nor has that method.
    """
    if inspect.isclass(found):
        hint = "with `with: {}` the class is called first, and what it makes is asked."
        raise CheckFailedError(f"{name} to be a function", "a class", hint)
    search = getattr(found, "search", None)
    if callable(search):
        return search  # type: ignore[no-any-return]
    if callable(found):
        return found
    raise CheckFailedError(f"{name} to be a function, or to have a method search", type_of(found))


def require_takes(function: Callable[..., Any], name: str, params: Mapping[str, Scalar]) -> None:
    """Check that a function can be called with a query, k and params.

    Raises:
        CheckFailedError: it cannot.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C, and silent about it
        return
    try:
        signature.bind("query", 10, **params)
    except TypeError as error:
        said = ", ".join(["query", "k", *params])
        raise CheckFailedError(f"{name} to take ({said})", f"{name}{signature}: {error}") from None


class Function:
    """A function that answers queries, plain or async."""

    def __init__(
        self, function: Callable[..., Any], workers: Workers, *, order: Order, extract: Extract | None
    ) -> None:
        self.called = function
        self._workers = workers
        self._order = order
        self._extract = extract
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method of an object that can be called
        )

    def ask(self, query: str, k: int, params: Mapping[str, Scalar], timeout_s: float, interrupted: Event) -> Reply:
        """Call it once; a plain one that does not come back in time is left to itself."""
        until = time.monotonic() + timeout_s

        def call() -> object:
            return _listed(self.called(query, k, **params))

        try:
            if self.is_async:
                value = loop().run(
                    _awaited(self.called, query, k, params), timeout_s=timeout_s, interrupted=interrupted
                )
            else:
                value = self._workers.run(call, timeout_s=timeout_s, interrupted=interrupted)
                if inspect.isawaitable(value):
                    left = max(until - time.monotonic(), 0.0)
                    value = loop().run(_caught(value), timeout_s=left, interrupted=interrupted)
        except TimeoutError:
            return failed(f"no answer in {timeout_s:g} s", outcome=Outcome.TIMEOUT)
        except FunctionError as raised:
            return _raised(raised.error)
        return self._reply(value, k)

    def _reply(self, value: object, k: int) -> Reply:
        if self._extract is None or isinstance(value, Answer):
            return Reply(_shown(value), answer=answer_in(value, k, self._order))
        if isinstance(value, str):
            return Reply(value)
        try:
            value = plain(value, "what it returned")
        except UnreadableError as error:
            return failed(str(error), outcome=Outcome.UNPARSABLE, output=_shown(value))
        if self._extract.jsonl is not None and isinstance(value, list):
            return Reply("\n".join(json.dumps(one, ensure_ascii=False) for one in value))
        return Reply(json.dumps(value, ensure_ascii=False))


def _listed(value: object) -> object:
    """A generator come to its end: it is somebody else's code too, and belongs to the call."""
    return list(value) if inspect.isgenerator(value) else value


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr) if isinstance(value, list | dict) else repr(value)
    return text if len(text) <= HEAD_CHARS else text[:HEAD_CHARS] + "…"


def _raised(error: BaseException) -> Reply:
    reply = failed(what(error), may_retry=isinstance(error, ConnectionError | TimeoutError))
    stderr = "".join(traceback.format_exception(error))
    return Reply(reply.output, stderr[-HEAD_CHARS:], reply.answer, reply.may_retry)


async def _awaited(function: Callable[..., Any], query: str, k: int, params: Mapping[str, Scalar]) -> object:
    async def call() -> object:
        return await function(query, k, **params)

    return await _caught(call())


async def _caught(awaitable: Any) -> object:
    """What it comes to; what it raises is kept apart from a timeout or an interruption of ours."""
    try:
        return await awaitable
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise FunctionError(error) from None
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - a function may raise anything
        raise FunctionError(error) from None
