"""Regular expressions that users write, compiled and searched with a limit of time.

`re` backtracks: `(a+)+$` takes exponential time on some texts, holds the interpreter lock meanwhile, and hears no other thread.
Its loops check for signals, so in the main thread a timer ends them. In other threads, as those of a server, each search that is
not certain to be short is made in a process, which its own timer ends. Windows has no such timer. The output of a system is
searched in a process in any thread: `systems.calls.regex_process`.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from typing import IO, cast

from cranfield.base.errors import InputError

SEARCH_S = 10.0
"""Longest time for the expressions of a query on all of its results, or for one expression on all ids of a test set."""
_COMPILE_S = 1.0
_SHORT_STEPS = 1e6
"""A search of at most so many steps takes some milliseconds."""
_MAX_CHARS = 20_000
"""Most characters of an expression: a longer one holds the interpreter lock for long while it is compiled."""
_MAX_SIGNS = 30
_UNBOUNDED = re.compile(r"\)[*+{]|\\[1-9]|\(\?P=")
"""A group that is repeated, or compared with what it found."""
_GROUP_START = re.compile(r"(?<!\\)\(\?")
_VERBOSE = re.compile(r"\(\?[a-zA-Z]*x")
_MAX_IDLE = 4
_PROGRAM = """
import json, re, signal, sys, warnings
warnings.simplefilter("ignore")
signal.signal(signal.SIGALRM, signal.SIG_DFL)
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
except (ImportError, OSError, ValueError):
    pass
for line in sys.stdin:
    seconds, pattern, flags, text, by = json.loads(line)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        compiled = re.compile(pattern, flags)
        answer = compiled.search(text) is not None if by is None else compiled.sub(by, text)
    except Exception:
        answer = None
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(json.dumps(answer), flush=True)
"""
HINT = (
    "a repeat inside a repeat, as in (a+)+, takes exponential time: name the characters of each repeat more narrowly."
)


class PatternError(ValueError):
    """It is no regular expression, or takes too long to compile; the message is the reason."""


class _LateError(BaseException):
    """The time is over; no handler of `Exception` may take it."""


@contextmanager
def time_limit(seconds: float, late: Callable[[], Exception]) -> Iterator[None]:
    """End the block after some seconds by an error. Only in the main thread; `limited` is for all.

    Args:
        seconds: the limit.
        late: the error to raise. Nothing is limited where a timer is running already, and on Windows.

    Raises:
        RuntimeError: it is another thread, in which nothing would end the block.
    """
    if not _in_main_thread():
        raise RuntimeError("time_limit outside the main thread: use limited, and search by Expression")
    if sys.platform == "win32" or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def stop(*_: object) -> None:
        raise _LateError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _LateError:
        raise late() from None
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


@contextmanager
def limited(seconds: float, late: Callable[[], Exception]) -> Iterator[None]:
    """Limit the searches of each `Expression` in the block, all together, in any thread.

    Args:
        seconds: the limit; within another such block, that one's counts.
        late: the error to raise.
    """
    if _in_main_thread():
        with time_limit(seconds, late):
            yield
        return
    if _own.deadline is not None:
        yield
        return
    _own.deadline = time.monotonic() + seconds
    try:
        yield
    except _LateError:
        raise late() from None
    finally:
        _own.deadline = None


class _Own(threading.local):
    """Deadline of one thread."""

    deadline: float | None = None


_own = _Own()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


class Expression:
    """A regular expression that a user wrote, to be searched in a block of `limited`."""

    def __init__(self, text: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.text, self._flags = text, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.text, self._flags)

    def found_in(self, text: str) -> bool:
        """Whether it is found in a text."""
        if self._is_safe(text):
            return self._compiled.search(text) is not None
        return bool(_ask(self.text, int(self._flags), text))

    def replaced_in(self, text: str, by: str) -> str:
        """The text with another one in the place of each match."""
        if self._is_safe(text):
            return self._compiled.sub(by, text)
        return str(_ask(self.text, int(self._flags), text, by))

    def _is_safe(self, text: str) -> bool:
        """Whether a search in this process is short, or a timer ends it."""
        if _in_main_thread() or sys.platform == "win32":
            return True
        _seconds_left()
        return is_short(self.text, len(text), self._flags)


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression, and search the empty text with it.

    Raises:
        PatternError: it is none, takes too long, or is too long.
    """
    if len(text) > _MAX_CHARS:
        raise PatternError(f"it has over {_MAX_CHARS:,} characters")

    def late() -> PatternError:
        return PatternError(f"it takes over {_COMPILE_S:g} s to compile")

    try:
        with warnings.catch_warnings(), limited(_COMPILE_S, late):
            warnings.simplefilter("ignore")  # of what some later Python may read differently
            Expression(text).found_in("")
            return re.compile(text)
    except re.error as error:
        raise PatternError(error.msg + ("" if error.pos is None else f" at position {error.pos}")) from None
    except (OverflowError, RecursionError, MemoryError) as error:
        raise PatternError(str(error) or "it is too large") from None


@contextmanager
def search_limit(what: str) -> Iterator[None]:
    """Limit the time of the searches in a block to `SEARCH_S`.

    Args:
        what: subject of the message: `the regular expressions of query q7`.

    Raises:
        InputError: they take longer.
    """
    with limited(SEARCH_S, lambda: InputError(f"{what}: matching did not end within {SEARCH_S:g} s", hint=HINT)):
        yield


def any_match(pattern: str | Expression, texts: Iterable[str]) -> bool:
    """Whether an expression is found in any text.

    Raises:
        InputError: it takes over `SEARCH_S`.
    """
    expression = Expression(pattern) if isinstance(pattern, str) else pattern
    with search_limit(f"regular expression {expression.text}"):
        return any(map(expression.found_in, texts))


def is_short(pattern: str, length: int, flags: int = 0) -> bool:
    """Whether a search needs no limit; see `most_steps`."""
    return most_steps(pattern, length, flags) <= _SHORT_STEPS


@lru_cache(maxsize=1 << 10)
def most_steps(pattern: str, length: int, flags: int = 0) -> float:
    """An upper bound of the steps of a search; infinite where a repeat may stand inside another.

    Every sign that could be a repeat or a choice is counted as one, escaped or not.

    Args:
        pattern: the expression.
        length: of the text.
        flags: it is compiled with.
    """
    if _UNBOUNDED.search(pattern) or flags & re.VERBOSE or _VERBOSE.search(pattern):
        return math.inf
    repeats = sum(map(pattern.count, "*+{"))
    choices = pattern.count("|") + pattern.count("?") - len(_GROUP_START.findall(pattern))
    if repeats + choices > _MAX_SIGNS:
        return math.inf
    ways = 2.0**choices * (length + 1.0) ** (repeats + 1) / math.factorial(repeats + 1)
    return ways * (len(pattern) + 1)


_idle: list[subprocess.Popen[bytes]] = []


def _forget_idle() -> None:
    """In a copy of this process: they are the other's, which ends them."""
    while _idle:
        child = _idle.pop()
        child.returncode = 0
        for pipe in (child.stdin, child.stdout):
            cast("IO[bytes]", pipe).close()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_idle)


def _seconds_left() -> float:
    """Until the block of this thread ends.

    Raises:
        RuntimeError: there is no such block: nothing would end the search.
    """
    if _own.deadline is None:
        raise RuntimeError("an expression of a user is searched outside of `limited`")
    if (left := _own.deadline - time.monotonic()) <= 0:
        raise _LateError
    return left


@lru_cache(maxsize=1 << 16)  # a page asks what another one has asked before
def _ask(pattern: str, flags: int, text: str, by: str | None = None) -> bool | str:
    """The answer of a process, which ends itself when the time is over."""
    try:
        child = _idle.pop()
    except IndexError:  # or another thread was faster
        child = None
    if child is not None and child.poll() is not None:
        _end(child)
        child = None
    child = child or _start()
    given, made = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
    try:
        given.write(json.dumps([_seconds_left(), pattern, flags, text, by]).encode() + b"\n")
        given.flush()
        line = made.readline()
    except BrokenPipeError:
        line = b""
    except BaseException:
        _end(child)
        raise
    if not line:
        _end(child)
        raise _LateError
    if len(_idle) < _MAX_IDLE:
        _idle.append(child)
    else:
        _end(child)
    answer: bool | str | None = json.loads(line)
    if answer is None:
        re.compile(pattern, flags)  # raises its error where it is none; else the search took too much memory
        raise _LateError
    return answer


def _start() -> subprocess.Popen[bytes]:
    atexit.unregister(_end_idle)
    atexit.register(_end_idle)
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    with suppress(BrokenPipeError), child:
        pass


def _end_idle() -> None:
    while _idle:
        _end(_idle.pop())
