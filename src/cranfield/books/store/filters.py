"""`ItemFilter` as conditions of SQL."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, exists, not_, select

from cranfield.books.store.schema import (
    Account,
    Action,
    BookQuery,
    Event,
    Item,
    ItemJudgment,
    ItemState,
    Member,
    RaterKind,
)
from cranfield.books.store.values import ItemFilter

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
