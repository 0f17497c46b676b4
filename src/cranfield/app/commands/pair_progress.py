"""Progress of a comparison of many pairs."""

from __future__ import annotations

import sys
from collections.abc import Callable

from cranfield.app.command import note

MANY_PAIRS = 500
"""Testing fewer pairs one by one takes no time worth counting."""


def pair_progress() -> Callable[[int, int], None] | None:
    """Count pairs on stderr, where a person watches; None elsewhere."""
    if not sys.stderr.isatty():
        return None

    def count(done: int, total: int) -> None:
        if total >= MANY_PAIRS:
            note(f"\r{done:,} of {total:,} pairs" + ("\n" if done == total else ""), end="")

    return count
