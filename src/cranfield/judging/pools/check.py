"""Leave one system out: how each system would have scored if it had given nothing to the pool.

A new system is in that place: what it alone finds is not judged, and counts as not relevant.

Source: Zobel 1998, How reliable are the results of large-scale information retrieval experiments?, SIGIR, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from cranfield.base.errors import Problem, UsageError
from cranfield.base.words import join_first
from cranfield.books.pool_file import Pool, PoolHead
from cranfield.evaluation.evaluate import summarise
from cranfield.evaluation.values import Summary
from cranfield.judging.pools.results import SystemResults, only_by, union
from cranfield.measures import CATALOGUE, Measure, compute
from cranfield.model import Convention, TestSet
from cranfield.model.results import Record, TestSetRecord
from cranfield.ranking import rank_run
from cranfield.stats.describe import as_vector
from cranfield.stats.rank_correlation import kendall_tau


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One system, scored without the judgments that only it brought into the pool."""

    name: str
    n_only: int
    """Judged documents that no other system returned down to the depth."""
    n_relevant: int
    """Those of them that are relevant."""
    value: float
    without: float
    """The value without them."""
    change: float
    """The value without them minus the value."""
    rank: int
    """1 is best; systems of one value share the better rank."""
    rank_without: int
    tau: float | None
    """Kendall's tau-b of the order of all systems with and without those judgments; None where all are tied."""


@dataclass(frozen=True, slots=True)
class PoolCheck:
    """The check with one measure."""

    measure: Measure
    depth: int
    n_queries: int
    mean_change: float
    """Mean of the absolute changes."""
    n_moved: int
    """Systems whose rank is another."""
    systems: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolChecks(Record):
    """The checks of a pool, one for each measure."""

    testset: TestSetRecord
    checks: tuple[PoolCheck, ...]


def check_pool(
    systems: Sequence[SystemResults],
    testset: TestSet,
    measures: Sequence[Measure],
    convention: Convention,
    *,
    depth: int,
) -> PoolChecks:
    """Score each system with and without what only it gave to the pool.

    The judgments taken away stay as pooled, not judged: so the queries are the same, also where nothing relevant is left.

    Args:
        systems: two or more, that made the pool.
        testset: judged by document id.
        measures: each gives a check.
        convention: how a run is ordered and scored.
        depth: of the pool, 1 or more.

    Raises:
        UsageError: there is one system; the test set has no judgments by document id; a measure is no mean over queries,
            or has no value.
    """
    _require(systems, testset, measures, depth)
    pool = union(systems, testset.query_ids, depth, testset.grades)
    full = _means(systems, testset, measures, convention)
    left_out: dict[Measure, list[LeftOut]] = {measure: [] for measure in measures}
    for place, system in enumerate(systems):
        only = [each for each in only_by(pool, system.name, depth) if each.judged is not None]
        n_relevant = sum(each.judged is not None and each.judged >= 1 for each in only)
        reduced = _without(testset, [(each.query_id, each.doc_id) for each in only])
        without = _means(systems, reduced, measures, convention) if only else full
        for measure in measures:
            before, after = full[measure], without[measure]
            left_out[measure].append(
                LeftOut(
                    system.name,
                    len(only),
                    n_relevant,
                    before[place],
                    after[place],
                    after[place] - before[place],
                    _rank(measure, before, place),
                    _rank(measure, after, place),
                    kendall_tau(before, after),
                )
            )
    n_queries = sum(map(testset.is_judged, testset.query_ids))
    checks = [
        PoolCheck(
            measure,
            depth,
            n_queries,
            mean(abs(system.change) for system in found),
            sum(system.rank != system.rank_without for system in found),
            tuple(found),
        )
        for measure, found in left_out.items()
    ]
    return PoolChecks(testset=TestSetRecord.of(testset), checks=tuple(checks))


def deepest_rank(measures: Sequence[Measure], convention: Convention, depth: int) -> int | None:
    """The last rank that the check looks at; None: all.

    All where a measure has no cutoff, or has it after unjudged results were left out or ties turned round.
    """
    cutoffs = [measure.depth or 0 for measure in measures if not measure.param("judged_only", default=False)]
    is_plain = convention.unjudged != "condensed" and convention.orders == "one"
    return max([depth, *cutoffs]) if is_plain and len(cutoffs) == len(measures) and all(cutoffs) else None


def _require(systems: Sequence[SystemResults], testset: TestSet, measures: Sequence[Measure], depth: int) -> None:
    problems = []
    if len(systems) < 2:
        problems.append(Problem("leave-one-out needs another run", expected="two or more runs"))
    if depth < 1:
        problems.append(Problem(f"the depth of the pool is {depth}", expected="1 or more"))
    if testset.targets:
        queries = join_first(testset.targets)
        problems.append(
            Problem(
                (
                    f"the truth of {len(testset.targets)} queries is a rule ({queries}), which does not depend on "
                    "any system"
                ),
                expected="a test set judged by document id",
            )
        )
    if not any(grade >= 0 for of_query in testset.grades.values() for grade in of_query.values()):
        problems.append(Problem("the test set has no judgment by document id", expected="a judged pool"))
    problems += [
        Problem(f"{measure} is not a mean over queries", expected="a measure such as nDCG@10")
        for measure in measures
        if CATALOGUE[measure.name].aggregate != "mean" or CATALOGUE[measure.name].diagnostic
    ]
    if problems:
        raise UsageError(problems)


def _without(testset: TestSet, taken: Sequence[tuple[str, str]]) -> TestSet:
    grades = {query_id: dict(of_query) for query_id, of_query in testset.grades.items()}
    for query_id, doc_id in taken:
        grades[query_id][doc_id] = -1.0
    return replace(testset, grades=grades, groups={}, grouping=None, ratings={})


def _means(
    systems: Sequence[SystemResults], testset: TestSet, measures: Sequence[Measure], convention: Convention
) -> Mapping[Measure, list[float]]:
    found: dict[Measure, list[float]] = {measure: [] for measure in measures}
    for system in systems:
        ranking = rank_run(testset, system.run, convention, missing=convention.missing, keep=0)
        for measure in measures:
            values, scored, reasons = compute(measure, ranking)
            if not scored.any():
                why = next(iter(reasons.values()), "no query")
                raise UsageError(f"{measure} has no value for {system.name}", got=str(why))
            found[measure].append(float(values[scored].mean()))
    return found


def _rank(measure: Measure, values: Sequence[float], place: int) -> int:
    sign = 1 if CATALOGUE[measure.name].higher_is_better else -1
    return 1 + sum(sign * value > sign * values[place] for value in values)


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
    _require_plan(pool, query_ids, cutoffs, last)
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


def _require_plan(pool: Pool, query_ids: Sequence[str], cutoffs: Sequence[int], last: int) -> None:
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
