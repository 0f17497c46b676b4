"""A rater in a book, and items as this rater sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from cranfield.judging.settings import BookSettings, Mode
from cranfield.judging.store.rows import as_value, seeded
from cranfield.judging.store.schema import (
    Action,
    Book,
    BookQuery,
    Event,
    Item,
    Judgment,
    Origin,
    SkipReason,
    Slot,
)
from cranfield.judging.store.standing import flags
from cranfield.judging.store.supply import judged_by
from cranfield.judging.store.values import Assignment


@dataclass(frozen=True)
class Rater:
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


def assignments(rater: Rater, items: Sequence[Item]) -> tuple[Assignment, ...]:
    """Items as their rater sees them: where they stand in his or her queue, and his or her own judgment."""
    session = rater.session
    session.flush()
    wanted = {item.query_id for item in items}
    queries = {row.id: row for row in session.scalars(select(BookQuery).where(BookQuery.id.in_(wanted)))}
    everything = session.scalars(select(BookQuery.id).where(BookQuery.book_id == rater.book.id))
    place = {number: index for index, number in enumerate(sorted(everything, key=rater.query_key), 1)}
    of_queries = _own_of(rater, items)
    judgments = select(Judgment, Event).join(Event, Event.id == Judgment.event_id)
    own = {
        judgment.item_id: (judgment, event)
        for judgment, event in session.execute(
            judgments.where(Judgment.account_id == rater.account_id, Judgment.item_id.in_([item.id for item in items]))
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


def _own_of(rater: Rater, items: Sequence[Item]) -> dict[int, list[int]]:
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
    rater: Rater,
    item: Item,
    query: BookQuery,
    place: dict[int, int],
    of_query: Sequence[int],
    own: tuple[Judgment, Event] | None,
) -> Assignment:
    judgment, event = own or (None, None)
    is_preference = rater.settings.mode is Mode.PREFERENCE
    side = seeded(rater.settings.seed, "side", rater.account_id, item.repeat_of or item.id) % 2 == 1
    return as_value(
        Assignment,
        *(item, query),
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
