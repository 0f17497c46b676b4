"""Regular expressions that users write, compiled and searched with a limit of time.

`re` backtracks: `(a+)+$` takes exponential time on some texts. Its loops check for signals, so a timer ends them: in the main
thread only, and not on Windows. The output of a system is searched in a process instead: `systems.calls.regex_process`.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from cranfield.errors import InputError

SEARCH_S = 10.0
"""Longest time for the expressions of a query on all of its results, or for one expression on all ids of a test set."""
_COMPILE_S = 1.0
HINT = (
    "a repeat inside a repeat, as in (a+)+, takes exponential time: name the characters of each repeat more narrowly."
)


class PatternError(ValueError):
    """It is no regular expression, or takes too long to compile; the message is the reason."""


class _LateError(BaseException):
    """The time is over; no handler of `Exception` may take it."""


@contextmanager
def time_limit(seconds: float, late: Callable[[], Exception]) -> Iterator[None]:
    """End the block after some seconds by an error.

    Args:
        seconds: the limit.
        late: the error to raise. Nothing is limited outside the main thread, where a timer is running already, and on Windows.
    """
    if sys.platform == "win32":
        yield
        return
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getitimer(signal.ITIMER_REAL)[0]:
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


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression, and search the empty text with it.

    Raises:
        PatternError: it is none, or takes too long.
    """

    def late() -> PatternError:
        return PatternError(f"it takes over {_COMPILE_S:g} s before it has read any text")

    try:
        with warnings.catch_warnings(), time_limit(_COMPILE_S, late):
            warnings.simplefilter("ignore")  # of what some later Python may read differently
            pattern = re.compile(text)
            pattern.search("")
            return pattern
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
    with time_limit(SEARCH_S, lambda: InputError(f"{what}: no end after {SEARCH_S:g} s of matching", hint=HINT)):
        yield


def any_match(pattern: str | re.Pattern[str], texts: Iterable[str]) -> bool:
    """Whether an expression is found in any text.

    Raises:
        InputError: it takes over `SEARCH_S`.
    """
    compiled = re.compile(pattern)
    with search_limit(f"regular expression {compiled.pattern}"):
        return any(map(compiled.search, texts))
