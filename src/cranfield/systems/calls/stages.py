"""Preflight checks, and their stages: a stage is reached if the one before it passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

Step = tuple[str, Callable[[], str]]
"""Label of a preflight check, and a function that returns what was found or raises `CheckFailedError`."""


class CheckFailedError(Exception):
    """A preflight check failed."""

    def __init__(self, expected: str, found: str, hint: str | None = None) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found
        self.hint = hint

    def redacted(self, redact: Callable[[str], str]) -> CheckFailedError:
        """The same failure without secrets."""
        return CheckFailedError(redact(self.expected), redact(self.found), self.hint and redact(self.hint))


def in_stages(*stages: Iterable[Step]) -> Iterator[Step]:
    """Checks in stages, each to be called before the next is requested; a stage is reached if the one before it passed."""
    failed: list[str] = []

    def noted(label: str, check: Callable[[], str]) -> str:
        try:
            return check()
        except CheckFailedError:
            failed.append(label)
            raise

    for stage in stages:
        for label, check in stage:
            yield label, partial(noted, label, check)
        if failed:
            return
