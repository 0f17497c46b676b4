"""What a rater is given next: blocks, leases, orders, quotas, calibration, repeats, what was put off."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from cranfield.books.store.schema import Action, ItemState, Origin, RaterKind, SkipReason
from cranfield.books.store.values import ItemFilter, NotAllowedError

from .conftest import Desk, pool_of


def test_a_lease_is_of_a_whole_query(desk_of) -> None:
    desk = desk_of(pool_of(3, 4))
    first = desk.next("ann", 2)
    assert len(first) == 2
    assert desk.store.reading.coverage(desk.book.id).n_leased == 4
    rest = desk.next("ann", 5, holding=tuple(item.item_id for item in first))
    assert [item.query for item in rest] == [first[0].query] * 2 + [rest[2].query] * 3
    assert rest[2].query != first[0].query


def test_an_item_says_where_it_stands_in_the_queue_of_its_rater(desk_of) -> None:
    desk = desk_of(pool_of(3, 4))
    given = desk.next("ann", 12)
    assert [(item.query_number, item.number) for item in given] == [(q, n) for q in (1, 2, 3) for n in (1, 2, 3, 4)]
    assert {(item.n_queries, item.n_of_query) for item in given} == {(3, 4)}


def test_what_a_page_holds_is_not_given_again_and_what_it_lost_is(desk_of) -> None:
    desk = desk_of(pool_of(1, 4))
    first = [item.item_id for item in desk.next("ann", 2)]
    held = desk.next("ann", 2, holding=tuple(first))
    assert not {item.item_id for item in held} & set(first)
    assert [item.item_id for item in desk.next("ann", 4)][:2] == first  # the page was loaded anew


def test_two_raters_never_hold_one_slot(desk_of) -> None:
    desk = desk_of(pool_of(2, 3))
    anns, bobs = desk.next("ann", 6), desk.next("bob", 6)
    assert len(anns) == 6
    assert bobs == ()


def test_what_others_hold_is_counted_where_nothing_is_left_until_the_first_lease_ends(desk_of, clock) -> None:
    desk = desk_of(pool_of(2, 3), lease_seconds=60)

    def held(rater: str) -> tuple[int, int, int | None]:
        found = desk.store.reading.progress(desk.book.id, desk.rater(rater))
        return found.n_left, found.n_leased, found.leased_until

    first = desk.next("ann", 3)
    start = clock()
    clock.pass_seconds(10)
    desk.next("ann", 6, holding=[item.item_id for item in first])
    assert held("ann") == (6, 0, None)
    assert held("bob") == (0, 6, start + 60_000)
    for item in first:
        desk.grade("ann", item.item_id, 1)
    assert held("bob") == (0, 3, start + 70_000)
    desk.store.people.join(desk.book.id, desk.rater("bob"), 0)
    assert held("bob") == (0, 0, None)  # there would be nothing for bob later
    desk.store.people.join(desk.book.id, desk.rater("bob"))
    clock.pass_seconds(60.001)
    assert held("bob") == (3, 0, None)


def test_what_a_rater_skipped_is_not_waited_for_where_others_hold_it(desk_of) -> None:
    desk = desk_of(pool_of(1, 4), lease_seconds=60)
    for item in desk.next("bob", 4)[:3]:
        desk.save("bob", item.item_id, Action.SKIP, skip_reason=SkipReason.EXPERT)
    desk.clock.pass_seconds(61)
    assert len(desk.next("ann", 4)) == 4
    found = desk.store.reading.progress(desk.book.id, desk.rater("bob"))
    assert (found.n_left, found.n_leased) == (0, 1)


def test_each_rater_has_an_order_of_his_or_her_own_and_the_seed_repeats_it(desk_of) -> None:
    def orders(desk: Desk) -> dict[str, list[str]]:
        return {name: [f"{item.query}{item.doc}" for item in desk.next(name, 100)] for name in ("ann", "bob")}

    settings = {"raters_per_item": 2, "seed": 3}
    desk = desk_of(pool_of(4, 3), **settings)
    first = orders(desk)
    assert sorted(first["ann"]) == sorted(first["bob"])
    assert first["ann"] != first["bob"]
    ann = desk.rater("ann")
    desk.store.people.leave(desk.book.id, ann)
    desk.store.people.join(desk.book.id, ann)
    assert [f"{item.query}{item.doc}" for item in desk.next("ann", 100)] == first["ann"]


def test_an_expired_lease_goes_to_another_rater(desk_of) -> None:
    desk = desk_of(pool_of(1, 3), lease_seconds=60)
    desk.next("ann", 3)
    desk.clock.pass_seconds(59)
    assert desk.next("bob", 3) == ()
    desk.clock.pass_seconds(2)
    assert len(desk.next("bob", 3)) == 3
    assert desk.next("ann", 3) == ()


def test_activity_renews_all_leases_of_a_rater(desk_of) -> None:
    desk = desk_of(pool_of(1, 3), lease_seconds=60)
    desk.next("ann", 3)
    for _ in range(5):
        desk.clock.pass_seconds(50)
        assert desk.store.queue.renew(desk.book.id, desk.rater("ann")) == 3
    assert desk.next("bob", 3) == ()


def test_a_rater_gets_an_expired_lease_again_where_no_other_rater_took_it(desk_of) -> None:
    desk = desk_of(pool_of(4, 3), lease_seconds=60)
    first = [item.item_id for item in desk.next("ann", 3)]
    desk.clock.pass_seconds(3600)
    assert [item.item_id for item in desk.next("ann", 3)] == first


def test_a_share_of_the_items_is_judged_by_several(desk_of) -> None:
    desk = desk_of(pool_of(2, 5), raters_per_item=2, overlap=0.3)
    wanted = [item.wanted for item in desk.store.reading.items(desk.book.id)]
    assert sorted(wanted) == [1] * 7 + [2] * 3  # 0.3 of 10
    shown = {name: set(desk.judge_all(name)) for name in ("ann", "bob")}
    assert len(shown["ann"]) == 10
    assert len(shown["bob"]) == 3


def test_every_pair_of_raters_shares_items(desk_of) -> None:
    desk, names = desk_of(pool_of(6, 3), raters_per_item=2), ["ann", "bob", "cas"]
    for name in names:
        desk.rater(name)
    draw, active = random.Random(1), set(names)
    while active:
        name = draw.choice(sorted(active))
        if not desk.judge_all(name, most=draw.randint(1, 6)):
            active.discard(name)
    raters: dict[int, set[str]] = {}
    for row in desk.store.reading.ratings(desk.book.id):
        raters.setdefault(row.item_id, set()).add(row.rater)
    shared = Counter(frozenset(pair) for pair in raters.values())
    assert len(shared) == 3
    assert min(shared.values()) >= 3  # 6 if all were equal


def test_a_quota_ends_the_queue_of_a_rater(desk_of) -> None:
    desk = desk_of(pool_of(3, 4), quota=5)
    assert len(desk.judge_all("ann")) == 5
    assert desk.next("ann") == ()
    assert desk.store.reading.progress(desk.book.id, desk.rater("ann")).n_left == 0
    assert desk.store.reading.coverage(desk.book.id).n_leased == 0
    desk.rater("bob", quota=2)
    assert len(desk.judge_all("bob")) == 2


def test_queries_with_calibration_items_come_first_and_these_stand_among_the_others(desk_of) -> None:
    desk = desk_of(pool_of(6, 4), raters_per_item=2)
    desk.store.books.calibration(desk.book.id, [("q4", f"gold {n}", n % 4, "clear") for n in range(3)])
    golds = {item.id for item in desk.store.reading.items(desk.book.id) if item.gold is not None}
    places = set()
    for name in ("ann", "bob"):
        given = desk.next(name, 10)
        assert [item.query == "q4" for item in given] == [True] * 7 + [False] * 3
        assert {(item.number, item.n_of_query) for item in given[:7]} == {(place, 7) for place in range(1, 8)}
        places |= {place for place, item in enumerate(given) if item.item_id in golds}
        desk.judge_all(name)
        recent = {row.item_id for row in desk.store.reading.recent(desk.book.id, desk.rater(name), 50)}
        assert golds <= recent
    assert len(places) > 3
    assert desk.next("cas", 10) == ()  # each has its raters, as every item has
    assert desk.store.reading.coverage(desk.book.id).n_items == 24
    graded = [row for row in desk.store.reading.ratings(desk.book.id) if row.gold is not None]
    assert len(graded) == 6
    assert not any(row.extra for row in graded)


def test_a_pooled_document_can_be_made_a_calibration_item(desk_of) -> None:
    desk = desk_of(pool_of(1, 3), raters_per_item=2)
    desk.store.books.calibration(desk.book.id, [("q0", "a", 3, "clear")])
    gold = desk.item("q0", "a")
    assert (gold.origin, gold.gold, gold.n_slots) == (Origin.POOL, 3, 2)
    assert [gold.id in desk.judge_all(name) for name in ("ann", "bob", "cas")] == [True, True, False]
    assert desk.state(gold.id) == ItemState.DONE


def test_hidden_repeats_come_later_to_the_same_rater(desk_of) -> None:
    desk = desk_of(pool_of(5, 6), repeats=0.1)
    seen = desk.judge_all("ann")
    items = [desk.store.reading.item(item) for item in seen]
    repeats = [(place, item) for place, item in enumerate(items) if item.repeat_of is not None]
    assert len(repeats) == 3  # a tenth of 30
    assert all(place - seen.index(item.repeat_of) > 3 for place, item in repeats)
    assert sum(place - seen.index(item.repeat_of) > 10 for place, item in repeats) >= 2
    rows = [row for row in desk.store.reading.ratings(desk.book.id) if row.origin is Origin.REPEAT]
    assert {row.repeat_of for row in rows} == {item.repeat_of for _, item in repeats}
    coverage, progress = (
        desk.store.reading.coverage(desk.book.id),
        desk.store.reading.progress(desk.book.id, desk.rater("ann")),
    )
    assert (coverage.n_items, coverage.n_extra, progress.n_done) == (30, 0, 33)


def test_nothing_on_a_repeat_shows_that_it_is_one(desk_of) -> None:
    desk = desk_of(pool_of(2, 5), repeats=0.2)
    given = {}
    while items := desk.next("ann", 1):
        (item,) = items
        given[item.item_id] = item
        desk.grade("ann", item.item_id, 1)
    repeat = next(item for item in given.values() if desk.store.reading.item(item.item_id).repeat_of is not None)
    first = given[desk.store.reading.item(repeat.item_id).repeat_of]
    for name in ("query", "doc", "fields", "number", "query_number", "grade", "reason", "action", "swapped"):
        assert getattr(repeat, name) == getattr(first, name), name
    assert {item.n_of_query for item in given.values()} == {5}


def test_a_repeat_is_for_its_rater_only(desk_of) -> None:
    desk = desk_of(pool_of(2, 5), repeats=0.2)
    (repeat, *_) = [item for item in desk.judge_all("ann") if desk.store.reading.item(item).repeat_of is not None]
    assert desk.next("bob") == ()
    assert desk.store.queue.own(desk.book.id, desk.rater("ann"), repeat).grade == 1
    with pytest.raises(Exception, match=r"item .* not found"):
        desk.store.queue.own(desk.book.id, desk.rater("bob"), repeat)


def test_what_was_put_off_holds_no_slot_and_comes_at_the_end(desk_of) -> None:
    desk = desk_of(pool_of(2, 3))
    first = desk.next("ann", 1)[0].item_id
    desk.save("ann", first, Action.LATER)
    seen = desk.judge_all("ann")
    assert seen[-1] == first
    assert len(seen) == 6


def test_another_rater_can_take_what_was_put_off(desk_of) -> None:
    desk = desk_of(pool_of(1, 1))
    item = desk.next("ann", 1)[0].item_id
    desk.save("ann", item, Action.LATER)
    assert [given.item_id for given in desk.next("bob", 1)] == [item]
    assert desk.next("ann", 1) == ()


def test_what_was_put_off_twice_comes_again(desk_of) -> None:
    desk = desk_of(pool_of(1, 2))
    one, two = (item.item_id for item in desk.next("ann", 2))
    for item in (one, two, one):
        desk.save("ann", item, Action.LATER)
    assert [item.item_id for item in desk.next("ann", 2)] == [two, one]  # the one that waits longest first
    assert [item.action for item in desk.next("ann", 2)] == [Action.LATER] * 2


def test_a_skipped_item_is_not_given_to_that_rater_again(desk_of) -> None:
    desk = desk_of(pool_of(1, 2))
    item = desk.next("ann", 1)[0].item_id
    desk.save("ann", item, Action.SKIP, skip_reason=SkipReason.BROKEN)
    assert item not in desk.judge_all("ann")
    assert [given.item_id for given in desk.next("bob", 5)] == [item]


def test_a_rater_is_never_given_an_item_twice(desk_of) -> None:
    desk = desk_of(pool_of(2, 2), raters_per_item=3)
    seen = {name: desk.judge_all(name) for name in ("ann", "bob", "cas", "dan")}
    assert [len(items) for items in seen.values()] == [4, 4, 4, 0]
    assert all(len(set(items)) == len(items) for items in seen.values())


def test_a_closed_book_gives_nothing_and_leases_end(desk_of) -> None:
    desk = desk_of()
    desk.next("ann")
    desk.store.books.close(desk.book.id)
    assert desk.next("ann") == ()
    assert desk.store.reading.coverage(desk.book.id).n_leased == 0
    desk.store.books.open(desk.book.id)
    assert desk.next("ann") != ()


def test_only_active_members_are_given_items(desk_of) -> None:
    desk = desk_of()
    desk.next("ann")
    desk.store.people.leave(desk.book.id, desk.rater("ann"))
    with pytest.raises(NotAllowedError, match="not a member"):
        desk.next("ann")
    desk.next("bob")
    desk.store.people.set_active(desk.rater("bob"), active=False)
    with pytest.raises(NotAllowedError, match="not active"):
        desk.next("bob")
    model = desk.store.people.add("judge-1", kind=RaterKind.MODEL)
    desk.store.people.join(desk.book.id, model.id)
    with pytest.raises(NotAllowedError, match="not a person"):
        desk.store.queue.next_items(desk.book.id, model.id)
    assert desk.store.reading.coverage(desk.book.id).n_leased == 0


def test_carried_and_prefilled_items_are_given_to_no_rater(desk_of) -> None:
    desk = desk_of(pool_of(1, 3, q0a={"judged": 2}, q0b={"prefilled": 1}))
    assert [item.doc for item in desk.next("ann")] == ["c"]
    kinds = {row.doc: row.kind for row in desk.store.reading.ratings(desk.book.id)}
    assert kinds == {"a": RaterKind.CARRIED, "b": RaterKind.RULE}


def test_the_lists_of_a_preference_change_sides_by_rater(desk_of) -> None:
    desk = desk_of(pool_of(24, 1), mode="preference", raters_per_item=2)
    sides = {name: {item.query: item.swapped for item in desk.next(name, 24)} for name in ("ann", "bob")}
    assert 2 < sum(sides["ann"].values()) < 22  # binomial, 24 draws of 1/2: 4 standard deviations are 9.8
    assert sides["ann"] != sides["bob"]


def test_an_item_that_needs_a_rater_whom_the_book_lacks_is_found(desk_of) -> None:
    desk = desk_of(pool_of(1, 2), raters_per_item=2)
    for name, grade in (("ann", 0), ("bob", 3)):
        desk.judge_all(name, lambda item, grade=grade: grade if item.doc == "a" else 1)
    where = ItemFilter(needs_rater=True)
    assert [item.doc for item in desk.store.reading.items(desk.book.id, where=where)] == ["a"]
    assert desk.store.reading.coverage(desk.book.id).n_needs_rater == 1
    desk.rater("cas")
    assert desk.store.reading.count(desk.book.id, where) == 0


def test_repeats_are_never_next_to_what_they_repeat(desk_of) -> None:
    desk = desk_of(pool_of(1, 6), repeats=0.5)
    seen = [desk.store.reading.item(item) for item in desk.judge_all("ann")]
    originals = [item.repeat_of or item.id for item in seen]
    assert len(seen) > 6
    assert all(one != other for one, other in pairwise(originals))
