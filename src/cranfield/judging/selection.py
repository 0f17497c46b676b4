"""Which items a list shows: the conditions that every figure of the dashboard links to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from sqlalchemy import ColumnElement, ScalarSelect, exists, func, select, true
from sqlalchemy.orm import aliased

from cranfield.books.store.reading import GRADES, needs_rater
from cranfield.books.store.schema import (
    Account,
    Action,
    BookQuery,
    Event,
    Item,
    ItemJudgment,
    ItemState,
    Origin,
    RaterKind,
    SkipReason,
)
from cranfield.books.store.store import Store
from cranfield.books.store.values import ItemFilter, ItemView, RatingRow

FAST_MS = 1_000
"""Under it a grade is an outlier: nothing was read."""
DAY_MS = 86_400_000

Pair = tuple[float, float]
Repeats = Mapping[tuple[int, str], Pair]
"""Item and rater to the first grade and that of the hidden repeat."""


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


def _day(value: object) -> object:
    """As text: a number would be taken for seconds."""
    return date.fromisoformat(value) if isinstance(value, str) and value else _empty_is_none(value)


class Selection(BaseModel):
    """Conditions; all of them hold. Those from `rater` to `kind` hold for one and the same judgment."""

    model_config = ConfigDict(frozen=True)

    state: Annotated[ItemState | None, BeforeValidator(_empty_is_none)] = None
    query: Annotated[str | None, BeforeValidator(_empty_is_none)] = None
    origin: Annotated[Origin | None, BeforeValidator(_empty_is_none)] = None
    judged: Annotated[Literal["lowest", "higher", "none"] | None, BeforeValidator(_empty_is_none)] = None
    """All grades the lowest of the scale, a higher one among them, or none."""
    persons: Annotated[int | None, BeforeValidator(_empty_is_none)] = None
    """How many persons graded it."""
    spread: Annotated[float | None, BeforeValidator(_empty_is_none)] = None
    """The grades of persons lie at least so far apart."""
    calibration: Annotated[Literal["yes", "no"] | None, BeforeValidator(_empty_is_none)] = None
    """Whether its grade is known: agreement is measured without such items."""
    flagged: bool = False
    waits: bool = False
    """For adjudication, or for a rater whom the book does not have."""
    repeat: Annotated[Literal["same", "differs"] | None, BeforeValidator(_empty_is_none)] = None
    """The rater's grade of the hidden repeat."""
    rater: Annotated[str | None, BeforeValidator(_empty_is_none)] = None
    grade: Annotated[float | None, BeforeValidator(_empty_is_none)] = None
    fast: bool = False
    day: Annotated[date | None, BeforeValidator(_day)] = None
    """UTC."""
    gold: Annotated[Literal["right", "wrong"] | None, BeforeValidator(_empty_is_none)] = None
    skipped: Annotated[SkipReason | Literal["any"] | None, BeforeValidator(_empty_is_none)] = None
    stale: bool = False
    before_guideline: Annotated[int | None, BeforeValidator(_empty_is_none)] = None
    kind: Annotated[RaterKind | None, BeforeValidator(_empty_is_none)] = None
    other: Annotated[str | None, BeforeValidator(_empty_is_none)] = None
    """A second rater, who gave `other_grade`."""
    other_grade: Annotated[float | None, BeforeValidator(_empty_is_none)] = None
    page: Annotated[int, Field(ge=1)] = 1

    @property
    def parameters(self) -> dict[str, str]:
        """Those that are set, as parameters of an address."""
        found = self.model_dump(mode="json", exclude_defaults=True, exclude={"page"})
        return {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in found.items()}

    @property
    def of_judgments(self) -> bool:
        """Whether a condition is of one judgment."""
        names = {"rater", "grade", "fast", "day", "gold", "skipped", "stale", "before_guideline", "kind"}
        return bool(names & set(self.parameters))

    @property
    def of_any_kind(self) -> bool:
        """Whether models, rules and carried judgments take part; otherwise persons alone do."""
        return self.rater is not None or self.stale or self.skipped is not None


def day_of(at: int) -> str:
    """The day (UTC) of a time."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d")


def person_grades(item: ItemView) -> list[RatingRow]:
    """The grades that persons gave an item."""
    return [row for row in item.ratings if row.kind == RaterKind.PERSON and row.grade is not None]


def is_fast(row: RatingRow) -> bool:
    """Whether a person graded faster than anything can be read."""
    return row.action == Action.GRADE and row.duration_ms is not None and row.duration_ms < FAST_MS


def _of_judgment(chosen: Selection) -> list[ColumnElement[bool]]:
    """The conditions that hold for one and the same judgment: of `ItemJudgment`, with `Event`, `Account` and `Item` joined."""
    rules: dict[str, Callable[[], ColumnElement[bool]]] = {
        "rater": lambda: Account.name == chosen.rater,
        "grade": lambda: ItemJudgment.grade == chosen.grade,
        "fast": lambda: (ItemJudgment.action == Action.GRADE) & (Event.duration_ms < FAST_MS),
        "day": lambda: _on_day(chosen.day or date.min),
        "gold": lambda: (
            ItemJudgment.grade.is_not(None)
            & (_first_grade() == Item.gold if chosen.gold == "right" else _first_grade() != Item.gold)
        ),
        "skipped": lambda: true() if chosen.skipped == "any" else Event.skip_reason == chosen.skipped,
        "stale": lambda: ItemJudgment.stale.is_(True),
        "before_guideline": lambda: func.coalesce(Event.guideline_version, 0) < _bounded(chosen.before_guideline or 0),
    }
    found = _set_rules(chosen, rules)
    if chosen.kind or not chosen.of_any_kind:
        found.append(Account.kind == (chosen.kind or RaterKind.PERSON))
    if chosen.skipped is not None:
        found.append(ItemJudgment.action == Action.SKIP)
    elif not chosen.stale:
        found.append(ItemJudgment.grade.is_not(None))
    return found


def _set_rules(chosen: Selection, rules: Mapping[str, Callable[[], ColumnElement[bool]]]) -> list[ColumnElement[bool]]:
    return [rule() for name, rule in rules.items() if name in chosen.parameters]


def _bounded(number: int) -> int:
    """The number, or the nearest one that a database knows."""
    return max(-(2**31), min(number, 2**31 - 1))


def _on_day(day: date) -> ColumnElement[bool]:
    first = round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
    return (Event.at >= first) & (Event.at < first + DAY_MS)


def _judged(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether the item has a judgment for which all of these hold."""
    joined = (ItemJudgment.item_id == Item.id, Event.id == ItemJudgment.event_id, Account.id == ItemJudgment.account_id)
    return exists().where(*joined, *conditions).correlate(Item)


def _first_grade() -> ScalarSelect[Any]:
    """The first grade of the rater of a judgment, since a lead asked for it again: the one that counts for a calibration item."""
    given, reopened = aliased(Event), aliased(Event)
    of_rater = (reopened.item_id == Item.id, reopened.subject_id == ItemJudgment.account_id)
    since = select(func.coalesce(func.max(reopened.id), 0)).where(*of_rater, reopened.action == Action.REOPEN)
    by_rater = (given.item_id == Item.id, given.account_id == ItemJudgment.account_id, given.grade.is_not(None))
    query = select(given.grade).where(*by_rater, given.action.in_(GRADES))
    query = query.where(given.id > since.correlate(Item, ItemJudgment).scalar_subquery()).order_by(given.id).limit(1)
    return query.correlate(Item, ItemJudgment).scalar_subquery()


def _of_persons(figure: ColumnElement[Any]) -> ScalarSelect[Any]:
    """A figure of the grades that persons gave an item."""
    joined = (ItemJudgment.item_id == Item.id, Account.id == ItemJudgment.account_id)
    given = (Account.kind == RaterKind.PERSON, ItemJudgment.grade.is_not(None))
    return select(figure).where(*joined, *given).correlate(Item).scalar_subquery()


def _of_grade(judged: str, lowest: float) -> ColumnElement[bool]:
    """Whether the final grade, or else those that were given, are the lowest of the scale, a higher one among them, or none."""
    graded, higher = _judged(ItemJudgment.grade.is_not(None)), _judged(ItemJudgment.grade > lowest)
    no_final = Item.final.is_(None)
    if judged == "none":
        found = no_final & ~graded
    elif judged == "higher":
        found = (Item.final > lowest) | (no_final & higher)
    else:
        found = (Item.final <= lowest) | (no_final & graded & ~higher)
    return found


def _of_repeat(chosen: Selection) -> ColumnElement[bool]:
    """Whether a rater graded the item and its hidden repeat, with one grade or with two."""
    repeat, again = aliased(Item), aliased(ItemJudgment)
    same = ItemJudgment.grade == again.grade if chosen.repeat == "same" else ItemJudgment.grade != again.grade
    by = () if chosen.rater is None else (Account.name == chosen.rater,)
    joined = (repeat.repeat_of == Item.id, again.item_id == repeat.id, again.account_id == ItemJudgment.account_id)
    return _judged(*joined, ItemJudgment.action.in_(GRADES), again.action.in_(GRADES), same, *by)


def _conditions(chosen: Selection, lowest: float) -> list[ColumnElement[bool]]:
    """All conditions, of `Item`."""
    counted = Item.origin != Origin.CALIBRATION
    spread = func.max(ItemJudgment.grade) - func.min(ItemJudgment.grade)
    rules: dict[str, Callable[[], ColumnElement[bool]]] = {
        "state": lambda: Item.state == chosen.state,
        "query": lambda: Item.query_id.in_(select(BookQuery.id).where(BookQuery.name == chosen.query)),
        "origin": lambda: Item.origin == chosen.origin,
        "judged": lambda: counted & _of_grade(chosen.judged or "", lowest),
        "persons": lambda: counted & (_of_persons(func.count()) == _bounded(chosen.persons or 0)),
        "spread": lambda: (_of_persons(func.count()) > 1) & (_of_persons(spread) >= chosen.spread),
        "calibration": lambda: Item.gold.is_not(None) if chosen.calibration == "yes" else Item.gold.is_(None),
        "flagged": lambda: Item.flagged.is_(True),
        "waits": lambda: (
            (Item.state == ItemState.ADJUDICATE)
            | (needs_rater() & _judged(Account.kind == RaterKind.PERSON, ItemJudgment.grade.is_not(None)))
        ),
        "other": lambda: _judged(
            Account.name == chosen.other,
            ItemJudgment.grade.is_not(None) if chosen.other_grade is None else ItemJudgment.grade == chosen.other_grade,
        ),
        "repeat": lambda: _of_repeat(chosen),
    }
    found = _set_rules(chosen, rules)
    return [*found, _judged(*_of_judgment(chosen))] if chosen.of_judgments else found


def repeats_of(rows: tuple[RatingRow, ...]) -> Repeats:
    """Both grades of each item that a rater judged twice without knowing."""
    first = {(row.item_id, row.rater): row.grade for row in rows}
    return {
        (row.repeat_of, row.rater): (before, row.grade)
        for row in rows
        if row.repeat_of is not None
        and row.grade is not None
        and (before := first.get((row.repeat_of, row.rater))) is not None
    }


def selected_items(
    store: Store, book_id: int, lowest: float, chosen: Selection, *, limit: int | None = None, start: int = 0
) -> tuple[ItemView, ...]:
    """The items of a book that fit, by query and document: all of them, or `limit` of them from a place on."""
    return store.reading.chosen(book_id, _conditions(chosen, lowest), limit=limit, start=start)


def n_selected(store: Store, book_id: int, lowest: float, chosen: Selection) -> int:
    """How many items of a book fit."""
    return store.reading.n_chosen(book_id, _conditions(chosen, lowest))


def waiting_items(store: Store, book_id: int) -> list[ItemView]:
    """What a lead decides: items in adjudication, and those that need a rater whom the book does not have."""
    found = store.reading.items(book_id, ItemFilter(state=ItemState.ADJUDICATE))
    alone = store.reading.items(book_id, ItemFilter(needs_rater=True))
    return [*found, *(item for item in alone if person_grades(item))]


def withdrawn_by(
    store: Store, book_id: int, items: Sequence[ItemView], chosen: Selection
) -> dict[int, tuple[RatingRow, ...]]:
    """What re-opening a selection withdraws of each item: the judgments that fit; without a condition of judgments, all of persons."""
    of_judgment = _of_judgment(chosen) if chosen.of_judgments else []
    fit = store.reading.fitting(book_id, [*of_judgment, Account.kind == RaterKind.PERSON])
    return {item.id: tuple(row for row in item.ratings if (item.id, row.account_id) in fit) for item in items}
