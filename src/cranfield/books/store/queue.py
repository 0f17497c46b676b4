"""What a rater judges next. A lease holds a slot for a rater for some minutes, and no other rater gets it in that time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, and_, exists, func, not_, or_, select, union, update
from sqlalchemy.orm import Session, aliased

from cranfield.base.errors import UnknownNameError
from cranfield.books.database.engine import Part
from cranfield.books.settings import BookSettings, Mode
from cranfield.books.store.rows import account_row, as_value, book_row, guideline_version, item_row, seeded, settings_of
from cranfield.books.store.schema import (
    Account,
    Action,
    Book,
    BookQuery,
    BookState,
    Event,
    HandOut,
    Item,
    ItemJudgment,
    ItemState,
    Member,
    Origin,
    RaterKind,
    Role,
    SkipReason,
    Slot,
    SlotState,
)
from cranfield.books.store.standing import end_leases, flags, is_free
from cranfield.books.store.values import Assignment, NotAllowedError

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


@dataclass(frozen=True)
class _Rater:
    """A rater in a book, at a moment: what orders and limits his or her queue."""

    session: Session
    book: Book
    settings: BookSettings
    account_id: int
    now: int
    calibrated: frozenset[int] = frozenset()
    """The queries that have calibration items."""

    @property
    def until(self) -> int:
        """The end of a lease that begins now."""
        return self.now + self.settings.lease_seconds * 1000

    def query_key(self, query_id: int) -> tuple[bool, int]:
        """The rater's own order of queries: those with calibration items come first."""
        return query_id not in self.calibrated, seeded(self.settings.seed, "query", self.account_id, query_id)

    def item_key(self, item: Item) -> tuple[tuple[bool, int], int]:
        """The rater's own order of the documents of each query; a repeat stands where the first one stood."""
        number = item.repeat_of or item.id
        return self.query_key(item.query_id), seeded(self.settings.seed, "item", self.account_id, number)


class Queue(Part):
    """Leases."""

    def next_items(
        self, book_id: int, account_id: int, n: int = 5, *, holding: Collection[int] = ()
    ) -> tuple[Assignment, ...]:
        """Lease the next items of a rater: at most `n`, in this rater's own order. Leases that the rater has are renewed.

        The order: what the rater holds already, also by an expired lease that no other rater took; a hidden repeat that is
        due; the whole of the next query; what the rater put off for later.

        Queries with calibration items come first. In everything else these are items as all others: a rater who sees which
        ones come, go away and come again learns nothing about them.

        Args:
            book_id: an open book; a closed one gives nothing.
            account_id: a member of the book.
            n: how many.
            holding: items that the page shows or has fetched, which are renewed and not given again.

        Raises:
            NotAllowedError: the account is no active member of the book, or no person.
        """
        with self._database.write() as session:
            rater, member = self._rater(session, book_id, account_id)
            if rater.book.state == BookState.CLOSED or n <= 0:
                return ()
            _renew(rater)
            put_off = _put_off_ids(rater)
            mine = sorted(_leased_items(rater), key=lambda item: (item.id in put_off, rater.item_key(item)))
            quota = quota_left(session, rater.book, rater.settings, member)
            room = None if quota is None else quota - len(mine)
            if room is not None and room < 0:  # what cannot be saved: the quota is another one, or a skip was undone
                over = [item.id for item in mine[room:]]
                end_leases(session, Slot.account_id == account_id, Slot.item_id.in_(over))
                mine, room = mine[:room], 0
            found = [item for item in mine if item.id not in holding]
            while len(found) < n:
                more = _repeat(rater, holding, found, REPEAT_AFTER)
                if not more:
                    more = _next_query(rater, room) or _put_off(rater, room, {*holding, *(item.id for item in found)})
                    room = None if room is None else room - sum(item.origin != Origin.REPEAT for item in more)
                more = more or _repeat(rater, holding, found, REPEAT_AFTER_AT_END)
                if not more:
                    break
                found += more
            hand_out(session, found, account_id, guideline_version(session, book_id))
            return _assignments(rater, found[:n])

    def own(self, book_id: int, account_id: int, item_id: int) -> Assignment:
        """An item of the book as this rater sees it, with the rater's own judgment; no lease is taken.

        Raises:
            UnknownNameError: the book has no such item, or the rater was not given it.
        """
        with self._database.read() as session:
            rater, _ = self._rater(session, book_id, account_id, lock=False)
            item = item_row(session, item_id, book_id)
            is_given = was_given(session, item, account_row(session, account_id))
            if item.repeat_for not in (None, account_id) or not is_given:
                raise UnknownNameError(f"item {item_id} not found in this book")
            return _assignments(rater, [item])[0]

    def renew(self, book_id: int, account_id: int) -> int:
        """Renew the leases of a rater; how many there are."""
        with self._database.write() as session:
            rater, _ = self._rater(session, book_id, account_id)
            _renew(rater)
            return len(_leased_items(rater))

    def _rater(self, session: Session, book_id: int, account_id: int, *, lock: bool = True) -> tuple[_Rater, Member]:
        account = account_row(session, account_id)
        book, member = book_row(session, book_id), member_row(session, book_id, account_id, lock=lock)
        if account.kind != RaterKind.PERSON:
            raise NotAllowedError(f"{account.name} is not a person: a {account.kind} cannot be assigned items")
        if member is None or not account.active:
            what = "not a member of this book" if member is None else "not active"
            raise NotAllowedError(f"{account.name} is {what}", hint="a lead can change this")
        settings = settings_of(book)
        known = select(Item.query_id).where(Item.book_id == book_id, Item.gold.is_not(None)).distinct()
        calibrated = frozenset(session.scalars(known)) if settings.calibration_first else frozenset[int]()
        return _Rater(session, book, settings, account_id, self._clock(), calibrated), member


def _own_leases(rater: _Rater) -> tuple[ColumnElement[bool], ...]:
    of_book = exists().where(Item.id == Slot.item_id, Item.book_id == rater.book.id).correlate(Slot)
    return (Slot.account_id == rater.account_id, Slot.state == SlotState.LEASED, of_book)


def _renew(rater: _Rater) -> None:
    """Prolong the leases whose second half has begun; those that have expired too, since no other rater took them."""
    half = rater.now + rater.settings.lease_seconds * 500
    renewed = update(Slot).where(*_own_leases(rater), Slot.leased_until < half)
    rater.session.execute(renewed.values(leased_until=rater.until))


def _leased_items(rater: _Rater) -> list[Item]:
    """The items whose slot the rater holds; a slot of an item that is no longer open is given up."""
    slots = rater.session.scalars(select(Slot).where(*_own_leases(rater))).all()
    query = select(Item).where(Item.id.in_([slot.item_id for slot in slots]))
    items = {item.id: item for item in rater.session.scalars(query)} if slots else {}
    open_items = []
    for slot in slots:
        if items[slot.item_id].state == ItemState.OPEN:
            open_items.append(items[slot.item_id])
        else:
            rater.session.delete(slot)
    return open_items


def _put_off_ids(rater: _Rater) -> set[int]:
    query = select(ItemJudgment.item_id).where(
        ItemJudgment.account_id == rater.account_id, ItemJudgment.action == Action.LATER
    )
    return set(rater.session.scalars(query))


def _next_query(rater: _Rater, room: int | None) -> list[Item]:
    """Lease all that the next query has for this rater: in the rater's order of queries, where that balances the pairs."""
    conditions = (*offered(rater.book.id, rater.account_id, rater.now), not_(judged_by(rater.account_id)))
    found = select(Item.query_id).join(Slot, Slot.item_id == Item.id).where(*conditions).distinct()
    shared = _shared(rater, conditions) if rater.settings.raters_per_item > 1 else {}

    def order(query: int) -> tuple[bool, float, int]:
        is_late, number = rater.query_key(query)
        return is_late, shared.get(query, shared.get(None, 0)), number

    for query_id in sorted(rater.session.scalars(found), key=order):
        if given := _lease(rater, room, (*conditions, Item.query_id == query_id)):
            return given
    return []


def _shared(rater: _Rater, conditions: Iterable[ColumnElement[bool]]) -> dict[int | None, float]:
    """Query to the items that the rater shares with that one of its other raters with whom there are fewest.

    Agreement is computed for pairs of raters. Under None: the mean over all other raters, for a query that has none.
    """
    mine, other = aliased(Slot), aliased(Slot)
    pairs = (
        select(other.account_id, func.count())
        .join(mine, mine.item_id == other.item_id)
        .join(Item, Item.id == other.item_id)
        .where(Item.book_id == rater.book.id, mine.account_id == rater.account_id)
        .where(other.account_id.is_not(None), other.account_id != rater.account_id)
        .group_by(other.account_id)
    )
    n_shared = dict(rater.session.execute(pairs).all())
    others = select(func.count()).where(Member.book_id == rater.book.id, Member.account_id != rater.account_id)
    found: dict[int | None, float] = {None: sum(n_shared.values()) / max(rater.session.scalar(others) or 0, 1)}
    raters = select(Item.query_id, other.account_id).join(Slot, Slot.item_id == Item.id)
    raters = raters.join(other, other.item_id == Item.id).where(*conditions, other.account_id.is_not(None)).distinct()
    for query_id, account_id in rater.session.execute(raters):
        n = n_shared.get(account_id, 0)
        found[query_id] = min(found.get(query_id, n), n)
    return found


def _put_off(rater: _Rater, room: int | None, shown: Collection[int]) -> list[Item]:
    """Lease what the rater put off, the earliest first; also hidden repeats that are not shown."""
    put_off = judged_by(rater.account_id, Action.LATER)
    again = select(Item).where(Item.book_id == rater.book.id, Item.repeat_for == rater.account_id, put_off)
    repeats = [item for item in rater.session.scalars(again) if item.id not in shown] if rater.settings.repeats else []
    leased = [*repeats, *_lease(rater, room, (*offered(rater.book.id, rater.account_id, rater.now), put_off))]
    query = select(ItemJudgment.item_id, ItemJudgment.event_id).where(
        ItemJudgment.account_id == rater.account_id, ItemJudgment.item_id.in_([item.id for item in leased])
    )
    order = dict(rater.session.execute(query).all())
    return sorted(leased, key=lambda item: order[item.id])


def _lease(rater: _Rater, room: int | None, conditions: Iterable[ColumnElement[bool]]) -> list[Item]:
    """Lease a free slot of each item; those that another request leases at this moment are left to it."""
    if room == 0:
        return []
    query = select(Slot, Item).join(Item, Item.id == Slot.item_id).where(*conditions)
    rows = rater.session.execute(query.order_by(Slot.number, Slot.id).with_for_update(of=Slot, skip_locked=True))
    first: dict[int, tuple[Slot, Item]] = {}
    for slot, item in rows:
        first.setdefault(item.id, (slot, item))
    chosen = sorted(first.values(), key=lambda pair: rater.item_key(pair[1]))[:room]
    for slot, _ in chosen:
        slot.account_id, slot.state, slot.leased_until = rater.account_id, SlotState.LEASED, rater.until
    rater.session.flush()
    return [item for _, item in chosen]


def _repeat(rater: _Rater, holding: Collection[int], found: Sequence[Item], after: int) -> list[Item]:
    """The hidden repeat that is due, if one is: of an item that the rater graded some items ago."""
    if not rater.settings.repeats:
        return []
    session, own = rater.session, Item.repeat_for == rater.account_id
    repeats = session.scalars(select(Item).where(Item.book_id == rater.book.id, own).order_by(Item.id)).all()
    graded = session.scalars(
        select(Item)
        .join(ItemJudgment, ItemJudgment.item_id == Item.id)
        .where(Item.book_id == rater.book.id, Item.origin != Origin.REPEAT)
        .where(ItemJudgment.account_id == rater.account_id, ItemJudgment.action == Action.GRADE)
        .order_by(ItemJudgment.event_id)
    ).all()
    judged = set(session.scalars(select(ItemJudgment.item_id).where(ItemJudgment.account_id == rater.account_id)))
    waiting = [item for item in repeats if item.id not in judged]
    if waiting:
        shown = {*holding, *(item.id for item in found)}
        return [item for item in waiting if item.id not in shown]
    if int(len(graded) * rater.settings.repeats) <= len(repeats):
        return []
    repeated = {item.repeat_of for item in repeats}
    candidates = [item for item in graded[: len(graded) - after] if item.id not in repeated]
    if not candidates or len(graded) <= after:
        return []
    chosen = min(candidates, key=lambda item: seeded(rater.settings.seed, "repeat", rater.account_id, item.id))
    copy = Item(
        book_id=chosen.book_id,
        query_id=chosen.query_id,
        doc_id=chosen.doc_id,
        doc_digest=chosen.doc_digest,
        fields=chosen.fields,
        origin=Origin.REPEAT,
        repeat_of=chosen.id,
        repeat_for=rater.account_id,
        wanted=0,
        state=ItemState.OPEN,
    )
    session.add(copy)
    session.flush()
    return [copy]


def _assignments(rater: _Rater, items: Sequence[Item]) -> tuple[Assignment, ...]:
    """Items as their rater sees them: where they stand in his or her queue, and his or her own judgment."""
    session = rater.session
    session.flush()
    wanted = {item.query_id for item in items}
    queries = {row.id: row for row in session.scalars(select(BookQuery).where(BookQuery.id.in_(wanted)))}
    everything = session.scalars(select(BookQuery.id).where(BookQuery.book_id == rater.book.id))
    place = {number: index for index, number in enumerate(sorted(everything, key=rater.query_key), 1)}
    of_queries = _own_of(rater, items)
    judgments = select(ItemJudgment, Event).join(Event, Event.id == ItemJudgment.event_id)
    own = {
        judgment.item_id: (judgment, event)
        for judgment, event in session.execute(
            judgments.where(
                ItemJudgment.account_id == rater.account_id, ItemJudgment.item_id.in_([item.id for item in items])
            )
        )
    }
    flagged = {item for item, account in flags(session, [item.id for item in items]) if account == rater.account_id}
    return tuple(
        replace(
            _assignment(rater, item, queries[item.query_id], place, of_queries[item.query_id], own.get(item.id)),
            flagged=item.id in flagged,
        )
        for item in items
    )


def _own_of(rater: _Rater, items: Sequence[Item]) -> dict[int, list[int]]:
    """Query to its items that this rater has judged, holds or is now given, in the rater's order, without repeats."""
    leased_ids = select(Slot.item_id).where(Slot.account_id == rater.account_id)
    mine = or_(
        judged_by(rater.account_id),
        Item.id.in_(leased_ids),
        Item.id.in_([item.repeat_of or item.id for item in items]),
    )
    query = select(Item).where(Item.query_id.in_({item.query_id for item in items}), Item.origin != Origin.REPEAT, mine)
    found: dict[int, list[int]] = {}
    for item in sorted(rater.session.scalars(query), key=rater.item_key):
        found.setdefault(item.query_id, []).append(item.id)
    return found


def _assignment(
    rater: _Rater,
    item: Item,
    query: BookQuery,
    place: dict[int, int],
    of_query: Sequence[int],
    own: tuple[ItemJudgment, Event] | None,
) -> Assignment:
    judgment, event = own or (None, None)
    is_preference = rater.settings.mode is Mode.PREFERENCE
    side = seeded(rater.settings.seed, "side", rater.account_id, item.repeat_of or item.id) % 2 == 1
    return as_value(
        Assignment,
        item,
        query,
        item_id=item.id,
        query=query.name,
        query_text=query.text,
        doc=item.doc_id,
        leased_until=rater.until,
        swapped=is_preference and side,
        query_number=place[query.id],
        n_queries=len(place),
        number=of_query.index(item.repeat_of or item.id) + 1,
        n_of_query=len(of_query),
        action=None if judgment is None else Action(judgment.action),
        grade=None if judgment is None else judgment.grade,
        skip_reason=None if event is None or event.skip_reason is None else SkipReason(event.skip_reason),
        reason="" if event is None else event.reason,
        data=None if event is None else event.data,
    )
