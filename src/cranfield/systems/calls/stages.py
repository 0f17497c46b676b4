"""Preflight checks in stages: a stage is reached if the one before it passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from cranfield.systems.configured import CheckFailedError, Step


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
