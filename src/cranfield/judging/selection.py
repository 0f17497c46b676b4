"""Which items a list shows: the conditions that every figure of the dashboard links to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from cranfield.judging.store.schema import Action, ItemState, Origin, RaterKind, SkipReason
from cranfield.judging.store.store import Store
from cranfield.judging.store.values import ItemFilter, ItemView, RatingRow

FAST_MS = 1_000
"""Under it a grade is an outlier: nothing was read."""

Pair = tuple[float, float]
Repeats = Mapping[tuple[int, str], Pair]
"""Item and rater to the first grade and that of the hidden repeat."""


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


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
    day: Annotated[str | None, BeforeValidator(_empty_is_none)] = None
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


def _fits_judgment(row: RatingRow, item: ItemView, chosen: Selection) -> bool:
    right = row.grade == item.gold
    return (
        (row.kind == chosen.kind if chosen.kind else chosen.of_any_kind or row.kind == RaterKind.PERSON)
        and chosen.rater in {None, row.rater}
        and chosen.grade in {None, row.grade}
        and (not chosen.fast or is_fast(row))
        and chosen.day in {None, day_of(row.at)}
        and (
            chosen.gold is None
            or (row.grade is not None and item.gold is not None and right == (chosen.gold == "right"))
        )
        and (row.grade is not None or chosen.stale if chosen.skipped is None else row.action == Action.SKIP)
        and chosen.skipped in {None, "any", row.skip_reason}
        and (not chosen.stale or row.stale)
        and (chosen.before_guideline is None or (row.guideline_version or 0) < chosen.before_guideline)
    )


def _fits_item(item: ItemView, chosen: Selection, lowest: float, waiting: frozenset[int]) -> bool:
    given = [row.grade for row in item.ratings if row.grade is not None]
    grades = given if item.final is None else [item.final]
    judged = "none" if not grades else "lowest" if max(grades) <= lowest else "higher"
    persons = [row.grade for row in person_grades(item) if row.grade is not None]
    counted = item.origin != Origin.CALIBRATION
    return (
        chosen.state in {None, item.state}
        and chosen.query in {None, item.query}
        and chosen.origin in {None, item.origin}
        and (chosen.judged is None or (counted and judged == chosen.judged))
        and (chosen.persons is None or (counted and len(persons) == chosen.persons))
        and (chosen.spread is None or (len(persons) > 1 and max(persons) - min(persons) >= chosen.spread))
        and (chosen.calibration is None or (item.gold is not None) == (chosen.calibration == "yes"))
        and (not chosen.flagged or item.flagged)
        and (not chosen.waits or item.id in waiting)
    )


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


def _fits_pair(item: ItemView, chosen: Selection, repeats: Repeats) -> bool:
    """The conditions that look at two judgments."""
    if chosen.other is not None:
        given = [row.grade for row in item.ratings if row.rater == chosen.other and row.grade is not None]
        if not given or chosen.other_grade not in {None, *given}:
            return False
    if chosen.repeat is None:
        return True
    raters = [chosen.rater] if chosen.rater else [row.rater for row in item.ratings]
    pairs = [repeats[item.id, rater] for rater in raters if (item.id, rater) in repeats]
    return any((a == b) == (chosen.repeat == "same") for a, b in pairs)


def selected_items(store: Store, book_id: int, lowest: float, chosen: Selection) -> list[ItemView]:
    """The items of a book that fit, by query and document."""
    repeats = repeats_of(store.reading.ratings(book_id)) if chosen.repeat else {}
    waiting = frozenset(item.id for item in waiting_items(store, book_id)) if chosen.waits else frozenset()
    return [
        item
        for item in store.reading.items(book_id)
        if _fits_item(item, chosen, lowest, waiting)
        and (not chosen.of_judgments or any(_fits_judgment(row, item, chosen) for row in item.ratings))
        and _fits_pair(item, chosen, repeats)
    ]


def waiting_items(store: Store, book_id: int) -> list[ItemView]:
    """What a lead decides: items in adjudication, and those that need a rater whom the book does not have."""
    found = store.reading.items(book_id, ItemFilter(state=ItemState.ADJUDICATE))
    alone = store.reading.items(book_id, ItemFilter(needs_rater=True))
    return [*found, *(item for item in alone if person_grades(item))]


def withdrawn_by(items: Sequence[ItemView], chosen: Selection) -> dict[int, tuple[RatingRow, ...]]:
    """What re-opening a selection withdraws of each item: the judgments that fit; without a condition of judgments, all of persons."""
    return {
        item.id: tuple(
            row
            for row in item.ratings
            if row.kind == RaterKind.PERSON and (not chosen.of_judgments or _fits_judgment(row, item, chosen))
        )
        for item in items
    }
