"""The Ranking: the narrow waist between "what did the system return" and "what is it worth".

Everything about ids, patterns, order, ties, duplicates and credit is settled before a Ranking exists; every measure is
a pure function of one. Axes: Q queries, J judged results, E expected entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from cranfield.model import Convention, Outcome

FloatQ = NDArray[np.float64]
UNKNOWN_COUNT = -1
"""In `expected_count`: nobody said how many documents match."""


class State(IntEnum):
    """What is known of a result."""

    UNJUDGED = 0
    """Nobody judged it; such results have no row."""
    POOLED = 1
    """In the pool and left unjudged (a grade under 0): not relevant, and not counted as judged."""
    JUDGED = 2


@dataclass(frozen=True, slots=True)
class RankedHit:
    """One result at its rank, for people to look at."""

    rank: int
    id: str
    score: float | None = None
    title: str | None = None
    state: State = State.UNJUDGED
    level: int = 0
    gain: float = 0.0
    item: str | None = None
    """The expected item it matched: a document id or a pattern."""
    credited: bool = False
    """False when it matched something that an earlier result was already paid for."""


@dataclass(frozen=True)
class Ranking:
    """Per judged result its rank and worth; per query what was returned and what was expected."""

    query_ids: tuple[str, ...]  # Q
    query: NDArray[np.int32]  # [J] index into query_ids; rows are sorted by query, then rank
    rank: NDArray[np.int32]  # [J] 1-based
    gain: NDArray[np.float64]  # [J] 0 where not credited
    level: NDArray[np.int32]  # [J] 0 where not credited; under 0 for pooled
    state: NDArray[np.int8]  # [J] State.POOLED or State.JUDGED
    item: NDArray[np.int32]  # [J] which expected item of the query it matched
    n_returned: NDArray[np.int32]  # [Q] after duplicates are dropped and the depth is cut
    n_duplicates: NDArray[np.int32]  # [Q]
    expected_query: NDArray[np.int32]  # [E] sorted by query, then gain descending
    expected_gain: NDArray[np.float64]  # [E]
    expected_level: NDArray[np.int32]  # [E]
    expected_count: NDArray[np.int64]  # [E] UNKNOWN_COUNT where unknown
    closed_world: NDArray[np.bool_]  # [Q] True where nothing can be unjudged (patterns)
    outcomes: tuple[Outcome, ...]  # Q
    convention: Convention
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Query id to why it failed."""
    top: Mapping[str, tuple[RankedHit, ...]] = field(default_factory=dict)
    """Query id to its first hits, kept for reports."""

    @property
    def n_queries(self) -> int:
        """Q."""
        return len(self.query_ids)
