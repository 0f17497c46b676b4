"""When a system that ends on every call is left alone for a while: a program is not started again, a service not tried again.

One rule for programs (`lines`, `mcp`, functions in a process of their own) and for services that cannot be reached. Otherwise each
query would wait for a start that fails, or for all of its retries.
"""

from __future__ import annotations

import time
from dataclasses import replace

from cranfield.model import Answer, Outcome

MAX_DEATHS = 5


"""Queries in a row on which a program may end, for each call that may be under way."""


MAX_UNREACHED = 20


"""Queries in a row that may not reach a service, with all of their retries: it may be starting anew."""


PAUSE_S = 30.0


"""Time without starts and retries after the last of them, in seconds."""


class CircuitBreaker:
    """Counts the calls in a row on which a system ended, or could not be reached."""

    def __init__(self, concurrency: int, *, is_program: bool) -> None:
        self._most = (MAX_DEATHS if is_program else MAX_UNREACHED) * concurrency
        self._in_a_row = 0
        self._last_at = 0.0
        self._how = ""

    @property
    def is_pausing(self) -> bool:
        """Whether there were too many, the last of them a short time ago."""
        return self._in_a_row >= self._most and time.monotonic() < self._last_at + PAUSE_S

    def count(self, answer: Answer | None, *, died: bool) -> None:
        """Count a query, after its retries. A timeout is neither a death nor an answer."""
        if died:
            self._in_a_row += 1
            self._last_at = time.monotonic()
            self._how = "" if answer is None else answer.reason or ""
        elif answer is None or answer.outcome is not Outcome.TIMEOUT:
            self._in_a_row = 0

    def without_retry(self, answer: Answer) -> Answer:
        """A failed answer whose reason says why it was not tried again."""
        return replace(
            answer, reason=f"{answer.reason}; no retries, after {self._in_a_row} queries in a row without a connection"
        )

    def reason_unsent(self) -> str:
        """Reason of a query that is not asked."""
        return f"not sent: the program ended {self._in_a_row} times in a row without an answer (the last time: {self._how})"
