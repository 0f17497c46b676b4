"""The door: order once, join once. Lists and files come in, a `Ranking` goes out.

What is settled here and nowhere else: the order of results, ties, duplicates, the depth, which expected item a result
is, and who is paid when several results are the same item.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cranfield.errors import NoCommonQueryError, Problem, RunFormatError
from cranfield.matching import Expectation, expect
from cranfield.model import Answer, Convention, Hit, Outcome, Run, TestSet
from cranfield.ranking.value import UNKNOWN_COUNT, RankedHit, Ranking, State

Missing = Literal["zero", "skip"]
Duplicates = Literal["error", "first"]
REPORTED_HITS = 10
"""Hits kept per query for people to look at."""


@dataclass
class RankingBuilder:
    """Gathers the rows of a Ranking, query by query, in any order; `build` puts them in test-set order."""

    testset: TestSet
    convention: Convention
    keep: int = REPORTED_HITS
    _parts: dict[str, _Part] = field(default_factory=dict)

    def add(self, query_id: str, hits: Sequence[Hit], outcome: Outcome, n_duplicates: int, reason: str | None) -> None:
        """Take one query's results, already ordered, without duplicates and cut to depth."""
        expectation = expect(self.testset, query_id, self.convention)
        part = _Part(expectation, outcome, len(hits), n_duplicates, reason)
        join(expectation, hits, part, self.keep)
        self._parts[query_id] = part

    def __contains__(self, query_id: object) -> bool:
        """Whether this query was answered so far."""
        return query_id in self._parts

    def build(self, missing: Missing) -> Ranking:
        """Put the rows together; a query nobody answered is `missing`, or left out when `missing` is "skip"."""
        query_ids = [q for q in self.testset.query_ids if q in self._parts or missing == "zero"]
        if not any(query_id in self._parts for query_id in query_ids):
            raise no_common_query(self.testset)
        for query_id in query_ids:
            if query_id not in self._parts:
                self.add(query_id, (), Outcome.MISSING, 0, "no answer in the run")
        parts = [self._parts[query_id] for query_id in query_ids]
        rows = [row for part in parts for row in part.rows]
        columns = list(zip(*rows, strict=True)) if rows else [()] * 5
        histograms = [histogram(part.expectation) for part in parts]
        expected = [entry for entries in histograms for entry in entries]
        gains, levels, counts = zip(*expected, strict=True) if expected else ((), (), ())
        return Ranking(
            query_ids=tuple(query_ids),
            query=np.repeat(np.arange(len(parts), dtype=np.int32), [len(part.rows) for part in parts]),
            rank=np.array(columns[0], dtype=np.int32),
            gain=np.array(columns[1], dtype=np.float64),
            level=np.array(columns[2], dtype=np.int32),
            state=np.array(columns[3], dtype=np.int8),
            item=np.array(columns[4], dtype=np.int32),
            n_returned=np.array([part.n_returned for part in parts], dtype=np.int32),
            n_duplicates=np.array([part.n_duplicates for part in parts], dtype=np.int32),
            expected_query=np.repeat(np.arange(len(parts), dtype=np.int32), [len(h) for h in histograms]),
            expected_gain=np.array(gains, dtype=np.float64),
            expected_level=np.array(levels, dtype=np.int32),
            expected_count=np.array(counts, dtype=np.int64),
            closed_world=np.array([part.expectation.closed_world for part in parts], dtype=np.bool_),
            outcomes=tuple(part.outcome for part in parts),
            convention=self.convention,
            reasons={q: part.reason for q, part in zip(query_ids, parts, strict=True) if part.reason},
            top={q: tuple(part.top) for q, part in zip(query_ids, parts, strict=True)},
        )


@dataclass
class _Part:
    expectation: Expectation
    outcome: Outcome
    n_returned: int
    n_duplicates: int
    reason: str | None
    rows: list[tuple[int, float, int, int, int]] = field(default_factory=list)
    """(rank, gain, level, state, item)."""
    top: list[RankedHit] = field(default_factory=list)


def join(expectation: Expectation, hits: Sequence[Hit], part: _Part, keep: int) -> None:
    """Walk the hits in order, name the expected item of each, and pay an item once unless it is repeatable.

    A hit that is several items is paid for the best one still unpaid; one that is only paid items is worth nothing and
    says so (`credited` is false).
    """
    levels = expectation.levels
    paid: set[int] = set()
    for rank, hit in enumerate(hits, start=1):
        items = expectation.matches(hit.id)
        if not items:
            if rank <= keep:
                state = State.JUDGED if expectation.closed_world else State.UNJUDGED
                part.top.append(RankedHit(rank, hit.id, hit.score, hit.title, state))
            continue
        item = next((i for i in items if expectation.repeatable[i] or i not in paid), None)
        credited = item is not None
        if item is None:
            item = items[0]
        paid.add(item)
        state = State.POOLED if expectation.grades[item] < 0 else State.JUDGED
        gain, level = (expectation.gains[item], levels[item]) if credited else (0.0, 0)
        part.rows.append((rank, gain, level, int(state), item))
        if rank <= keep:
            label = expectation.labels[item]
            part.top.append(RankedHit(rank, hit.id, hit.score, hit.title, state, level, gain, label, credited))


def histogram(expectation: Expectation) -> list[tuple[float, int, int]]:
    """Count the expected items by worth: `(gain, level, count)`, best first."""
    counts: dict[tuple[float, int], int] = {}
    for gain, level, count in zip(expectation.gains, expectation.levels, expectation.counts, strict=True):
        known = counts.get((gain, level), 0)
        counts[gain, level] = UNKNOWN_COUNT if count is None or known == UNKNOWN_COUNT else known + count
    ordered = sorted(counts.items(), key=lambda entry: (-entry[0][0], -entry[0][1]))
    return [(gain, level, count) for (gain, level), count in ordered]


def rank_run(
    testset: TestSet, run: Run, convention: Convention, *, missing: Missing = "zero", keep: int = REPORTED_HITS
) -> Ranking:
    """Rank a collected run: its declared order, duplicates dropped keeping the first, cut to its depth."""
    builder = RankingBuilder(testset, convention, keep)
    for query_id in testset.query_ids:
        answer = run.answers.get(query_id)
        if answer is None or answer.outcome is Outcome.MISSING:
            continue
        # A failure is worth nothing, whatever the system had printed by then.
        hits = [] if answer.outcome.is_failure else order_hits(query_id, answer, run)
        first: dict[str, Hit] = {}
        for hit in hits:
            first.setdefault(hit.id, hit)
        unique = list(first.values())[: run.depth]
        builder.add(query_id, unique, answer.outcome, len(hits) - len(first), answer.reason)
    return builder.build(missing)


def order_hits(query_id: str, answer: Answer, run: Run) -> list[Hit]:
    """Return the hits in the order the run declares; equal scores fall to the larger id, as in a TREC file."""
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
    sign = 1.0 if run.order == "descending" else -1.0
    return sorted(hits, key=lambda hit: (sign * (hit.score or 0.0), id_bytes(hit.id)), reverse=True)


def id_bytes(doc_id: str) -> bytes:
    """Bytes of an id, by which ties are broken; ids that are not UTF-8 keep the bytes they were read from."""
    try:
        return doc_id.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return doc_id.encode("utf-8", "surrogatepass")


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
