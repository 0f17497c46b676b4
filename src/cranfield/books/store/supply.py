"""What a rater was given, and could still be given, without leasing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sqlalchemy import ColumnElement, and_, exists, func, not_, or_, select, union
from sqlalchemy.orm import Session, aliased

from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import (
    Account,
    Action,
    Book,
    HandOut,
    Item,
    ItemJudgment,
    ItemState,
    Member,
    Origin,
    Role,
    Slot,
    SlotState,
)
from cranfield.books.store.standing import is_free

DECIDED = (Action.GRADE, Action.SKIP, Action.CARRY)
"""Actions after which an item is not given to the rater again."""
REPEAT_AFTER = 10
"""Other items that a rater has judged between an item and its repeat."""
REPEAT_AFTER_AT_END = 3
"""Those where the rater's queue has nothing else."""


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
        .select_from(ItemJudgment)
        .join(Item, Item.id == ItemJudgment.item_id)
        .where(Item.book_id == book.id, Item.origin != Origin.REPEAT)
        .where(ItemJudgment.account_id == member.account_id, ItemJudgment.action == Action.GRADE)
    )
    return quota - (session.scalar(graded) or 0)


def was_given(session: Session, item: Item, account: Account) -> bool:
    """Whether a person may look at an item and judge it: leads all, raters what the queue gave them."""
    if account.role != Role.RATER:
        return True
    key = (item.id, account.id)
    own_slot = select(Slot.id).where(Slot.item_id == item.id, Slot.account_id == account.id)
    return bool(session.get(HandOut, key) or session.get(ItemJudgment, key) or session.scalar(own_slot))


def hand_out(session: Session, items: Iterable[Item], account_id: int, version: int) -> None:
    """Note that a rater is given items, under a version of the guidelines."""
    ids = {item.id for item in items}
    known = select(HandOut).where(HandOut.item_id.in_(ids), HandOut.account_id == account_id)
    for row in session.scalars(known).all():
        ids.discard(row.item_id)
        row.guideline_version = version
    session.add_all(HandOut(item_id=number, account_id=account_id, guideline_version=version) for number in sorted(ids))


def judged_by(account_id: int, *actions: Action) -> ColumnElement[bool]:
    """The rater has a judgment of the item; of these actions, where any are given."""
    of_actions = (ItemJudgment.action.in_(actions),) if actions else ()
    judged = exists().where(ItemJudgment.item_id == Item.id, ItemJudgment.account_id == account_id, *of_actions)
    return judged.correlate(Item)


def offered(book_id: int, account_id: int, now: int) -> tuple[ColumnElement[bool], ...]:
    """Conditions of an item and a slot of it that is free, for a rater who has none of the item."""
    return (*_without_slot(book_id, account_id), is_free(now))


def _without_slot(book_id: int, account_id: int) -> tuple[ColumnElement[bool], ...]:
    """Conditions of an open item of which a rater has no slot."""
    own = aliased(Slot)
    has_slot = exists().where(own.item_id == Item.id, own.account_id == account_id).correlate(Item)
    normal = (Item.book_id == book_id, Item.state == ItemState.OPEN, Item.origin != Origin.REPEAT)
    return (*normal, not_(has_slot))


def leased_to_others(session: Session, book_id: int, account_id: int, now: int) -> tuple[int, int | None]:
    """Items that a rater could get if others did not hold them, and when the first of these leases ends."""
    query = select(func.count(Item.id.distinct()), func.min(Slot.leased_until)).join(Slot, Slot.item_id == Item.id)
    of_others = (Slot.state == SlotState.LEASED, not_(is_free(now)), not_(judged_by(account_id, *DECIDED)))
    rows = session.execute(query.where(*_without_slot(book_id, account_id), *of_others))
    return next((n, until) for n, until in rows)


def left_for(session: Session, book: Book, account_id: int, now: int) -> dict[int, int]:
    """Query to the number of its items that a rater could get: held, free, or put off and still free."""
    of_book = (Item.book_id == book.id, Item.state == ItemState.OPEN, Item.origin != Origin.REPEAT)
    n_items = func.count(Item.id.distinct())
    free = select(Item.query_id, n_items).join(Slot, Slot.item_id == Item.id).where(*of_book, is_free(now))
    # Counted and taken off again: to look for the rater at each item of a book would take many times as long.
    has_free_slot = exists().where(Slot.item_id == Item.id, is_free(now)).correlate(Item)
    acted = select(ItemJudgment.item_id).where(
        ItemJudgment.account_id == account_id, ItemJudgment.action != Action.LATER
    )
    has_slot = select(Slot.item_id).where(Slot.account_id == account_id)
    touched = union(acted, has_slot)
    own = select(Item.query_id, n_items).where(*of_book, Item.id.in_(touched), has_free_slot)
    leased = select(Slot.item_id).where(Slot.account_id == account_id, Slot.state == SlotState.LEASED)
    in_hand = select(Item.query_id, n_items).where(*of_book, Item.id.in_(leased))
    counts: Counter[int] = Counter()
    for query, sign in ((free, 1), (own, -1), (in_hand, 1)):
        for number, n in session.execute(query.group_by(Item.query_id)):
            counts[number] += sign * n
    return {number: n for number, n in counts.items() if n}


def n_put_off(session: Session, book_id: int, account_id: int, now: int) -> int:
    """Items that a rater put off and can still get."""
    slot = exists().where(Slot.item_id == Item.id, or_(is_free(now), Slot.account_id == account_id)).correlate(Item)
    can = or_(and_(Item.state == ItemState.OPEN, slot), Item.repeat_for == account_id)
    query = select(func.count(Item.id)).where(Item.book_id == book_id, judged_by(account_id, Action.LATER), can)
    return session.scalar(query) or 0


def repeats_left(session: Session, book_id: int, settings: BookSettings, account_id: int, n_left: int) -> int:
    """Hidden repeats that a rater is still to judge, who has a number of other items left.

    They count before they are given: the progress of the rater would otherwise tell them from the others.
    """
    if not settings.repeats:
        return 0
    judged = select(func.count()).select_from(ItemJudgment).join(Item, Item.id == ItemJudgment.item_id)
    judged = judged.where(Item.book_id == book_id, ItemJudgment.account_id == account_id)
    graded = session.scalar(judged.where(Item.origin != Origin.REPEAT, ItemJudgment.action == Action.GRADE)) or 0
    done = session.scalar(judged.where(Item.origin == Origin.REPEAT, ItemJudgment.action.in_(DECIDED))) or 0
    made = session.scalar(select(func.count(Item.id)).where(Item.book_id == book_id, Item.repeat_for == account_id))
    most = max(graded + n_left - REPEAT_AFTER_AT_END, 0)
    return max(min(int((graded + n_left) * settings.repeats), most), made or 0) - done
