"""Names of the parts that the queries of a comparison fall into."""

from __future__ import annotations

BUCKETS = (
    "failed in both",
    "failed in baseline",
    "failed in candidate",
    "never found",
    "newly found",
    "lost",
    "improved",
    "worsened",
    "unchanged",
)
"""In order of precedence, on the primary measure. `Found` is a relevant result within its cutoff; where nothing should be
found, a query improved, worsened or is unchanged."""

MOVES = (
    "failed",
    "stayed at rank 1",
    "moved to rank 1",
    "moved from rank 1",
    "newly found below rank 1",
    "lost from below rank 1",
    "rose below rank 1",
    "fell below rank 1",
    "same rank below 1",
    "never found",
)
"""In order of precedence, by the first relevant rank in the whole list kept. `NOTHING_TO_FIND` is after them where there
are such queries."""

NOTHING_TO_FIND = "nothing to find"
"""The move of a query where nothing should be found, and neither system failed."""
