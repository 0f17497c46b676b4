"""Calibration items in the queue of a rater: they come with other items, and go away as those do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from cranfield.judging.quality import book_quality
from cranfield.judging.selection import Selection, selected_items
from cranfield.judging.store.schema import Action, SkipReason
from cranfield.judging.store.values import Assignment

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


def test_what_is_put_off_alone_goes_away_too(known_desk) -> None:
    desk = known_desk()
    items = desk.next("ann", EVERYTHING)
    for item in items:
        if item.doc == "e" or (item.query, item.doc) == ("q0", "a"):
            desk.save("ann", item.item_id, Action.LATER)
        else:
            desk.grade("ann", item.item_id, 1)
    assert n_left(desk, "ann") == 4
    assert [item.doc for item in desk.next("bob", EVERYTHING)] == ["a"]
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


def test_a_grade_of_what_another_rater_would_have_taken_is_saved_and_not_counted(known_desk) -> None:
    desk = known_desk()
    (early, late, _) = (item for item in desk.next("ann", EVERYTHING) if item.doc == "e")
    desk.grade("ann", early.item_id, 3)
    desk.clock.pass_seconds(61)
    take_all(desk, "bob")
    desk.grade("ann", late.item_id, 3)
    lines = {line.rater: line.n_gold for line in book_quality(desk.store, desk.book).raters}
    assert lines["ann"] == 1
    right = selected_items(desk.store, desk.book.id, 0, Selection(rater="ann", gold="right"))
    assert [item.id for item in right] == [early.item_id]


def test_raters_share_the_queries_that_have_calibration_items(known_desk) -> None:
    desk = known_desk()
    for name in ("ann", "bob"):
        desk.rater(name)
    given = {}
    for name in ("ann", "bob"):
        items = given[name] = desk.next(name, 9)
        assert known(items) == list(dict.fromkeys(item.query for item in items))  # one of each query
        assert [item.query_number for item in items] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
        assert {item.n_of_query for item in items} == {3}
    both = {item.item_id for item in given["ann"]} & {item.item_id for item in given["bob"]}
    assert len(both) == 3


def test_what_a_rater_leaves_to_others_comes_in_the_end(known_desk) -> None:
    desk = known_desk()
    desk.rater("bob")
    items = desk.next("ann", EVERYTHING)
    assert len(items) == 15
    assert known(items[9:]) == []
    assert n_left(desk, "ann") == 15


def test_queries_are_numbered_in_the_order_in_which_they_come(desk_of) -> None:
    desk = desk_of(pool_of(6, 4))
    desk.store.books.calibration(desk.book.id, [("q4", "a", 3, ""), ("q2", "a", 3, "")])
    items = desk.next("ann", EVERYTHING)
    numbers = [item.query_number for item in items]
    assert numbers == sorted(numbers)
    assert {item.query for item in items if item.query_number <= 2} == {"q2", "q4"}


def test_a_calibration_item_comes_with_two_others_of_its_query(desk_of) -> None:
    desk = desk_of(pool_of(2, 5))
    desk.store.books.calibration(desk.book.id, [("q0", doc, 3, "") for doc in "abc"])
    items = desk.next("ann", EVERYTHING)
    assert [item.query for item in items].count("q0") == 3
    assert len(items) == 8
    assert n_left(desk, "ann") == 8


def test_a_quota_has_room_for_calibration_items(known_desk) -> None:
    desk = known_desk(quota=3)
    assert len(known(desk.next("ann", EVERYTHING))) == 1


def test_a_calibration_item_is_at_any_place_among_few_others(desk_of) -> None:
    desk = desk_of(pool_of(1, 61), quota=3)
    desk.store.books.calibration(desk.book.id, [("q0", "a", 3, "")])
    places = Counter([item.doc for item in desk.next(f"rater {n}", 3)].index("a") for n in range(30))
    assert set(places) == {0, 1, 2}
    assert max(places.values()) < 20  # binomial, 30 draws of 1/3: 4 standard deviations are 10.3


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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_rater_did_calibration_items_are_not_what_others_leave(desk_of, seed: int) -> None:
    draw = random.Random(seed)
    settings = {"raters_per_item": 1 + seed % 2, "repeats": 0.2 * (seed % 4 > 1), "quota": draw.choice([None, 9])}
    desk = desk_of(pool_of(4, 5), lease_seconds=60, seed=seed, **settings)
    golds = [(f"q{n}", doc, 3, "") for n in range(4) for doc in draw.sample("abcde", draw.randrange(3))]
    desk.store.books.calibration(desk.book.id, golds)
    given: dict[str, list[int]] = {"ann": [], "bob": [], "cas": []}
    for _ in range(40):
        name = draw.choice(sorted(given))
        action = draw.choice([None, Action.GRADE, Action.GRADE, Action.LATER, Action.SKIP, Action.UNDO])
        if action is None or not given[name]:
            desk.clock.pass_seconds(draw.choice([5, 20, 61]))
            given[name] += [item.item_id for item in desk.next(name, draw.choice([1, 3, EVERYTHING]))]
            continue
        fields = {Action.GRADE: {"grade": 1}, Action.SKIP: {"skip_reason": SkipReason.BROKEN}}.get(action, {})
        desk.save(name, draw.choice(given[name]), action, **fields)
    desk.clock.pass_seconds(61)
    for name in ("bob", "cas", "bob", "cas"):
        take_all(desk, name)
    left = [desk.store.reading.item(item.item_id) for item in desk.next("ann", EVERYTHING)]
    if any(item.gold is not None for item in left):
        assert any(item.gold is None and item.repeat_of is None for item in left)
    take_all(desk, "ann")
    assert n_left(desk, "ann") == 0
