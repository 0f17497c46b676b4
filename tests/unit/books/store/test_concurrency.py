"""Raters at once: no slot twice, nothing lost, nothing doubled, no locked database."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

from cranfield.books.store.schema import Action, ItemState
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest

from .conftest import Desk, pool_of


def judge(desk: Desk, name: str, start: Barrier) -> Counter[int]:
    """Judge to the end, in threads of one program; what was given, counted."""
    account, seen, number = desk.rater(name), Counter[int](), 0
    start.wait(30)
    while given := desk.store.queue.next_items(desk.book.id, account, 2):
        for item in given:
            number += 1
            request = SaveRequest(desk.book.id, item.item_id, account, Action.GRADE, f"{name} {number}", 1)
            saved = [desk.store.log.save(request) for _ in range(2)]  # a page that sends everything twice
            assert [row.duplicate for row in saved] == [False, True]
            seen[item.item_id] += 1
    return seen


@pytest.mark.parametrize("threads", [4])
def test_raters_at_once_get_each_slot_once(desk_of, threads) -> None:
    desk = desk_of(pool_of(4, 4), raters_per_item=2)
    names = [f"rater {number}" for number in range(threads)]
    for name in names:
        desk.rater(name)
    start = Barrier(threads)
    with ThreadPoolExecutor(threads) as pool:
        seen = list(pool.map(lambda name: judge(desk, name, start), names))
    assert all(set(items.values()) <= {1} for items in seen)
    total = sum(seen, Counter())
    assert set(total.values()) == {2}
    assert len(total) == 16
    rows, coverage = desk.store.reading.ratings(desk.book.id), desk.store.reading.coverage(desk.book.id)
    assert len(rows) == len(desk.store.log.events(desk.book.id)) == 32
    assert not any(row.extra for row in rows)
    assert (coverage.n_slots, coverage.n_slots_done, coverage.states[ItemState.DONE]) == (32, 32, 16)
    ids = [event.id for event in desk.store.log.events(desk.book.id)]
    assert ids == sorted(ids)


def test_two_tabs_of_one_rater_share_his_or_her_leases(desk_of) -> None:
    desk = desk_of(pool_of(6, 2), raters_per_item=2)
    account, start = desk.rater("ann"), Barrier(3)

    def ask(_: int) -> list[int]:
        start.wait(30)
        return [item.item_id for item in desk.store.queue.next_items(desk.book.id, account, 2)]

    with ThreadPoolExecutor(3) as pool:
        given = list(pool.map(ask, range(3)))
    assert given[0] == given[1] == given[2]
    assert desk.store.reading.coverage(desk.book.id).n_leased == 2


def test_one_key_at_once_is_saved_once(desk_of) -> None:
    desk = desk_of(pool_of(1, 1))
    item, account, start = desk.item("q0", "a").id, desk.rater("ann"), Barrier(4)

    def save(_: int) -> bool:
        start.wait(30)
        return desk.store.log.save(SaveRequest(desk.book.id, item, account, Action.GRADE, "k", 1)).duplicate

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(save, range(4))) == [False, True, True, True]
    assert len(desk.store.log.events(desk.book.id)) == 1


PROGRAM = """
import sys
from cranfield.books.store.store import open_store
from cranfield.books.store.schema import Action
from cranfield.books.store.values import SaveRequest
address, name = sys.argv[1:]
store = open_store(address)
account = store.people.add(name).id
book = store.books.get("shop").id
store.people.join(book, account)
n = 0
while given := store.queue.next_items(book, account, 3):
    for item in given:
        n += 1
        store.log.save(SaveRequest(book, item.item_id, account, Action.GRADE, f"{n}", 1))
print(n)
store.close()
"""


@pytest.mark.slow
def test_several_programs_use_one_database(store, address_of_store) -> None:
    from cranfield.books.settings import BookSettings

    store.books.create("shop", pool_of(5, 6), BookSettings(raters_per_item=2))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, address_of_store, f"rater {number}"], stdout=-1, stderr=-1, text=True
        )
        for number in range(3)
    ]
    done = [process.communicate(timeout=120) for process in running]
    assert [err for _, err in done] == [""] * 3
    assert sum(int(out) for out, _ in done) == 60
    assert store.reading.coverage(1).n_slots_done == 60


@pytest.mark.slow
def test_several_programs_make_one_database(tmp_path) -> None:
    program = "import sys; from cranfield.books.store.store import open_store; open_store(sys.argv[1]).close()"
    path = tmp_path / "books.db"
    running = [subprocess.Popen([sys.executable, "-c", program, path], stderr=-1, text=True) for _ in range(5)]
    assert [process.communicate(timeout=120)[1] for process in running] == [""] * 5
    with closing(open_store(path)) as store:
        assert store.books.all() == ()
