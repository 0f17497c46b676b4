"""The sheet of a refresh as a book: two raters grade the results of the new queries, and their grades are its labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cranfield.base.errors import Problem, TestSetError, UsageError, shorten
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import BookSettings
from cranfield.books.store.names import ADJUDICATOR
from cranfield.books.store.schema import Origin, RaterKind
from cranfield.judging.book.grades import BookContents
from cranfield.judging.book.imports import scale_for
from cranfield.judging.refresh.files import N_RATERS, Labels, RatedDocument
from cranfield.judging.refresh.refresh import RefreshPlan
from cranfield.model import Rating


def refresh_pool(plan: RefreshPlan, candidates: Mapping[str, Sequence[str]], depth: int) -> Pool:
    """The new queries and the documents to grade for each.

    Raises:
        UsageError: a new query without a document to grade.
    """
    bare = [query.id for query in plan.new if not candidates.get(query.id)]
    if bare:
        raise UsageError(
            [Problem(f"no run has results for the new query {shorten(query_id)}") for query_id in bare],
        )
    return Pool(
        name=f"refresh of {plan.testset.name}",
        method="depth",
        depth=depth,
        seed=plan.seed,
        testset=plan.testset.name,
        testset_digest=plan.testset.digest,
        scale=plan.testset.meta.scale,
        runs=(),
        queries=tuple(PooledQuery(id=query.id, text=query.text) for query in plan.new),
        items=tuple(PooledItem(query=query.id, doc=doc) for query in plan.new for doc in candidates[query.id]),
    )


def refresh_settings(plan: RefreshPlan, kappa_limit: float, rule: str) -> BookSettings:
    """Two raters of each document, on the scale of the set."""
    return BookSettings(
        scale=scale_for(plan.testset),
        raters_per_item=N_RATERS,
        most_raters=N_RATERS,
        kappa_limit=kappa_limit,
        consensus=rule,
        seed=plan.seed,
    )


def labels_of(contents: BookContents, where: str) -> Labels:
    """The grades of a book as the labels of a refresh.

    Args:
        contents: the book.
        where: the database, for problems.

    Raises:
        TestSetError: it has no two raters, or a document that one of them did not grade; all at once.
    """
    items = [item for item in contents.items if item.origin is not Origin.CALIBRATION]
    grades = {
        item.id: {
            row.rater: row.grade for row in item.ratings if row.kind is RaterKind.PERSON and row.grade is not None
        }
        for item in items
    }
    raters = sorted({rater for given in grades.values() for rater in given})
    name = contents.info.name
    if len(raters) != N_RATERS:
        raise TestSetError(
            f"book {name!r} has the grades of {len(raters)} raters",
            path=where,
            expected=f"those of {N_RATERS}",
            got=", ".join(raters) or None,
        )
    problems = [
        Problem(f"no grade of document {shorten(item.doc)} of query {shorten(item.query)} by {rater}", path=where)
        for item in items
        for rater in raters
        if rater not in grades[item.id]
    ]
    if problems:
        raise TestSetError(problems)
    first, second = raters
    rows = tuple(
        RatedDocument(place, item.query, item.doc, tuple(grades[item.id][rater] for rater in raters))
        for place, item in enumerate(items, start=1)
    )
    final: dict[str, tuple[Rating, ...]] = {}
    for item in items:
        if item.final is not None:
            rating = Rating(item.doc, item.final_by or ADJUDICATOR, item.final, final=True)
            final[item.query] = (*final.get(item.query, ()), rating)
    return Labels(where, (first, second), rows, adjudicated=final)
