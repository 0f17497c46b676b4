"""What a save does: slots, escalation, undo, late saves, keys, stale judgments; adjudication; imports."""

from __future__ import annotations

import pytest

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.review import review_problems, review_settings
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action, ItemState, RaterKind, Role, SkipReason
from cranfield.books.store.standing import outcome
from cranfield.books.store.values import BookClosedError, ImportedJudgment, ItemFilter, NotAllowedError, SaveRequest

from .conftest import Desk, pool_of

ONE = pool_of(1, 1)
OPEN, DONE, ADJUDICATE = ItemState.OPEN, ItemState.DONE, ItemState.ADJUDICATE
OUTCOMES = [
    # wanted, most raters, grades, experts -> state, missing grades
    (1, 3, [], 0, OPEN, 1),
    (1, 3, [2], 0, DONE, 0),
    (2, 3, [2], 0, OPEN, 1),
    (2, 3, [2, 2], 0, DONE, 0),  # agree
    (2, 3, [2, 3], 0, DONE, 0),  # range 1: the rule
    (2, 3, [1, 3], 0, OPEN, 1),  # range 2: a further rater
    (2, 3, [1, 3, 2], 0, ADJUDICATE, 0),
    (2, 4, [1, 3, 2], 0, OPEN, 1),
    (2, 2, [1, 3], 0, ADJUDICATE, 0),
    (1, 3, [], 1, OPEN, 2),  # the grade it wants, and a further one
    (1, 3, [2], 1, OPEN, 1),
    (1, 3, [2, 2], 1, DONE, 0),
    (1, 3, [0, 2], 1, ADJUDICATE, 0),  # three were there
    (1, 1, [], 1, ADJUDICATE, 0),  # no other may be asked
    (3, 2, [1, 1], 0, OPEN, 1),  # the plan wants more than an escalation
    (0, 3, [2], 0, DONE, 0),  # of a carried item
]


@pytest.mark.parametrize(("wanted", "most", "grades", "experts", "state", "missing"), OUTCOMES)
def test_escalation(wanted, most, grades, experts, state, missing) -> None:
    assert outcome(BookSettings(most_raters=most), wanted, grades, experts) == (state, missing)


def test_a_preference_is_opposed_only_by_the_other_list() -> None:
    settings = BookSettings(mode="preference", most_raters=3)
    assert outcome(settings, 2, [1, 2], 0) == (OPEN, 1)  # a is better, b is better
    assert outcome(settings, 2, [0, 2], 0) == (DONE, 0)  # a tie, b is better


def disputed(desk: Desk, raters: int = 3) -> int:
    """An item that got 0, 3, 0, ... from so many raters."""
    item = desk.item("q0", "a").id
    for place in range(raters):
        desk.grade(f"rater {place}", item, 3 * (place % 2))
    return item


def test_a_dispute_opens_a_slot_for_a_further_rater_then_it_is_adjudicated(desk_of) -> None:
    desk = desk_of(ONE, raters_per_item=2)
    item = disputed(desk, 2)
    assert (desk.state(item), desk.store.reading.item(item).n_slots) == (OPEN, 3)
    assert desk.next("rater 0") == ()
    assert [given.item_id for given in desk.next("rater 2")] == [item]
    assert desk.grade("rater 2", item, 1).item_state is ADJUDICATE


def test_undo_of_the_grade_that_disputed_closes_the_further_slot(desk_of) -> None:
    desk = desk_of(ONE, raters_per_item=2)
    item = disputed(desk, 2)
    assert desk.save("rater 1", item, Action.UNDO).item_state is OPEN
    assert desk.store.reading.item(item).n_slots == 2
    assert desk.grade("rater 1", item, 0).item_state is DONE


def test_undo_returns_the_slot_to_the_same_rater(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.next("ann")[0].item_id
    assert desk.grade("ann", item, 2).item_state is DONE
    assert desk.save("ann", item, Action.UNDO).item_state is OPEN
    assert desk.next("bob") == ()
    assert [given.item_id for given in desk.next("ann")] == [item]
    assert desk.store.reading.ratings(desk.book.id) == ()


def test_undo_of_a_changed_grade_brings_the_first_one_back(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.next("ann")[0].item_id
    desk.grade("ann", item, 2, reason="good")
    desk.grade("ann", item, 0, reason="a slip")
    desk.save("ann", item, Action.UNDO)
    (row,) = desk.store.reading.ratings(desk.book.id)
    assert (row.grade, row.reason) == (2, "good")
    assert desk.state(item) == DONE


def test_undo_of_a_skip_takes_the_slot_back_if_it_is_free(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.next("ann")[0].item_id
    desk.save("ann", item, Action.SKIP, skip_reason=SkipReason.BROKEN)
    desk.save("ann", item, Action.UNDO)
    assert desk.next("bob") == ()
    assert [given.item_id for given in desk.next("ann")] == [item]
    desk.save("ann", item, Action.SKIP, skip_reason=SkipReason.BROKEN)
    desk.next("bob")
    desk.save("ann", item, Action.UNDO)
    assert desk.next("ann") == ()


def test_undo_of_nothing_changes_nothing(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.item("q0", "a").id
    assert desk.save("ann", item, Action.UNDO).item_state is OPEN
    assert desk.store.reading.ratings(desk.book.id, skips=True) == ()
    desk.grade("bob", item, 1)
    desk.save("ann", item, Action.UNDO)
    assert desk.state(item) == DONE


def test_a_grade_after_the_lease_has_expired_is_kept_and_counted(desk_of) -> None:
    desk = desk_of(ONE, lease_seconds=60)
    item = desk.next("ann")[0].item_id
    desk.clock.pass_seconds(61)
    desk.next("bob")
    assert desk.grade("bob", item, 2).extra is False
    late = desk.grade("ann", item, 2)
    assert (late.extra, late.item_state) == (True, DONE)
    rows = desk.store.reading.ratings(desk.book.id)
    assert [(row.rater, row.extra) for row in rows] == [("bob", False), ("ann", True)]
    assert desk.store.reading.coverage(desk.book.id).n_extra == 1
    assert desk.store.reading.coverage(desk.book.id).by_persons == {2: 1}


def test_a_late_grade_takes_the_slot_where_it_is_free(desk_of) -> None:
    desk = desk_of(ONE, lease_seconds=60)
    item = desk.next("ann")[0].item_id
    desk.clock.pass_seconds(61)
    assert desk.grade("ann", item, 2).extra is False
    desk = desk_of(ONE)
    assert desk.grade("ann", desk.item("q0", "a").id, 2).extra is False  # never leased at all


def test_a_late_grade_while_another_rater_holds_the_slot(desk_of) -> None:
    desk = desk_of(ONE, lease_seconds=60)
    item = desk.next("ann")[0].item_id
    desk.clock.pass_seconds(61)
    desk.next("bob")
    assert desk.grade("ann", item, 0).extra is True
    assert desk.next("bob", 5) == ()  # done: not given again
    assert desk.grade("bob", item, 3).item_state is OPEN  # and what was on the page is kept: a dispute


def test_the_same_key_is_saved_once(desk_of) -> None:
    desk = desk_of(pool_of(1, 2))
    one, two = (item.item_id for item in desk.next("ann"))
    first = desk.grade("ann", one, 2, key="k")
    again = desk.grade("ann", one, 2, key="k")
    assert (again.event_id, again.duplicate, again.item_state) == (first.event_id, True, DONE)
    with pytest.raises(UsageError, match="the key 'k' was used for another item"):
        desk.grade("ann", two, 0, key="k")  # a program that numbers its saves anew must not lose them
    assert desk.state(two) == OPEN
    assert desk.grade("bob", two, 0, key="k").duplicate is False  # keys are of an account
    assert len(desk.store.log.events(desk.book.id)) == 2


def test_a_key_that_was_saved_is_answered_in_a_closed_book(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.next("ann")[0].item_id
    first = desk.grade("ann", item, 2, key="k")
    desk.store.books.close(desk.book.id)
    assert desk.grade("ann", item, 2, key="k").event_id == first.event_id
    with pytest.raises(BookClosedError):
        desk.grade("ann", item, 1)
    assert len(desk.store.log.events(desk.book.id)) == 1


def test_a_flag_is_set_and_removed(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.next("ann")[0].item_id
    desk.save("ann", item, Action.FLAG, reason="two documents in one")
    assert desk.store.reading.count(desk.book.id, ItemFilter(flagged=True)) == 1
    assert desk.next("ann")[0].flagged
    desk.save("ann", item, Action.UNFLAG)
    assert desk.store.reading.count(desk.book.id, ItemFilter(flagged=True)) == 0
    assert [event.reason for event in desk.store.log.events(desk.book.id)] == ["two documents in one", ""]


def test_a_flag_is_of_its_rater_and_stays_when_another_removes_his_own(desk_of) -> None:
    desk = desk_of(ONE, raters_per_item=2)
    item = desk.next("ann")[0].item_id
    desk.save("ann", item, Action.FLAG)
    assert (desk.next("ann")[0].flagged, desk.next("bob")[0].flagged) == (True, False)
    desk.save("bob", item, Action.FLAG)
    desk.save("bob", item, Action.UNFLAG)
    assert desk.store.reading.count(desk.book.id, ItemFilter(flagged=True)) == 1
    assert (desk.next("ann")[0].flagged, desk.next("bob")[0].flagged) == (True, False)


def test_a_later_after_a_grade_withdraws_it(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.next("ann")[0].item_id
    desk.grade("ann", item, 2)
    assert desk.save("ann", item, Action.LATER).item_state is OPEN
    assert desk.store.reading.ratings(desk.book.id) == ()


REFUSED = [
    ({"grade": 4}, "expected 0, 1, 2, 3, got 4"),
    ({"grade": 1.5}, "got 1.5"),
    ({"grade": None}, "got none"),
    ({"action": Action.SKIP}, "a skip requires a reason"),
    ({"action": Action.LATER, "grade": 1}, "`later` takes no grade"),
    ({"action": Action.REOPEN}, "cannot be saved"),
    ({"action": Action.CARRY}, "cannot be saved"),
    ({"grade": 1, "key": "k" * 81}, "1 to 80 characters"),
    ({"grade": float("nan")}, "got nan"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_a_save_that_says_nothing_is_refused(desk_of, fields, message) -> None:
    desk = desk_of(ONE)
    with pytest.raises(UsageError, match=message):
        desk.save("ann", desk.item("q0", "a").id, **fields)
    assert desk.store.log.events(desk.book.id) == ()


def test_what_a_save_names_must_be_there(desk_of) -> None:
    desk, other = desk_of(ONE), desk_of(ONE)
    item = other.item("q0", "a").id
    with pytest.raises(UnknownNameError, match=r"item .* not found"):
        desk.grade("ann", item, 1)
    with pytest.raises(UnknownNameError, match=r"book .* not found"):
        desk.store.log.save(SaveRequest(999, item, desk.rater("ann"), Action.GRADE, "k", 1))
    with pytest.raises(UnknownNameError, match=r"account .* not found"):
        desk.store.log.save(SaveRequest(other.book.id, item, 999, Action.GRADE, "k", 1))


def test_a_changed_document_makes_judgments_stale(desk_of, lead) -> None:
    desk = desk_of(ONE, raters_per_item=2)
    item = desk.item("q0", "a").id
    desk.grade("ann", item, 2, doc_digest="one")
    assert desk.store.books.set_digest(item, "one") is False
    assert desk.store.books.set_digest(item, "two") is True
    desk.grade("bob", item, 2, doc_digest="two")
    rows = desk.store.reading.ratings(desk.book.id)
    assert [(row.rater, row.stale, row.grade) for row in rows] == [("ann", True, 2), ("bob", False, 2)]
    assert desk.store.reading.coverage(desk.book.id).n_stale == 1
    assert desk.store.books.reopen(desk.book.id, ItemFilter(stale=True), lead) == 1
    assert [row.rater for row in desk.store.reading.ratings(desk.book.id)] == ["bob"]
    assert desk.state(item) == OPEN
    assert desk.store.books.set_digest(item, "one") is True  # bob's


def test_a_late_save_of_an_earlier_text_is_stale_and_does_not_change_the_digest(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.item("q0", "a").id
    desk.store.books.set_digest(item, "two")
    desk.grade("ann", item, 1, doc_digest="one")
    assert [row.stale for row in desk.store.reading.ratings(desk.book.id)] == [True]
    assert desk.store.reading.item(item).doc_digest == "two"


def test_models_fill_no_slot(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.item("q0", "a").id
    model = desk.store.people.add("judge-1", kind=RaterKind.MODEL).id
    for grade in (3, 2):
        request = SaveRequest(desk.book.id, item, model, Action.GRADE, f"m{grade}", grade, method="model")
        assert desk.store.log.save(request).item_state is OPEN
    coverage = desk.store.reading.coverage(desk.book.id)
    assert (coverage.n_slots_done, coverage.by_persons, coverage.n_extra) == (0, {0: 1}, 0)
    assert [row.grade for row in desk.store.reading.ratings(desk.book.id, {RaterKind.MODEL})] == [2]
    assert desk.store.reading.ratings(desk.book.id, {RaterKind.PERSON}) == ()
    assert len(desk.next("ann")) == 1


def test_adjudication_keeps_the_grades_and_needs_a_reason(desk_of, lead) -> None:
    desk = desk_of(ONE, raters_per_item=2)
    item = disputed(desk)
    with pytest.raises(UsageError, match="a final grade requires a reason"):
        desk.store.log.adjudicate(item, lead, 2, " ", "k")
    with pytest.raises(UsageError, match="not on the scale"):
        desk.store.log.adjudicate(item, lead, 9, "why", "k")
    with pytest.raises(NotAllowedError, match="a rater of an item cannot adjudicate it"):
        desk.store.log.adjudicate(item, desk.rater("rater 1"), 2, "why", "k")
    done = desk.store.log.adjudicate(item, lead, 2, "answers a part", "k")
    assert done.item_state is ItemState.ADJUDICATED
    assert desk.store.log.adjudicate(item, lead, 2, "answers a part", "k").duplicate
    view = desk.store.reading.item(item)
    assert (view.final, view.final_by, view.final_reason) == (2, "lead", "answers a part")
    assert view.final_at == desk.clock.now
    assert [row.grade for row in view.ratings] == [0, 3, 0]
    assert desk.grade("rater 5", item, 3).item_state is ItemState.ADJUDICATED


def test_who_skipped_an_item_may_adjudicate_it(desk_of) -> None:
    desk = desk_of(ONE, most_raters=1)
    item = desk.next("ann")[0].item_id
    assert desk.save("ann", item, Action.SKIP, skip_reason=SkipReason.EXPERT).item_state is ADJUDICATE
    assert desk.store.log.adjudicate(item, desk.rater("ann"), 1, "asked a chemist", "k").item_state == "adjudicated"


def test_a_closed_book_can_be_adjudicated(desk_of, lead) -> None:
    desk = desk_of(ONE, raters_per_item=2)
    item = disputed(desk)
    desk.store.books.close(desk.book.id)
    assert desk.store.log.adjudicate(item, lead, 2, "why", "k").item_state == "adjudicated"


def test_events_note_everything(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.next("ann")[0].item_id
    desk.store.books.set_guideline(desk.book.id, "new")
    fields = {"reason": "why", "duration_ms": 4200, "order_seen": 7, "method": "key", "doc_digest": "d"}
    desk.grade("ann", item, 3, **fields)
    (event,) = desk.store.log.events(desk.book.id)
    assert {name: getattr(event, name) for name in fields} == fields
    assert (event.account, event.kind, event.query, event.doc) == ("ann", RaterKind.PERSON, "q0", "a")
    assert (event.grade, event.at, event.guideline_version) == (3, desk.clock.now, 2)
    assert desk.store.log.events(desk.book.id, after=event.id) == ()
    assert desk.store.reading.last_event_id(desk.book.id) == event.id


def test_the_version_of_the_guidelines_that_the_page_showed_is_noted(desk_of) -> None:
    desk = desk_of(ONE)
    desk.store.books.set_guideline(desk.book.id, "new")
    desk.grade("ann", desk.item("q0", "a").id, 3, guideline_version=1)
    assert [row.guideline_version for row in desk.store.reading.ratings(desk.book.id)] == [1]


def test_an_import_is_recorded_once_with_its_raters_reasons_and_times(desk_of) -> None:
    desk = desk_of(pool_of(1, 2))
    one, two = (desk.item("q0", doc).id for doc in "ab")
    old = desk.store.people.add("old", Role.VIEWER, RaterKind.CARRIED).id
    rows = [
        ImportedJudgment(one, old, "1", 3, reason="as before", at=5),
        ImportedJudgment(two, desk.rater("ann"), "2", 1, action=Action.GRADE, at=6, duration_ms=9),
        ImportedJudgment(one, desk.rater("ann"), "3", None, Action.SKIP, skip_reason=SkipReason.BROKEN),
    ]
    assert desk.store.log.import_many(desk.book.id, rows) == tuple(rows)
    assert desk.store.log.import_many(desk.book.id, rows) == ()
    found = {row.rater + row.doc: row for row in desk.store.reading.ratings(desk.book.id, skips=True)}
    carried, graded, skipped = found["olda"], found["annb"], found["anna"]
    assert (carried.action, carried.grade, carried.reason, carried.at) == ("carry", 3, "as before", 5)
    assert (graded.grade, graded.at, graded.duration_ms, graded.extra) == (1, 6, 9, False)
    assert (skipped.skip_reason, skipped.at) == (SkipReason.BROKEN, desk.clock.now)
    assert (desk.state(one), desk.state(two)) == (OPEN, DONE)


def test_an_import_is_all_or_none(desk_of) -> None:
    desk = desk_of(ONE)
    item = desk.item("q0", "a").id
    rows = [
        ImportedJudgment(item, desk.rater("ann"), "1", 1, Action.GRADE),
        ImportedJudgment(item, desk.rater("bob"), "2", 9, Action.GRADE),
        ImportedJudgment(999, 999, "3", 1),
    ]
    with pytest.raises(UsageError) as caught:
        desk.store.log.import_many(desk.book.id, rows)
    assert len(caught.value.problems) == 3
    assert desk.store.log.events(desk.book.id) == ()


RECORD = {
    "task_type": "locate",
    "difficulty": "easy",
    "must_mention_facts": [{"fact": "It returns 1.", "citations": []}],
    "canonical_narrative": "It lives in a.py.",
}
EDIT = {"field": "canonical_narrative", "before": "It lives in a.py.", "after": "It lives in b.py."}
EDITED = {"disposition": "keep", "failure_mode": "narrative", "edits": [EDIT]}


def review_desk(desk_of, reviewers: int = 2, **fields: object) -> tuple[Desk, int]:
    settings = review_settings(reviewers, 0).model_dump()
    desk = desk_of(pool_of(1, 1, q0a={"fields": RECORD | fields}), **settings)
    return desk, desk.item("q0", "a").id


def test_two_reviewers_who_agree_finish_a_record_and_its_edits_are_kept(desk_of) -> None:
    desk, item = review_desk(desk_of)
    desk.grade("ann", item, 2, reason="Wrong file.", data=EDITED)
    assert desk.state(item) == OPEN
    desk.grade("bob", item, 2, reason="Another file.", data=EDITED | {"failure_mode": "other"})
    assert desk.state(item) == DONE
    assert [row.data["edits"] for row in desk.store.reading.item(item).ratings] == [[EDIT], [EDIT]]
    assert desk.store.log.events(desk.book.id)[0].data == EDITED
    assert desk.store.queue.own(desk.book.id, desk.rater("ann"), item).data == EDITED
    assert desk.store.reading.item(item).fields == RECORD
    copy = desk.store.transfer.restore(desk.store.transfer.dump(desk.book.id), f"{desk.book.name} copy")
    assert [event.data["edits"] for event in desk.store.log.events(copy)] == [[EDIT], [EDIT]]


@pytest.mark.parametrize(
    "second",
    [
        {"grade": 1},
        {"grade": 2, "reason": "It stays.", "data": {"failure_mode": "narrative"}},
        {"grade": 2, "reason": "No.", "data": {"disposition": "drop", "failure_mode": "narrative"}},
    ],
    ids=["verdict", "edits", "disposition"],
)
def test_reviewers_who_differ_in_anything_leave_the_record_to_a_lead(desk_of, lead, second) -> None:
    desk, item = review_desk(desk_of)
    desk.grade("ann", item, 2, reason="Wrong file.", data=EDITED)
    desk.grade("bob", item, **second)
    assert desk.state(item) == ADJUDICATE
    desk.store.log.adjudicate(item, lead, 2, "Ann is right.", "k", data=EDITED)
    found = desk.store.reading.item(item)
    assert (found.state, found.final, found.final_data) == (ItemState.ADJUDICATED, 2, EDITED)


@pytest.mark.parametrize(
    ("decision", "problem"),
    [
        ({"grade": 2}, "failure mode and a reason"),
        ({"grade": 1, "data": EDITED}, "is not correct"),
        ({"grade": 4, "reason": "r", "data": {"failure_mode": "other"}}, "sent back or dropped"),
        ({"grade": 3, "reason": "r", "data": {"failure_mode": "other", "disposition": "send_back"}}, "with a hint"),
        ({"grade": 2, "reason": "r", "data": EDITED | {"edits": [EDIT, EDIT]}}, "edited twice"),
        (
            {"grade": 2, "reason": "r", "data": EDITED | {"edits": [EDIT | {"before": "x"}]}},
            "does not match the current text",
        ),
        (
            {"grade": 2, "reason": "r", "data": EDITED | {"edits": [EDIT | {"after": EDIT["before"]}]}},
            "changes nothing",
        ),
        ({"grade": 2, "reason": "r", "data": EDITED | {"edits": [EDIT | {"after": []}]}}, "a different type"),
        ({"grade": 2, "reason": "r", "data": {"nothing": 1}}, "Extra inputs"),
    ],
)
def test_a_review_that_cannot_stand_has_its_reason(decision, problem) -> None:
    found = review_problems(RECORD, **{"reason": "", "data": None} | decision)
    assert problem in " ".join(each.message for each in found)


def test_a_review_that_cannot_stand_is_neither_saved_nor_imported(desk_of) -> None:
    desk, item = review_desk(desk_of)
    account = desk.rater("ann")
    with pytest.raises(UsageError, match="failure mode and a reason"):
        desk.grade("ann", item, 2)
    with pytest.raises(UsageError, match="failure mode and a reason"):
        desk.store.log.import_many(desk.book.id, [ImportedJudgment(item, account, "k", action=Action.GRADE, grade=2)])
    assert desk.store.log.events(desk.book.id) == ()


def test_a_record_that_a_step_refuses_is_not_kept(desk_of) -> None:
    desk, item = review_desk(desk_of, 1, may_keep=False)
    with pytest.raises(UsageError, match="send it back or drop it"):
        desk.grade("ann", item, 1)
    desk.grade("ann", item, 4, reason="r", data={"failure_mode": "other", "disposition": "drop"})
    assert desk.state(item) == DONE
