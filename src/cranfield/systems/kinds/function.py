"""A function of a user, plain or async: loaded once, called for each query, and closed, in the process that uses this module.

What the function returns or raises is converted to a reply. Its stdout goes to stderr: stdout is for results. A process that
serves one function imports this module and little else: it must start fast.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol, TextIO

from cranfield.base.concurrency.loop import EventLoop, FunctionError, Threads, event_loop
from cranfield.model import Answer, Hit, Order, Outcome, Scalar
from cranfield.systems.calls.answer_schema import (
    HIT_FIELDS,
    MAX_HITS,
    UnparsableError,
    first_line,
    plain_json,
    to_answer,
    truncate,
    type_name,
)
from cranfield.systems.calls.stages import CheckFailedError
from cranfield.systems.configured import HEAD_CHARS, Reply, failed
from cranfield.systems.kinds.frameworks import is_vector_store, retriever_function

Form = Literal["hits", "json", "jsonl"]
"""How what a function returns is read: as hits, or by `extract` from JSON or from JSON lines."""


@dataclass(frozen=True, slots=True)
class ResultReading:
    """How what a function returns is read."""

    order: Order = "given"
    form: Form = "hits"


class FunctionSource(Protocol):
    """Where a function comes from."""

    @property
    def called(self) -> str:
        """Name of the function, for messages."""
        ...

    def load(self) -> tuple[object, object]:
        """What is called, and the object to close in the end, or None.

        Raises:
            CheckFailedError: it is not there, or cannot be made.
        """
        ...


_SHOWN_CHARS = 4 * HEAD_CHARS
"""Maximum length of log texts before redaction: a truncated secret would not be recognised."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_stdout_lock = Lock()
_stdout_before: list[TextIO] = []
"""The original stdout, once for each call under way."""


def error_text(error: BaseException) -> str:
    """`ValueError: the message`: first line, without addresses of objects, which differ from call to call."""
    words = first_line(_ADDRESS.sub("", str(error)))
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def error_text_with_place(error: BaseException) -> str:
    """As `error_text`, with file and line of the user's code."""
    frames = traceback.extract_tb(error.__traceback__)
    named = [frame for frame in frames if not frame.filename.startswith("<")]
    user = [frame for frame in named if "importlib" not in frame.filename and not _is_of_package(frame.filename)]
    place = f"{Path(user[-1].filename).name}, line {user[-1].lineno}: " if user else ""
    return place + error_text(error)


def _is_of_package(filename: str) -> bool:
    return Path(__file__).parents[1] in Path(filename).parents


def find_callable(found: object, name: str) -> Callable[..., Any]:
    """The function to call for a query: the object itself, its method `search`, or that of a framework's retriever.

    Raises:
        CheckFailedError: it is not callable, has no method `search`, and is no retriever or pipeline of a framework.
    """
    if inspect.isclass(found):
        hint = "with `with: {}` the class is instantiated first, and its instance is called."
        raise CheckFailedError(f"{name} to be a function", "a class", hint)
    search = getattr(found, "search", None)
    if callable(search) and not is_vector_store(found):
        return search  # type: ignore[no-any-return]
    if (retriever := retriever_function(found, name)) is not None:
        return retriever
    if callable(found):
        return found
    raise CheckFailedError(f"{name} to be a function, or to have a method search", type_name(found))


def check_signature(function: Callable[..., Any], name: str, params: Collection[str]) -> None:
    """Check that a function can be called with a query, k and params.

    Raises:
        CheckFailedError: it cannot.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # implemented in C without a signature
        return
    try:
        signature.bind("query", 10, **dict.fromkeys(params))
    except TypeError as error:
        parameters = ", ".join(["query", "k", *params])
        raise CheckFailedError(f"{name} to take ({parameters})", f"{name}{signature}: {error}") from None


def with_arguments(function: Callable[..., Any], name: str, arguments: Mapping[str, Any]) -> Callable[..., Any]:
    """The function as `(query, k, **params)`, called with arguments by name.

    Args:
        function: plain or async; what an async one returns is awaited by the caller.
        name: its name in messages.
        arguments: values with placeholders: `{"text": "{query}", "top_k": "{k}"}`.

    Raises:
        CheckFailedError: it does not take them.
    """
    from cranfield.config.strict import fill_value, request_values

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # implemented in C without a signature
        signature = None
    try:
        if signature is not None:
            signature.bind(**arguments)
    except TypeError as error:
        raise CheckFailedError(
            f"{name} to take {', '.join(arguments)}, its `arguments`", f"{name}{signature}: {error}"
        ) from None

    def ask(query: str, k: int, **params: Scalar) -> Any:
        values = request_values(query=query, k=k, params=params, environment=os.environ)
        return function(**fill_value(arguments, values))

    return ask


class Function:
    """A function that answers queries, plain or async."""

    def __init__(self, function: Callable[..., Any], threads: Threads) -> None:
        self.called = function
        self._threads = threads
        self._loop: EventLoop | None = None
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method of an object that can be called
        )

    async def ask(self, query: str, k: int, params: Mapping[str, Scalar], reading: ResultReading) -> Reply:
        """Call it once; on a timeout the thread of a plain function is abandoned."""

        def call() -> Reply | Awaitable[object]:
            value = self.called(query, k, **params)
            return value if inspect.isawaitable(value) else _reply(value, k, reading)

        async def awaited(result: Any) -> Reply:
            value = await self._own_loop().call(_wrap_errors(result))
            # A generator runs the user's code while it is read: it has the same time limit, and may fail.
            return await self._threads.call(lambda: _reply(value, k, reading))

        try:
            if self.is_async:
                return await awaited(_call_async(self.called, query, k, params))
            found = await self._threads.call(call)
            return found if isinstance(found, Reply) else await awaited(found)
        except FunctionError as raised:
            reply = failed(error_text(raised.error), may_retry=isinstance(raised.error, ConnectionError | TimeoutError))
            stderr = _ADDRESS.sub("", "".join(traceback.format_exception(raised.error)))
            return Reply(reply.output, stderr[-_SHOWN_CHARS:], reply.answer, reply.may_retry)

    def close(self) -> None:
        """End the event loop of an async function."""
        own, self._loop = self._loop, None
        if own is not None:
            own.stop()

    def _own_loop(self) -> EventLoop:
        """A separate event loop: a function that never yields blocks no other system."""
        self._loop = self._loop or EventLoop()
        return self._loop


def _reply(value: object, k: int, reading: ResultReading) -> Reply:
    value = _as_list(value, k)
    if reading.form == "hits" or isinstance(value, Answer):
        return Reply(_log_text(value), answer=to_answer(value, k, reading.order))
    if isinstance(value, str):
        return Reply(value)
    try:
        value = plain_json(value, "what it returned")
    except UnparsableError as error:
        return failed(str(error), outcome=Outcome.UNPARSABLE, output=_log_text(value))
    if reading.form == "jsonl" and isinstance(value, list):
        return Reply("\n".join(json.dumps(item, ensure_ascii=False) for item in value))
    return Reply(json.dumps(value, ensure_ascii=False))


def _as_list(value: object, k: int) -> object:
    """An iterator as a list of at most one hit more than the maximum: it may be infinite."""
    return list(islice(value, max(MAX_HITS, 10 * k) + 1)) if isinstance(value, Iterator) else value


def _json_default(value: object) -> object:
    """Non-JSON values for the log: a hit as its fields, others by `repr`."""
    if isinstance(value, Hit):
        return {name: content for name in HIT_FIELDS if (content := getattr(value, name)) is not None}
    return _ADDRESS.sub("", repr(value))


def _log_text(value: object) -> str:
    try:
        text = (
            json.dumps(value, ensure_ascii=False, default=_json_default)
            if isinstance(value, list | dict)
            else _ADDRESS.sub("", repr(value))
        )
    except (TypeError, ValueError, RecursionError):  # mixed keys; circular or too deep
        text = type_name(value)
    return truncate(text, _SHOWN_CHARS)


async def _call_async(function: Callable[..., Any], query: str, k: int, params: Mapping[str, Scalar]) -> object:
    return await function(query, k, **params)


async def _wrap_errors(awaitable: Any) -> object:
    """Await it; wrap its exceptions, to distinguish them from our timeout and interruption."""
    try:
        return await awaitable
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise FunctionError(error) from None
    except BaseException as error:  # a function may raise anything
        if isinstance(error, GeneratorExit) and not _is_on_a_loop():
            raise  # the coroutine was discarded
        raise FunctionError(error) from None


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def redirect_stdout() -> Iterator[None]:
    """Redirect stdout to stderr until the last of the concurrent calls has ended."""
    with _stdout_lock:
        _stdout_before.append(_stdout_before[0] if _stdout_before else sys.stdout)
        sys.stdout = sys.stderr
    try:
        yield
    finally:
        with _stdout_lock:
            before = _stdout_before.pop()
            if not _stdout_before:
                sys.stdout = before


class LocalFunction:
    """A function in this process.

    A plain function is called in a thread, which is abandoned when its time is over. With one call at a time it is always
    the same thread, in which the function is loaded too.
    """

    def __init__(self, source: FunctionSource) -> None:
        """Initialise; nothing is loaded yet."""
        self._source = source
        self._came_from = current_folder()
        self._threads = Threads(source.called)
        self._loading = asyncio.Lock()
        self._function: Function | None = None
        self._made: object = None

    async def load(self) -> Function:
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
                self._function = Function(found, self._threads)
            return self._function

    async def check(self, params: Collection[str]) -> str:
        """Check that it can be loaded, and called with a query, k and these params; says what it is.

        Raises:
            CheckFailedError: it cannot.
        """
        function = await self.load()
        check_signature(function.called, self._source.called, params)
        return "an async function" if function.is_async else "a function"

    async def ask(self, query: str, k: int, params: Mapping[str, Scalar], reading: ResultReading) -> Reply:
        """Call the function once."""
        function = await self.load()
        with redirect_stdout():
            return await function.ask(query, k, params, reading)

    async def shown_request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """What the method `shown_request` of a made object returns: what it sends, for display; empty where it has none."""
        await self.load()
        shown = getattr(self._made, "shown_request", None)
        if not callable(shown):
            return ""
        try:
            with redirect_stdout():
                return str(await self._threads.call(lambda: shown(query, k, **params)))
        except FunctionError as raised:
            return f"({error_text(raised.error)})"

    async def close(self, timeout_s: float) -> None:
        """Call the method `close` of a made object, end the threads, and restore the working directory."""
        async with self._loading:
            made, self._made = self._made, None
            function, self._function = self._function, None
        close = getattr(made, "close", None)
        if callable(close):
            with suppress(FunctionError, TimeoutError), redirect_stdout():
                await asyncio.wait_for(self._threads.call(close), timeout_s)
        self._threads.close()
        if function is not None:
            with suppress(FunctionError):
                await event_loop().threads.call(function.close)
            if self._came_from is not None and current_folder() != self._came_from:
                with suppress(OSError):
                    os.chdir(self._came_from)

    def _load(self) -> Callable[..., Any]:
        found, self._made = self._source.load()
        return find_callable(found, self._source.called)


def current_folder() -> Path | None:
    """The working directory; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None
