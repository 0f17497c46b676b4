"""Where raters and items stand: what follows from the log. Every change of a judgment, a slot or a state is made here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from cranfield.books.settings import BookSettings, Mode
from cranfield.books.store.schema import (
    Account,
    Action,
    Event,
    Item,
    ItemJudgment,
    ItemState,
    Origin,
    RaterKind,
    SkipReason,
    Slot,
    SlotState,
)
from cranfield.books.store.values import NotAllowedError

JUDGES = frozenset({Action.GRADE, Action.SKIP, Action.LATER, Action.CARRY})
"""Actions that are a judgment until they are withdrawn or replaced."""


def standing_event(events: Iterable[Event]) -> Event | None:
    """The event that holds of those of one rater and one item, in their order; None where nothing holds.

    `undo` withdraws the last judgment, so that the one before it holds again; `reopen` withdraws all.
    A judgment that was carried over cannot be undone by its rater.
    """
    stack: list[Event] = []
    for event in events:
        if event.action in JUDGES:
            stack.append(event)
        elif event.action == Action.UNDO and stack and stack[-1].action != Action.CARRY:
            stack.pop()
        elif event.action == Action.REOPEN:
            stack.clear()
    return stack[-1] if stack else None


def is_stale(event: Event, item: Item) -> bool:
    """Whether the judgment is of another text than the one that is shown now; False where a digest is not known."""
    return None not in (event.doc_digest, item.doc_digest) and event.doc_digest != item.doc_digest


def derive_judgment(session: Session, item: Item, account_id: int) -> ItemJudgment | None:
    """Make the judgment of a rater of an item what the log says."""
    of_rater = or_(and_(Event.account_id == account_id, Event.action != Action.REOPEN), Event.subject_id == account_id)
    events = session.scalars(select(Event).where(Event.item_id == item.id, of_rater).order_by(Event.id))
    holds = standing_event(events)
    row = session.get(ItemJudgment, (item.id, account_id))
    if holds is None:
        if row is not None:
            session.delete(row)
        return None
    if row is None:
        row = ItemJudgment(item_id=item.id, account_id=account_id)
        session.add(row)
    row.event_id, row.action, row.grade, row.stale = holds.id, holds.action, holds.grade, is_stale(holds, item)
    return row


def flags(session: Session, item_ids: Sequence[int]) -> set[tuple[int, int]]:
    """Item and account of each flag that was not removed by the account that set it."""
    last = (
        select(func.max(Event.id))
        .where(Event.item_id.in_(item_ids), Event.action.in_([Action.FLAG, Action.UNFLAG]))
        .group_by(Event.item_id, Event.account_id)
    )
    query = select(Event.item_id, Event.account_id).where(Event.id.in_(last), Event.action == Action.FLAG)
    return {(item_id, account_id) for item_id, account_id in session.execute(query)}


def outcome(
    settings: BookSettings, wanted: int, grades: Sequence[float], experts: int, *, differs: bool = False
) -> tuple[ItemState, int]:
    """State of an item that no lead has decided, and the number of grades that it waits for beyond those it has.

    Agreement: done. A range under `escalate_from`: done, by the consensus rule. Otherwise, and after a rater who says that
    it needs an expert, a further rater; from `most_raters` on, adjudication.

    Args:
        settings: of the book.
        wanted: persons to judge it by the plan.
        grades: by persons.
        experts: persons who skipped it since it needs an expert.
        differs: what persons decided differs in more than the grade: other edits of a record, for example.
    """
    least = wanted + bool(experts)
    most = max(settings.most_raters, wanted)
    if len(grades) >= least and _range(settings, grades) < settings.escalate_from and not differs:
        return ItemState.DONE, 0
    could_ask = most - len(grades) - experts
    if could_ask <= 0:
        return ItemState.ADJUDICATE, 0
    return ItemState.OPEN, max(min(least - len(grades), could_ask), 1)


def _range(settings: BookSettings, grades: Sequence[float]) -> float:
    if settings.mode is Mode.PREFERENCE:  # 0 tie, 1 for `a`, 2 for `b`: a tie is between them
        grades = [{1: 1.0, 2: -1.0}.get(int(grade), 0.0) for grade in grades]
    return max(grades, default=0) - min(grades, default=0)


def update_state(session: Session, item: Item, settings: BookSettings, now: int) -> None:
    """Make state and free slots of an item what its judgments say."""
    session.flush()  # a new item has an id from here on
    _update_states(session, [item], _slots_of(session, [item.id]), settings, now)


def _slots_of(session: Session, item_ids: Collection[int], *, lock: bool = False) -> dict[int, list[Slot]]:
    """Item to its slots, in their order; with `lock`, no queue leases them meanwhile."""
    found: dict[int, list[Slot]] = {item_id: [] for item_id in item_ids}
    query = select(Slot).where(Slot.item_id.in_(item_ids)).order_by(Slot.item_id, Slot.number)
    for slot in session.scalars(query.with_for_update() if lock else query):
        found[slot.item_id].append(slot)
    return found


def _update_states(
    session: Session, items: Collection[Item], slots: Mapping[int, list[Slot]], settings: BookSettings, now: int
) -> None:
    session.flush()
    rows = session.execute(
        select(ItemJudgment.item_id, ItemJudgment.action, ItemJudgment.grade, Event.skip_reason, Event.data)
        .join(Event, Event.id == ItemJudgment.event_id)
        .join(Account, Account.id == ItemJudgment.account_id)
        .where(ItemJudgment.item_id.in_([item.id for item in items]), Account.kind == RaterKind.PERSON)
    ).all()
    grades: defaultdict[int, list[float]] = defaultdict(list)
    decided: defaultdict[int, list[object]] = defaultdict(list)
    experts: Counter[int] = Counter()
    for item_id, action, grade, skip_reason, data in rows:
        if action == Action.GRADE and grade is not None:
            grades[item_id].append(grade)
            decided[item_id].append(decision_key(data))
        experts[item_id] += action == Action.SKIP and skip_reason == SkipReason.EXPERT
    for item in items:
        if item.origin == Origin.REPEAT:
            item.state, missing = ItemState.DONE if grades[item.id] else ItemState.OPEN, 0
        elif item.final is not None:
            item.state, missing = ItemState.ADJUDICATED, 0
        else:
            differs = any(each != decided[item.id][0] for each in decided[item.id])
            item.state, missing = outcome(settings, item.wanted, grades[item.id], experts[item.id], differs=differs)
        _offer(session, item, slots[item.id], missing, now)


def decision_key(data: Mapping[str, object] | None) -> object:
    """What reviewers must agree in beside the verdict: what becomes of the record, and its text. Reasons and hints may differ."""
    given = data or {}
    return given.get("disposition", "keep"), given.get("edits", [])


def _offer(session: Session, item: Item, slots: Sequence[Slot], missing: int, now: int) -> None:
    """Have as many slots that are free or leased as grades are missing; a lease that runs is not taken away."""
    waiting = [slot for slot in slots if slot.state != SlotState.DONE]
    last = max((slot.number for slot in slots), default=0)
    for number in range(last + 1, last + 1 + missing - len(waiting)):
        session.add(Slot(item_id=item.id, number=number, state=SlotState.OPEN))
    surplus = len(waiting) - missing
    free = [slot.id for slot in reversed(waiting) if _is_free(slot, now)]
    if surplus > 0 and free:
        # The condition again: on PostgreSQL a queue may lease one at this moment.
        session.execute(delete(Slot).where(Slot.id.in_(free[:surplus]), is_free(now)))


def _is_free(slot: Slot, now: int) -> bool:
    return slot.state == SlotState.OPEN or (slot.state == SlotState.LEASED and (slot.leased_until or 0) < now)


def is_free(now: int) -> ColumnElement[bool]:
    """The condition that a slot is open, or was leased for a time that is over."""
    return or_(Slot.state == SlotState.OPEN, and_(Slot.state == SlotState.LEASED, Slot.leased_until < now))


def end_leases(session: Session, *conditions: ColumnElement[bool]) -> None:
    """Free the leased slots that fit."""
    leased = update(Slot).where(Slot.state == SlotState.LEASED, *conditions)
    session.execute(leased.values(state=SlotState.OPEN, account_id=None, leased_until=None))


def withdraw(session: Session, item: Item, account_ids: Collection[int], settings: BookSettings, now: int) -> None:
    """Make everything follow from `reopen` events that were just recorded."""
    session.flush()
    slots = _slots_of(session, [item.id], lock=True)
    for account_id in account_ids:
        derive_judgment(session, item, account_id)
        _give_back(slots[item.id], account_id)
    _update_states(session, [item], slots, settings, now)


def apply(session: Session, item: Item, account: Account, action: Action, settings: BookSettings, now: int) -> bool:
    """Make judgment, slot and state follow from an event of a rater that was just recorded; whether a grade has no slot."""
    session.flush()
    if action in (Action.FLAG, Action.UNFLAG):
        item.flagged = bool(flags(session, [item.id]))
        return False
    holds = derive_judgment(session, item, account.id)
    if account.kind != RaterKind.PERSON:
        return False
    extra, slots = False, _slots_of(session, [item.id], lock=True)
    if item.origin != Origin.REPEAT:
        if holds is not None and holds.action == Action.GRADE:
            extra = not _take(slots[item.id], account.id, now)
        elif holds is None and action is Action.UNDO and item.final is None:
            _take(slots[item.id], account.id, now, until=now + settings.lease_seconds * 1000)
        else:
            _give_back(slots[item.id], account.id)
    _update_states(session, [item], slots, settings, now)
    return extra


def apply_many(
    session: Session, events: Sequence[Event], items: Mapping[int, Item], settings: BookSettings, now: int
) -> None:
    """Make everything follow from judgments and final grades that were just recorded, as `apply` does for one event.

    A few statements for all: the last event of a rater and an item holds.

    Raises:
        NotAllowedError: a final grade by a rater of the item.
    """
    ids = {event.item_id for event in events}
    slots = _slots_of(session, ids, lock=True)
    judgments = {
        (row.item_id, row.account_id): row
        for row in session.scalars(select(ItemJudgment).where(ItemJudgment.item_id.in_(ids)))
    }
    query = select(Account.id).where(Account.id.in_({event.account_id for event in events}))
    persons = set(session.scalars(query.where(Account.kind == RaterKind.PERSON)))
    last = {(event.item_id, event.account_id): event for event in events if event.action in JUDGES}
    for (item_id, account_id), event in last.items():
        item = items[item_id]
        row = judgments.get((item_id, account_id))
        if row is None:
            row = judgments[item_id, account_id] = ItemJudgment(item_id=item_id, account_id=account_id)
            session.add(row)
        row.event_id, row.action, row.grade, row.stale = event.id, event.action, event.grade, is_stale(event, item)
        if account_id in persons and item.origin != Origin.REPEAT:
            if event.action == Action.GRADE:
                _take(slots[item_id], account_id, now)
            else:
                _give_back(slots[item_id], account_id)
    final = [event for event in events if event.action == Action.ADJUDICATE]
    for event in final:
        refuse_own(judgments.get((event.item_id, event.account_id)))
        items[event.item_id].final = event.grade
    touched = {item_id for item_id, account_id in last if account_id in persons} | {event.item_id for event in final}
    _update_states(session, [items[item_id] for item_id in sorted(touched)], slots, settings, now)


def _take(slots: Sequence[Slot], account_id: int, now: int, *, until: int | None = None) -> bool:
    """Give a rater the own slot of an item, or a free one: for a grade, or as a lease; whether there was one."""
    own = [slot for slot in slots if slot.account_id == account_id]
    slot = next(iter(own + [slot for slot in slots if _is_free(slot, now)]), None)
    if slot is None:
        return False
    slot.account_id, slot.leased_until = account_id, until
    slot.state = SlotState.DONE if until is None else SlotState.LEASED
    return True


def _give_back(slots: Sequence[Slot], account_id: int) -> None:
    """Make the slot of a rater free."""
    for slot in slots:
        if slot.account_id == account_id:
            slot.account_id, slot.state, slot.leased_until = None, SlotState.OPEN, None


def refuse_own(own: ItemJudgment | None) -> None:
    """Refuse a final grade by a rater who has graded the item."""
    if own is not None and own.action in (Action.GRADE, Action.CARRY):
        raise NotAllowedError("a rater of an item cannot adjudicate it", hint="another lead can")
