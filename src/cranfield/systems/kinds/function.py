"""Calling a function of somebody else's as a system: in its time, whatever it raises, whatever it returns."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from cranfield.concurrency.loop import EventLoop
from cranfield.concurrency.threads import FunctionError, Threads
from cranfield.config.reading import Extract, JsonLinesExtract
from cranfield.model import Answer, Hit, Order, Outcome, Scalar
from cranfield.systems.calls.answer_schema import answer_in, cut, one_line, plain
from cranfield.systems.calls.values import MAX_HITS, UnreadableError, type_of
from cranfield.systems.configured import HEAD_CHARS, CheckFailedError, Reply, failed

HIT_FIELDS = ("id", "score", "title", "span", "tokens")
_SHOWN_CHARS = 4 * HEAD_CHARS
"""Kept of texts until secrets are hidden, which are known only where they are whole."""
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
    return Path(__file__).parents[1] in Path(filename).parents


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
        self, function: Callable[..., Any], threads: Threads, *, order: Order, extract: Extract | None
    ) -> None:
        self.called = function
        self._threads = threads
        self._order = order
        self._extract = extract
        self._loop: EventLoop | None = None
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method of an object that can be called
        )

    async def ask(self, query: str, k: int, params: Mapping[str, Scalar]) -> Reply:
        """Call it once; the thread of a plain function whose time is over is abandoned."""

        def call() -> Reply | Awaitable[object]:
            value = self.called(query, k, **params)
            return value if inspect.isawaitable(value) else self._reply(value, k)

        async def awaited(result: Any) -> Reply:
            value = await self._own_loop().call(_caught(result))
            # A generator runs the user's code while it is read: it has the same time limit, and may fail.
            return await self._threads.call(lambda: self._reply(value, k))

        try:
            if self.is_async:
                return await awaited(_called(self.called, query, k, params))
            found = await self._threads.call(call)
            return found if isinstance(found, Reply) else await awaited(found)
        except FunctionError as raised:
            return _raised(raised.error)

    def close(self) -> None:
        """End the loop in which an async function was called."""
        own, self._loop = self._loop, None
        if own is not None:
            own.stop()

    def _own_loop(self) -> EventLoop:
        """A loop of its own: a function that never yields blocks no other system."""
        self._loop = self._loop or EventLoop()
        return self._loop

    def _reply(self, value: object, k: int) -> Reply:
        value = _listed(value, k)
        if self._extract is None or isinstance(value, Answer):
            return Reply(_shown(value), answer=answer_in(value, k, self._order))
        if isinstance(value, str):
            return Reply(value)
        try:
            value = plain(value, "what it returned")
        except UnreadableError as error:
            return failed(str(error), outcome=Outcome.UNPARSABLE, output=_shown(value))
        if isinstance(self._extract, JsonLinesExtract) and isinstance(value, list):
            return Reply("\n".join(json.dumps(one, ensure_ascii=False) for one in value))
        return Reply(json.dumps(value, ensure_ascii=False))


def _listed(value: object, k: int) -> object:
    """What comes one by one as a list, as far as anybody looks: it may not end."""
    return list(islice(value, max(MAX_HITS, 10 * k) + 1)) if isinstance(value, Iterator) else value


def _spelled(value: object) -> object:
    """What JSON has no word for: a hit as its fields that are there, anything else as Python shows it."""
    if isinstance(value, Hit):
        return {name: one for name in HIT_FIELDS if (one := getattr(value, name)) is not None}
    return repr(value)


def _shown(value: object) -> str:
    try:
        text = (
            json.dumps(value, ensure_ascii=False, default=_spelled) if isinstance(value, list | dict) else repr(value)
        )
    except (TypeError, ValueError, RecursionError):  # keys of several kinds; a list that holds itself; too many levels
        text = type_of(value)
    return cut(text, _SHOWN_CHARS)


def _raised(error: BaseException) -> Reply:
    reply = failed(what(error), may_retry=isinstance(error, ConnectionError | TimeoutError))
    stderr = "".join(traceback.format_exception(error))
    return Reply(reply.output, stderr[-_SHOWN_CHARS:], reply.answer, reply.may_retry)


async def _called(function: Callable[..., Any], query: str, k: int, params: Mapping[str, Scalar]) -> object:
    return await function(query, k, **params)


async def _caught(awaitable: Any) -> object:
    """What it comes to; what it raises is kept apart from a timeout or an interruption of ours."""
    try:
        return await awaitable
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise FunctionError(error) from None
    except BaseException as error:  # a function may raise anything
        if isinstance(error, GeneratorExit) and not _is_on_a_loop():
            raise  # nobody waits any more: Python throws away what never ended
        raise FunctionError(error) from None


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
