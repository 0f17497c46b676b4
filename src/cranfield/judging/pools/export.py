"""A pool and a test set as qrels in which judged, pooled and never pooled stay three things.

A judged document has its grade, a document of the pool without a judgment has -1, and what was never in a pool has no line.
"""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.base.errors import TestSetError, UsageError
from cranfield.base.words import first_of
from cranfield.books.pool_file import Pool
from cranfield.model import Query, TestSet

POOLED = -1.0
"""Grade of a document that is in the pool and not judged."""


@dataclass(frozen=True)
class PoolQrels:
    """Judgments of a pool and of its test set."""

    testset: TestSet
    n_judged: int
    n_pooled: int
    """In the pool, not judged."""
    notes: tuple[str, ...]


def pool_qrels(pool: Pool, judged: TestSet | None) -> PoolQrels:
    """The judgments of a test set, and a grade under 0 for what is in the pool and not judged.

    Args:
        pool: the pool. Its own grades (carried over, or of a rule) count where the test set has none.
        judged: the test set; None where the pool was made without one.

    Raises:
        UsageError: the pool was made for a test set, which holds judgments that are not in the pool, and it is not given.
        TestSetError: the truth of the test set is a rule for queries of the pool: qrels hold none.
    """
    if judged is None and pool.testset:
        raise UsageError(
            f"the pool was made for the test set {pool.testset!r}, whose judgments are not all in the pool",
            hint="name it: {testset=FILE}",
            parameters=("testset",),
        )
    if judged is not None and judged.targets:
        raise TestSetError(
            f"the truth of {len(judged.targets)} queries is a rule, which qrels cannot hold: {first_of(judged.targets)}",
            expected="a test set judged by document id",
        )
    queries = {query.id: query for query in (Query(each.id, each.text) for each in pool.queries)}
    grades: dict[str, dict[str, float]] = {query_id: {} for query_id in queries}
    for item in pool.items:
        own = item.judged if item.judged is not None else item.prefilled
        grades[item.query][item.doc] = POOLED if own is None else own
    notes = []
    if judged is not None:
        queries |= {query.id: query for query in judged.queries}
        for query_id, of_query in judged.grades.items():
            into = grades.setdefault(query_id, {})
            for doc_id, grade in of_query.items():
                into[doc_id] = max(into.get(doc_id, POOLED), POOLED) if grade < 0 else grade
        if pool.testset_digest and pool.testset_digest != judged.digest:
            notes.append(f"the pool was made for {pool.testset!r} with other texts or judgments (the digests differ)")
    values = [grade for of_query in grades.values() for grade in of_query.values()]
    kept = {query_id: of_query for query_id, of_query in grades.items() if of_query}
    testset = TestSet(pool.name, tuple(queries[query_id] for query_id in kept), kept)
    n_pooled = sum(value < 0 for value in values)
    return PoolQrels(testset, len(values) - n_pooled, n_pooled, tuple(notes))
