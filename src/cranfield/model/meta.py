"""Metadata of a test set: review, commit, anchors in the code, split, history.

None of it is part of the digest. It is written by the tool; people edit queries and judgments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

DEFAULT_REFRESH_DAYS = 90


@dataclass(frozen=True, slots=True)
class Anchor:
    """Symbol and text of an expected place in the code, by which it is found again when lines move."""

    symbol: str
    """`src/index.rs::Index.add`, or `docs/guide.md::Guide > Install`: what the place lies in; the file alone where it
    lies in none."""
    body: str
    """SHA-256 of the text of the place, without blanks at line ends."""
    offset: int = 0
    """Lines from the first line of the symbol to the first line of the place."""
    lines: int = 1
    """Lines of the place."""


@dataclass(frozen=True, slots=True)
class Split:
    """Held-out queries."""

    seed: int
    share: float
    """Requested share of the queries to hold out."""
    by: tuple[str, ...]
    """Strata within which it was drawn."""
    held_out: tuple[str, ...]
    """Query ids."""


@dataclass(frozen=True)
class Meta:
    """Metadata of a test set."""

    review: str = ""
    """Free text: `agent curated, pending human review`, `reviewed`."""
    scale: tuple[float, ...] = ()
    """Grades that judgments may have; empty: any."""
    made: str = ""
    """Date of this version, `2026-11-21`."""
    refresh_days: int = DEFAULT_REFRESH_DAYS
    """After so many days it is overdue for new queries."""
    commit: str = ""
    """Commit of the repository that it was verified against."""
    source_files: Mapping[str, str] = field(default_factory=dict)
    """Path to SHA-256 of each file that something is expected in."""
    anchors: Mapping[str, Anchor] = field(default_factory=dict)
    """Label of an expected place (`src/index.rs:41-61`) to its anchor."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Declared counts: `queries`, and `key=value` of each stratum."""
    split: Split | None = None
    previous: str = ""
    """Digest of the version that this one was made from."""
    history: tuple[str, ...] = ()
    """Changes, a sentence each, the latest last."""

    def days_overdue(self, today: date) -> int:
        """Days since it should have been refreshed; 0 where it is not overdue, or its date is not known."""
        try:
            due = date.fromisoformat(self.made) + timedelta(days=self.refresh_days)
        except (ValueError, OverflowError):
            return 0
        return max((today - due).days, 0)
