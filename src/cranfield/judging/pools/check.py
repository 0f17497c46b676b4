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
from cranfield.judging.pools.results import SystemResults, only_by, union
from cranfield.measures import CATALOGUE, Measure, compute
from cranfield.model import Convention, TestSet
from cranfield.model.results import Record, TestSetRecord
from cranfield.ranking import rank_run
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
