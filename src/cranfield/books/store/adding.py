"""Items of a pool, as rows of a book: how many persons each wants, and the judgments that come with it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from sqlalchemy import insert, select, text
from sqlalchemy.orm import Session

from cranfield.base.errors import ProblemList, UsageError, shorten
from cranfield.books.pool_file import Pool, PooledItem
from cranfield.books.settings import BookSettings
from cranfield.books.store.rows import seeded, settings_of
from cranfield.books.store.schema import (
    Account,
    Action,
    Book,
    BookQuery,
    Event,
    Item,
    ItemJudgment,
    ItemState,
    Origin,
    RaterKind,
    Role,
    Slot,
    SlotState,
)
from cranfield.books.store.values import Json

WITHOUT_PERSON = {"judged": RaterKind.CARRIED, "prefilled": RaterKind.RULE}
"""Fields of an item of a pool that hold a grade, with the kind, and name, of the account that gave it."""


def pool_source(pool: Pool) -> Json:
    """What a book notes of its pool."""
    return pool.model_dump(mode="json", exclude={"queries", "items", "cranfield_pool"})


def with_pool(source: Json, pool: Pool) -> Json:
    """What a book notes of its pools, with one more to a fixed depth: the runs of all, and down to where all are complete.

    The test set is that of the first pool whose test set has judgments.
    """
    if pool.n_earlier and not source.get("n_earlier"):
        made_over = pool_source(pool)
        keys = ("testset", "testset_digest", "testset_file", "queries_file", "n_earlier")
        source = {**source, **{key: made_over[key] for key in keys}}
    runs, complete, depth = source.get("runs"), source.get("complete_to"), source.get("depth")
    if pool.method != "depth" or not isinstance(runs, list | tuple):
        return source
    return {
        **source,
        "runs": [*runs, *(found for run in pool.runs if (found := run.model_dump()) not in runs)],
        "depth": max(depth, pool.depth) if isinstance(depth, int) else pool.depth,
        "complete_to": min(complete, pool.complete_to) if isinstance(complete, int) else pool.complete_to,
    }


def plan_wanted(settings: BookSettings, query: str, doc: str) -> int:
    """Persons that an item wants, which is not of the first pool of its book."""
    is_shared = seeded(settings.seed, "overlap", query, doc) < settings.overlap * 2.0**64
    return settings.raters_per_item if is_shared else 1


def add_missing(session: Session, book: Book, pool: Pool, now: int) -> int:
    """Add the queries and items that a book lacks, and the judgments of a pool; the number of new items.

    Raises:
        UsageError: a query or an item twice, an item without a query; all problems at once.
    """
    _check(pool)
    queries = _add_queries(session, book, pool)
    stored = select(Item.query_id, Item.doc_id, Item.id).where(Item.book_id == book.id, Item.origin != Origin.REPEAT)
    known = {(query, doc): number for query, doc, number in session.execute(stored)}
    new = [item for item in pool.items if (queries[item.query], item.doc) not in known]
    wanted = _wanted(settings_of(book), new)
    ids = _insert_items(session, book, new, queries, wanted)
    known.update({(queries[item.query], item.doc): number for item, number in zip(new, ids, strict=True)})
    slots = [
        {"item_id": number, "number": place, "state": SlotState.OPEN}
        for number, persons in zip(ids, wanted, strict=True)
        for place in range(1, persons + 1)
    ]
    if slots:
        session.execute(insert(Slot), slots)
    for field, kind in WITHOUT_PERSON.items():
        grades = [(known[queries[item.query], item.doc], getattr(item, field)) for item in pool.items]
        _carry(session, book, kind, [(number, grade) for number, grade in grades if grade is not None], now)
    if new and session.get_bind().dialect.name == "postgresql":
        # Until it has counted the rows of new tables, it searches them for each item instead of using their indexes.
        session.execute(text("ANALYZE book_query, item, slot, event, judgment"))
    return len(new)


def _check(pool: Pool) -> None:
    problems = ProblemList(UsageError)
    names = [query.id for query in pool.queries]
    for name in sorted({name for name in names if names.count(name) > 1}) if len(names) > len(set(names)) else ():
        problems.add(f"query {shorten(name)} is in the pool twice")
    known, seen = set(names), set()
    for item in pool.items:
        if item.query not in known:
            problems.add(f"the pool has no query {shorten(item.query)}", path=f"document {item.doc}")
        if (item.query, item.doc) in seen:
            problems.add(f"document {shorten(item.doc)} is in the pool twice", path=f"query {item.query}")
        seen.add((item.query, item.doc))
    problems.raise_if_any()


def _add_queries(session: Session, book: Book, pool: Pool) -> dict[str, int]:
    stored = select(BookQuery.name, BookQuery.id).where(BookQuery.book_id == book.id)
    known = dict(session.execute(stored).all())
    rows = [
        {
            "book_id": book.id,
            "name": query.id,
            "text": query.text,
            "need": query.need,
            "notes": query.notes,
            "position": position,
            "strata": query.strata,
        }
        for position, query in enumerate(pool.queries, len(known))
        if query.id not in known
    ]
    if rows:
        made = session.execute(insert(BookQuery).returning(BookQuery.name, BookQuery.id), rows)
        known.update(made.all())
    return known


def _wanted(settings: BookSettings, items: Sequence[PooledItem]) -> list[int]:
    """Persons for each item: exactly the share `overlap` of those that want any is judged by several."""
    open_places = [place for place, item in enumerate(items) if item.is_open]
    open_places.sort(key=lambda place: seeded(settings.seed, "overlap", items[place].query, items[place].doc))
    wanted = [0] * len(items)
    for order, place in enumerate(open_places):
        wanted[place] = settings.raters_per_item if order < round(settings.overlap * len(open_places)) else 1
    return wanted


def _insert_items(
    session: Session, book: Book, items: Sequence[PooledItem], queries: dict[str, int], wanted: Sequence[int]
) -> list[int]:
    rows = [
        {
            "book_id": book.id,
            "query_id": queries[item.query],
            "doc_id": item.doc,
            "fields": item.fields,
            "origin": Origin.POOL,
            "wanted": persons,
            "state": ItemState.OPEN if persons else ItemState.DONE,
            "stratum": item.stratum,
            "inclusion": item.inclusion,
            "effect": item.effect,
            "runs": item.runs,
        }
        for item, persons in zip(items, wanted, strict=True)
    ]
    if not rows:
        return []
    return list(session.scalars(insert(Item).returning(Item.id, sort_by_parameter_order=True), rows))


def _carry(session: Session, book: Book, kind: RaterKind, grades: Sequence[tuple[int, float]], now: int) -> None:
    """Record grades by the account of a kind that has no person; those that it has given before stay."""
    if not grades:
        return
    account = session.scalar(select(Account).where(Account.name == kind))
    if account is None:
        account = Account(name=kind, kind=kind, role=Role.VIEWER, active=False, created_at=now)
        session.add(account)
        session.flush()
    given = select(ItemJudgment.item_id, ItemJudgment.grade).where(ItemJudgment.account_id == account.id)
    before = dict(session.execute(given).all())
    rows = [
        {
            "book_id": book.id,
            "item_id": item,
            "account_id": account.id,
            "action": Action.CARRY,
            "grade": grade,
            "reason": "",
            "at": now,
            "method": "rule" if kind is RaterKind.RULE else "import",
            "client_key": f"pool:{uuid4()}",
        }
        for item, grade in grades
        if before.get(item) != grade
    ]
    if not rows:
        return
    made = session.execute(insert(Event).returning(Event.id, Event.item_id), rows)
    events = {item: number for number, item in made}
    fresh = [
        {"item_id": item, "account_id": account.id, "event_id": events[item], "action": Action.CARRY, "grade": grade}
        for item, grade in grades
        if item not in before
    ]
    if fresh:
        session.execute(insert(ItemJudgment), fresh)
    for item in before.keys() & events.keys():
        judgment = session.get_one(ItemJudgment, (item, account.id))
        judgment.event_id, judgment.grade, judgment.stale = events[item], dict(grades)[item], False
