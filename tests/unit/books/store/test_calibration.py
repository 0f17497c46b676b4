"""Calibration items in the queue of a rater: in all but the order of queries they are items as the others are."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.conftest import HandClock

from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action, ItemState, Role, SkipReason
from cranfield.books.store.values import Assignment, ItemFilter
from cranfield.judging.book.freeze import is_unfinished

from .conftest import Desk, pool_of

EVERYTHING = 100


@pytest.fixture
def known_desk(desk_of) -> Callable[..., Desk]:
    """Three queries of five documents, of which the last is a calibration item."""

    def make(**settings: object) -> Desk:
        desk = desk_of(pool_of(3, 5), **{"lease_seconds": 60, **settings})
        desk.store.books.calibration(desk.book.id, [(f"q{n}", "e", 3, "clear") for n in range(3)])
        return desk

    return make


def n_left(desk: Desk, name: str) -> int:
    return desk.store.reading.progress(desk.book.id, desk.rater(name)).n_left


def known(items: tuple[Assignment, ...]) -> list[str]:
    return [item.query for item in items if item.doc == "e"]


def take_all(desk: Desk, name: str) -> None:
    while items := desk.next(name, EVERYTHING):
        for item in items:
            desk.grade(name, item.item_id, 1)


def test_who_comes_when_everything_is_judged_gets_nothing(known_desk) -> None:
    desk = known_desk()
    take_all(desk, "ann")
    assert desk.next("bob", EVERYTHING) == ()
    assert n_left(desk, "bob") == 0


def test_after_a_lease_that_another_rater_took_nothing_is_left(known_desk) -> None:
    desk = known_desk()
    assert sorted(known(desk.next("ann", EVERYTHING))) == ["q0", "q1", "q2"]
    desk.clock.pass_seconds(61)
    desk.rater("bob")
    take_all(desk, "bob")
    assert n_left(desk, "ann") == 0
    assert desk.next("ann", EVERYTHING) == ()


def test_of_a_query_that_another_rater_took_nothing_is_left(known_desk) -> None:
    desk = known_desk()
    (first, *_) = desk.next("ann", 1)
    desk.clock.pass_seconds(61)
    while desk.item(first.query, "a").ratings == ():
        for item in desk.next("bob", 1):
            desk.grade("bob", item.item_id, 1)
    assert first.query not in {item.query for item in desk.next("ann", EVERYTHING)}


@pytest.mark.parametrize("put_back", ["later", "skip and undo"])
def test_of_what_was_put_back_and_taken_nothing_is_left(known_desk, put_back: str) -> None:
    desk = known_desk()
    items = desk.next("ann", EVERYTHING)
    assert len(items) == 15
    for item in items:
        if put_back == "later":
            desk.save("ann", item.item_id, Action.LATER)
        else:
            desk.save("ann", item.item_id, Action.SKIP, skip_reason=SkipReason.BROKEN)
    take_all(desk, "bob")
    if put_back != "later":
        for item in items:
            desk.save("ann", item.item_id, Action.UNDO)
    assert n_left(desk, "ann") == 0
    assert desk.next("ann", EVERYTHING) == ()


def test_a_lease_that_an_undo_made_anew_keeps_no_other_item(known_desk) -> None:
    desk = known_desk()
    items = desk.next("ann", EVERYTHING)
    kept = next(item for item in items if item.doc == "a")
    desk.clock.pass_seconds(20)
    desk.save("ann", kept.item_id, Action.LATER)
    desk.save("ann", kept.item_id, Action.UNDO)
    desk.clock.pass_seconds(50)
    take_all(desk, "bob")
    assert [item.item_id for item in desk.next("ann", EVERYTHING)] == [kept.item_id]


def test_of_what_a_lead_took_from_a_rater_nothing_is_left(known_desk) -> None:
    desk = known_desk()
    assert len(desk.next("ann", EVERYTHING)) == 15
    desk.store.books.close(desk.book.id)
    desk.store.books.open(desk.book.id)
    take_all(desk, "bob")
    assert desk.next("ann", EVERYTHING) == ()


def test_what_other_raters_leave_stays(known_desk) -> None:
    desk = known_desk(raters_per_item=2)
    items = desk.next("ann", EVERYTHING)
    for item in items:
        desk.save("ann", item.item_id, Action.LATER)
    take_all(desk, "bob")
    assert len(desk.next("ann", EVERYTHING)) == 15
    for item in items:
        desk.save("ann", item.item_id, Action.LATER)
    take_all(desk, "cas")
    assert desk.next("ann", EVERYTHING) == ()


def test_queries_are_numbered_in_the_order_in_which_they_come(desk_of) -> None:
    desk = desk_of(pool_of(6, 4))
    desk.store.books.calibration(desk.book.id, [("q4", "a", 3, ""), ("q2", "a", 3, "")])
    items = desk.next("ann", EVERYTHING)
    numbers = [item.query_number for item in items]
    assert numbers == sorted(numbers)
    assert {item.query for item in items if item.query_number <= 2} == {"q2", "q4"}


def test_an_item_that_becomes_a_calibration_item_is_given_once(desk_of) -> None:
    desk = desk_of(pool_of(1, 4))
    desk.next("ann", 1)
    desk.store.books.calibration(desk.book.id, [("q0", "a", 3, "")])
    assert sorted(item.doc for item in desk.next("ann", EVERYTHING)) == ["a", "b", "c", "d"]


def test_the_progress_of_a_rater_does_not_tell_a_repeat(desk_of) -> None:
    desk = desk_of(pool_of(4, 5), repeats=0.2, quota=18)
    desk.store.books.calibration(desk.book.id, [(f"q{n}", "e", 3, "") for n in range(4)])

    def counts() -> tuple[int, ...]:
        found = desk.store.reading.progress(desk.book.id, desk.rater("ann"))
        return found.n_done, found.n_left, found.n_skipped, found.n_later, found.n_seen

    seen, before, n_repeats = [], counts(), 0
    assert before[1] == 21  # 18, and a fifth of them again
    while items := desk.next("ann", 1):
        steps = [counts()]
        desk.save("ann", items[0].item_id, Action.LATER)
        steps.append(counts())
        desk.save("ann", items[0].item_id, Action.UNDO)
        desk.grade("ann", items[0].item_id, 1)
        steps.append(counts())
        seen.append(tuple(tuple(b - a for a, b in zip(before, each, strict=True)) for each in steps))
        n_repeats += desk.store.reading.item(items[0].item_id).repeat_of is not None
        before = counts()
    assert (n_repeats, before[:2]) == (3, (21, 0))
    assert set(seen) == {((0, 0, 0, 0, 0), (0, 0, 0, 1, 1), (1, -1, 0, 0, 1))}


def test_a_repeat_that_was_put_off_comes_again_in_its_turn(desk_of) -> None:
    desk = desk_of(pool_of(2, 5), repeats=0.2, quota=10)
    put_off: list[int] = []
    order = []
    while items := desk.next("ann", 1):
        (item,) = items
        order.append(item.item_id)
        if not put_off and desk.store.reading.item(item.item_id).repeat_of is not None:
            desk.save("ann", item.item_id, Action.LATER)
            put_off.append(item.item_id)
        else:
            desk.grade("ann", item.item_id, 1)
    assert order.count(put_off[0]) == 2


def seen_by_raters(desk: Desk, golds: list[tuple[str, str]], seed: int) -> list[object]:
    """All that three raters see of a book in which they do, one after the other, whatever may be done."""
    desk.store.books.calibration(desk.book.id, [(query, doc, 3, "") for query, doc in golds])
    lead = desk.store.people.add("lead", Role.LEAD).id
    draw, seen = random.Random(seed), []
    given: dict[str, list[int]] = {"ann": [], "bob": [], "cas": []}
    for step in range(60):
        name = draw.choice(sorted(given))
        action = draw.choice([None, Action.GRADE, Action.GRADE, Action.LATER, Action.SKIP, Action.UNDO, "decide"])
        if action is None or not given[name]:
            desk.clock.pass_seconds(draw.choice([5, 20, 61]))
            items = desk.next(name, draw.choice([1, 3, EVERYTHING]))
            given[name] += [item.item_id for item in items]
            seen += items
        elif action == "decide":
            for item in desk.store.reading.items(desk.book.id, ItemFilter(state=ItemState.ADJUDICATE)):
                desk.store.log.adjudicate(item.id, lead, 2, "why", f"final {step} {item.id}")
                seen.append(item.id)
        else:
            skip = draw.choice([SkipReason.BROKEN, SkipReason.EXPERT])
            fields = {Action.GRADE: {"grade": draw.choice([0, 3])}, Action.SKIP: {"skip_reason": skip}}
            item = draw.choice(given[name])
            seen.append(desk.save(name, item, action, f"step {step}", **fields.get(action, {})))
        seen.append(replace(desk.store.reading.progress(desk.book.id, desk.rater(name)), median_ms=None))
    return seen


@pytest.mark.parametrize("seed", [0, 1, 9])  # with each value of each setting
def test_no_rater_sees_which_documents_of_a_query_are_known(renew_sqlite, clock, seed: int) -> None:
    draw = random.Random(seed)
    settings = BookSettings(
        lease_seconds=60,
        seed=seed,
        raters_per_item=1 + seed % 2,
        overlap=draw.choice([0.5, 1]),
        repeats=draw.choice([0, 0.3]),
        quota=draw.choice([None, 9]),
        calibration_first=draw.choice([0, 5]),
    )
    seen = []
    for docs in ("a", "e", "bcd"):
        store, clock.now = renew_sqlite(), HandClock().now
        desk = Desk(store, clock, store.books.create("book", pool_of(4, 5), settings))
        seen.append(seen_by_raters(desk, [(query, doc) for query in ("q1", "q3") for doc in docs], seed))
        store.close()
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) > 100


def test_a_book_with_calibration_items_can_be_finished(known_desk) -> None:
    desk = known_desk(raters_per_item=2)
    desk.judge_all("ann", lambda _: 0)
    assert is_unfinished(desk.store, desk.book.id)
    desk.judge_all("bob", lambda _: 3)
    states = {item.doc: item.state for item in desk.store.reading.items(desk.book.id)}
    assert (states["a"], states["e"]) == (ItemState.OPEN, ItemState.OPEN)  # they differ: a third rater
    desk.judge_all("cas", lambda _: 3)
    lead = desk.store.people.add("lead", Role.LEAD).id
    for item in desk.store.reading.items(desk.book.id):
        assert item.state == ItemState.ADJUDICATE
        desk.store.log.adjudicate(item.id, lead, 3, "why", f"final {item.id}")
    for item in desk.store.reading.items(desk.book.id):
        desk.save("ann", item.id, Action.UNDO)
    assert desk.next("ann", EVERYTHING) == ()  # what is decided comes to no rater again
    assert desk.next("dan", EVERYTHING) == ()
    assert not is_unfinished(desk.store, desk.book.id)


def test_what_is_put_off_is_among_what_is_left_until_others_take_it(desk_of) -> None:
    desk = desk_of(pool_of(1, 6))
    items = desk.next("ann", EVERYTHING)
    for item in items[:3]:
        desk.save("ann", item.item_id, Action.LATER)

    def counts() -> tuple[int, int]:
        found = desk.store.reading.progress(desk.book.id, desk.rater("ann"))
        return found.n_later, found.n_left

    assert counts() == (3, 6)
    take_all(desk, "bob")
    assert counts() == (0, 3)


def test_an_undone_grade_leaves_no_slot_that_is_done(desk_of) -> None:
    desk = desk_of(pool_of(1, 1))
    (item,) = desk.next("ann", 1)
    desk.grade("ann", item.item_id, 1)
    desk.store.books.calibration(desk.book.id, [("q0", "a", 3, "")])
    desk.save("ann", item.item_id, Action.UNDO)
    assert desk.store.reading.coverage(desk.book.id).n_slots_done == 0
