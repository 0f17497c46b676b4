"""A whole book as records, a JSON object a line: what `transfer` takes out of a database and puts into one.

Items and events are numbered from 1 in their order; raters go by name. Sessions, passwords and leases are no part of it, and
neither are the keys by which a browser sends a judgment once.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action, BookState, ItemState, Origin, RaterKind, SkipReason, SlotState

Json = dict[str, Any]
Grade = Annotated[float, Field(allow_inf_nan=False)]
Number = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Key = Annotated[str, Field(max_length=80)]


class BookLine(BaseModel):
    """A line, or a part of one."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RaterRecord(BookLine):
    """Who gave grades, wrote guidelines or adjudicated."""

    name: Name
    kind: RaterKind
    settings: Json = {}
    """Settings of a model: its provider and name."""


class GuidelineRecord(BookLine):
    """A version of the guidelines."""

    version: Number
    text: str
    created_at: int
    account: str | None = None


class MemberRecord(BookLine):
    """A rater of the book."""

    account: str
    quota: int | None = None


class FrozenRecord(BookLine):
    """A version of a test set that was made from the book."""

    number: Number
    digest: Key
    manifest: Json
    at: int


class BookHeader(BookLine):
    """The first line."""

    cranfield_book: Literal[1] = 1
    name: Name
    state: BookState
    settings: BookSettings
    source: Json
    created_at: int
    pseudonyms: bool = False
    raters: list[RaterRecord]
    guidelines: list[GuidelineRecord]
    members: list[MemberRecord]
    frozen: list[FrozenRecord]


class BookQueryRecord(BookLine):
    """A query."""

    name: str
    text: str
    need: str
    notes: str
    position: int
    strata: Json


class SlotRecord(BookLine):
    """A place for a person's judgment."""

    number: Number
    account: str | None = None
    state: SlotState


class ItemRecord(BookLine):
    """A document of a query."""

    number: Number
    query: str
    doc_id: str
    doc_digest: Key | None = None
    fields: Json
    origin: Origin
    repeat_of: Number | None = None
    repeat_for: str | None = None
    gold: Grade | None = None
    gold_reason: str
    wanted: Annotated[int, Field(ge=0)]
    state: ItemState
    final: Grade | None = None
    flagged: bool
    stratum: Annotated[str, Field(max_length=40)]
    inclusion: Grade
    effect: Grade | None = None
    runs: Json
    slots: list[SlotRecord]


class EventRecord(BookLine):
    """What a rater did."""

    number: Number
    item: Number
    account: str
    action: Action
    grade: Grade | None = None
    skip_reason: SkipReason | None = None
    reason: str
    at: int
    duration_ms: int | None = None
    order_seen: int | None = None
    guideline_version: int | None = None
    method: Annotated[str, Field(max_length=20)]
    doc_digest: Key | None = None
    subject: str | None = None
    data: Json | None = None


class JudgmentRecord(BookLine):
    """Where a rater stands with an item."""

    item: Number
    account: str
    event: Number
    action: Action
    grade: Grade | None = None
    stale: bool


class CallRecord(BookLine):
    """A call of a model."""

    account: str
    cache_key: Key
    items: list[Number]
    request: Json
    response: Json
    outcome: Annotated[str, Field(max_length=20)]
    error: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Grade | None = None
    at: int
    duration_ms: int


KINDS: dict[str, type[BookLine]] = {
    "query": BookQueryRecord,
    "item": ItemRecord,
    "event": EventRecord,
    "judgment": JudgmentRecord,
    "call": CallRecord,
}
"""Key of a line to what stands under it, in the order of the lines."""


class BookDump(BookLine):
    """A book."""

    book: BookHeader
    query: list[BookQueryRecord] = []
    item: list[ItemRecord] = []
    event: list[EventRecord] = []
    judgment: list[JudgmentRecord] = []
    call: list[CallRecord] = []
