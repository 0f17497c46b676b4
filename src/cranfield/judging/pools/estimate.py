"""Precision of deep lists and the number of relevant documents, estimated from a judged sample.

    P@k = (1 / k) * sum over judged relevant documents in the first k of 1 / pi
    R   = sum over judged relevant documents of 1 / pi

pi is the inclusion probability of a document: 1 where it was not sampled. Both are unbiased over the samples, for the
results that the pool was drawn from.

Source: Horvitz & Thompson 1952, Journal of the American Statistical Association 47; Aslam, Pavlu & Yilmaz 2006, A
statistical method for system evaluation using incomplete judgments, SIGIR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cranfield.base.errors import Problem, UsageError
from cranfield.books.pool_file import Pool, PoolHead
from cranfield.evaluation.evaluate import summarise
from cranfield.evaluation.values import Summary
from cranfield.judging.pools.results import SystemResults
from cranfield.model import TestSet
from cranfield.model.results import Record, TestSetRecord
from cranfield.stats.describe import as_vector


@dataclass(frozen=True, slots=True)
class PrecisionEstimate:
    """Precision of one run."""

    name: str
    k: int
    estimate: Summary
    """Over the queries; the interval holds the variation of queries and of samples."""
    judged_only: float
    """Mean precision with everything that is not judged as not relevant: a lower bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEstimate(Record):
    """Estimates of a judged pool."""

    testset: TestSetRecord
    pool: PoolHead
    precision: tuple[PrecisionEstimate, ...]
    n_relevant: Summary
    """Relevant documents of a query."""
    n_missing: int
    """Sampled documents without a grade: they count as not relevant, so that estimates are too low."""
    n_outside: int
    """Results that were judged after the sample was drawn, and not drawn: drawn ones stand for them too, so that estimates
    are too high."""
    not_pooled: tuple[str, ...]
    """Runs that are not in the pool: what only they return is in no sample, and counts as not relevant."""


def estimate_pool(
    pool: Pool, testset: TestSet, systems: Sequence[SystemResults], cutoffs: Sequence[int], *, rel: int = 1
) -> PoolEstimate:
    """Estimate the precision of runs at some cutoffs.

    Args:
        pool: a stratified sample, or a fixed depth.
        testset: the judged pool.
        systems: runs, of the pool or not.
        cutoffs: each 1 or more, and no deeper than the sample.
        rel: lowest grade that counts as relevant.

    Raises:
        UsageError: the pool has no inclusion probabilities; a cutoff is out of range; nothing is judged.
    """
    last = max([pool.depth, *(int(item.stratum.rpartition("-")[2]) for item in pool.items if item.stratum)])
    query_ids = [
        query_id for query_id in testset.query_ids if any(g >= 0 for g in testset.grades.get(query_id, {}).values())
    ]
    _require(pool, query_ids, cutoffs, last)
    chance = {(item.query, item.doc): item.inclusion for item in pool.items}
    weights = {
        query_id: {
            doc: 1 / chance.get((query_id, doc), 1.0) for doc, grade in testset.grades[query_id].items() if grade >= rel
        }
        for query_id in query_ids
    }
    missing = sum(testset.grades.get(item.query, {}).get(item.doc, -1) < 0 for item in pool.items)
    pooled = {run.digest for run in pool.runs}
    outside = {
        (query_id, hit.id)
        for query_id in query_ids
        for system in systems
        for hit in system.top(query_id, last)
        if system.digest in pooled
        and testset.grades[query_id].get(hit.id, -1) >= 0
        and (query_id, hit.id) not in chance
    }
    return PoolEstimate(
        testset=TestSetRecord.of(testset),
        pool=pool.head,
        precision=tuple(_precision(system, k, weights) for k in cutoffs for system in systems),
        n_relevant=_summary([sum(of_query.values()) for of_query in weights.values()], float("inf")),
        n_missing=missing,
        n_outside=max(len(outside) - pool.n_left_out, 0),
        not_pooled=tuple(system.name for system in systems if system.digest not in pooled),
    )


def _require(pool: Pool, query_ids: Sequence[str], cutoffs: Sequence[int], last: int) -> None:
    problems = [
        Problem(f"a cutoff of {k}", expected=f"1 to {last}: the pool contains the first {last} results")
        for k in cutoffs
        if not 1 <= k <= last
    ]
    if pool.method not in {"depth", "stratified"}:
        expected = "a fixed depth, or a stratified sample"
        problems.append(
            Problem(f"a pool of the method {pool.method} has no inclusion probabilities", expected=expected)
        )
    if not query_ids:
        problems.append(Problem("the test set has no judgment by document id", expected="the judged pool"))
    if problems:
        raise UsageError(problems)


def _precision(system: SystemResults, k: int, weights: Mapping[str, Mapping[str, float]]) -> PrecisionEstimate:
    found = {
        query_id: [of_query[hit.id] for hit in system.top(query_id, k) if hit.id in of_query]
        for query_id, of_query in weights.items()
    }
    values = [sum(of_query) / k for of_query in found.values()]
    judged_only = sum(map(len, found.values())) / (k * len(found))
    return PrecisionEstimate(system.name, k, _summary(values, 1.0), judged_only)


def _summary(values: Sequence[float], most: float) -> Summary:
    """Mean and t interval over queries, between 0 and the most that a mean can be."""
    found = summarise(as_vector(values))
    if found.ci_low is None or found.ci_high is None:
        return found
    return replace(found, ci_low=max(found.ci_low, 0.0), ci_high=min(found.ci_high, most))
