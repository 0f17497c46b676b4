"""Items without slots: calibration items, which every rater may get, and hidden repeats, which are of one rater.

What a rater holds of them stands in the hand-outs. A calibration item goes away as other items do: where its lease is over or
it was put off, and another rater takes what is free of its query, it is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, and_, delete, exists, func, not_, or_, select, update
from sqlalchemy.orm import Session

from cranfield.judging.settings import BookSettings
from cranfield.judging.store.schema import (
    Account,
    Action,
    HandOut,
    Item,
    ItemState,
    Judgment,
    Member,
    Origin,
    RaterKind,
    Slot,
    SlotState,
)
from cranfield.judging.store.standing import is_free

DECIDED = (Action.GRADE, Action.SKIP, Action.CARRY)
"""Actions after which an item is not given to the rater again."""
OTHERS_FOR_EACH = 2
"""Other items of the query that a rater is given at the same time, for each calibration item."""
REPEAT_AFTER = 10
"""Other items that a rater has judged between an item and its repeat."""
REPEAT_AFTER_AT_END = 3
"""Those where the rater's queue has nothing else."""


@dataclass
class SlotlessItems:
    """Items of a rater that have no slots, without those that were lost."""

    in_hand: list[Item] = field(default_factory=list)
    put_off: list[Item] = field(default_factory=list)
    fresh: list[Item] = field(default_factory=list)
    """Calibration items that were not given yet, of queries of which none was given."""
    n_due: int = 0
    """How many of the fresh ones the rater should get."""

    def of_query(self, query_id: int, n_others: int) -> list[Item]:
        """The fresh ones of a query that come with a number of other items of it."""
        most = min(self.n_due, n_others // OTHERS_FOR_EACH)
        return [item for item in self.fresh if item.query_id == query_id][:most]

    def give(self, items: Collection[Item]) -> None:
        """Take items from the fresh ones, and the others of their queries."""
        queries = {item.query_id for item in items}
        self.fresh[:] = [item for item in self.fresh if item.query_id not in queries]
        self.n_due -= len(items)

    def n_left(self, free: Mapping[int, int]) -> Counter[int]:
        """Query to the calibration items that a rater could get, where it has a number of other items that are free."""
        given = (*self.in_hand, *self.put_off)
        counts = Counter(item.query_id for item in given if item.origin != Origin.REPEAT)
        due = self.n_due
        for query_id in dict.fromkeys(item.query_id for item in self.fresh):
            n = min(due, len(self.of_query(query_id, free.get(query_id, 0))))
            counts[query_id] += n
            due -= n
        return counts


def slotless_items(session: Session, book_id: int, settings: BookSettings, account_id: int) -> SlotlessItems:
    """What a rater holds, put off and could still get."""
    of_rater = and_(*_calibrates(book_id))
    if settings.repeats:
        of_rater = or_(of_rater, and_(Item.book_id == book_id, Item.repeat_for == account_id))
    items = session.scalars(select(Item).where(of_rater).order_by(Item.id)).all()
    handed = select(HandOut).join(Item, Item.id == HandOut.item_id).where(of_rater, HandOut.account_id == account_id)
    given = {row.item_id: row for row in session.scalars(handed)}
    judged = select(Judgment.item_id, Judgment.action).join(Item, Item.id == Judgment.item_id)
    actions = dict(session.execute(judged.where(of_rater, Judgment.account_id == account_id)).all())
    begun = {
        item.query_id for item in items if item.origin != Origin.REPEAT and (item.id in given or item.id in actions)
    }
    found = SlotlessItems(n_due=settings.calibration_first)
    for item in items:
        row, action, is_known = given.get(item.id), actions.get(item.id), item.origin != Origin.REPEAT
        if row is None and action is None:
            if is_known and item.query_id not in begun:
                found.fresh.append(item)
            continue
        if row is not None and row.lost_at is not None:
            continue
        found.n_due = max(found.n_due - is_known, 0)
        if action == Action.LATER and (row is None or row.leased_until is None):
            found.put_off.append(item)
        elif action not in DECIDED:
            found.in_hand.append(item)
    return found


def calibration_queries(session: Session, book_id: int) -> frozenset[int]:
    """The queries that have calibration items."""
    return frozenset(session.scalars(select(Item.query_id).where(*_calibrates(book_id)).distinct()))


def raters_to_come(session: Session, book_id: int, query_id: int, account_id: int) -> int:
    """Other raters of a book who were given no calibration item of a query yet."""
    given = exists().where(
        HandOut.account_id == Member.account_id,
        HandOut.item_id == Item.id,
        Item.query_id == query_id,
        Item.gold.is_not(None),
    )
    query = select(func.count()).select_from(Member).join(Account, Account.id == Member.account_id)
    query = query.where(Member.book_id == book_id, Member.account_id != account_id, not_(given.correlate(Member)))
    return session.scalar(query.where(Account.active, Account.kind == RaterKind.PERSON)) or 0


def renew_slotless(session: Session, items: Iterable[Item], account_id: int, half: int, until: int) -> None:
    """Prolong what a rater holds, where it ends before `half`."""
    ends = or_(HandOut.leased_until.is_(None), HandOut.leased_until < half)
    of_rater = (HandOut.account_id == account_id, HandOut.item_id.in_([item.id for item in items]), ends)
    session.execute(update(HandOut).where(*of_rater).values(leased_until=until))


def repeats_left(session: Session, book_id: int, settings: BookSettings, account_id: int, n_left: int) -> int:
    """Hidden repeats that a rater is still to judge, who has a number of other items left.

    They count before they are given: the progress of the rater would otherwise tell them from the others.
    """
    if not settings.repeats:
        return 0
    judged = select(func.count()).select_from(Judgment).join(Item, Item.id == Judgment.item_id)
    judged = judged.where(Item.book_id == book_id, Judgment.account_id == account_id)
    graded = judged.where(Item.origin != Origin.REPEAT, Judgment.action == Action.GRADE)
    n_graded = session.scalar(graded) or 0
    n_plain = session.scalar(graded.where(Item.gold.is_(None))) or 0
    done = session.scalar(judged.where(Item.origin == Origin.REPEAT, Judgment.action.in_(DECIDED))) or 0
    made = (
        session.scalar(select(func.count(Item.id)).where(Item.book_id == book_id, Item.repeat_for == account_id)) or 0
    )
    most = max(n_plain + n_left - REPEAT_AFTER_AT_END, 0)
    return max(min(int((n_graded + n_left) * settings.repeats), most), made) - done


def without_slots(session: Session, item: Item) -> None:
    """Take the slots of an item that becomes a calibration item, but for those that have a grade."""
    session.execute(delete(Slot).where(Slot.item_id == item.id, Slot.state != SlotState.DONE))


def free_of_others(book_id: int, account_id: int, now: int) -> tuple[ColumnElement[bool], ...]:
    """Conditions of an item and a hand-out: a calibration item that another rater put off, skipped or does not hold any more."""
    graded = exists().where(
        Judgment.item_id == HandOut.item_id,
        Judgment.account_id == HandOut.account_id,
        Judgment.action.in_((Action.GRADE, Action.CARRY)),
    )
    over = or_(HandOut.leased_until.is_(None), HandOut.leased_until < now)
    of_others = (HandOut.item_id == Item.id, HandOut.account_id != account_id, HandOut.lost_at.is_(None))
    return (*_calibrates(book_id), *of_others, over, not_(graded.correlate(HandOut)))


def pass_by(session: Session, book_id: int, query_ids: Collection[int], account_id: int, now: int) -> None:
    """Have the others lose what is free, where a rater has taken all that was free of a query.

    Otherwise what is left to a rater of a query that another one took would be the calibration items.
    """
    has_slot = exists().where(Slot.item_id == Item.id, is_free(now)).correlate(Item)
    normal = (Item.query_id.in_(query_ids), Item.state == ItemState.OPEN, Item.gold.is_(None))
    left = set(session.scalars(select(Item.query_id).where(*normal, has_slot).distinct()))
    taken = Item.query_id.in_(set(query_ids) - left)
    query = (
        select(HandOut).join(Item, Item.id == HandOut.item_id).where(*free_of_others(book_id, account_id, now), taken)
    )
    for row in session.scalars(query.with_for_update(of=HandOut, skip_locked=True)):
        row.lost_at = now


def _calibrates(book_id: int) -> tuple[ColumnElement[bool], ...]:
    """Conditions of a calibration item."""
    return (Item.book_id == book_id, Item.gold.is_not(None), Item.origin != Origin.REPEAT)
