"""Progress of a collection on stderr: `[n/N] query` with rate and time left, and failures as they come.

Query text and messages of systems are untrusted: control characters are escaped, and markup is not interpreted.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TextIO

from cranfield.base.words import printable, shorten_to, width
from cranfield.model import Answer, CallLog, Outcome, Query

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichBar
    from rich.progress import TaskID

SHOWN_CHARS = 60
"""Query text is cut to this many columns."""
SYSTEM_COLUMNS = 24
"""Most columns of the name of a system."""
BAR_COLUMNS, SPEED_COLUMNS = 20, 20
"""Columns of the bar and of `12.3/s, 4 min 05 s left`; what is left of a line is the query's, so that both stay at 80
columns."""
PLAIN_INTERVAL_S = 10.0
"""A plain log has a line at most this often, and one at the end of each system."""
SHOWN_FAILURES = 3
"""Failures of each system that are shown, in a plain log; the others are counted at the end."""
_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)


class Progress(Protocol):
    """Notified of the events of a collection, one at a time; calls of several systems alternate."""

    def start(self, system: str, total: int, done: int) -> None:
        """A system gets `total` calls in all, of which `done` were made earlier. Called once per system before the first call."""
        ...

    def advance(self, system: str, query: Query, answer: Answer, log: CallLog) -> None:
        """A query was answered, or failed."""
        ...

    def note(self, text: str) -> None:
        """A message on a line of its own."""
        ...

    def finish(self) -> None:
        """The collection has ended, or was interrupted."""
        ...


class Silent:
    """Shows nothing."""

    def start(self, system: str, total: int, done: int) -> None:
        """Show nothing."""

    def advance(self, system: str, query: Query, answer: Answer, log: CallLog) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Show nothing."""

    def finish(self) -> None:
        """Show nothing."""


class Plain:
    """Lines for logs and pipes: one at most every ten seconds, the first failures, and one at the end of each system."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._paces: dict[str, _Pace] = {}
        self._shown_at = 0.0

    def start(self, system: str, total: int, done: int) -> None:
        """Begin counting."""
        self._paces[system] = _Pace(system, total, done)
        self._shown_at = time.monotonic()

    def advance(self, system: str, query: Query, answer: Answer, log: CallLog) -> None:
        """A line where the query is the last, is one of the first that failed, or it is time for one."""
        pace = self._paces[system]
        pace.count_call(answer, log)
        now = time.monotonic()
        due = now >= self._shown_at + PLAIN_INTERVAL_S or pace.done == pace.total
        if due or (answer.outcome.is_failure and pace.n_failed <= SHOWN_FAILURES):
            self._shown_at = now
            failed = f"  {failure(answer, log)}" if answer.outcome.is_failure else ""
            self._write(f"{pace.label} {shorten_to(printable(query.text), SHOWN_CHARS)}{failed}  ({pace.speed})")

    def note(self, text: str) -> None:
        """A line."""
        self._write(printable(text))

    def finish(self) -> None:
        """A line for each system with failures or retries."""
        for pace in self._paces.values():
            if pace.trouble:
                self._write(f"{pace.label} {pace.trouble}")
        self._paces.clear()

    def _write(self, line: str) -> None:
        # A closed log must not end a collection: write errors are ignored.
        with suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()


class Quiet(Plain):
    """Notes, and failures at the end; no line of progress."""

    def advance(self, system: str, query: Query, answer: Answer, log: CallLog) -> None:  # noqa: ARG002 - the signature of `Progress`
        """Count the call."""
        self._paces[system].count_call(answer, log)


class Live:
    """One redrawn line per system on a terminal; failures and notes are printed above."""

    def __init__(self, stream: TextIO, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console(file=stream)
        self._bar: RichBar | None = None
        self._paces: dict[str, tuple[_Pace, TaskID]] = {}

    def start(self, system: str, total: int, done: int) -> None:
        """Draw the line of a system."""
        pace = _Pace(system, total, done)
        bar = self._bar or self._drawn()
        task = bar.add_task("", total=total, completed=done, count=pace.label, speed="")
        self._paces[system] = (pace, task)

    def advance(self, system: str, query: Query, answer: Answer, log: CallLog) -> None:
        """Redraw the line; a failure is printed above."""
        pace, task = self._paces[system]
        pace.count_call(answer, log)
        shown = shorten_to(printable(query.text), SHOWN_CHARS)
        if answer.outcome.is_failure:
            self._print(f"{pace.label} {shown}  {failure(answer, log)}")
        if self._bar is not None:
            count, speed = pace.label, pace.speed
            widest = max(width(each.label) for each, _ in self._paces.values())
            room = self._console.width - max(widest, width(count)) - BAR_COLUMNS - SPEED_COLUMNS - len(" " * 3)
            shown = shorten_to(shown, room) if room > 0 else ""
            self._bar.update(task, completed=pace.done, description=shown, count=count, speed=speed)

    def note(self, text: str) -> None:
        """Print a line above."""
        self._print(printable(text))

    def finish(self) -> None:
        """Replace the lines by one summary per system."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        for pace, _ in self._paces.values():
            self._print(f"{pace.label} {pace.speed}" + (f", {pace.trouble}" if pace.trouble else ""))
        self._paces.clear()

    def _drawn(self) -> RichBar:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichBar
        from rich.table import Column

        self._bar = RichBar(
            TextColumn("{task.fields[count]}", markup=False, table_column=Column(no_wrap=True)),
            BarColumn(bar_width=BAR_COLUMNS, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[speed]}", markup=False, table_column=Column(no_wrap=True)),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=self._console,
            transient=True,
            redirect_stdout=False,  # results that are printed meanwhile belong to stdout
            redirect_stderr=False,
        )
        self._bar.start()
        return self._bar

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)


def progress_on(stream: TextIO | None = None) -> Progress:
    """A live line where `stream` (stderr by default) is a terminal, plain lines elsewhere; after `quiet` no progress."""
    stream = sys.stderr if stream is None else stream
    if _is_quiet.get():
        return Quiet(stream)
    return Live(stream) if stream.isatty() else Plain(stream)


def quiet(*, on: bool) -> None:
    """Show no progress from now on, or show it again."""
    _is_quiet.set(on)


def failure(answer: Answer, log: CallLog) -> str:
    """`timeout: no answer in 30 s`."""
    cause = printable(log.cause(answer.outcome, answer.reason or ""))
    if answer.outcome is Outcome.NONZERO_EXIT and cause:
        return f"failed: {cause}"
    return answer.outcome.value + (f": {cause}" if cause else "")


class _Pace:
    """Progress, rate and remaining time of one system."""

    def __init__(self, system: str, total: int, done: int) -> None:
        self.system = system
        self.total = total
        self.done = done
        self.n_failed = 0
        self.n_retried = 0
        self._done_at_start = done
        self._started = time.monotonic()

    def count_call(self, answer: Answer, log: CallLog) -> None:
        self.done += 1
        self.n_failed += answer.outcome.is_failure
        self.n_retried += log.attempts > 1

    @property
    def label(self) -> str:
        return f"{shorten_to(printable(self.system), SYSTEM_COLUMNS)} [{self.done}/{self.total}]"

    @property
    def trouble(self) -> str:
        """`2 failed, 3 tried more than once`, or empty."""
        counts = ((self.n_failed, "failed"), (self.n_retried, "tried more than once"))
        return ", ".join(f"{n} {what}" for n, what in counts if n)

    @property
    def speed(self) -> str:
        """`4.2/s, 12 s left`; of the calls made now, without those of an earlier collection."""
        n_calls = self.done - self._done_at_start
        elapsed = max(time.monotonic() - self._started, 1e-6)
        if not n_calls:
            return "no calls yet"
        rate = n_calls / elapsed
        spoken = f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:.1f} s each"
        left = (self.total - self.done) / rate
        return f"{spoken}, {_duration(left)} left" if self.done < self.total else f"{spoken}, took {_duration(elapsed)}"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
