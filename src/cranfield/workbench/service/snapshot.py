"""A snapshot: the first results of systems in a book, to be judged.

What the book has judged before stays judged, so a second snapshot opens only what is new. A document whose fields have
changed is shown with the new ones, and its judgments are stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cranfield.app.runs_by_name import with_ids
from cranfield.books.pool_file import Pool, PooledItem
from cranfield.books.store.store import Store
from cranfield.books.store.values import BookInfo
from cranfield.evaluation.testset.declared import scale_to_judge
from cranfield.judging.documents.texts import DocumentTexts
from cranfield.judging.pools.build import PoolRequest, build_pool
from cranfield.judging.pools.results import SystemResults
from cranfield.judging.pools.rule_view import named_by_place, rule_view
from cranfield.model import Run, TestSet


def take_snapshot(
    store: Store,
    book: str | int,
    testset: TestSet,
    runs: Mapping[str, Run],
    depth: int,
    *,
    texts: DocumentTexts | None = None,
) -> BookInfo:
    """Put the first results of each system into a book. The same call once more adds nothing.

    Judgments of the test set go along as carried over, those of its targets as of the rater `rule`.

    Args:
        store: of the book.
        book: name or id.
        testset: whose queries were asked; it may have no judgment.
        runs: name of a system to its answers.
        depth: results of each query.
        texts: reads documents, to see which have changed; None: by their fields alone.

    Raises:
        UnknownNameError: there is no such book.
        UsageError: ids that a database cannot hold.
    """
    info = store.books.get(book)
    pool = snapshot_pool(testset, runs, depth, info.name)
    changed = _changed(store, info, pool)
    store.books.add_pool(info.id, pool)
    for item_id, (doc, fields, digest) in store.books.renew_fields(info.id, changed).items():
        seen = (texts or DocumentTexts()).get(doc, fields).digest
        if digest is not None and seen and seen != digest:
            store.books.set_digest(item_id, seen)
    return store.books.get(info.id)


def snapshot_pool(testset: TestSet, runs: Mapping[str, Run], depth: int, name: str) -> Pool:
    """The pool of a snapshot; one without items where no system has a result."""
    view = rule_view(testset, [_named(testset, run) for run in runs.values()])
    systems = [SystemResults(system, run, runs[system].digest) for system, run in zip(runs, view.runs, strict=True)]
    request = PoolRequest(depth, include_judged=True, name=name)
    if any(system.top(query_id, 1) for system in systems for query_id in testset.query_ids):
        return build_pool(systems, testset, request, view.prefilled).pool
    return empty_pool(testset, depth, name)


def empty_pool(testset: TestSet, depth: int, name: str) -> Pool:
    """A pool of a test set before any system was asked."""
    return Pool(
        name=name,
        method="depth",
        depth=depth,
        complete_to=depth,
        testset=testset.name,
        testset_digest=testset.digest,
        n_earlier=testset.n_judgments,
        scale=scale_to_judge(testset),
        runs=(),
        queries=(),
        items=(),
    )


def _named(testset: TestSet, run: Run) -> Run:
    """The run under the ids of the test set, with `id:lines` as ids where results are places."""
    found = with_ids(testset, run)[0]
    return named_by_place(replace(testset, targets={}), found)


def _changed(store: Store, info: BookInfo, pool: Pool) -> dict[int, dict[str, object]]:
    """Items of the book that the pool has with other fields, and these."""
    new = {(item.query, item.doc): item for item in pool.items}
    return {
        item.id: fields
        for item in store.reading.items(info.id)
        if (found := new.get((item.query, item.doc))) is not None
        and (fields := _fields(item.fields, found)) != item.fields
    }


def _fields(before: Mapping[str, object], found: PooledItem) -> dict[str, object]:
    """The fields of a document, with those that a later result gives it; what the later one does not name stays."""
    return {**before, **found.fields}
