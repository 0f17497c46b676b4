"""The Ranking: the narrow waist between what a system returned and what that is worth; and its transformations.

Everything about ids, patterns, order, ties, duplicates and credit is resolved before a Ranking exists; every measure is
a pure function of one. Axes: Q queries, J judged results, E expected items, G grouped judgments.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.base.display import OneLine
from cranfield.base.words import count_noun, printable, shorten_to
from cranfield.model import Convention, Grouping, Outcome, Query, Run
from cranfield.ranking.matching.passages import ReturnedTexts

FloatQ = NDArray[np.float64]
REASON_COLUMNS = 120
"""Most columns of the reason why queries failed, where one stands for all."""
_NUMBERS = re.compile(r"\d+")
UNKNOWN_COUNT = -1
"""In `expected_count`: the number of matching documents is not known."""


class ResultState(IntEnum):
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
    state: ResultState = ResultState.UNJUDGED
    level: int = 0
    gain: float = 0.0
    item: str | None = None
    """The expected item it matched: a document id or a pattern."""
    credited: bool = False
    """False when an earlier result already has the credit for its item."""
    span: str | None = None
    """Place inside the document, in the system's own words."""
    forbidden: bool = False
    """Whether its query forbids it."""

    @property
    def grade_text(self) -> str:
        """The grade of what it matched, for people: `2`; `unjudged`; `forbidden`; `matched above` where an earlier result has the credit."""
        if self.forbidden:
            return "forbidden"
        if self.state is not ResultState.JUDGED:
            return "unjudged"
        return f"{self.level}" if self.credited or self.item is None else "matched above"


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
    FORBIDDEN = 4
    """A result that must not be found, each its own place; a row of rank 0 where none was found."""


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
    """Whether a query should return nothing, and whether that is so."""

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
    state: NDArray[np.int8]  # [J] ResultState.POOLED or ResultState.JUDGED
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
    exhaustive: NDArray[np.bool_] | None = None
    """[Q] where the closed world is a statement that the graded documents are all there are; None: nowhere."""
    cut_at: int | None = None
    """Results kept of each list, where a list has as many: what follows is not known. None: every list is whole."""
    queries: Mapping[str, Query] = field(default_factory=dict)
    """Query id to query, whose strata a weighted sum of measures needs; of more queries than these, or of none."""
    classes: tuple[str, ...] = ()
    """Q names of `QUERY_CLASSES`, empty for none, which say what is not measured; no name at all where no query has one."""
    texts: ReturnedTexts | None = None
    """The results as text, down to `n_returned`, and the passages that are expected; None where results have neither texts nor places,
    or are in another order than they were returned in."""

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
        return f"{count_noun(len(self.query_ids), 'queries')}, {count_noun(int(self.n_returned.sum()), 'results')}"


ROWS = ("query", "rank", "gain", "level", "state", "item", "tie_first", "tie_last")
"""Columns with an entry per judged result."""


def only_rows(ranking: Ranking, rows: NDArray[np.bool_]) -> Ranking:
    """Keep some judged results, and everything else as it is. `rows` is bool[J]."""
    columns = {name: getattr(ranking, name)[rows] for name in ROWS}
    tokens = None if ranking.tokens is None else ranking.tokens[rows]
    return replace(ranking, **columns, tokens=tokens)


def rename_queries(ranking: Ranking, names: Mapping[str, str]) -> Ranking:
    """The same ranking with other ids of queries; those without a new name keep theirs."""
    return replace(
        ranking,
        query_ids=tuple(names.get(query_id, query_id) for query_id in ranking.query_ids),
        reasons={names.get(query_id, query_id): reason for query_id, reason in ranking.reasons.items()},
        top={names.get(query_id, query_id): hits for query_id, hits in ranking.top.items()},
        queries={names.get(query_id, query_id): query for query_id, query in ranking.queries.items()},
        texts=None if ranking.texts is None else ranking.texts.renamed(names),
    )


def only_queries(ranking: Ranking, keep: NDArray[np.bool_]) -> Ranking:
    """Leave queries out. `keep` is bool[Q]."""
    place = np.cumsum(keep).astype(np.int32) - 1
    kept = only_rows(ranking, keep[ranking.query])
    entries = keep[ranking.expected_query]
    names = [query_id for query_id, stays in zip(ranking.query_ids, keep.tolist(), strict=True) if stays]
    return replace(
        kept,
        query_ids=tuple(names),
        query=place[kept.query],
        n_returned=ranking.n_returned[keep],
        n_duplicates=ranking.n_duplicates[keep],
        expected_query=place[ranking.expected_query[entries]],
        expected_gain=ranking.expected_gain[entries],
        expected_level=ranking.expected_level[entries],
        expected_count=ranking.expected_count[entries],
        closed_world=ranking.closed_world[keep],
        outcomes=tuple(o for o, stays in zip(ranking.outcomes, keep.tolist(), strict=True) if stays),
        reasons={name: ranking.reasons[name] for name in names if name in ranking.reasons},
        groups=_groups_of(ranking.groups, keep, entries),
        tokens_returned=None if ranking.tokens_returned is None else ranking.tokens_returned[keep],
        covered=None if ranking.covered is None else ranking.covered[entries],
        aspects=_aspects_of(ranking.aspects, keep, place),
        silence=None if ranking.silence is None else ranking.silence[keep],
        n_identical=None if ranking.n_identical is None else ranking.n_identical[keep],
        unplaced=None if ranking.unplaced is None else ranking.unplaced[keep],
        exhaustive=None if ranking.exhaustive is None else ranking.exhaustive[keep],
        classes=tuple(itertools.compress(ranking.classes, keep.tolist())),
    )


def condensed(ranking: Ranking) -> Ranking:
    """The list of judged results alone, ranks closed up: what was not judged is as if it had not been returned.

    Where nothing can be unjudged (patterns) the list stays as it is.

    Source: Sakai 2007, SIGIR ("Alternatives to bpref"); trec_eval `-J`, which also drops grades under 0.
    """
    whole = ranking.closed_world
    kept = only_rows(ranking, (ranking.state == ResultState.JUDGED) | whole[ranking.query])
    starts = np.searchsorted(kept.query, np.arange(kept.n_queries))
    closed_up = np.arange(len(kept.query)) - starts[kept.query] + 1
    stays = whole[kept.query]
    rank, tie_first, tie_last = (
        np.where(stays, column, closed_up).astype(np.int32) for column in (kept.rank, kept.tie_first, kept.tie_last)
    )
    counts = np.where(whole, ranking.n_returned, np.bincount(kept.query, minlength=kept.n_queries)).astype(np.int32)
    # What is looked for besides the items refers to the original list.
    result = replace(
        kept,
        rank=rank,
        tie_first=tie_first,
        tie_last=tie_last,
        n_returned=counts,
        covered=None,
        aspects=None,
        texts=None,
    )
    if ranking.covered is None:
        return result
    return replace(result, covered=np.where(whole[ranking.expected_query], ranking.covered, result.expected_rank))


def cut(ranking: Ranking, depth: int) -> Ranking:
    """The first `depth` ranks of every query, as if no more had been returned."""
    kept = only_rows(ranking, ranking.rank <= depth)
    aspects = ranking.aspects
    if aspects is not None:
        rank, relevant = _within(aspects.rank, depth), _within(aspects.relevant_rank, depth)
        aspects = replace(aspects, rank=rank, relevant_rank=relevant)
    return replace(
        kept,
        n_returned=np.minimum(ranking.n_returned, depth).astype(np.int32),
        covered=None if ranking.covered is None else _within(ranking.covered, depth),
        aspects=aspects,
    )


def _within(rank: NDArray[np.int32], depth: int) -> NDArray[np.int32]:
    """Ranks, 0 where they are deeper."""
    return np.where(rank <= depth, rank, 0).astype(np.int32)


def with_gains(ranking: Ranking, gains: Mapping[int, float]) -> Ranking:
    """Other gains for some grades; a grade the mapping does not name keeps its own."""
    row_gain, expected_gain = ranking.gain.copy(), ranking.expected_gain.copy()
    for level, gain in gains.items():
        row_gain[ranking.level == level] = gain
        expected_gain[ranking.expected_level == level] = gain
    return replace(ranking, gain=row_gain, expected_gain=expected_gain)


def exponential_gains(ranking: Ranking) -> Ranking:
    """A gain of 2^g - 1 where it was g; infinite where no float holds it."""
    with np.errstate(over="ignore"):
        row_gain, expected_gain = np.exp2(ranking.gain) - 1.0, np.exp2(ranking.expected_gain) - 1.0
    return replace(ranking, gain=row_gain, expected_gain=expected_gain)


def n_judged_tied(ranking: Ranking) -> NDArray[np.int64]:
    """int64[Q]: judged results that share their score with another result, judged or not."""
    tied = (ranking.tie_last > ranking.tie_first) & (ranking.state == ResultState.JUDGED)
    return np.bincount(ranking.query[tied], minlength=ranking.n_queries).astype(np.int64)


def best_case(ranking: Ranking) -> Ranking:
    """The order of equal scores that helps most: in each tie the judged results by gain, unjudged ones in the rest.

    Negative gains come last. In the ranking returned nothing ties.
    Where an item is credited once and several results of one tie match it, the credited result leads. Of a list cut at a depth,
    only results within it are known; those of a tie that the depth cuts are placed as far as they are known.
    """
    return _with_ranks(ranking, _best_ranks(ranking))


def worst_case(ranking: Ranking) -> Ranking:
    """The order of equal scores that helps least: `best_case` upside down within each tie.

    A row that falls below the depth of its list leaves it.
    """
    return _with_ranks(ranking, ranking.tie_first + ranking.tie_last - _best_ranks(ranking))


def ties_reversed(ranking: Ranking) -> Ranking:
    """Equal scores in the opposite order: by ascending document id where they fell by descending id.

    Exact for lists that were not cut at a depth. The credit does not change.
    """
    return _with_ranks(ranking, ranking.tie_first + ranking.tie_last - ranking.rank)


def unjudged_results(ranking: Ranking, cutoff: int | None) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Query and rank of every unjudged result, within the cutoff or in the whole list, by query and rank.

    A grade under 0 (in the pool, left unjudged) is no judgment; where the truth is a pattern nothing is unjudged.
    """
    shown = ranking.n_returned if cutoff is None else np.minimum(ranking.n_returned, cutoff)
    shown = np.where(ranking.closed_world, 0, shown).astype(np.intp)
    start = np.concatenate(([0], np.cumsum(shown)))
    judged = (ranking.state == ResultState.JUDGED) & (ranking.rank <= shown[ranking.query])
    is_unjudged = np.ones(int(start[-1]), dtype=np.bool_)
    is_unjudged[start[ranking.query[judged]] + ranking.rank[judged] - 1] = False
    query = np.repeat(np.arange(ranking.n_queries), shown)
    rank = (np.arange(len(query)) - start[query] + 1).astype(np.int32)
    return query[is_unjudged], rank[is_unjudged]


def with_assumed_grades(
    ranking: Ranking,
    queries: NDArray[np.intp],
    owner: NDArray[np.intp],
    rank: NDArray[np.int32],
    *,
    gain: float | NDArray[np.float64],
    level: int | NDArray[np.int32],
) -> Ranking:
    """Lists of the ranking in which everything is judged: the documents named as given, all other unjudged ones not relevant.

    Args:
        ranking: where the lists come from.
        queries: intp[P], the query each list is of; one query may stand for any number of lists.
        owner: intp[N], which list (0 to P - 1) each document named belongs to; ascending.
        rank: int32[N], their ranks; they are unjudged. 0: the list does not have it, and it is expected all the same.
        gain: what each of them is worth; a number, or float64[N].
        level: the grade each of them has; a number, or int32[N].

    Returns:
        P queries, named by their number. What is worth nothing has no row.
    """
    lists = np.arange(len(queries))
    row, rows = _each(ranking.query, (ranking.level >= 1) | (ranking.gain > 0), ranking.n_queries, queries)
    keep = (ranking.expected_level >= 1) | (ranking.expected_gain > 0)
    entry, entries = _each(ranking.expected_query, keep, ranking.n_queries, queries)
    kept_before = np.concatenate(([0], np.cumsum(keep)))
    start = ranking.expected_start[ranking.query]
    item = kept_before[start + ranking.item] - kept_before[start]
    named = np.bincount(owner, minlength=len(queries))
    nth = np.arange(len(owner)) - np.repeat(np.cumsum(named) - named, named)
    columns: dict[str, tuple[NDArray[Any], Any]] = {
        "query": (np.repeat(lists, rows), owner),
        "rank": (ranking.rank[row], rank),
        "gain": (ranking.gain[row], gain),
        "level": (ranking.level[row], level),
        "state": (ranking.state[row], int(ResultState.JUDGED)),
        "item": (item[row], entries[owner] + nth),  # what is supposed comes after the other items of its list
        "tie_first": (ranking.rank[row], rank),
        "tie_last": (ranking.rank[row], rank),
    }
    placed = rank > 0
    both = {
        name: np.concatenate((old, np.broadcast_to(new, len(rank))[placed])) for name, (old, new) in columns.items()
    }
    order = np.lexsort((both["rank"], both["query"]))
    sorted_rows: dict[str, Any] = {name: both[name][order].astype(getattr(ranking, name).dtype) for name in ROWS}
    after = np.cumsum(entries)[owner]
    return replace(
        ranking,
        query_ids=tuple(map(str, lists.tolist())),
        **sorted_rows,
        n_returned=ranking.n_returned[queries],
        n_duplicates=ranking.n_duplicates[queries],
        expected_query=np.insert(np.repeat(lists, entries), after, owner).astype(np.int32),
        expected_gain=np.insert(ranking.expected_gain[entry], after, gain),
        expected_level=np.insert(ranking.expected_level[entry], after, level),
        expected_count=np.insert(ranking.expected_count[entry], after, 1),
        closed_world=np.ones(len(queries), dtype=np.bool_),
        outcomes=tuple(ranking.outcomes[query] for query in queries.tolist()),
        reasons={},
        top={},
        groups=None,
        tokens=None,
        tokens_returned=None,
        covered=None,
        aspects=None,
        silence=None,
        n_identical=None,
        unplaced=None,
        exhaustive=None,
        queries={},
        classes=tuple(ranking.classes[query] for query in queries.tolist()) if ranking.classes else (),
        texts=None,
    )


def _each(
    query: NDArray[np.int32], keep: NDArray[np.bool_], n_queries: int, queries: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the kept rows of each query listed, query after query, and how many each has. Rows are by query."""
    places = np.flatnonzero(keep)
    bounds = np.searchsorted(query[places], np.arange(n_queries + 1))
    counts = np.diff(bounds)[queries]
    offset = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return places[np.repeat(bounds[queries], counts) + offset], counts


def _best_ranks(ranking: Ranking) -> NDArray[np.int32]:
    """int32[J]: ranks with the best of each tie first."""
    ranks = ranking.tie_first.copy()
    tied = np.flatnonzero(ranking.tie_last > ranking.tie_first)
    query, first, last = ranking.query[tied], ranking.tie_first[tied], ranking.tie_last[tied]
    gain, level = ranking.gain[tied], ranking.level[tied]
    order = np.lexsort((-level, -gain, first, query))
    opens = np.ones(len(order), dtype=np.bool_)
    opens[1:] = (np.diff(query[order]) != 0) | (np.diff(first[order]) != 0)
    group = np.cumsum(opens) - 1
    size = np.bincount(group)
    place = np.arange(len(order)) - np.flatnonzero(opens)[group]
    from_top, from_bottom = first[order] + place, last[order] - (size[group] - 1 - place)
    ranks[tied[order]] = np.where(gain[order] < 0, from_bottom, from_top)
    return ranks


def _with_ranks(ranking: Ranking, rank: NDArray[np.int32]) -> Ranking:
    """The rows at other ranks, without those below the depth; nothing ties any more."""
    moved = replace(
        ranking,
        rank=rank,
        tie_first=rank,
        tie_last=rank,
        tokens=None,
        tokens_returned=None,
        covered=None,
        aspects=None,
        texts=None,
    )
    order = np.lexsort((rank, ranking.query))
    columns = {name: getattr(moved, name)[order] for name in ROWS}
    moved = replace(moved, **columns)
    return only_rows(moved, moved.rank <= moved.n_returned[moved.query])


def _groups_of(groups: Groups | None, keep: NDArray[np.bool_], entries: NDArray[np.bool_]) -> Groups | None:
    if groups is None:
        return None
    rows = keep[groups.query]
    entry = (np.cumsum(entries) - 1)[groups.entry[rows]].astype(np.int32)
    query = (np.cumsum(keep) - 1)[groups.query[rows]].astype(np.int32)
    return Groups(groups.kind, query, entry, groups.group[rows], groups.subgroup[rows], groups.value[rows])


def _aspects_of(aspects: Aspects | None, keep: NDArray[np.bool_], place: NDArray[np.int32]) -> Aspects | None:
    if aspects is None:
        return None
    rows = keep[aspects.query]
    columns = {name: getattr(aspects, name)[rows] for name in Aspects.__slots__}
    return Aspects(**columns | {"query": place[columns["query"]]})


def cut_at(ranking: Ranking, depth: int | None) -> Ranking:
    """The ranking of lists that were cut at a depth, which it notes where one reaches it."""
    is_cut = depth is not None and bool((ranking.n_returned >= depth).any())
    return replace(ranking, cut_at=depth) if is_cut else ranking
