"""The join of results and judgments: the one place where a `Ranking` is built.

Results come in ordered, without duplicates and cut to depth: as ranks of the judged documents (`JudgedRanks`, from run
files and runs in memory), or as lists that are matched hit by hit (collected runs, and queries whose truth is not a list
of ids). Gains, credit and states are decided here. A list that is matched hit by hit also records files, legacy forms and sources
where they are looked for, and silence where nothing should be found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import NoCommonQueryError, Problem
from cranfield.base.patterns import search_limit
from cranfield.base.words import shown_id
from cranfield.formats.io.delimited import id_bytes, id_text
from cranfield.model import Absence, Convention, Hit, Negative, Order, Outcome
from cranfield.ranking.matching.expectation import Expectation, QueryMatcher
from cranfield.ranking.matching.id_forms import query_form
from cranfield.ranking.matching.passages import ExpectedTexts, ReturnedTexts
from cranfield.ranking.prepared import ExpectedItems, PreparedJudgments
from cranfield.ranking.query_ranker import comparable, tie_bounds
from cranfield.ranking.scan import (
    REPORTED_HITS,
    UNJUDGED,
    EngineName,
    FirstResults,
    JudgedRanks,
    Missing,
    ScanOptions,
    TopHits,
)
from cranfield.ranking.value import Aspect, Aspects, RankedHit, Ranking, ResultState, Silence, only_queries

if TYPE_CHECKING:
    from cranfield.formats.io.table import Role


AspectRow = tuple[int, int, int, int, bool]
"""Kind, place, rank, relevant rank, expected: as in `Aspects`."""


class Row(NamedTuple):
    """One judged result of one query."""

    rank: int
    gain: float
    level: int
    state: int
    item: int
    tie_first: int
    tie_last: int
    tokens: float


ROW_TYPES: Mapping[str, type[np.generic]] = {
    "rank": np.int32,
    "gain": np.float64,
    "level": np.int32,
    "state": np.int8,
    "item": np.int32,
    "tie_first": np.int32,
    "tie_last": np.int32,
    "tokens": np.float64,
}
NO_TIES: tuple[tuple[int, int], ...] = ()


@dataclass
class FirstMatches:
    """Where the first of each thing looked for is, filled while a list is walked."""

    lookout: QueryMatcher
    _rank: dict[tuple[int, int], int] = field(default_factory=dict)
    _relevant: dict[tuple[int, int], int] = field(default_factory=dict)
    _n_forbidden: int = 0

    def see(self, hit: Hit, rank: int, *, relevant: bool) -> bool:
        """Take the next result of the list, and tell whether it is forbidden."""
        met = self._met(hit, relevant=relevant) if self.lookout else []
        for key in met:
            self._rank.setdefault(key, rank)
            if relevant:
                self._relevant.setdefault(key, rank)
        return any(kind == Aspect.FORBIDDEN for kind, _ in met)

    def _met(self, hit: Hit, *, relevant: bool) -> list[tuple[int, int]]:
        looked, met = self.lookout, []
        if looked.files and (path := looked.file_of(hit)) in looked.files:
            met.append((int(Aspect.FILE), looked.files.index(path)))
        if looked.is_legacy is not None:
            if looked.is_legacy(hit.id):
                met.append((int(Aspect.LEGACY), 0))
            elif relevant:
                met.append((int(Aspect.MODERN), 0))
        if looked.sources and (source := looked.source_of(hit.id)) is not None:
            met.append((int(Aspect.SOURCE), source))
        if looked.is_forbidden is not None and looked.is_forbidden(hit):
            met.append((int(Aspect.FORBIDDEN), self._n_forbidden))
            self._n_forbidden += 1
        return met

    def rows(self) -> list[AspectRow]:
        """A row for each thing looked for, found or not."""
        looked = self.lookout
        keys = [(int(Aspect.FILE), place) for place in range(len(looked.files))]
        if looked.is_legacy is not None:
            keys += [(int(Aspect.LEGACY), 0), (int(Aspect.MODERN), 0)]
        keys += [(int(Aspect.SOURCE), place) for place in range(len(looked.sources))]
        if looked.is_forbidden is not None:  # a row for each that was found, or one for none
            keys += [(int(Aspect.FORBIDDEN), place) for place in range(max(self._n_forbidden, 1))]
        return [
            (
                kind,
                place,
                self._rank.get((kind, place), 0),
                self._relevant.get((kind, place), 0),
                kind == Aspect.SOURCE and place in looked.answered_by,
            )
            for kind, place in keys
        ]


@dataclass
class MatchedList:
    """The results of one query, matched hit by hit."""

    rows: list[Row] = field(default_factory=list)
    top: list[RankedHit] = field(default_factory=list)
    tokens: float = 0.0
    has_tokens: bool = False
    """Whether any result states its tokens."""
    covered: dict[int, int] = field(default_factory=dict)
    """Item to the rank of the first result that matches it."""
    aspects: list[AspectRow] = field(default_factory=list)
    silence: Silence = Silence.NOT_NEGATIVE
    n_unplaced: int = 0
    """Results without line numbers, where lines are expected."""


def match_list(
    expectation: Expectation, hits: Sequence[Hit], keep: int, ties: Sequence[tuple[int, int]] = NO_TIES
) -> MatchedList:
    """Match the hits in order, and credit each item once unless it is repeatable.

    A hit that matches several items is credited for the best one not yet credited; one that matches only credited items
    is worth nothing (`credited` is false).

    Args:
        expectation: of the query.
        hits: rank 1 first.
        keep: hits kept for reports.
        ties: per hit the first and last rank of those that tie with it; empty when nothing can tie.
    """
    matched = MatchedList()
    levels = expectation.levels
    credited_items: set[int] = set()
    watch = FirstMatches(expectation.lookout)
    for rank, hit in enumerate(hits, start=1):
        matched.tokens += math.nan if hit.tokens is None else hit.tokens
        matched.has_tokens |= hit.tokens is not None
        items = expectation.matches(hit)
        if not items:
            matched.n_unplaced += expectation.is_unplaced(hit)
            is_forbidden = watch.see(hit, rank, relevant=False)
            if rank <= keep:
                state = ResultState.JUDGED if expectation.closed_world else ResultState.UNJUDGED
                span = expectation.place(hit)
                matched.top.append(
                    RankedHit(rank, hit.public_id, hit.score, hit.shown_title, state, span=span, forbidden=is_forbidden)
                )
            continue
        for covered in items:
            matched.covered.setdefault(covered, rank)
        item = next((i for i in items if expectation.repeatable[i] or i not in credited_items), None)
        credited = item is not None
        if item is None:
            item = items[0]
        credited_items.add(item)
        state = ResultState.POOLED if expectation.grades[item] < 0 else ResultState.JUDGED
        gain, level = (expectation.gains[item], levels[item]) if credited else (0.0, 0)
        tie_first, tie_last = ties[rank - 1] if ties else (rank, rank)
        matched.rows.append(Row(rank, gain, level, int(state), item, tie_first, tie_last, matched.tokens))
        is_forbidden = watch.see(hit, rank, relevant=levels[items[0]] >= 1)  # credited or not
        if rank <= keep:
            label = expectation.labels[item]
            name = label if label == hit.id else hit.public_id  # what the test set itself names is no secret
            place = expectation.place(hit)
            values = (hit.score, hit.shown_title, state, level, gain, label, credited, place, is_forbidden)
            matched.top.append(RankedHit(rank, name, *values))
    matched.aspects = watch.rows()
    return matched


def silence_of(
    negative: Negative | None,
    hits: Sequence[Hit],
    outcome: Outcome,
    fields: Mapping[str, Any],
    *,
    missing_is_silence: bool,
    order: Order = "given",
) -> Silence:
    """Whether a query where nothing should be found was met with silence.

    Args:
        negative: how the query says so; None where something should be found.
        hits: what came back, cut to depth.
        outcome: what became of it.
        fields: what the answer says as a whole.
        missing_is_silence: the run cannot say that it answered with nothing, so no line is such an answer.
        order: of the run; where scores rise from best to worst, those over the bound are the ones that do not count.
    """
    if negative is None:
        return Silence.NOT_NEGATIVE
    if outcome.is_failure or (outcome is Outcome.MISSING and not missing_is_silence):
        return Silence.BROKEN
    if negative.below is None:
        return Silence.BROKEN if hits else Silence.KEPT
    if negative.field:
        value = fields.get(negative.field)
        confident = isinstance(value, bool) or not isinstance(value, int | float) or not value < negative.below
        return Silence.BROKEN if hits and confident else Silence.KEPT
    way = -1 if order == "ascending" else 1
    kept = all(hit.score is not None and way * hit.score < way * negative.below for hit in hits)
    return Silence.KEPT if kept else Silence.BROKEN


def aspects_of(parts: Sequence[Sequence[AspectRow]]) -> Aspects | None:
    """The rows of every query as columns; None where nothing was looked for."""
    rows = [(query, *row) for query, part in enumerate(parts) for row in part]
    if not rows:
        return None
    query, kind, place, rank, relevant, expected = zip(*rows, strict=True)
    return Aspects(
        query=np.array(query, dtype=np.int32),
        kind=np.array(kind, dtype=np.int8),
        place=np.array(place, dtype=np.int32),
        rank=np.array(rank, dtype=np.int32),
        relevant_rank=np.array(relevant, dtype=np.int32),
        expected=np.array(expected, dtype=np.bool_),
    )


def silence_column(parts: Sequence[Silence]) -> NDArray[np.int8] | None:
    """[Q]; None where no query is negative."""
    column = np.array([int(part) for part in parts], dtype=np.int8)
    return column if (column != Silence.NOT_NEGATIVE).any() else None


def unplaced_column(parts: Sequence[int]) -> NDArray[np.int32] | None:
    """[Q]; None where every result says its lines, or no lines are expected."""
    return np.array(parts, dtype=np.int32) if any(parts) else None


def covered_column(parts: Sequence[Mapping[int, int]], start: NDArray[np.int64]) -> NDArray[np.int32]:
    """[E]: rank of the first result that covers each item; 0 where none does.

    Args:
        parts: per query, item to rank.
        start: int64[Q + 1], where the items of each query begin.
    """
    column = np.zeros(int(start[-1]), dtype=np.int32)
    for query, part in enumerate(parts):
        for item, rank in part.items():
            column[int(start[query]) + item] = rank
    return column


class RankingBuilder:
    """Collects the results of a run, and builds its Ranking.

    Args:
        judgments: the test set.
        keep: hits per query kept for reports.
        order: of the run's scores.
        states_empty: whether the run can state that a query was answered with nothing; where it cannot, a missing answer
            to a query that expects nothing is such an answer.
    """

    def __init__(
        self,
        judgments: PreparedJudgments,
        *,
        keep: int = REPORTED_HITS,
        order: Order = "given",
        states_empty: bool = True,
    ) -> None:
        n_queries = len(judgments.query_ids)
        self.judgments = judgments
        self.keep = keep
        self.order: Order = order
        self.states_empty = states_empty
        self._ranks: JudgedRanks | None = None
        self._lists: dict[int, MatchedList] = {}
        self._texts: dict[str, tuple[ExpectedTexts | None, Sequence[Hit]]] = {}
        self._n_returned = np.zeros(n_queries, dtype=np.int32)
        self._n_duplicates = np.zeros(n_queries, dtype=np.int32)
        self._n_identical = np.zeros(n_queries, dtype=np.int32)
        self._outcomes = [Outcome.MISSING] * n_queries
        self._reasons: dict[int, str] = {}

    def add_ranks(self, ranks: JudgedRanks, n_identical: NDArray[np.int32] | None = None) -> None:
        """Add the ranks of a whole run; queries whose every result is matched take their results from `ranks.top`.

        Args:
            ranks: of the judged results.
            n_identical: int32[Q], results left out before because their id is that of the query.
        """
        self._ranks = ranks
        if n_identical is not None:
            self._n_identical = n_identical
        self._n_returned, self._n_duplicates = ranks.n_returned, ranks.n_duplicates
        convention, by_score = self.judgments.convention, self.judgments.convention.file_order == "score"
        answered = ranks.answered.tolist()
        self._outcomes = [Outcome.ANSWERED if is_answered else Outcome.MISSING for is_answered in answered]
        if self.states_empty:
            for query in np.flatnonzero(ranks.answered & (ranks.n_returned == 0)).tolist():
                self._outcomes[query] = Outcome.EMPTY
        for query in (query for query, whole in enumerate(self.judgments.whole) if whole and answered[query]):
            hits = [Hit(id_text(doc_id), score) for doc_id, score, _ in ranks.top.of(query)]
            scores = [score for _, score, _ in ranks.top.of(query)]
            ties = tie_bounds(comparable(scores, convention.score_width).tolist()) if by_score else NO_TIES
            self._match(query, hits, ties)

    def add_list(
        self,
        query: int,
        hits: Sequence[Hit],
        outcome: Outcome,
        *,
        n_duplicates: int = 0,
        n_identical: int = 0,
        reason: str | None = None,
        ties: Sequence[tuple[int, int]] = NO_TIES,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the results of one query.

        Args:
            query: its position in the test set.
            hits: ordered, without duplicates and cut to depth.
            outcome: of the query.
            n_duplicates: results dropped before.
            n_identical: results left out before because their id is that of the query.
            reason: of a failure.
            ties: see `match_list`.
            fields: of the answer as a whole.
        """
        self._n_returned[query], self._n_duplicates[query] = len(hits), n_duplicates
        self._n_identical[query] = n_identical
        self._outcomes[query] = outcome
        if reason:
            self._reasons[query] = reason
        self._match(query, hits, ties, fields)

    def build(self, missing: Missing, extra_queries: Sequence[str] = ()) -> Ranking:
        """Build the Ranking; queries without an answer count as 0, or are left out when `missing` is "skip".

        Raises:
            NoCommonQueryError: no query was answered; `extra_queries` are shown as examples of the run's ids.
        """
        judgments, expected = self.judgments, self.judgments.expected
        answered = np.array([outcome is not Outcome.MISSING for outcome in self._outcomes], dtype=np.bool_)
        if not answered.any():
            raise no_common_query(judgments.testset.name, judgments.testset.query_ids, extra_queries)
        for query in np.flatnonzero(~answered).tolist():
            self._reasons[query] = Absence.NOT_RETURNED
            if judgments.whole[query]:
                self._match(query, ())
        n_lists = len(judgments.query_ids) if self._lists else 0
        lists = [self._lists.get(query, _NO_RESULTS) for query in range(n_lists)]
        columns = self._columns()
        tokens, has_tokens = columns.pop("tokens"), any(matched.has_tokens for matched in lists)
        covers = judgments.convention.credit == "every" and bool(judgments.testset.targets)
        ranking = Ranking(
            query_ids=judgments.query_ids,
            **columns,
            n_returned=self._n_returned,
            n_duplicates=self._n_duplicates,
            expected_query=expected.query,
            expected_gain=expected.gain,
            expected_level=expected.level,
            expected_count=expected.count,
            closed_world=expected.closed_world,
            outcomes=tuple(self._outcomes),
            convention=judgments.convention,
            reasons={judgments.query_ids[query]: reason for query, reason in sorted(self._reasons.items())},
            top=self._top(),
            groups=expected.groups,
            tokens=tokens if has_tokens else None,
            tokens_returned=np.array([matched.tokens for matched in lists], dtype=np.float64) if has_tokens else None,
            covered=self._covered(lists) if covers else None,
            aspects=aspects_of([matched.aspects for matched in lists]),
            silence=silence_column([matched.silence for matched in lists]),
            n_identical=self._n_identical if judgments.ignores_identical_ids else None,
            unplaced=unplaced_column([matched.n_unplaced for matched in lists]),
            exhaustive=judgments.exhaustive,
            cut_at=None,
            queries=judgments.testset.by_id,
            classes=judgments.classes,
            texts=ReturnedTexts(self._texts, judgments.testset.matching) if self._texts else None,
        )
        # No answer is the right answer to a query that expects nothing, unless the run can state that.
        kept = answered | ranking.keeps_silence
        return ranking if missing == "zero" or kept.all() else _without_empty_columns(only_queries(ranking, kept))

    def _match(
        self,
        query: int,
        hits: Sequence[Hit],
        ties: Sequence[tuple[int, int]] = NO_TIES,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        with search_limit(f"regular expressions of query {self.judgments.query_ids[query]}"):
            expectation = self.judgments.expectation(query)
            matched = match_list(expectation, hits, self.keep, ties)
        matched.silence = silence_of(
            expectation.negative,
            hits,
            self._outcomes[query],
            fields or {},
            missing_is_silence=not self.states_empty,
            order=self.order,
        )
        self._lists[query] = matched
        if expectation.texts is not None or any(hit.fields for hit in hits):
            self._texts[self.judgments.query_ids[query]] = (expectation.texts, hits)

    def _columns(self) -> dict[str, NDArray[Any]]:
        """The columns of the judged results: of the ranks, and of the lists."""
        queries = sorted(self._lists)
        rows = list(zip(*(row for query in queries for row in self._lists[query].rows), strict=True))
        listed: dict[str, NDArray[Any]] = {
            name: np.array(column, dtype=ROW_TYPES[name])
            for name, column in zip(Row._fields, rows or [()] * len(Row._fields), strict=True)
        }
        listed["query"] = np.repeat(
            np.array(queries, dtype=np.int32), [len(self._lists[query].rows) for query in queries]
        )
        if self._ranks is None:
            return listed
        columns = _judged_columns(self._ranks, self.judgments.expected)
        if not len(listed["query"]):
            return columns | {"tokens": listed["tokens"]}
        both = {name: np.concatenate((column, listed[name])) for name, column in columns.items()}
        order = np.lexsort((both["rank"], both["query"]))
        return {name: column[order] for name, column in both.items()} | {"tokens": listed["tokens"]}

    def _covered(self, lists: Sequence[MatchedList]) -> NDArray[np.int32]:
        """[E]: rank of the first result that covers each item."""
        start = self.judgments.expected.start
        covered = covered_column([matched.covered for matched in lists], start)
        if self._ranks is not None:
            entries = start[self._ranks.query] + self._ranks.item
            covered[entries[::-1]] = self._ranks.rank[::-1]  # the last to write is the first by rank
        return covered

    def _top(self) -> Mapping[str, tuple[RankedHit, ...]]:
        query_ids = self.judgments.query_ids
        listed = {query_ids[query]: tuple(matched.top) for query, matched in self._lists.items()}
        if self._ranks is not None:
            return ReportedHits(query_ids, self._ranks.top, self.judgments.expected, listed)
        return {query_id: listed.get(query_id, ()) for query_id in query_ids}


_NO_RESULTS = MatchedList()


def ranking_by_id(
    query_ids: Sequence[str], ranks: JudgedRanks, expected: ExpectedItems, convention: Convention
) -> Ranking:
    """The Ranking of queries whose truth is graded document ids alone; a query without an answer counts as the convention has it.

    Args:
        query_ids: Q names.
        ranks: of the judged results, cut to depth.
        expected: the judgments of these queries.
        convention: that ordered the results.
    """
    answered = ranks.answered.tolist()
    columns: dict[str, Any] = _judged_columns(ranks, expected)
    return Ranking(
        query_ids=tuple(query_ids),
        **columns,
        n_returned=ranks.n_returned,
        n_duplicates=ranks.n_duplicates,
        expected_query=expected.query,
        expected_gain=expected.gain,
        expected_level=expected.level,
        expected_count=expected.count,
        closed_world=expected.closed_world,
        outcomes=tuple(Outcome.ANSWERED if is_answered else Outcome.MISSING for is_answered in answered),
        convention=convention,
    )


def _without_identical(
    judgments: PreparedJudgments, ranks: JudgedRanks, options: ScanOptions
) -> tuple[JudgedRanks, NDArray[np.int32]]:
    """The ranks of a run whose results with the id of their query are left out, cut at the depth; and int32[Q]: how many."""
    own_ids = tuple(map(id_bytes, judgments.query_ids))
    n_queries = len(own_ids)
    item = np.array(
        [
            UNJUDGED if whole else documents.index(query_id)
            for query_id, documents, whole in zip(
                judgments.query_ids, judgments.documents, judgments.whole, strict=True
            )
        ],
        dtype=np.int32,
    )
    own = ranks.item == item[ranks.query]
    rank_of_own = np.zeros(n_queries, dtype=np.int32)
    rank_of_own[ranks.query[own]] = ranks.rank[own]
    n_tied = ranks.n_tied.copy()
    n_tied[ranks.query[own & (ranks.tie_last > ranks.tie_first)]] -= 1
    for query in (query for query, whole in enumerate(judgments.whole) if whole):
        places = (rank for rank, (doc_id, _, _) in enumerate(ranks.top.of(query), start=1) if doc_id == own_ids[query])
        rank_of_own[query] = next(places, 0)
    found = (rank_of_own > 0).astype(np.int32)
    deepest = np.iinfo(np.int32).max if options.depth is None else options.depth
    before = rank_of_own[ranks.query]
    rank = ranks.rank - ((before > 0) & (ranks.rank > before))
    rows = ~own & (rank <= deepest)
    columns: dict[str, Any] = {
        "query": ranks.query,
        "rank": rank,
        "item": ranks.item,
        "tie_first": ranks.tie_first - ((before > 0) & (ranks.tie_first > before)),
        "tie_last": ranks.tie_last - ((before > 0) & (ranks.tie_last >= before)),
    }
    shown = [deepest if whole else min(options.keep, deepest) for whole in judgments.whole]
    others = replace(
        ranks,
        **{name: column[rows].astype(np.int32) for name, column in columns.items()},
        n_returned=np.minimum(ranks.n_returned - found, deepest).astype(np.int32),
        n_tied=n_tied,
        top=_OtherResults(ranks.top, own_ids, shown),
    )
    return others, found


@dataclass(frozen=True)
class _OtherResults:
    """The first results of each query, without those whose id is that of the query."""

    top: FirstResults
    own_ids: Sequence[bytes]
    shown: Sequence[int]
    """Q: how many."""

    def of(self, query: int) -> Iterator[tuple[bytes, float, int]]:
        """The first results of one query, rank 1 first."""
        others = (hit for hit in self.top.of(query) if hit[0] != self.own_ids[query])
        return itertools.islice(others, self.shown[query])


def _without_empty_columns(ranking: Ranking) -> Ranking:
    """The same, with None for side columns that hold nothing once queries were left out."""
    aspects, silence, unplaced = ranking.aspects, ranking.silence, ranking.unplaced
    return replace(
        ranking,
        aspects=aspects if aspects is not None and len(aspects.query) else None,
        silence=silence if silence is not None and (silence != Silence.NOT_NEGATIVE).any() else None,
        unplaced=unplaced if unplaced is not None and unplaced.any() else None,
        exhaustive=ranking.exhaustive if ranking.exhaustive is not None and ranking.exhaustive.any() else None,
        classes=ranking.classes if any(ranking.classes) else (),
    )


def _judged_columns(ranks: JudgedRanks, expected: ExpectedItems) -> dict[str, NDArray[Any]]:
    """The columns of judged results that were found by id: each item is there once, so each is credited."""
    entries = expected.start[ranks.query] + ranks.item
    level = expected.level[entries]
    return {
        "query": ranks.query,
        "rank": ranks.rank,
        "gain": expected.gain[entries],
        "level": level,
        "state": np.where(level < 0, int(ResultState.POOLED), int(ResultState.JUDGED)).astype(np.int8),
        "item": ranks.item,
        "tie_first": ranks.tie_first,
        "tie_last": ranks.tie_last,
    }


class ReportedHits(Mapping[str, tuple[RankedHit, ...]]):
    """Query id to its first hits, made on access."""

    def __init__(
        self,
        query_ids: Sequence[str],
        top: FirstResults,
        expected: ExpectedItems,
        listed: Mapping[str, tuple[RankedHit, ...]],
    ) -> None:
        self._query_ids = query_ids
        self._top = top
        self._expected = expected
        self._listed = listed

    @cached_property
    def _position(self) -> Mapping[str, int]:
        return {query_id: position for position, query_id in enumerate(self._query_ids)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._query_ids)

    def __len__(self) -> int:
        return len(self._query_ids)

    def __getitem__(self, query_id: str) -> tuple[RankedHit, ...]:
        if query_id in self._listed:
            return self._listed[query_id]
        query, expected = self._position[query_id], self._expected
        hits = []
        for rank, (doc_id, score, item) in enumerate(self._top.of(query), start=1):
            name = id_text(doc_id)
            if item == UNJUDGED:
                hits.append(RankedHit(rank, name, score))
                continue
            entry = int(expected.start[query]) + item
            level, gain = int(expected.level[entry]), float(expected.gain[entry])
            state = ResultState.POOLED if level < 0 else ResultState.JUDGED
            hits.append(RankedHit(rank, name, score, None, state, level, gain, name, credited=True))
        return tuple(hits)


@dataclass(frozen=True)
class RankedRun:
    """A ranked run, with what was noticed while it was read."""

    ranking: Ranking
    name: str
    """The caller's name; else the tag of a file's first line, or the file's stem."""
    n_lines: int
    """Results: of all queries of a file, of the judged queries of a run in memory."""
    extra_queries: tuple[str, ...]
    """Query ids in the run and not in the test set: ignored."""
    misranked: tuple[str, ...]
    """Queries whose rank column contradicts the order by score."""
    n_tied: int
    """Results that share their score with the one before them."""
    engine: EngineName
    """Which reader ranked it: the kernel, or Python."""
    narrow: tuple[str, ...] = ()
    """Queries of a file with two scores among the hits kept for reports that are equal as 32-bit floats, and not at 64 bits."""
    columns: Mapping[Role, str] = field(default_factory=dict)
    """Names of the columns of a table that were used, by role."""
    make_digest: Callable[[], str] = field(default=str, repr=False, compare=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: of a file's unpacked bytes, or the same for a mapping and a table of the same rows."""
        return self.make_digest()


def join_ranks(
    judgments: PreparedJudgments,
    ranks: JudgedRanks,
    *,
    missing: Missing,
    options: ScanOptions,
    states_empty: bool,
    name: str,
    make_digest: Callable[[], str],
) -> RankedRun:
    """Build the Ranking of a run whose judged documents were ranked by id, with `judgments.scan_options(options)`."""
    builder = RankingBuilder(judgments, keep=options.keep, states_empty=states_empty)
    narrow = _narrow(judgments.query_ids, ranks.top) if isinstance(ranks.top, TopHits) else ()
    if judgments.ignores_identical_ids:
        ranks, n_identical = _without_identical(judgments, ranks, options)
        builder.add_ranks(ranks, n_identical)
    else:
        builder.add_ranks(ranks)
    return RankedRun(
        ranking=builder.build(missing, ranks.extra_queries),
        name=name,
        n_lines=ranks.n_lines,
        extra_queries=ranks.extra_queries,
        misranked=tuple(judgments.query_ids[query] for query in np.flatnonzero(ranks.misranked).tolist()),
        n_tied=int(ranks.n_tied.sum()),
        engine=ranks.engine,
        narrow=narrow,
        make_digest=make_digest,
    )


def _narrow(query_ids: Sequence[str], top: TopHits) -> tuple[str, ...]:
    with np.errstate(over="ignore", under="ignore"):
        single = top.score.astype(np.float32)
    pairs = np.flatnonzero((single[1:] == single[:-1]) & (top.score[1:] != top.score[:-1]))
    queries = np.searchsorted(top.start, pairs, side="right") - 1
    inside = pairs + 1 < top.start[queries + 1]  # both of one query
    return tuple(query_ids[query] for query in dict.fromkeys(queries[inside].tolist()))


def no_common_query(testset: str, query_ids: Sequence[str], examples: Sequence[str] = ()) -> NoCommonQueryError:
    """The error of a run that answers no query of a test set, with the form of ids that would make queries match.

    Args:
        testset: its name.
        query_ids: of the test set, all or some.
        examples: query ids of the run.
    """
    hint = "are these the queries the run was made for?"
    if form := query_form(examples, query_ids):
        in_run, in_set = form.example
        hint = f"queries would match if {form.what}: write {in_run} of the run as {in_set}"
    return NoCommonQueryError(
        Problem(
            f"test set {testset!r} and the run share no query id",
            expected=f"ids such as {', '.join(map(shown_id, query_ids[:3]))}",
            got=", ".join(map(shown_id, examples[:3])) or "none",
            hint=hint,
        )
    )
