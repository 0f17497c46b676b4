"""Books in memory: what `contents_of` reads of a database, from a table of grades."""

from __future__ import annotations

from cranfield.books.settings import DEFAULT_GUIDELINE, BookSettings
from cranfield.books.store.schema import Action, BookState, ItemState, Origin, RaterKind, SkipReason
from cranfield.books.store.values import BookInfo, GuidelineInfo, ItemView, QueryInfo, RatingRow
from cranfield.judging.book.grades import BookContents

KINDS = {"carried": RaterKind.CARRIED, "rule": RaterKind.RULE, "gpt": RaterKind.MODEL}
SOURCE = {
    "method": "depth",
    "depth": 10,
    "seed": 7,
    "testset_digest": "",
    "runs": [{"name": "bm25", "digest": "sha256:1"}],
}


def book(
    items, *, final=None, gold=None, settings=None, guidelines=(DEFAULT_GUIDELINE,), source=None, versions=None, **info
):
    """A book of {query: {doc: {rater: grade}}}; a grade of a text is a skip for that reason."""
    final, gold, versions = final or {}, gold or {}, versions or {}
    accounts: dict[str, int] = {}
    views, queries = [], []
    for position, (query, docs) in enumerate(items.items()):
        queries.append(QueryInfo(position + 1, query, f"text of {query}", "", "", position, {}, len(docs)))
        for doc, grades in docs.items():
            item_id = len(views) + 1
            rows = tuple(
                row(item_id, query, doc, accounts.setdefault(rater, len(accounts) + 1), rater, grade, versions)
                for rater, grade in grades.items()
            )
            graded = any(r.grade is not None for r in rows) or doc in final.get(query, {})
            views.append(
                view(item_id, position + 1, query, doc, rows, graded, final.get(query, {}), gold.get(query, {}))
            )
    settings = settings or BookSettings()
    about = BookInfo(
        1, info.get("name", "shop"), BookState.OPEN, settings, source or SOURCE, 0, len(queries), len(views), 1, ""
    )
    texts = tuple(GuidelineInfo(place, text, 0, None) for place, text in enumerate(guidelines, start=1))
    return BookContents(about, tuple(queries), tuple(views), texts)


def row(item_id, query, doc, account_id, rater, grade, versions):
    skip = SkipReason(grade) if isinstance(grade, str) else None
    kind = KINDS.get(rater, RaterKind.PERSON)
    action = Action.SKIP if skip else Action.CARRY if kind is RaterKind.CARRIED else Action.GRADE
    return RatingRow(
        item_id=item_id,
        query=query,
        doc=doc,
        account_id=account_id,
        rater=rater,
        kind=kind,
        action=action,
        grade=None if skip else float(grade),
        skip_reason=skip,
        reason="",
        at=1_000 * item_id,
        duration_ms=None,
        order_seen=None,
        guideline_version=versions.get((query, doc), 1),
        method="key",
        stale=False,
        extra=False,
        origin=Origin.POOL,
        gold=None,
        final=None,
        repeat_of=None,
        doc_digest=None,
        event_id=item_id,
    )


def view(item_id, query_id, query, doc, rows, graded, final, gold):
    return ItemView(
        id=item_id,
        book_id=1,
        query_id=query_id,
        query=query,
        query_text=f"text of {query}",
        need="",
        notes="",
        doc=doc,
        doc_digest=None,
        fields={},
        origin=Origin.CALIBRATION if doc.startswith("calibration") else Origin.POOL,
        state=ItemState.DONE if graded else ItemState.OPEN,
        final=float(final[doc]) if doc in final else None,
        final_by="lead" if doc in final else None,
        final_reason="as clause 2 says" if doc in final else None,
        final_at=5_000 if doc in final else None,
        wanted=1,
        n_slots=1,
        flagged=False,
        gold=float(gold[doc]) if doc in gold else None,
        gold_reason="",
        stratum="",
        inclusion=1.0,
        effect=None,
        runs={"bm25": item_id},
        repeat_of=None,
        repeat_for=None,
        ratings=rows,
    )
