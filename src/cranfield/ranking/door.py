"""The door: order once, join once. Lists and files come in, a `Ranking` goes out.

What is settled here and nowhere else: the order of results, ties, duplicates, the depth, which expected item a result
is, and who is paid when several results are the same item.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from cranfield.errors import NoCommonQueryError, Problem, RunFormatError
from cranfield.matching import Expectation, expect
from cranfield.model import Answer, Convention, Entity, File, Hit, Order, Outcome, Run, Span, TestSet
from cranfield.model.query_class import class_of, negative_of
from cranfield.ranking.beside import (
    AspectRow,
    Watch,
    aspects_of,
    covered_column,
    silence_column,
    silence_of,
    unplaced_column,
)
from cranfield.ranking.expected import expected_items, id_bytes
from cranfield.ranking.scan import REPORTED_HITS
from cranfield.ranking.value import RankedHit, Ranking, Silence, State

Missing = Literal["zero", "skip"]


@dataclass
class RankingBuilder:
    """Gathers the results of a Ranking, query by query, in any order; `build` puts them in test-set order."""

    testset: TestSet
    convention: Convention
    keep: int = REPORTED_HITS
    order: Order = "given"
    says_empty: bool = True
    """Whether the run can say that it answered with nothing; where it cannot, no answer is such an answer."""
    _parts: dict[str, Part] = field(default_factory=dict)

    def add(
        self,
        query_id: str,
        hits: Sequence[Hit],
        outcome: Outcome,
        n_duplicates: int,
        reason: str | None,
        ties: Sequence[tuple[int, int]] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """Take one query's results, already ordered, without duplicates and cut to depth.

        Args:
            query_id: of the test set.
            hits: its results, rank 1 first.
            outcome: what became of the query.
            n_duplicates: results dropped before.
            reason: why it failed.
            ties: per hit the first and last rank among those that tie with it; None when nothing can tie.
            fields: what the answer says as a whole.
        """
        part = Part(outcome, len(hits), n_duplicates, reason)
        expectation = expect(self.testset, query_id, self.convention)
        join(expectation, hits, part, self.keep, ties)
        part.silence = silence_of(
            expectation.negative, hits, outcome, fields or {}, missing_is_silence=not self.says_empty, order=self.order
        )
        self._parts[query_id] = part

    def __contains__(self, query_id: object) -> bool:
        """Whether this query was answered so far."""
        return query_id in self._parts

    def build(self, missing: Missing) -> Ranking:
        """Put the rows together; a query nobody answered is `missing`, or left out when `missing` is "skip"."""
        query_ids = [q for q in self.testset.query_ids if q in self._parts or missing == "zero" or self._is_silence(q)]
        if not any(query_id in self._parts for query_id in query_ids):
            raise no_common_query(self.testset)
        for query_id in query_ids:
            if query_id not in self._parts:
                self.add(query_id, (), Outcome.MISSING, 0, "no answer in the run")
        parts = [self._parts[query_id] for query_id in query_ids]
        columns = Rows.columns([row for part in parts for row in part.rows])
        expected = expected_items(self.testset, query_ids, self.convention)
        tokens = columns.pop("tokens")
        known = any(part.says_tokens for part in parts)
        return Ranking(
            query_ids=tuple(query_ids),
            query=np.repeat(np.arange(len(parts), dtype=np.int32), [len(part.rows) for part in parts]),
            **columns,
            n_returned=np.array([part.n_returned for part in parts], dtype=np.int32),
            n_duplicates=np.array([part.n_duplicates for part in parts], dtype=np.int32),
            expected_query=expected.query,
            expected_gain=expected.gain,
            expected_level=expected.level,
            expected_count=expected.count,
            closed_world=expected.closed_world,
            outcomes=tuple(part.outcome for part in parts),
            convention=self.convention,
            reasons={q: part.reason for q, part in zip(query_ids, parts, strict=True) if part.reason},
            top={q: tuple(part.top) for q, part in zip(query_ids, parts, strict=True)},
            groups=expected.groups,
            tokens=tokens if known else None,
            tokens_returned=np.array([part.tokens for part in parts], dtype=np.float64) if known else None,
            covered=covered_column([part.covered for part in parts], expected.start) if self._covers else None,
            aspects=aspects_of([part.aspects for part in parts]),
            silence=silence_column([part.silence for part in parts]),
            unplaced=unplaced_column([part.n_unplaced for part in parts]),
            classes=classes_of(self.testset, query_ids),
        )

    def _is_silence(self, query_id: str) -> bool:
        """Whether no answer to this query is the right answer."""
        return not self.says_empty and negative_of(self.testset.by_id[query_id]) is not None

    @property
    def _covers(self) -> bool:
        """Whether one result may cover several items."""
        return self.convention.credit == "every" and bool(self.testset.targets)


def classes_of(testset: TestSet, query_ids: Sequence[str]) -> tuple[str, ...]:
    """The class of each query; no name at all where none has one."""
    classes = tuple(class_of(testset.by_id[query_id]) for query_id in query_ids)
    return classes if any(classes) else ()


class Rows(NamedTuple):
    """One judged result of one query."""

    rank: int
    gain: float
    level: int
    state: int
    item: int
    tie_first: int
    tie_last: int
    tokens: float = math.nan

    @staticmethod
    def columns(rows: Sequence[Rows]) -> dict[str, Any]:
        """Turn rows into the columns of a Ranking."""
        values = list(zip(*rows, strict=True)) if rows else [()] * len(Rows._fields)
        return {
            name: np.array(column, dtype=ROW_TYPES[name]) for name, column in zip(Rows._fields, values, strict=True)
        }


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


@dataclass
class Part:
    """The results of one query, joined."""

    outcome: Outcome
    n_returned: int
    n_duplicates: int
    reason: str | None
    rows: list[Rows] = field(default_factory=list)
    top: list[RankedHit] = field(default_factory=list)
    tokens: float = 0.0
    says_tokens: bool = False
    """Whether any result says what it costs."""
    covered: dict[int, int] = field(default_factory=dict)
    """Item to the rank of the first result that it is among the items of."""
    aspects: list[AspectRow] = field(default_factory=list)
    silence: Silence = Silence.NOT_ASKED
    n_unplaced: int = 0
    """Results that do not say their lines, where lines are expected."""


def join(
    expectation: Expectation, hits: Sequence[Hit], part: Part, keep: int, ties: Sequence[tuple[int, int]] | None = None
) -> None:
    """Walk the hits in order, name the expected item of each, and pay an item once unless it is repeatable.

    A hit that is several items is paid for the best one still unpaid; one that is only paid items is worth nothing and
    says so (`credited` is false).
    """
    levels = expectation.levels
    paid: set[int] = set()
    watch = Watch(expectation.lookout)
    for rank, hit in enumerate(hits, start=1):
        part.tokens += math.nan if hit.tokens is None else hit.tokens
        part.says_tokens |= hit.tokens is not None
        items = expectation.matches(hit)
        if not items:
            part.n_unplaced += expectation.is_unplaced(hit)
            watch.see(hit, rank, relevant=False)
            if rank <= keep:
                state = State.JUDGED if expectation.closed_world else State.UNJUDGED
                part.top.append(RankedHit(rank, hit.id, hit.score, hit.title, state, span=hit.span))
            continue
        for one in items:
            part.covered.setdefault(one, rank)
        item = next((i for i in items if expectation.repeatable[i] or i not in paid), None)
        credited = item is not None
        if item is None:
            item = items[0]
        paid.add(item)
        state = State.POOLED if expectation.grades[item] < 0 else State.JUDGED
        gain, level = (expectation.gains[item], levels[item]) if credited else (0.0, 0)
        tie_first, tie_last = (rank, rank) if ties is None else ties[rank - 1]
        part.rows.append(Rows(rank, gain, level, int(state), item, tie_first, tie_last, part.tokens))
        watch.see(hit, rank, relevant=levels[items[0]] >= 1)  # paid or not
        if rank <= keep:
            label = expectation.labels[item]
            part.top.append(
                RankedHit(rank, hit.id, hit.score, hit.title, state, level, gain, label, credited, hit.span)
            )
    part.aspects = watch.rows()


def rank_run(
    testset: TestSet,
    run: Run,
    convention: Convention,
    *,
    missing: Missing = "zero",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
) -> Ranking:
    """Rank a collected run: its declared order, duplicates dropped keeping the first, cut to its depth or to a lesser one."""
    builder = RankingBuilder(testset, convention, keep, run.order, run.says_empty)
    deepest = min((one for one in (run.depth, depth) if one is not None), default=None)
    for query_id in testset.query_ids:
        answer = run.answers.get(query_id)
        if answer is None or answer.outcome is Outcome.MISSING:
            continue
        # A failure is worth nothing, whatever the system had printed by then.
        hits = [] if answer.outcome.is_failure else order_hits(query_id, answer, run, convention)
        by_place = any(isinstance(target, Span | Entity | File) for target in testset.targets.get(query_id, ()))
        first: dict[tuple[str, str | None], Hit] = {}
        for hit in hits:
            first.setdefault((hit.id, hit.span if by_place else None), hit)
        unique = list(first.values())
        ties = None if run.order == "given" else tied_ranks([compared(hit.score, convention) for hit in unique])
        kept = unique[:deepest]
        builder.add(query_id, kept, answer.outcome, len(hits) - len(first), answer.reason, ties, answer.fields)
    return builder.build(missing)


def order_hits(query_id: str, answer: Answer, run: Run, convention: Convention) -> list[Hit]:
    """Return the hits in the order the run declares; equal scores fall as the convention has it."""
    hits = list(answer.hits)
    if run.order == "given":
        return hits
    unscored = [place for place, hit in enumerate(hits, start=1) if hit.score is None or not math.isfinite(hit.score)]
    if unscored:
        raise RunFormatError(
            Problem(
                f"run {run.name!r}, query {query_id!r}: hit {unscored[0]} has no score",
                expected=f"a finite score on every hit, because the system declares order: {run.order}",
                hint="extract the score too, or declare order: given",
            )
        )
    if convention.ties != "given":
        hits.sort(key=lambda hit: id_bytes(hit.id), reverse=convention.ties == "descending")
    return sorted(hits, key=lambda hit: compared(hit.score, convention), reverse=run.order == "descending")


def compared(score: float | None, convention: Convention) -> float:
    """A score as it is compared: at the convention's width."""
    if convention.score_width == 64:
        return score or 0.0
    with np.errstate(over="ignore"):  # what no 32-bit float holds is infinite there
        return float(np.float32(score or 0.0))


def tied_ranks(scores: Sequence[float | None]) -> list[tuple[int, int]]:
    """First and last rank of those that share a score with each, for scores in their final order."""
    ties: list[tuple[int, int]] = []
    for _, same in itertools.groupby(scores):
        n = len(list(same))
        ties += [(len(ties) + 1, len(ties) + n)] * n
    return ties


def no_common_query(testset: TestSet, examples: Mapping[str, object] | Sequence[str] = ()) -> NoCommonQueryError:
    """Say that nothing could be scored, and show an id of each side."""
    ours = ", ".join(repr(q) for q in testset.query_ids[:3])
    theirs = ", ".join(repr(q) for q in list(examples)[:3]) or "none"
    return NoCommonQueryError(
        Problem(
            f"test set {testset.name!r} and the run share no query id",
            expected=f"ids such as {ours}",
            got=theirs,
            hint="are these the queries the run was made for?",
        )
    )
