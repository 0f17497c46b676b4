"""What a pool holds and costs, before it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from cranfield.base.errors import Problem, UsageError
from cranfield.base.words import and_list, count_noun, join_first
from cranfield.books.pool_file import PoolHead
from cranfield.evaluation.testset.judging_notes import method_note
from cranfield.judging.pools.build import BuiltPool
from cranfield.judging.pools.results import Candidate, found_by, only_by
from cranfield.model.results import Record


@dataclass(frozen=True, slots=True)
class JudgingCost:
    """Work of the raters."""

    n_judgments: int
    raters: int
    seconds_each: float
    seconds: float
    """Seconds of all raters together."""


@dataclass(frozen=True, slots=True)
class SystemShare:
    """What a system gives the pool, down to its depth."""

    name: str
    n_found: int
    """Documents that it returns."""
    n_only: int
    """Documents that no other system returns."""
    n_only_open: int
    """Those of them that are not judged."""


@dataclass(frozen=True, slots=True)
class RankRange:
    """A range of ranks."""

    ranks: str
    n_open: int
    """Documents that are not judged."""
    n_drawn: int
    """Those of them that are in the pool."""
    least: float | None
    """Inclusion probabilities of those drawn: the smallest and the largest of any query; None where none is drawn."""
    most: float | None


@dataclass(frozen=True, slots=True)
class DocumentsPerQuery:
    """Documents to judge of a query, over the queries that have a result."""

    min: int
    median: float
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSummary(Record):
    """The preview of a pool."""

    pool: PoolHead
    n_queries: int
    n_candidates: int
    """Documents that any system returns, down to the last rank looked at."""
    n_to_judge: int
    n_carried: int
    """Judged documents that are in the pool with their grades."""
    n_prefilled: int
    """Documents in the pool that a rule of the test set (a pattern, span, entity or predicate) grades."""
    n_left_out: int
    """Judged documents that are left out of it."""
    per_query: DocumentsPerQuery
    systems: tuple[SystemShare, ...]
    shared: tuple[tuple[int, ...], ...]
    """System by system: documents that both return down to the depth."""
    strata: tuple[RankRange, ...]
    cost: JudgingCost
    notes: tuple[str, ...]


def summarise_pool(built: BuiltPool, *, raters: int = 1, seconds: float = 20.0) -> PoolSummary:
    """Count what is in a pool.

    Args:
        built: the pool.
        raters: persons to judge each document, 1 or more.
        seconds: time of one judgment, more than 0.

    Raises:
        UsageError: raters or seconds are out of range.
    """
    problems = []
    if raters < 1:
        problems.append(Problem(f"{raters} raters", expected="1 or more"))
    if not 0 < seconds < float("inf"):
        problems.append(Problem(f"{seconds:g} seconds for a judgment", expected="more than 0"))
    if problems:
        raise UsageError(problems)
    open_items = [item for item in built.pool.items if item.is_open]
    counts = Counter(dict.fromkeys((candidate.query_id for candidate in built.candidates), 0))
    counts.update(item.query for item in open_items)
    depth = built.request.depth
    note = method_note(built.pool.method, depth, built.pool.complete_to)
    found = [{_key(each) for each in found_by(built.candidates, system.name, depth)} for system in built.systems]
    return PoolSummary(
        pool=built.pool.head,
        n_queries=len(built.pool.queries),
        n_candidates=len(built.candidates),
        n_to_judge=len(open_items),
        n_carried=sum(item.judged is not None for item in built.pool.items),
        n_prefilled=sum(item.prefilled is not None for item in built.pool.items),
        n_left_out=built.pool.n_left_out,
        per_query=DocumentsPerQuery(min(counts.values()), median(counts.values()), max(counts.values())),
        systems=tuple(_share(built.candidates, system.name, depth) for system in built.systems),
        shared=tuple(tuple(len(first & second) for second in found) for first in found),
        strata=tuple(_strata(built)),
        cost=JudgingCost(len(open_items) * raters, raters, seconds, len(open_items) * raters * seconds),
        notes=(*filter(None, [note]), *_run_notes(built), *_query_notes(built)),
    )


def _key(candidate: Candidate) -> tuple[str, str]:
    return candidate.query_id, candidate.doc_id


def _share(candidates: Sequence[Candidate], name: str, depth: int) -> SystemShare:
    only = only_by(candidates, name, depth)
    n_open = sum(candidate.is_open for candidate in only)
    return SystemShare(name, len(found_by(candidates, name, depth)), len(only), n_open)


def _strata(built: BuiltPool) -> Iterator[RankRange]:
    request = built.request
    ranges = [(1, request.depth), *((sample.first, sample.last) for sample in request.samples)]
    for first, last in ranges if request.samples else ():
        label = f"{first}-{last}"
        chances = [item.inclusion for item in built.pool.items if item.stratum == label and item.is_open]
        n_open = sum(each.is_open and first <= each.best <= last for each in built.candidates)
        yield RankRange(label, n_open, len(chances), min(chances, default=None), max(chances, default=None))


def _run_notes(built: BuiltPool) -> Iterator[str]:
    by_results: dict[frozenset[tuple[str, tuple[str, ...]]], list[str]] = {}
    for system in built.systems:
        results = frozenset((query_id, tuple(hit.id for hit in hits)) for query_id, hits in system.hits.items())
        by_results.setdefault(results, []).append(system.name)
        longest = max(map(len, system.hits.values()), default=0)
        if longest < built.request.last:
            yield (
                f"{system.name}: at most {count_noun(longest, 'results')} per query; ranks to "
                f"{built.request.last} requested"
            )
    for names in by_results.values():
        if len(names) > 1:
            yield f"{and_list(names)} have the same results, so neither has a unique contribution"


def _query_notes(built: BuiltPool) -> Iterator[str]:
    if built.unknown_queries:
        n = count_noun(len(built.unknown_queries), "queries")
        yield f"in the runs, but not in the test set, left out: {n} ({join_first(built.unknown_queries)})"
    if built.unanswered:
        yield f"{count_noun(len(built.unanswered), 'queries')} without a result in any run: {join_first(built.unanswered)}"
    without = [query.id for query in built.pool.queries if not query.text]
    if without:
        yield f"{count_noun(len(without), 'queries')} without a text, which raters cannot judge: {join_first(without)}"
