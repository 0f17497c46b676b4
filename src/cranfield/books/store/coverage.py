"""How far a book is, as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from cranfield.books.store.filters import GRADES, needs_rater
from cranfield.books.store.rows import settings_of
from cranfield.books.store.schema import (
    Account,
    Action,
    Book,
    BookQuery,
    Item,
    ItemJudgment,
    ItemState,
    Origin,
    RaterKind,
    Slot,
    SlotState,
)
from cranfield.books.store.standing import is_free
from cranfield.books.store.values import Coverage, QueryCoverage


def book_coverage(session: Session, book: Book, now: int) -> Coverage:
    """Count items, slots and judgments; hidden repeats, and documents that are only for calibration, are left out.

    Items that were skipped, flagged or are stale are listed to be looked at: those for calibration are among them.
    """
    shown = (Item.book_id == book.id, Item.origin != Origin.REPEAT)
    counted = (*shown, Item.origin != Origin.CALIBRATION)
    lowest = settings_of(book).scale.grades[0]
    graded = (
        select(
            ItemJudgment.item_id.label("item_id"),
            func.max(ItemJudgment.grade).label("highest"),
            func.sum(case((Account.kind == RaterKind.PERSON, 1), else_=0)).label("persons"),
        )
        .join(Account, Account.id == ItemJudgment.account_id)
        .where(ItemJudgment.action.in_(GRADES), ItemJudgment.grade.is_not(None))
        .group_by(ItemJudgment.item_id)
        .subquery()
    )
    rows = session.execute(
        select(Item.query_id, Item.state, Item.final, graded.c.highest, graded.c.persons)
        .outerjoin(graded, graded.c.item_id == Item.id)
        .where(*counted)
    ).all()
    judged = [row for row in rows if row.highest is not None or row.final is not None]
    lows = sum((row.highest if row.final is None else row.final) <= lowest for row in judged)
    slots, judgments = _slots(session, counted, now), _judgments(session, shown)
    states = Counter(ItemState(row.state) for row in rows)
    return Coverage(
        n_items=len(rows),
        states={state: states[state] for state in ItemState},
        judged_lowest=lows,
        judged_higher=len(judged) - lows,
        unjudged=len(rows) - len(judged),
        by_persons=dict(sorted(Counter(int(row.persons or 0) for row in rows).items())),
        n_slots=slots.total(),
        n_slots_done=slots[SlotState.DONE],
        n_leased=slots[SlotState.LEASED],
        n_extra=judgments.extra,
        n_skipped=judgments.skipped,
        n_flagged=session.scalar(select(func.count(Item.id)).where(*shown, Item.flagged)) or 0,
        n_stale=judgments.stale,
        n_needs_rater=session.scalar(select(func.count(Item.id)).where(*counted, needs_rater())) or 0,
        by_kind={kind: judgments.kinds[kind] for kind in RaterKind},
        queries=_queries(session, book, rows),
    )


@dataclass(frozen=True)
class _Judgments:
    kinds: Counter[RaterKind]
    skipped: int
    """Items."""
    stale: int
    """Items."""
    extra: int


def _slots(session: Session, counted: tuple[ColumnElement[bool], ...], now: int) -> Counter[str]:
    slots: Counter[str] = Counter()
    of_slots = select(Slot.state, is_free(now)).join(Item, Item.id == Slot.item_id).where(*counted)
    for state, has_no_rater in session.execute(of_slots):
        slots[SlotState.OPEN if has_no_rater else state] += 1
    return slots


def _judgments(session: Session, shown: tuple[ColumnElement[bool], ...]) -> _Judgments:
    found = (
        select(Item.id, Item.origin, Account.kind, ItemJudgment.action, ItemJudgment.stale, Slot.id.is_(None))
        .join(Account, Account.id == ItemJudgment.account_id)
        .join(Item, Item.id == ItemJudgment.item_id)
        .outerjoin(Slot, (Slot.item_id == Item.id) & (Slot.account_id == Account.id))
        .where(*shown)
    )
    kinds, skipped, stale, extra = Counter[RaterKind](), set[int](), set[int](), 0
    for item, origin, kind, action, is_stale, is_without in session.execute(found):
        counted = origin != Origin.CALIBRATION
        kinds[RaterKind(kind)] += counted and action in GRADES
        if action == Action.SKIP:
            skipped.add(item)
        if is_stale:
            stale.add(item)
        extra += counted and kind == RaterKind.PERSON and action == Action.GRADE and is_without
    return _Judgments(kinds, len(skipped), len(stale), extra)


def _queries(session: Session, book: Book, rows: Iterable[Any]) -> tuple[QueryCoverage, ...]:
    items, judged, done, waiting = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
    for query, state, final, highest, *_ in rows:
        items[query] += 1
        judged[query] += highest is not None or final is not None
        done[query] += state in (ItemState.DONE, ItemState.ADJUDICATED)
        waiting[query] += state == ItemState.ADJUDICATE
    query = select(BookQuery).where(BookQuery.book_id == book.id).order_by(BookQuery.position, BookQuery.id)
    return tuple(
        QueryCoverage(row.id, row.name, row.text, items[row.id], judged[row.id], done[row.id], waiting[row.id])
        for row in session.scalars(query)
    )
