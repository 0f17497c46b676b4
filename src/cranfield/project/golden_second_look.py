"""The second look of one person: a book of its own, with what was looked at a day before and nothing of what was decided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cranfield.errors import UnknownNameError
from cranfield.golden.records import HumanReview, Opinion
from cranfield.golden.review import LATER
from cranfield.judging.pools.pool_file import Pool, PooledItem, PooledQuery
from cranfield.judging.review import EDITED_FIELDS, VERDICTS, data_of, review_settings
from cranfield.judging.store.schema import Action, ItemState, RaterKind
from cranfield.judging.store.store import Store
from cranfield.judging.store.values import BookInfo, ItemView, RatingRow
from cranfield.model.review import Disposition, Verdict

GUIDELINE = f"""\
This is the second look, at least {LATER // timedelta(hours=1)} hours after the first and by the same person. What was decided
then is not shown, and the order is drawn anew.

- Decide as if you saw each record for the first time.
"""
_VERDICTS, _DISPOSITIONS = tuple(Verdict), (Disposition.KEEP, Disposition.SEND_BACK, Disposition.DROP)


def opinions_of(item: ItemView) -> list[Opinion]:
    """What reviewers decided of a record, in the order in which they did."""
    rows = [row for row in item.ratings if row.kind is RaterKind.PERSON and row.action is Action.GRADE]
    return [_opinion(row, row.rater, row.at, row.grade, row.reason) for row in rows]


def looks(item: ItemView) -> list[Opinion]:
    """The same of one person, who may have decided as a lead what he or she did not review."""
    if item.final is None:
        return opinions_of(item)
    return [_opinion(item, item.final_by or "", item.final_at or 0, item.final, item.final_reason)]


def _opinion(row: RatingRow | ItemView, reviewer: str, at: int, grade: float | None, reason: str) -> Opinion:
    decided = {"verdict": VERDICTS[grade or 0], "reason": reason, "reviewer": reviewer, "at": time_text(at)}
    return Opinion.model_validate(data_of(row).model_dump(mode="json") | decided)


def time_text(at: int) -> str:
    """Milliseconds since 1970 as `2026-11-23T14:05:09Z`."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def confirmed_review(first: ItemView, second: ItemView, book: str) -> HumanReview | None:
    """What both looks of one person come to; None where one is missing."""
    later, earlier = looks(second)[:1], looks(first)
    same = [each for each in earlier if later and each.reviewer == later[0].reviewer]
    opinions = [*(same or earlier)[:1], *later]
    if len(opinions) < 2:
        return None
    about = {"query_id": first.query, "attempt": attempt_of(first), "book": book}
    return HumanReview.model_validate(
        both_looks(*opinions) | about | {"opinions": opinions, "reviewed_at": later[0].at}
    )


def attempt_of(item: ItemView) -> int:
    """Of the oracle, which is reviewed."""
    return int(item.doc.removeprefix("attempt "))


def both_looks(first: Opinion, second: Opinion) -> dict[str, Any]:
    """The decision that two looks come to: the worse verdict, what is further from keeping, and the edits, reasons and hints of both.

    Of a field that both edit, the text of the look with the worse verdict holds; of two alike, that of the second.
    """
    worse, other = (
        (first, second) if _VERDICTS.index(first.verdict) > _VERDICTS.index(second.verdict) else (second, first)
    )
    edits = {edit.field: edit for edit in (*other.edits, *worse.edits)}
    texts = {
        name: " / ".join(dict.fromkeys(filter(None, (getattr(each, name) for each in (first, second)))))
        for name in ("reason", "hint")
    }
    holds = {
        "disposition": max(first.disposition, second.disposition, key=_DISPOSITIONS.index),
        "edits": [edits[name].model_dump(mode="json") for name in EDITED_FIELDS if name in edits],
    }
    return worse.model_dump(mode="json", exclude={"reviewer", "at"}) | texts | holds


def fields_of_both(first: Opinion, second: Opinion) -> tuple[str, ...]:
    """The fields that two looks edit, each to another text: of these only one holds."""
    before = {edit.field: edit.after for edit in first.edits}
    return tuple(edit.field for edit in second.edits if before.get(edit.field, edit.after) != edit.after)


@dataclass(frozen=True, slots=True)
class SecondLook:
    """What a run waits for that one person reviews."""

    book: str
    """Its name, whether it is there or not."""
    opened: tuple[str, ...] = ()
    """Records that are in the book, and wait there for the person."""
    skipped: tuple[str, ...] = ()
    """Records that the person could not judge there, and decides as a lead."""
    due: tuple[str, ...] = ()
    """Records whose first look is `LATER` ago, and which are not in the book yet."""
    early: tuple[str, ...] = ()
    """Records whose first look is less than that ago."""
    due_at: str = ""
    """When the last of these is due; empty where there are none."""
    n_new: int = 0
    """Records that were added to the book now."""


def second_items(store: Store, first: str) -> dict[tuple[str, str], ItemView]:
    """The items of the second look by query and document; none where the book is not there yet."""
    try:
        book = store.books.get(_name(first))
    except UnknownNameError:
        return {}
    return {(item.query, item.doc): item for item in store.reading.items(book.id)}


def second_look(store: Store, book: BookInfo) -> SecondLook:
    """Where the second look stands of what is in the book of the first one."""
    return _sorted(store, book)[0]


def open_second_look(store: Store, book: BookInfo, seed: int) -> SecondLook:
    """Put what is due into the book of the second look, which is made where there is none.

    Raises:
        UsageError: there is a book of this name of something else.
    """
    waits, due = _sorted(store, book)
    if not due:
        return waits
    queries = {item.query: PooledQuery(id=item.query, text=item.query_text) for item in due}
    items = tuple(PooledItem(query=item.query, doc=item.doc, fields=item.fields) for item in due)
    pool = Pool(name=waits.book, method="depth", depth=1, runs=(), queries=tuple(queries.values()), items=items)
    try:
        store.books.add_pool(store.books.get(waits.book).id, pool)
    except UnknownNameError:
        store.books.create(waits.book, pool, review_settings(1, seed + 1), guideline=GUIDELINE)
    return replace(waits, opened=(*waits.opened, *waits.due), due=(), n_new=len(due))


def _sorted(store: Store, book: BookInfo) -> tuple[SecondLook, list[ItemView]]:
    """Where the second look stands, and the items that are due."""
    there, now = second_items(store, book.name), datetime.fromtimestamp(store.clock() / 1000, UTC)
    looked = [
        (item, datetime.fromisoformat(found[0].at) + LATER)
        for item in store.reading.items(book.id)
        if (item.query, item.doc) not in there and (found := looks(item))
    ]
    due = [item for item, at in looked if at <= now]
    last = max((at for _, at in looked if at > now), default=None)
    waits = SecondLook(
        _name(book.name),
        opened=tuple(each.query for each in there.values() if each.state is ItemState.OPEN),
        skipped=tuple(each.query for each in there.values() if each.state is ItemState.ADJUDICATE),
        due=tuple(item.query for item in due),
        early=tuple(item.query for item, at in looked if at > now),
        due_at="" if last is None else f"{last:%Y-%m-%dT%H:%M:%SZ}",
    )
    return waits, due


def _name(first: str) -> str:
    return f"{first}-second-look"
