"""Two runs of the same queries without judgments: how alike their results are, which queries changed most, what to judge first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Literal

import numpy as np

from cranfield.base.errors import NoCommonQueryError, UsageError
from cranfield.evaluation.evaluate import clipped, summarise
from cranfield.evaluation.values import Summary
from cranfield.model import Hit, Outcome, Run, TestSet
from cranfield.model.results import Record
from cranfield.ranking.matching.place import place_name
from cranfield.stats.confusion import wilson_interval
from cranfield.stats.rank_overlap import P, jaccard, overlap, rank_biased_overlap, tied_ranks

DEPTH = 10
MAX_PAIRS = 200
"""Pairs to judge that a result keeps, the most informative first."""


class DifferenceVerdict(StrEnum):
    """What a comparison without judgments came to."""

    IDENTICAL = "identical"
    """The same results in the same order for every query."""
    DIFFERENT = "different"
    INVALID = "invalid"
    """A query has no answer on one side, so the two are not compared as declared."""


@dataclass(frozen=True, slots=True)
class ShareOfQueries:
    """Queries for which something holds, with Wilson's interval of their share at 95 %."""

    count: int
    n: int
    share: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True, slots=True)
class PlacedResult:
    """A result and its rank."""

    doc: str
    rank: int


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """One query: the first results of both runs."""

    query: str
    text: str
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    """Ids, best first, each once."""
    overlap: float
    jaccard: float
    rbo: float
    """Rank-biased overlap, extrapolated; 1 minus it is the rank-biased distance."""
    first_difference: int | None
    """First rank at which the lists differ; None where they are the same."""
    new: tuple[PlacedResult, ...]
    """Results of the candidate that the baseline does not have, by rank."""
    lost: tuple[PlacedResult, ...]
    """Results of the baseline that the candidate does not have, by rank."""


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A query that has no answer on a side."""

    query: str
    system: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class PairToJudge:
    """A result whose grade would say most about the difference of the two runs."""

    query: str
    doc: str
    baseline_rank: int | None
    candidate_rank: int | None
    """None where it is not in the list."""
    weight: float
    """Difference of its weights in rank-biased precision: what its relevance would change in the score of the query."""


class BoundKind(StrEnum):
    """What a bound on a difference is about; the value is its option without the dashes."""

    FIRST_CHANGED = "max-first-changed"
    OVERLAP = "min-overlap"
    RBO = "min-rbo"


@dataclass(frozen=True, slots=True)
class BoundOutcome:
    """A bound, and what was observed."""

    kind: BoundKind
    bound: float
    observed: float
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifference(Record):
    """Two runs compared without judgments; means with Student's t interval at 95 %."""

    kind: Literal["difference"] = "difference"
    baseline: str
    candidate: str
    baseline_digest: str
    candidate_digest: str
    verdict: DifferenceVerdict
    k: int
    """Results of each list that are compared."""
    p: float
    """Persistence of rank-biased overlap."""
    n_queries: int
    n_compared: int
    """Queries with an answer on both sides; an empty list is an answer."""
    not_compared: tuple[NotCompared, ...]
    overlap: Summary
    jaccard: Summary
    rbo: Summary
    changed: ShareOfQueries
    """Queries whose first k results are not the same in the same order."""
    first_changed: ShareOfQueries
    """Queries whose first result is another one, or is there on one side only."""
    n_new: int
    n_lost: int
    bounds: tuple[BoundOutcome, ...]
    queries: tuple[QueryDifference, ...]
    """The most changed first."""
    to_judge: tuple[PairToJudge, ...]
    """The most informative first, up to `MAX_PAIRS`; without those that the test set has judged."""


def difference_of(
    baseline: Run,
    candidate: Run,
    *,
    testset: TestSet | None = None,
    k: int = DEPTH,
    p: float = P,
    bounds: Mapping[BoundKind, float] | None = None,
) -> RunDifference:
    """Compare the first k results of two runs, query by query.

    Args:
        baseline: a run, the results of each query best first.
        candidate: another one.
        testset: the queries that both should answer, their texts, and judgments that need not be made; None: all queries of
            either run.
        k: results of each list.
        p: persistence of rank-biased overlap.
        bounds: what must hold: at most this share of queries with another first result, at least this mean.

    Raises:
        UsageError: k or p out of bounds.
        NoCommonQueryError: no query has an answer on both sides.
    """
    if k < 1:
        raise UsageError(f"{k} results are compared", expected="at least 1", parameters=("k",))
    sides = (baseline, candidate)
    either = dict.fromkeys([*baseline.answers, *candidate.answers])
    query_ids = list(testset.query_ids) if testset is not None else list(either)
    texts = {} if testset is None else {query.id: query.text for query in testset.queries}
    compared: list[QueryDifference] = []
    left_out: list[NotCompared] = []
    for query_id in query_ids:
        lacks = [found for side in sides if (found := _lacking(side, query_id)) is not None]
        if lacks:
            left_out += lacks
            continue
        first, second = (_first_results(side, query_id, k) for side in sides)
        compared.append(_query_difference(query_id, texts.get(query_id, query_id), first, second, p))
    if not compared:
        raise NoCommonQueryError(
            f"{baseline.name} and {candidate.name} have no query that both answer",
            expected="two runs of the same queries",
            got=f"{', '.join(islice(baseline.answers, 3))}; {', '.join(islice(candidate.answers, 3))}",
        )
    compared.sort(key=lambda each: each.rbo)
    n = len(compared)
    changed = _share(sum(each.first_difference is not None for each in compared), n)
    first_changed = _share(sum(each.first_difference == 1 for each in compared), n)
    shared, biased = _mean([each.overlap for each in compared]), _mean([each.rbo for each in compared])
    observed = {
        BoundKind.FIRST_CHANGED: first_changed.share,
        BoundKind.OVERLAP: shared.mean or 0.0,
        BoundKind.RBO: biased.mean or 0.0,
    }
    verdict = DifferenceVerdict.IDENTICAL if not changed.count else DifferenceVerdict.DIFFERENT
    return RunDifference(
        baseline=baseline.name,
        candidate=candidate.name,
        baseline_digest=baseline.digest,
        candidate_digest=candidate.digest,
        verdict=DifferenceVerdict.INVALID if left_out else verdict,
        k=k,
        p=p,
        n_queries=len(query_ids),
        n_compared=n,
        not_compared=tuple(left_out),
        overlap=shared,
        jaccard=_mean([each.jaccard for each in compared]),
        rbo=biased,
        changed=changed,
        first_changed=first_changed,
        n_new=sum(len(each.new) for each in compared),
        n_lost=sum(len(each.lost) for each in compared),
        bounds=tuple(_outcome(kind, bound, observed[kind]) for kind, bound in (bounds or {}).items()),
        queries=tuple(compared),
        to_judge=_to_judge(compared, testset, p),
    )


def _lacking(run: Run, query_id: str) -> NotCompared | None:
    """Why a query of a run is not compared; None where it has an answer."""
    answer = run.answers.get(query_id)
    if answer is None:
        return NotCompared(query_id, run.name, Outcome.MISSING, "the run has no answer")
    if answer.outcome.is_failure or answer.outcome is Outcome.MISSING:
        return NotCompared(query_id, run.name, answer.outcome, answer.reason or "")
    return None


def _first_results(run: Run, query_id: str, k: int) -> tuple[list[str], list[int]]:
    """The first k results of a query, each once, and their ranks: results that a run sorts by score share one where it is equal."""
    hits: dict[str, Hit] = {}
    for hit in run.answers[query_id].hits:
        hits.setdefault(place_name(hit), hit)
    first = dict(islice(hits.items(), k))
    scores = [hit.score for hit in first.values()]
    if run.order == "given" or any(score is None for score in scores):
        return list(first), list(range(1, len(first) + 1))
    return list(first), tied_ranks([score for score in scores if score is not None])


def _query_difference(
    query_id: str, text: str, baseline: tuple[list[str], list[int]], candidate: tuple[list[str], list[int]], p: float
) -> QueryDifference:
    (first, first_ranks), (second, second_ranks) = baseline, candidate
    pairs = enumerate(zip(first, second, strict=False), start=1)
    differs = next((rank for rank, (old, new) in pairs if old != new), None)
    if differs is None and len(first) != len(second):
        differs = min(len(first), len(second)) + 1
    return QueryDifference(
        query=query_id,
        text=text,
        baseline=tuple(first),
        candidate=tuple(second),
        overlap=overlap(first, second),
        jaccard=jaccard(first, second),
        rbo=rank_biased_overlap(first, second, p, first_ranks=first_ranks, second_ranks=second_ranks),
        first_difference=differs,
        new=tuple(PlacedResult(doc, rank) for rank, doc in enumerate(second, start=1) if doc not in set(first)),
        lost=tuple(PlacedResult(doc, rank) for rank, doc in enumerate(first, start=1) if doc not in set(second)),
    )


def _to_judge(queries: Sequence[QueryDifference], testset: TestSet | None, p: float) -> tuple[PairToJudge, ...]:
    """Results by the difference of their weights (1 - p) p^(rank - 1) in rank-biased precision (Moffat and Zobel 2008)."""
    found = []
    for each in queries:
        judged = {} if testset is None else testset.grades.get(each.query, {})
        ranks = [{doc: rank for rank, doc in enumerate(side, start=1)} for side in (each.baseline, each.candidate)]
        for doc in dict.fromkeys([*each.baseline, *each.candidate]):
            places = [side.get(doc) for side in ranks]
            weights = [0.0 if rank is None else (1 - p) * p ** (rank - 1) for rank in places]
            if places[0] != places[1] and judged.get(doc, -1.0) < 0:
                found.append(PairToJudge(each.query, doc, places[0], places[1], abs(weights[0] - weights[1])))
    return tuple(sorted(found, key=lambda pair: -pair.weight)[:MAX_PAIRS])


def _outcome(kind: BoundKind, bound: float, observed: float) -> BoundOutcome:
    holds = observed <= bound if kind is BoundKind.FIRST_CHANGED else observed >= bound
    return BoundOutcome(kind, bound, observed, holds)


def _mean(values: Sequence[float]) -> Summary:
    """A mean of values from 0 to 1; its interval ends there."""
    array = np.array(values)
    found = summarise(array)
    ends = None if found.ci_low is None or found.ci_high is None else (found.ci_low, found.ci_high)
    low, high = clipped(ends, array, (0.0, 1.0)) or (None, None)
    return replace(found, ci_low=low, ci_high=high)


def _share(count: int, n: int) -> ShareOfQueries:
    return ShareOfQueries(count, n, count / n, *wilson_interval(count, n))
