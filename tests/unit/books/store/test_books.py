"""Books: made of pools, added to, opened again, calibrated; coverage keeps judged 0 and unjudged apart."""

from __future__ import annotations

from contextlib import closing

import pytest

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import DEFAULT_GUIDELINE, BookSettings
from cranfield.books.store.schema import Action, ItemState, Origin, RaterKind, Role, SkipReason
from cranfield.books.store.store import open_store
from cranfield.books.store.values import ItemFilter

from .conftest import Desk, pool_of


def test_a_book_keeps_what_its_pool_says(store) -> None:
    item = PooledItem(
        query="q", doc="d", fields={"title": "Socks"}, runs={"a": 3}, stratum="1-10", inclusion=0.5, effect=0.1
    )
    query = PooledQuery(id="q", text="socks", need="wool only", notes="no hats", strata={"kind": "head"})
    pool = Pool(
        name="p",
        method="stratified",
        depth=50,
        seed=4,
        runs=(PooledRun(name="a", digest="x"),),
        queries=(query,),
        items=(item,),
    )
    book = store.books.create("shop", pool, BookSettings(seed=1))
    assert (book.n_queries, book.n_items, book.guideline_version, book.guideline) == (1, 1, 1, DEFAULT_GUIDELINE)
    assert book.source["method"] == "stratified"
    assert book.source["runs"] == [{"name": "a", "digest": "x"}]
    assert "items" not in book.source
    (view,) = store.reading.items(book.id)
    assert (view.fields, view.runs, view.stratum, view.inclusion, view.effect) == (
        {"title": "Socks"},
        {"a": 3},
        "1-10",
        0.5,
        0.1,
    )
    (row,) = store.reading.queries(book.id)
    assert (row.name, row.need, row.notes, row.strata, row.n_items) == (
        "q",
        "wool only",
        "no hats",
        {"kind": "head"},
        1,
    )
    assert store.books.get("shop") == store.books.get(book.id) == book
    assert store.books.all() == (book,)


def test_a_name_is_used_once(store) -> None:
    store.books.create("shop", pool_of(), BookSettings())
    with pytest.raises(UsageError, match="book shop already exists"):
        store.books.create("shop", pool_of(), BookSettings())
    for name in (
        " ",
        "a/b",
        "a\\b",
        "..",
        "a\nb",
        "a\x1b[2J",
        "a\u202eb",
        "x" * 201,
    ):  # the path of a page is made of it
        with pytest.raises(UsageError, match="name"):
            store.books.create(name, pool_of(), BookSettings())
    with pytest.raises(UnknownNameError, match="did you mean shop"):
        store.books.get("shp")
    with pytest.raises(UnknownNameError, match="book 99 not found"):
        store.books.get(99)


def test_all_contradictions_of_a_pool_are_reported(store) -> None:
    queries = tuple(PooledQuery(id=name, text="") for name in ("q1", "q1"))
    items = tuple(PooledItem(query=query, doc="d") for query in ("q1", "q1", "q2"))
    pool = Pool(name="p", method="depth", depth=1, runs=(), queries=queries, items=items)
    with pytest.raises(UsageError) as caught:
        store.books.create("shop", pool, BookSettings())
    assert len(caught.value.problems) == 3
    assert store.books.all() == ()


def test_judged_lowest_and_unjudged_are_counted_apart(desk_of) -> None:
    desk = desk_of(pool_of(2, 3, q0a={"judged": 0}, q0b={"judged": 2}), raters_per_item=2)
    desk.grade("ann", desk.item("q1", "a").id, 0)
    desk.grade("ann", desk.item("q1", "b").id, 3)
    desk.save("ann", desk.item("q1", "c").id, Action.SKIP, skip_reason=SkipReason.BROKEN)
    coverage = desk.store.reading.coverage(desk.book.id)
    assert (coverage.judged_lowest, coverage.judged_higher, coverage.unjudged, coverage.n_skipped) == (2, 2, 2, 1)
    assert coverage.by_persons == {0: 4, 1: 2}
    assert coverage.states == {ItemState.OPEN: 4, ItemState.DONE: 2, ItemState.ADJUDICATE: 0, ItemState.ADJUDICATED: 0}
    assert [(query.query, query.n_items, query.n_judged, query.n_done) for query in coverage.queries] == [
        ("q0", 3, 2, 2),
        ("q1", 3, 2, 0),
    ]
    assert coverage.by_kind[RaterKind.CARRIED] == 2


def test_progress_of_a_rater(desk_of) -> None:
    desk = desk_of(pool_of(2, 6), quota=10)
    for place, item in enumerate(desk.next("ann", 12)[:6]):
        desk.grade("ann", item.item_id, 1, duration_ms=1000 * (place + 1))
    progress = desk.store.reading.progress(desk.book.id, desk.rater("ann"))
    assert (progress.n_done, progress.n_left, progress.n_seen) == (6, 4, 6)
    assert (progress.median_ms, progress.seconds_left) == (3500, 14)  # of 1 to 6 s; 4 times 3.5 s
    outside = desk.store.reading.progress(desk.book.id, desk.store.people.add("eve").id)
    assert (outside.n_left, outside.median_ms) == (0, None)


def test_a_pool_is_added_to_a_book(desk_of) -> None:
    desk = desk_of(pool_of(1, 2))
    desk.grade("ann", desk.item("q0", "a").id, 2)
    assert desk.store.books.add_pool(desk.book.id, pool_of(2, 3, q0a={"judged": 1})) == 4
    assert desk.store.books.add_pool(desk.book.id, pool_of(2, 3, q0a={"judged": 1})) == 0
    assert desk.store.books.get(desk.book.id).n_items == 6
    rows = [(row.rater, row.grade) for row in desk.item("q0", "a").ratings]
    assert rows == [("ann", 2), ("carried", 1)]
    desk.store.books.add_pool(desk.book.id, pool_of(1, 1, q0a={"judged": 3}))
    assert [(row.rater, row.grade) for row in desk.item("q0", "a").ratings] == [("ann", 2), ("carried", 3)]
    assert len(desk.judge_all("ann")) == 5


def test_a_document_that_no_system_returned_is_added_once(desk_of) -> None:
    desk = desk_of(pool_of(1, 1))
    item = desk.store.books.add_item(desk.book.id, "q0", "new", {"title": "New"}, desk.rater("ann"))
    assert desk.store.books.add_item(desk.book.id, "q0", "new", {}, desk.rater("ann")) == item
    view = desk.store.reading.item(item)
    assert (view.origin, view.n_slots, view.fields, view.runs) == (Origin.ADDED, 1, {"title": "New"}, {})
    assert item in desk.judge_all("ann")
    with pytest.raises(UnknownNameError, match="unknown query 'q9'"):
        desk.store.books.add_item(desk.book.id, "q9", "new", {}, desk.rater("ann"))
    with pytest.raises(UsageError, match="has no id"):
        desk.store.books.add_item(desk.book.id, "q0", " ", {}, desk.rater("ann"))


def test_guidelines_have_versions(desk_of, lead) -> None:
    desk = desk_of()
    assert desk.store.books.set_guideline(desk.book.id, "two", lead) == 2
    assert desk.store.books.set_guideline(desk.book.id, "two") == 2
    versions = desk.store.books.guidelines(desk.book.id)
    assert [(row.version, row.text, row.by) for row in versions] == [(1, DEFAULT_GUIDELINE, None), (2, "two", "lead")]
    assert desk.store.books.get(desk.book.id).guideline == "two"


def test_items_are_opened_again_by_filter(desk_of, lead) -> None:
    desk = desk_of(pool_of(2, 3), raters_per_item=2)
    desk.judge_all("ann")
    desk.store.books.set_guideline(desk.book.id, "new")
    desk.judge_all("bob")
    count, reopen = desk.store.reading.count, desk.store.books.reopen
    assert reopen(desk.book.id, ItemFilter(query="q0", before_guideline=2), lead, "new guidelines") == 3
    assert count(desk.book.id, ItemFilter(state=ItemState.OPEN)) == 3
    assert sorted(row.rater for row in desk.store.reading.ratings(desk.book.id)) == ["ann"] * 3 + ["bob"] * 6
    assert len(desk.judge_all("ann")) == 3
    assert reopen(desk.book.id, ItemFilter(rater="bob", query="q1"), lead) == 3
    assert reopen(desk.book.id, [desk.item("q0", "a").id], lead) == 1
    assert desk.item("q0", "a").ratings == ()
    reopened = [event for event in desk.store.log.events(desk.book.id) if event.action is Action.REOPEN]
    assert [(event.account, event.subject, event.reason) for event in reopened[:3]] == [
        ("lead", "ann", "new guidelines")
    ] * 3
    assert len(reopened) == 3 + 3 + 2
    assert len([event for event in desk.store.log.events(desk.book.id) if event.action is Action.GRADE]) == 15


def test_opening_an_item_again_withdraws_the_final_grade(desk_of, lead) -> None:
    desk = desk_of(pool_of(1, 1), raters_per_item=2)
    item = desk.item("q0", "a").id
    for name, grade in (("ann", 0), ("bob", 3), ("cas", 1)):
        desk.grade(name, item, grade)
    desk.store.log.adjudicate(item, lead, 2, "why", "k")
    assert desk.store.books.reopen(desk.book.id, ItemFilter(state=ItemState.ADJUDICATED), lead) == 1
    view = desk.store.reading.item(item)
    assert (view.state, view.final, view.final_by, view.ratings, view.n_slots) == (ItemState.OPEN, None, None, (), 2)
    assert len(desk.next("ann")) == 1


def test_a_carried_judgment_that_is_stale_is_asked_of_persons_again(desk_of, lead) -> None:
    from cranfield.books.store.values import ImportedJudgment

    desk = desk_of(pool_of(1, 2, q0a={"judged": 2}))
    item, carried = desk.item("q0", "a").id, desk.store.people.get("carried").id
    desk.store.log.import_many(desk.book.id, [ImportedJudgment(item, carried, "k", 1, doc_digest="one")])
    desk.store.books.set_digest(item, "two")
    assert desk.store.books.reopen(desk.book.id, ItemFilter(stale=True), lead) == 1
    view = desk.store.reading.item(item)
    assert (view.state, view.wanted, [row.stale for row in view.ratings]) == (ItemState.OPEN, 1, [True])
    assert item in desk.judge_all("ann")


def test_skipped_items_are_opened_again(desk_of, lead) -> None:
    desk = desk_of(pool_of(1, 2))
    one, two = (item.item_id for item in desk.next("ann"))
    desk.save("ann", one, Action.SKIP, skip_reason=SkipReason.BROKEN)
    desk.save("ann", two, Action.SKIP, skip_reason=SkipReason.UNCLEAR_QUERY)
    assert desk.store.books.reopen(desk.book.id, ItemFilter(skipped=SkipReason.BROKEN), lead) == 1
    assert [item.item_id for item in desk.next("ann")] == [one]


def test_a_calibration_item_needs_a_query_and_a_grade_of_the_book(desk_of) -> None:
    desk = desk_of()
    with pytest.raises(UsageError) as caught:
        desk.store.books.calibration(desk.book.id, [("q9", "x", 1, ""), ("q0", "a", 7, "")])
    assert len(caught.value.problems) == 2


def test_frozen_versions_are_numbered(desk_of) -> None:
    desk = desk_of()
    for number in (1, 2):
        assert desk.store.books.add_frozen(desk.book.id, f"d{number}", {"rule": "median"}).number == number
    assert [row.digest for row in desk.store.books.frozen(desk.book.id)] == ["d1", "d2"]


def test_only_what_a_rater_has_graded_is_revealed(desk_of) -> None:
    desk = desk_of(pool_of(1, 2, q0a={"runs": {"bm25": 1}}), raters_per_item=2)
    items = [desk.item("q0", doc).id for doc in "ab"]
    desk.grade("bob", items[0], 3)
    assert desk.store.reading.reveal(items, desk.rater("ann")) == ()
    desk.grade("ann", items[0], 1)
    (view,) = desk.store.reading.reveal(items, desk.rater("ann"))
    assert (view.runs, [row.grade for row in view.ratings]) == ({"bm25": 1}, [3, 1])
    blind = desk_of(pool_of(1, 1), reveal="never")
    item = blind.item("q0", "a").id
    blind.raters = desk.raters
    blind.grade("ann", item, 1)
    assert blind.store.reading.reveal([item], desk.rater("ann")) == ()


def test_the_latest_judgments_of_a_rater(desk_of) -> None:
    desk = desk_of(pool_of(1, 3))
    seen = desk.judge_all("ann")
    assert [row.item_id for row in desk.store.reading.recent(desk.book.id, desk.rater("ann"), 2)] == seen[:0:-1]


def test_items_are_read_in_their_order(desk_of) -> None:
    desk = desk_of(pool_of(2, 3))
    desk.judge_all("ann")
    whole = desk.store.reading.items(desk.book.id)
    assert [(item.query, item.doc) for item in whole] == [(query, doc) for query in ("q0", "q1") for doc in "abc"]
    assert all(len(item.ratings) == 1 for item in whole)


@pytest.mark.slow
def test_a_whole_book_goes_from_sqlite_to_every_engine_and_back(desk_of, store, tmp_path, clock) -> None:
    desk = desk_of(pool_of(2, 3), raters_per_item=2, most_raters=2)
    for name in ("ann", "bob"):
        desk.judge_all(name, lambda given, name=name: (given.item_id + (name == "bob")) % 2)
    lead = store.people.add("lead", Role.LEAD).id
    store.log.adjudicate(desk.item("q0", "a").id, lead, 1, "clause 2", "final")
    first = store.transfer.dump(desk.book.id)
    with closing(open_store(tmp_path / "other.db", clock=clock)) as other:
        other.transfer.restore(first)
        assert other.transfer.dump(desk.book.name) == first
        store.transfer.restore(other.transfer.dump(desk.book.name), "again")
    again = store.transfer.dump("again")
    assert (again.item, again.event, again.judgment) == (first.item, first.event, first.judgment)
    cas = Desk(store, clock, store.books.get("again"))
    cas.grade("ann", cas.item("q0", "b").id, 1)  # ids of new rows follow those that were restored
