"""What pages and reports read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, case, exists, func, not_, select
from sqlalchemy.orm import Session

from cranfield.books.database.engine import Part
from cranfield.books.store.queue import leased_to_others, left_for, member_row, n_put_off, quota_left, repeats_left
from cranfield.books.store.rows import as_value, book_row, item_row, settings_of
from cranfield.books.store.schema import (
    Account,
    Action,
    Book,
    BookQuery,
    BookState,
    Event,
    Item,
    ItemJudgment,
    ItemState,
    Member,
    Origin,
    RaterKind,
    SkipReason,
    Slot,
    SlotState,
)
from cranfield.books.store.standing import is_free
from cranfield.books.store.values import (
    Coverage,
    ItemFilter,
    ItemView,
    JudgingProgress,
    QueryCoverage,
    QueryInfo,
    RatingRow,
)

GRADES = (Action.GRADE, Action.CARRY)
"""Judgments that have a grade."""


def judgment_conditions(where: ItemFilter) -> list[ColumnElement[bool]]:
    """Those that concern single judgments: of `ItemJudgment`, with its `Event` and `Account` joined."""
    found: list[ColumnElement[bool]] = []
    if where.rater is not None:
        found.append(Account.name == where.rater)
    if where.stale is not None:
        found.append(ItemJudgment.stale.is_(where.stale))
    if where.before_guideline is not None:
        found.append(Event.guideline_version < where.before_guideline)
    if where.skipped is not None:
        found += [ItemJudgment.action == Action.SKIP, Event.skip_reason == where.skipped]
    return found


def item_conditions(where: ItemFilter) -> list[ColumnElement[bool]]:
    """All conditions, of `Item`."""
    found: list[ColumnElement[bool]] = []
    if where.state is not None:
        found.append(Item.state == where.state)
    if where.flagged is not None:
        found.append(Item.flagged.is_(where.flagged))
    if where.query is not None:
        found.append(Item.query_id.in_(select(BookQuery.id).where(BookQuery.name == where.query)))
    if where.needs_rater is not None:
        found.append(needs_rater() if where.needs_rater else not_(needs_rater()))
    of_judgments = judgment_conditions(where)
    if of_judgments:
        found.append(_judged(*of_judgments))
    return found


def _judged(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    joined = (Event.id == ItemJudgment.event_id, Account.id == ItemJudgment.account_id)
    return exists().where(ItemJudgment.item_id == Item.id, *joined, *conditions).correlate(Item)


def needs_rater() -> ColumnElement[bool]:
    """Open, judged by a person, and every active member of the book has graded or skipped it already."""
    acted = exists().where(
        ItemJudgment.item_id == Item.id,
        ItemJudgment.account_id == Member.account_id,
        ItemJudgment.action != Action.LATER,
    )
    could = exists().where(
        Member.book_id == Item.book_id,
        Account.id == Member.account_id,
        Account.active,
        Account.kind == RaterKind.PERSON,
        not_(acted.correlate(Item, Member)),
    )
    by_person = _judged(Account.kind == RaterKind.PERSON)
    return and_(Item.state == ItemState.OPEN, by_person, not_(could.correlate(Item)))


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


RECENT_GRADES = 50
"""Grades of a rater of whose times the median is taken."""
MIN_GRADES = 5
EVERYTHING = ItemFilter()
IN_ORDER = (BookQuery.position, Item.doc_id, Item.id)
"""Columns that items are sorted by."""


class BookReading(Part):
    """Progress, coverage, ratings, items."""

    def progress(self, book_id: int, account_id: int) -> JudgingProgress:
        """How far a rater is. Of an account that is no member, nothing is left."""
        with self._database.read() as session:
            book = book_row(session, book_id)
            settings, member = settings_of(book), member_row(session, book_id, account_id)
            of_rater = select(ItemJudgment.action, func.count()).join(Item, Item.id == ItemJudgment.item_id)
            of_rater = of_rater.where(Item.book_id == book_id, ItemJudgment.account_id == account_id)
            counts = Counter(dict(session.execute(of_rater.group_by(ItemJudgment.action)).all()))
            seen = session.scalar(
                select(func.count(Event.item_id.distinct())).where(
                    Event.book_id == book_id,
                    Event.account_id == account_id,
                    Event.action.in_([*GRADES, Action.SKIP, Action.LATER]),
                )
            )
            left = {} if member is None else left_for(session, book, account_id, self._clock())
            quota = None if member is None else quota_left(session, book, settings, member)
            n_left = sum(left.values()) if quota is None else min(sum(left.values()), max(quota, 0))
            if member is not None:
                n_left += repeats_left(session, book_id, settings, account_id, n_left)
            waits = member is not None and book.state == BookState.OPEN and not n_left and (quota is None or quota > 0)
            leased = leased_to_others(session, book_id, account_id, self._clock()) if waits else (0, None)
            times = self._times(session, book_id, account_id)
            middle = round(median(times)) if len(times) >= MIN_GRADES else None
            return JudgingProgress(
                n_done=counts[Action.GRADE],
                n_left=n_left,
                n_skipped=counts[Action.SKIP],
                n_later=min(n_put_off(session, book_id, account_id, self._clock()), n_left),
                median_ms=middle,
                seconds_left=None if middle is None else round(middle * n_left / 1000),
                n_seen=seen or 0,
                n_leased=leased[0],
                leased_until=leased[1],
            )

    @staticmethod
    def _times(session: Session, book_id: int, account_id: int) -> Sequence[int]:
        query = select(Event.duration_ms).where(
            Event.book_id == book_id,
            Event.account_id == account_id,
            Event.action == Action.GRADE,
            Event.duration_ms.is_not(None),
        )
        return [value for value in session.scalars(query.order_by(Event.id.desc()).limit(RECENT_GRADES)) if value]

    def coverage(self, book_id: int) -> Coverage:
        """How far a book is."""
        with self._database.read() as session:
            return book_coverage(session, book_row(session, book_id), self._clock())

    def ratings(
        self, book_id: int, kinds: Collection[RaterKind] | None = None, *, skips: bool = False
    ) -> tuple[RatingRow, ...]:
        """Current grades of a book, by query, document and time; those of hidden repeats are of origin `repeat`.

        Args:
            book_id: a book.
            kinds: only of these kinds of raters.
            skips: also what was skipped or put off.
        """
        query = _ratings().where(Item.book_id == book_id)
        if kinds is not None:
            query = query.where(Account.kind.in_(list(kinds)))
        if not skips:
            query = query.where(ItemJudgment.action.in_(GRADES))
        with self._database.read() as session:
            firsts = _first_grades(session, Item.book_id == book_id)
            rows = session.execute(query.order_by(BookQuery.position, Item.doc_id, Item.id, Event.id))
            return tuple(_rating(row, firsts) for row in rows)

    def items(self, book_id: int, where: ItemFilter = EVERYTHING) -> tuple[ItemView, ...]:
        """Items of a book by query and document, without hidden repeats."""
        with self._database.read() as session:
            return _views(session, _of_book(book_id), *item_conditions(where))

    def count(self, book_id: int, where: ItemFilter = EVERYTHING) -> int:
        """How many items a filter finds."""
        with self._database.read() as session:
            found = select(func.count(Item.id)).where(_of_book(book_id), *item_conditions(where))
            return session.scalar(found) or 0

    def counts(self, where: ItemFilter = EVERYTHING) -> dict[int, int]:
        """Books with how many of their items a filter finds; those without any are left out."""
        found = select(Item.book_id, func.count()).where(Item.origin != Origin.REPEAT, *item_conditions(where))
        with self._database.read() as session:
            return dict(session.execute(found.group_by(Item.book_id)).all())

    def chosen(
        self, book_id: int, conditions: Sequence[ColumnElement[bool]], *, limit: int | None = None, start: int = 0
    ) -> tuple[ItemView, ...]:
        """Items as `items` gives them, by conditions of `Item`; `limit` of them from a place on."""
        query = select(Item.id).join(BookQuery, BookQuery.id == Item.query_id).where(_of_book(book_id), *conditions)
        with self._database.read() as session:
            if limit is None and not start:
                return _views(session, _of_book(book_id), *conditions)
            found = session.scalars(query.order_by(*IN_ORDER).limit(limit).offset(start)).all()
            return _views(session, Item.id.in_(found))

    def n_chosen(self, book_id: int, conditions: Sequence[ColumnElement[bool]]) -> int:
        """How many items fit."""
        with self._database.read() as session:
            return session.scalar(select(func.count(Item.id)).where(_of_book(book_id), *conditions)) or 0

    def fitting(self, book_id: int, conditions: Sequence[ColumnElement[bool]]) -> frozenset[tuple[int, int]]:
        """Item and account of each judgment for which conditions of `ItemJudgment`, `Event`, `Account` and `Item` hold."""
        joined = (
            Event.id == ItemJudgment.event_id,
            Account.id == ItemJudgment.account_id,
            Item.id == ItemJudgment.item_id,
        )
        query = select(ItemJudgment.item_id, ItemJudgment.account_id).where(_of_book(book_id), *joined, *conditions)
        with self._database.read() as session:
            return frozenset((item, account) for item, account in session.execute(query))

    def item_ids(self, book_id: int) -> dict[tuple[str, str], int]:
        """Query and document to the item."""
        query = select(BookQuery.name, Item.doc_id, Item.id).join(BookQuery, BookQuery.id == Item.query_id)
        with self._database.read() as session:
            return {(name, doc): item for name, doc, item in session.execute(query.where(_of_book(book_id)))}

    def item(self, item_id: int) -> ItemView:
        """An item.

        Raises:
            UnknownNameError: there is none.
        """
        with self._database.read() as session:
            item_row(session, item_id)
            return _views(session, Item.id == item_id)[0]

    def graded_by(self, book_id: int) -> dict[tuple[str, str], frozenset[str]]:
        """Query and document to every rater that ever graded it in a book, also where it was taken back."""
        query = (
            select(BookQuery.name, Item.doc_id, Account.name)
            .join(Item, Item.query_id == BookQuery.id)
            .join(Event, Event.item_id == Item.id)
            .join(Account, Account.id == Event.account_id)
            .where(_of_book(book_id), Event.action.in_([*GRADES, Action.ADJUDICATE]))
            .distinct()
        )
        found: dict[tuple[str, str], set[str]] = {}
        with self._database.read() as session:
            for name, doc, rater in session.execute(query):
                found.setdefault((name, doc), set()).add(rater)
        return {pair: frozenset(raters) for pair, raters in found.items()}

    def last_event_id(self, book_id: int) -> int:
        """The largest id of an event of a book; 0 where there is none. Pages that show progress ask for this each second."""
        with self._database.read() as session:
            return session.scalar(select(func.max(Event.id)).where(Event.book_id == book_id)) or 0

    def newest_item(self, book_id: int) -> int:
        """The largest id of an item of a book; 0 where there is none."""
        with self._database.read() as session:
            return session.scalar(select(func.max(Item.id)).where(Item.book_id == book_id)) or 0

    def recent(self, book_id: int, account_id: int, n: int = 20) -> tuple[RatingRow, ...]:
        """The items that an account judged, skipped or put off last, the latest first; hidden repeats among them."""
        query = _ratings().where(Item.book_id == book_id, ItemJudgment.account_id == account_id)
        with self._database.read() as session:
            return tuple(_rating(row, {}) for row in session.execute(query.order_by(Event.id.desc()).limit(n)))

    def reveal(self, item_ids: Collection[int], account_id: int) -> tuple[ItemView, ...]:
        """The items among these that the account has graded, where `settings.reveal` of their book allows it."""
        graded = exists().where(
            ItemJudgment.item_id == Item.id, ItemJudgment.account_id == account_id, ItemJudgment.action == Action.GRADE
        )
        with self._database.read() as session:
            found = _views(session, Item.id.in_(list(item_ids)), graded)
            allowed = {
                number: settings_of(book_row(session, number)).reveal == "after"
                for number in {item.book_id for item in found}
            }
            return tuple(item for item in found if allowed[item.book_id])

    def queries(self, book_id: int) -> tuple[QueryInfo, ...]:
        """The queries of a book, in the order of the pool."""
        counted = (
            select(BookQuery, func.count(Item.id))
            .outerjoin(Item, (Item.query_id == BookQuery.id) & (Item.origin != Origin.REPEAT))
            .where(BookQuery.book_id == book_id)
            .group_by(BookQuery.id)
            .order_by(BookQuery.position, BookQuery.id)
        )
        with self._database.read() as session:
            return tuple(
                as_value(
                    QueryInfo, row, strata={name: str(value) for name, value in row.strata.items()}, n_items=n_items
                )
                for row, n_items in session.execute(counted)
            )


def _of_book(book_id: int) -> ColumnElement[bool]:
    return (Item.book_id == book_id) & (Item.origin != Origin.REPEAT)


def _ratings() -> Select[ItemJudgment, Event, Account, Item, str, int]:
    return (
        select(ItemJudgment, Event, Account, Item, BookQuery.name, Slot.id)
        .join(Event, Event.id == ItemJudgment.event_id)
        .join(Account, Account.id == ItemJudgment.account_id)
        .join(Item, Item.id == ItemJudgment.item_id)
        .join(BookQuery, BookQuery.id == Item.query_id)
        .outerjoin(Slot, (Slot.item_id == Item.id) & (Slot.account_id == Account.id))
    )


Firsts = Mapping[tuple[int, int], float]
"""Item and rater to the grade that counts for a calibration item."""


def _first_grades(session: Session, *conditions: ColumnElement[bool]) -> Firsts:
    """The first grade that each rater gave a calibration item, since a lead asked for it again: later ones may be advised."""
    query = select(Event).join(Item, Item.id == Event.item_id).where(Item.gold.is_not(None), *conditions)
    found: dict[tuple[int, int], float] = {}
    for event in session.scalars(query.where(Event.action.in_([*GRADES, Action.REOPEN])).order_by(Event.id)):
        if event.action == Action.REOPEN:
            found.pop((event.item_id, event.subject_id or 0), None)
        elif event.grade is not None:
            found.setdefault((event.item_id, event.account_id), event.grade)
    return found


def _rating(row: Row[ItemJudgment, Event, Account, Item, str, int], firsts: Firsts) -> RatingRow:
    judgment, event, account, item, query, slot = row
    takes_slot = account.kind == RaterKind.PERSON and item.origin != Origin.REPEAT
    return as_value(
        RatingRow,
        judgment,
        event,
        item,
        query=query,
        doc=item.doc_id,
        rater=account.name,
        kind=RaterKind(account.kind),
        action=Action(judgment.action),
        skip_reason=None if event.skip_reason is None else SkipReason(event.skip_reason),
        extra=takes_slot and judgment.action == Action.GRADE and slot is None,
        first_grade=firsts.get((item.id, account.id)),
        origin=Origin(item.origin),
    )


def _views(session: Session, *conditions: ColumnElement[bool]) -> tuple[ItemView, ...]:
    """Items with their ratings: five queries, however many items."""
    query = select(Item, BookQuery).join(BookQuery, BookQuery.id == Item.query_id).where(*conditions)
    chosen = session.execute(query.order_by(*IN_ORDER)).all()
    which = select(Item.id).where(*conditions)
    ratings: dict[int, list[RatingRow]] = {}
    firsts = _first_grades(session, *conditions)
    for row in session.execute(_ratings().where(Item.id.in_(which)).order_by(Event.id)):
        ratings.setdefault(row[3].id, []).append(_rating(row, firsts))
    slots = select(Slot.item_id, func.count()).where(Slot.item_id.in_(which)).group_by(Slot.item_id)
    n_slots = dict(session.execute(slots).all())
    finals = (
        select(Event, Account.name)
        .join(Account, Account.id == Event.account_id)
        .where(Event.action == Action.ADJUDICATE, Event.item_id.in_(which))
        .order_by(Event.id)
    )
    final = {event.item_id: (event, name) for event, name in session.execute(finals)}
    return tuple(
        _view(item, query, tuple(ratings.get(item.id, ())), n_slots.get(item.id, 0), final.get(item.id))
        for item, query in chosen
    )


def _view(
    item: Item, query: BookQuery, ratings: tuple[RatingRow, ...], n_slots: int, final: tuple[Event, str] | None
) -> ItemView:
    event, by = final if final is not None and item.final is not None else (None, None)
    return as_value(
        ItemView,
        item,
        query,
        query=query.name,
        query_text=query.text,
        doc=item.doc_id,
        origin=Origin(item.origin),
        state=ItemState(item.state),
        final_by=by,
        final_reason="" if event is None else event.reason,
        final_at=None if event is None else event.at,
        final_data=None if event is None else event.data,
        n_slots=n_slots,
        ratings=ratings,
    )
