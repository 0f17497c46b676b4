"""Judgments, states and slots follow from the log: random actions, then everything is built again from the events alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from tests.unit.conftest import NAMES, HandClock

from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action, Item, ItemState, RaterKind, SkipReason, Slot, SlotState
from cranfield.books.store.standing import outcome
from cranfield.books.store.store import Store
from cranfield.books.store.values import EventRow, ImportedJudgment, ItemFilter

from .conftest import Desk, pool_of

RATERS = ("ann", "bob", "cas", "dan")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["grade", "grade", "grade", "skip", "expert", "later", "undo", "flag", "next", "wait"])
        | st.sampled_from(["adjudicate", "reopen", "reopen stale", "reopen rater", "digest", "model", "import"]),
        st.sampled_from(RATERS),
        st.integers(0, 1),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=12,
)
Standing = dict[tuple[int, str], EventRow]


def take(desk: Desk, lead: int, step: str, rater: str, item: int, number: int) -> None:
    """Do one of the steps."""
    digest = f"text {number % 2}"
    simple: dict[str, Callable[[], object]] = {
        "grade": lambda: desk.grade(rater, item, number, doc_digest=digest),
        "skip": lambda: desk.save(rater, item, Action.SKIP, skip_reason=SkipReason.BROKEN),
        "expert": lambda: desk.save(rater, item, Action.SKIP, skip_reason=SkipReason.EXPERT),
        "later": lambda: desk.save(rater, item, Action.LATER),
        "undo": lambda: desk.save(rater, item, Action.UNDO),
        "flag": lambda: desk.save(rater, item, Action.FLAG if number % 2 else Action.UNFLAG),
        "next": lambda: desk.next(rater, number),
        "wait": lambda: desk.clock.pass_seconds(200 * number),
        "adjudicate": lambda: desk.store.log.adjudicate(item, lead, number, "why", f"final {next(NAMES)}"),
        "reopen": lambda: desk.store.books.reopen(desk.book.id, [item], lead),
        "reopen stale": lambda: desk.store.books.reopen(desk.book.id, ItemFilter(stale=True), lead),
        "reopen rater": lambda: desk.store.books.reopen(desk.book.id, ItemFilter(rater=rater), lead),
        "digest": lambda: desk.store.books.set_digest(item, digest),
        "model": lambda: desk.grade("model", item, number),
        "import": lambda: desk.store.log.import_many(desk.book.id, imported(desk, lead, rater, item, number)),
    }
    simple[step]()


def imported(desk: Desk, lead: int, rater: str, item: int, number: int) -> list[ImportedJudgment]:
    """Rows of one file: several of one item, of which the last of a rater holds."""
    own, model = desk.rater(rater), desk.raters["model"].id
    rows: list[tuple[int, float | None, Action, SkipReason | None]] = [
        (own, number, Action.GRADE, None),
        (own, None, Action.SKIP, SkipReason.EXPERT),
        (own, 3 - number, Action.CARRY if number == 1 else Action.GRADE, None),
        (model, number, Action.CARRY, None),
        (lead, number, Action.ADJUDICATE, None),
    ]
    key = next(NAMES)
    return [
        ImportedJudgment(item, who, f"i{key}.{place}", grade, action, skip_reason=skipped)
        for place, (who, grade, action, skipped) in enumerate(rows[number:])
    ]


def rebuilt(events: tuple[EventRow, ...]) -> tuple[Standing, dict[int, float], dict[int, bool]]:
    """Judgments, final grades and flags, of the events alone."""
    stacks: defaultdict[tuple[int, str], list[EventRow]] = defaultdict(list)
    finals: dict[int, float] = {}
    flags: defaultdict[int, set[str]] = defaultdict(set)
    for event in events:
        stack = stacks[event.item_id, event.account]
        match event.action:
            case Action.UNDO:
                if stack and stack[-1].action is not Action.CARRY:
                    stack.pop()
            case Action.REOPEN:
                finals.pop(event.item_id, None)
                if event.subject is not None:
                    stacks[event.item_id, event.subject].clear()
            case Action.ADJUDICATE:
                finals[event.item_id] = event.grade
            case Action.FLAG:
                flags[event.item_id].add(event.account)
            case Action.UNFLAG:
                flags[event.item_id].discard(event.account)
            case _:
                stack.append(event)
    return (
        {key: stack[-1] for key, stack in stacks.items() if stack},
        finals,
        {item: bool(accounts) for item, accounts in flags.items()},
    )


def check(desk: Desk) -> None:
    standing, finals, flags = rebuilt(desk.store.log.events(desk.book.id))
    stored = {(row.item_id, row.rater): row for row in desk.store.reading.ratings(desk.book.id, skips=True)}
    assert {key: row.event_id for key, row in stored.items()} == {key: event.id for key, event in standing.items()}
    for key, row in stored.items():
        event = standing[key]
        assert (row.action, row.grade, row.skip_reason) == (event.action, event.grade, event.skip_reason)
    for item in desk.store.reading.items(desk.book.id):
        persons = [
            event for (number, _), event in standing.items() if number == item.id and event.kind is RaterKind.PERSON
        ]
        grades = [event.grade for event in persons if event.action is Action.GRADE]
        experts = sum(event.skip_reason is SkipReason.EXPERT for event in persons)
        state, missing = outcome(desk.book.settings, item.wanted, grades, experts)
        if item.id in finals:
            state, missing = ItemState.ADJUDICATED, 0
        assert (item.state, item.final, item.flagged) == (state, finals.get(item.id), flags.get(item.id, False))
        for row in item.ratings:
            digest = standing[item.id, row.rater].doc_digest
            assert row.stale == (None not in (digest, item.doc_digest) and digest != item.doc_digest)
        check_slots(desk, item.id, missing, {event.account_id for event in persons if event.action is Action.GRADE})


def check_slots(desk: Desk, item: int, missing: int, graders: set[int]) -> None:
    with desk.store.database.read() as session:
        slots = session.scalars(select(Slot).where(Slot.item_id == item)).all()
        wanted = session.get_one(Item, item).wanted
    done = [slot.account_id for slot in slots if slot.state == SlotState.DONE]
    leased = [slot.account_id for slot in slots if slot.state == SlotState.LEASED]
    waiting = len(slots) - len(done)
    assert len(set(done)) == len(done) <= len(graders)
    assert set(done) <= graders
    assert not set(leased) & graders
    assert missing <= waiting <= max(missing, len(leased)), (missing, slots, wanted)


def play(store: Store, clock: HandClock, steps: list[tuple[str, str, int, int]], raters: int, most: int) -> None:
    book_settings = BookSettings(raters_per_item=raters, most_raters=most, lease_seconds=300)
    book = store.books.create(f"book {next(NAMES)}", pool_of(1, 2), book_settings)
    desk = Desk(store, clock, book)
    desk.raters["model"] = store.people.find("model") or store.people.add("model", kind=RaterKind.MODEL)
    lead = (store.people.find("lead") or store.people.add("lead")).id
    for name in RATERS:
        store.people.join(book.id, desk.rater(name))
    items = [item.id for item in store.reading.items(book.id)]
    for step, rater, place, number in steps:
        take(desk, lead, step, rater, items[place], number)
    check(desk)


CASES = given(steps=STEPS, raters=st.integers(1, 2), most=st.integers(1, 4))
SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@settings(SETTINGS, max_examples=min(8, settings().max_examples // 5))
@CASES
def test_everything_follows_from_the_log(store, clock, steps, raters, most) -> None:
    play(store, clock, steps, raters, most)


@pytest.mark.slow
@settings(SETTINGS, max_examples=min(150, settings().max_examples))
@CASES
def test_everything_follows_from_the_log_in_many_cases(store, clock, steps, raters, most) -> None:
    play(store, clock, steps, raters, most)
