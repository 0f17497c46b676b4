"""The join of results and judgments: the one place where a `Ranking` is built.

Results come in ordered, without duplicates and cut to depth: as ranks of the judged documents (`JudgedRanks`, from run
files and runs in memory), or as lists that are matched hit by hit (collected runs, and queries whose truth is not a list
of ids). Gains, credit and states are decided here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cranfield.errors import NoCommonQueryError, Problem
from cranfield.formats.io.cells import id_bytes, id_text
from cranfield.matching.id_forms import query_form
from cranfield.model import Absence, Convention, Hit, Order, Outcome
from cranfield.patterns import search_limit
from cranfield.ranking.list_matcher import (
    NO_TIES,
    ROW_TYPES,
    MatchedList,
    Row,
    aspects_of,
    covered_column,
    match_list,
    silence_column,
    silence_of,
    unplaced_column,
)
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
from cranfield.ranking.transform import only_queries
from cranfield.ranking.value import RankedHit, Ranking, Silence, State
from cranfield.words import shown_id

if TYPE_CHECKING:
    from cranfield.formats.io.table import Role


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
        lists = [self._lists.get(query, _NO_RESULTS) for query in range(len(judgments.query_ids))]
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
            cut_at=None,
            classes=judgments.classes,
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
        columns = _worth(self._ranks, self.judgments.expected)
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
    columns: dict[str, Any] = _worth(ranks, expected)
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
        classes=ranking.classes if any(ranking.classes) else (),
    )


def _worth(ranks: JudgedRanks, expected: ExpectedItems) -> dict[str, NDArray[Any]]:
    """The columns of judged results that were found by id: each item is there once, so each is credited."""
    entries = expected.start[ranks.query] + ranks.item
    level = expected.level[entries]
    return {
        "query": ranks.query,
        "rank": ranks.rank,
        "gain": expected.gain[entries],
        "level": level,
        "state": np.where(level < 0, int(State.POOLED), int(State.JUDGED)).astype(np.int8),
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
        self._position = {query_id: position for position, query_id in enumerate(query_ids)}
        self._top = top
        self._expected = expected
        self._listed = listed

    def __iter__(self) -> Iterator[str]:
        return iter(self._position)

    def __len__(self) -> int:
        return len(self._position)

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
            state = State.POOLED if level < 0 else State.JUDGED
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
    """Of a table: the name there of each column that was used."""
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
