"""Progress of work over many rows: how many, how fast, how long it will take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol


class OnProgress(Protocol):
    """Called from time to time."""

    def __call__(self, pace: Pace, /) -> None:
        """The state of the work."""


@dataclass
class Pace:
    """Rows read so far, of all that are to be read; each pass reads every row."""

    total: int
    done: int = 0
    resumed: int = 0
    """Rows that an earlier call had read."""
    step: str = ""
    started: float = field(default_factory=time.monotonic)

    @property
    def rate(self) -> float:
        """Rows a second, of this call."""
        return (self.done - self.resumed) / max(time.monotonic() - self.started, 1e-6)

    @property
    def seconds_left(self) -> float | None:
        """None before the first rows."""
        return (self.total - self.done) / self.rate if self.done > self.resumed else None


def silent(pace: Pace) -> None:
    """Show nothing."""
