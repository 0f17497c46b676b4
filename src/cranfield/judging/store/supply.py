"""What a rater was given, and could still be given, without leasing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import ColumnElement, exists, func, not_, select, union
from sqlalchemy.orm import Session, aliased

from cranfield.judging.settings import BookSettings
from cranfield.judging.store.schema import (
    Account,
    Action,
    Book,
    HandOut,
    Item,
    ItemState,
    Judgment,
    Member,
    Origin,
    Role,
    Slot,
    SlotState,
)
from cranfield.judging.store.slotless import DECIDED, slotless_items
from cranfield.judging.store.standing import is_free


def member_row(session: Session, book_id: int, account_id: int, *, lock: bool = False) -> Member | None:
    """A membership; with `lock`, one request of a rater at a time."""
    query = select(Member).where(Member.book_id == book_id, Member.account_id == account_id)
    return session.scalar(query.with_for_update(key_share=True) if lock else query)


def quota_left(session: Session, book: Book, settings: BookSettings, member: Member) -> int | None:
    """Grades that a rater may still give; None without a limit. Hidden repeats do not count.

    Calibration items do: what is left would otherwise tell them from the others. Below 0: there are more grades than that.
    """
    quota = settings.quota if member.quota is None else member.quota
    if quota is None:
        return None
    graded = (
        select(func.count())
        .select_from(Judgment)
        .join(Item, Item.id == Judgment.item_id)
        .where(Item.book_id == book.id, Item.origin != Origin.REPEAT)
        .where(Judgment.account_id == member.account_id, Judgment.action == Action.GRADE)
    )
    return quota - (session.scalar(graded) or 0)


def was_given(session: Session, item: Item, account: Account) -> bool:
    """Whether a person may look at an item and judge it: leads all, raters what the queue gave them."""
    if account.role != Role.RATER:
        return True
    key = (item.id, account.id)
    own_slot = select(Slot.id).where(Slot.item_id == item.id, Slot.account_id == account.id)
    return bool(session.get(HandOut, key) or session.get(Judgment, key) or session.scalar(own_slot))


def hand_out(session: Session, items: Sequence[Item], account_id: int, version: int, until: int | None = None) -> None:
    """Note that a rater is given items, under a version of the guidelines; those without slots are leased until then."""
    ids = {item.id for item in items}
    slotless = {item.id for item in items if item.gold is not None or item.origin == Origin.REPEAT}
    known = select(HandOut).where(HandOut.item_id.in_(ids), HandOut.account_id == account_id)
    for row in session.scalars(known).all():
        ids.discard(row.item_id)
        row.guideline_version = version
    for number in sorted(ids):
        row = HandOut(item_id=number, account_id=account_id, guideline_version=version)
        row.leased_until = until if number in slotless else None
        session.add(row)


def judged_by(account_id: int, *actions: Action) -> ColumnElement[bool]:
    """The rater has a judgment of the item; of these actions, where any are given."""
    of_actions = (Judgment.action.in_(actions),) if actions else ()
    judged = exists().where(Judgment.item_id == Item.id, Judgment.account_id == account_id, *of_actions)
    return judged.correlate(Item)


def offered(book_id: int, account_id: int, now: int) -> tuple[ColumnElement[bool], ...]:
    """Conditions of an item and a slot of it that is free, for a rater who has none of the item."""
    return (*_without_slot(book_id, account_id), is_free(now))


def _without_slot(book_id: int, account_id: int) -> tuple[ColumnElement[bool], ...]:
    """Conditions of an open item of which a rater has no slot."""
    own = aliased(Slot)
    has_slot = exists().where(own.item_id == Item.id, own.account_id == account_id).correlate(Item)
    normal = (Item.book_id == book_id, Item.state == ItemState.OPEN, Item.gold.is_(None), Item.origin != Origin.REPEAT)
    return (*normal, not_(has_slot))


def leased_to_others(session: Session, book_id: int, account_id: int, now: int) -> tuple[int, int | None]:
    """Items that a rater could get if others did not hold them, and when the first of these leases ends."""
    query = select(func.count(Item.id.distinct()), func.min(Slot.leased_until)).join(Slot, Slot.item_id == Item.id)
    of_others = (Slot.state == SlotState.LEASED, not_(is_free(now)), not_(judged_by(account_id, *DECIDED)))
    rows = session.execute(query.where(*_without_slot(book_id, account_id), *of_others))
    return next((n, until) for n, until in rows)


def left_for(session: Session, book: Book, settings: BookSettings, account_id: int, now: int) -> dict[int, int]:
    """Query to the number of its items that a rater could get: held, free, or put off and still free."""
    of_book = (Item.book_id == book.id, Item.state == ItemState.OPEN, Item.gold.is_(None), Item.origin != Origin.REPEAT)
    n_items = func.count(Item.id.distinct())
    free = select(Item.query_id, n_items).join(Slot, Slot.item_id == Item.id).where(*of_book, is_free(now))
    # Counted and taken off again: to look for the rater at each item of a book would take many times as long.
    has_free_slot = exists().where(Slot.item_id == Item.id, is_free(now)).correlate(Item)
    acted = select(Judgment.item_id).where(Judgment.account_id == account_id, Judgment.action != Action.LATER)
    has_slot = select(Slot.item_id).where(Slot.account_id == account_id)
    touched = union(acted, has_slot)
    own = select(Item.query_id, n_items).where(*of_book, Item.id.in_(touched), has_free_slot)
    leased = select(Slot.item_id).where(Slot.account_id == account_id, Slot.state == SlotState.LEASED)
    in_hand = select(Item.query_id, n_items).where(*of_book, Item.id.in_(leased))
    counts: Counter[int] = Counter()
    for query, sign in ((free, 1), (own, -1)):
        for number, n in session.execute(query.group_by(Item.query_id)):
            counts[number] += sign * n
    counts += slotless_items(session, book.id, settings, account_id).n_left(counts)
    counts.update(dict(session.execute(in_hand.group_by(Item.query_id)).all()))
    return {number: n for number, n in counts.items() if n}
