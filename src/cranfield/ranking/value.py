"""The Ranking: the narrow waist between "what did the system return" and "what is it worth".

Everything about ids, patterns, order, ties, duplicates and credit is resolved before a Ranking exists; every measure is
a pure function of one. Axes: Q queries, J judged results, E expected items, G grouped judgments.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cranfield.display import OneLine
from cranfield.model import Convention, Grouping, Outcome, Run
from cranfield.words import n_of, printable, shorten_to

FloatQ = NDArray[np.float64]
REASON_COLUMNS = 120
"""Of the reason why queries failed, where one stands for all."""
_NUMBERS = re.compile(r"\d+")
UNKNOWN_COUNT = -1
"""In `expected_count`: the number of matching documents is not known."""


class State(IntEnum):
    """What is known of a result."""

    UNJUDGED = 0
    """Not judged; such results have no row."""
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
    """False when an earlier result already has the credit for its item."""
    span: str | None = None
    """Place inside the document, in the system's own words."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Judgments that hold within a group of their query, for the measures that need them."""

    kind: Grouping
    query: NDArray[np.int32]  # [G] index into query_ids; rows are sorted by query
    entry: NDArray[np.int32]  # [G] index into the expected items (E) of the whole ranking
    group: NDArray[np.int32]  # [G] 0, 1, … within its query, in the order of the names
    subgroup: NDArray[np.int32]  # [G] 0, 1, … within its group
    value: NDArray[np.float64]  # [G] grade, or strength of preference


class Aspect(IntEnum):
    """What is looked for in a list besides its expected items."""

    FILE = 0
    """An expected file: any result in it covers it."""
    LEGACY = 1
    """A document of the legacy form."""
    MODERN = 2
    """A relevant result that is not of the legacy form; there is a row wherever there is one of LEGACY."""
    SOURCE = 3
    """A source; its place is its authority, 0 the highest."""


@dataclass(frozen=True, slots=True, eq=False)
class Aspects:
    """What is looked for besides the expected items, with the rank of the first of each. Rows are sorted by query."""

    query: NDArray[np.int32]  # [A] index into query_ids
    kind: NDArray[np.int8]  # [A] Aspect
    place: NDArray[np.int32]  # [A] 0, 1, … within its query and kind
    rank: NDArray[np.int32]  # [A] of the first result that is it; 0 where none is
    relevant_rank: NDArray[np.int32]  # [A] of the first that is also relevant (level 1 or more)
    expected: NDArray[np.bool_]  # [A] of a source: whether it is known that an expected document is of it


class Silence(IntEnum):
    """Of a query: whether nothing should come back, and whether that is so."""

    NOT_NEGATIVE = -1
    BROKEN = 0
    """Something came back, or the system failed."""
    KEPT = 1


@dataclass(frozen=True, repr=False, eq=False)
class Ranking(OneLine):
    """Per judged result its rank and worth; per query what was returned and what was expected."""

    query_ids: tuple[str, ...]  # Q
    query: NDArray[np.int32]  # [J] index into query_ids; rows are sorted by query, then rank
    rank: NDArray[np.int32]  # [J] 1-based
    gain: NDArray[np.float64]  # [J] 0 where not credited
    level: NDArray[np.int32]  # [J] 0 where not credited; under 0 for pooled
    state: NDArray[np.int8]  # [J] State.POOLED or State.JUDGED
    item: NDArray[np.int32]  # [J] which expected item of its query it matched: entry expected_start[query] + item
    tie_first: NDArray[np.int32]  # [J] smallest and largest rank among the results that tie with it: itself, when alone
    tie_last: NDArray[np.int32]  # [J] before any cut, so it may lie beyond n_returned
    n_returned: NDArray[np.int32]  # [Q] after duplicates are dropped and the depth is cut
    n_duplicates: NDArray[np.int32]  # [Q]
    expected_query: NDArray[np.int32]  # [E] one entry per expected item, sorted by query, then grade descending
    expected_gain: NDArray[np.float64]  # [E]
    expected_level: NDArray[np.int32]  # [E]
    expected_count: NDArray[np.int64]  # [E] documents it stands for: 1 for a document; UNKNOWN_COUNT where unknown
    closed_world: NDArray[np.bool_]  # [Q] True where nothing can be unjudged (patterns)
    outcomes: tuple[Outcome, ...]  # Q
    convention: Convention
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Query id to why it failed."""
    top: Mapping[str, tuple[RankedHit, ...]] = field(default_factory=dict)
    """Query id to its first hits, kept for reports."""
    groups: Groups | None = None
    """Judgments by subtopic, by judge, or as preferences; None where the test set has none."""
    tokens: NDArray[np.float64] | None = None
    """[J] tokens of the results up to and with this one; NaN where a result before it does not say. None: none says."""
    tokens_returned: FloatQ | None = None
    """[Q] tokens of the whole list; NaN where a result does not say."""
    covered: NDArray[np.int32] | None = None
    """[E] rank of the first result that covers the item, 0 where none does, where one result may cover several; None:
    a result is one item."""
    aspects: Aspects | None = None
    """What is looked for besides the expected items; None where nothing is."""
    silence: NDArray[np.int8] | None = None
    """[Q] Silence; None where no query is negative."""
    n_identical: NDArray[np.int32] | None = None
    """[Q] results left out because their id is that of the query; None where they are not left out."""
    unplaced: NDArray[np.int32] | None = None
    """[Q] results that do not say which lines they are, where lines are expected; None where there is none."""
    cut_at: int | None = None
    """Results kept of each list, where a list has as many: what follows is not known. None: every list is whole."""
    classes: tuple[str, ...] = ()
    """Q names of `QUERY_CLASSES`, empty for none, which say what is not measured; no name at all where no query has one."""

    @property
    def n_queries(self) -> int:
        """Q."""
        return len(self.query_ids)

    @cached_property
    def is_negative(self) -> NDArray[np.bool_]:
        """bool[Q]: where nothing should be found."""
        if self.silence is None:
            return np.zeros(self.n_queries, dtype=np.bool_)
        negative: NDArray[np.bool_] = self.silence != Silence.NOT_NEGATIVE
        return negative

    @cached_property
    def keeps_silence(self) -> NDArray[np.bool_]:
        """bool[Q]: where nothing should be found, and nothing was returned, or nothing above the bound."""
        return self.is_negative if self.silence is None else self.is_negative & (self.silence == Silence.KEPT)

    @cached_property
    def expected_start(self) -> NDArray[np.int64]:
        """int64[Q + 1]: the expected items of query q are entries start[q] to start[q + 1]."""
        return np.searchsorted(self.expected_query, np.arange(self.n_queries + 1)).astype(np.int64)

    @cached_property
    def expected_rank(self) -> NDArray[np.int32]:
        """int32[E]: rank of the first result that is this item; 0 where none is."""
        if self.covered is not None:
            return self.covered
        ranks = np.zeros(len(self.expected_query), dtype=np.int32)
        entries = self.expected_start[self.query] + self.item
        ranks[entries[::-1]] = self.rank[::-1]  # the last to write is the first by rank
        return ranks

    def why_failed(self, run: Run | None) -> str:
        """Why queries failed: the one reason that they have, or the most frequent with its number; empty where none did.

        Reasons that differ in their numbers alone, such as the id of a thread, are one.

        Args:
            run: whose logs tell what a program wrote last on stderr.
        """
        logs = {} if run is None else run.logs
        reasons = []
        for query_id, outcome in zip(self.query_ids, self.outcomes, strict=True):
            if outcome.is_failure:
                reason = self.reasons.get(query_id, "")
                log = logs.get(query_id)
                reasons.append((reason if log is None else log.cause(outcome, reason)) or outcome.value)
        if not reasons:
            return ""
        kinds = [_NUMBERS.sub("#", reason) for reason in reasons]
        (most, count), *others = Counter(kinds).most_common()
        reason = shorten_to(printable(reasons[kinds.index(most)]), REASON_COLUMNS)
        return f"{reason} ({count} of them)" if others else reason

    def _summary(self) -> str:
        return f"{n_of(len(self.query_ids), 'queries')}, {n_of(int(self.n_returned.sum()), 'results')}"
