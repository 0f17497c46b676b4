"""What the store takes and gives: frozen values, ids as ints, times as milliseconds since 1970 (UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cranfield.base.errors import UsageError
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import (
    Action,
    BookState,
    ItemState,
    Origin,
    RaterKind,
    SkipReason,
)

Json = dict[str, object]


class BookClosedError(UsageError):
    """A judgment for a book that is closed."""


class NotAllowedError(UsageError):
    """An account may not do this, whatever its role: no member, a rater who would adjudicate, a link that has expired."""


@dataclass(frozen=True, slots=True)
class BookInfo:
    """A book."""

    id: int
    name: str
    state: BookState
    settings: BookSettings
    source: Json
    """Source of the pool: `name`, `method`, `depth`, `seed`, `testset`, `testset_digest`, `scale`, `runs`."""
    created_at: int
    n_queries: int
    n_items: int
    """Without hidden repeats."""
    guideline_version: int
    guideline: str


@dataclass(frozen=True, slots=True)
class GuidelineInfo:
    """A version of the guidelines of a book."""

    version: int
    text: str
    created_at: int
    by: str | None


@dataclass(frozen=True, slots=True)
class FrozenInfo:
    """A version of a test set that was made from a book."""

    number: int
    digest: str
    manifest: Json
    at: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """An item that a rater holds. Nothing in it says whether it is a repeat, a calibration item, or where it was ranked."""

    item_id: int
    book_id: int
    query_id: int
    query: str
    """The query's id in the test set."""
    query_text: str
    need: str
    notes: str
    doc: str
    fields: Json
    """In preference mode `a` and `b` are the two lists."""
    leased_until: int
    swapped: bool
    """In preference mode: list `b` is shown first. The grade is 1 where `a` is better, 2 where `b` is, 0 for a tie."""
    query_number: int
    """1, 2, ...: place of the query in this rater's order."""
    n_queries: int
    number: int
    """1, 2, ...: place of the item among those of its query, in this rater's order."""
    n_of_query: int
    doc_digest: str | None
    """Digest of the text that was last shown."""
    flagged: bool = False
    """By this rater."""
    action: Action | None = None
    """The rater's own `grade`, `skip` or `later` of the item."""
    grade: float | None = None
    skip_reason: SkipReason | None = None
    reason: str = ""
    data: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a judgment holds beside its grade."""

    skip_reason: SkipReason | None = None
    reason: str = ""
    duration_ms: int | None = None
    order_seen: int | None = None
    guideline_version: int | None = None
    """None: the current one."""
    doc_digest: str | None = None
    """Digest of the text that was shown."""
    data: Json | None = None
    """In a book of reviews: a `ReviewData`."""


@dataclass(frozen=True, slots=True)
class SaveRequest(Given):
    """One action of a rater on an item."""

    book_id: int
    item_id: int
    account_id: int
    action: Action
    client_key: str
    """Made by the client; the same key of the same account is saved once."""
    grade: float | None = None
    method: str = "api"
    """`key`, `click`, `api`, `import`, `model`, `rule` or `lead`."""
    given: bool = False
    """Whether a person judges: the item has to be one that he or she was given, within the quota. Leads may judge every
    item."""


@dataclass(frozen=True, slots=True)
class SavedJudgment:
    """What a save came to."""

    event_id: int
    duplicate: bool
    """The key was saved before: nothing new was recorded, and this is the first event."""
    item_state: ItemState
    extra: bool = False
    """Kept without a slot: the lease had expired, and another rater has the slot."""


@dataclass(frozen=True, slots=True)
class ImportedJudgment(Given):
    """A judgment made elsewhere."""

    item_id: int
    account_id: int
    client_key: str
    """The same key of the same account is recorded once: a second import adds nothing."""
    grade: float | None
    action: Action = Action.CARRY
    """`carry` fills no slot, also of a person; `grade` and `skip` of a person do, as if they were given here."""
    at: int | None = None
    """None: now."""
    method: str = "import"


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event of the log."""

    id: int
    book_id: int
    item_id: int
    query: str
    doc: str
    account_id: int
    account: str
    kind: RaterKind
    action: Action
    grade: float | None
    skip_reason: SkipReason | None
    reason: str
    at: int
    duration_ms: int | None
    order_seen: int | None
    guideline_version: int | None
    method: str
    client_key: str
    doc_digest: str | None
    subject: str | None
    """Whose judgment a `reopen` withdraws."""
    data: Json | None
    """In a book of reviews: a `ReviewData`."""


@dataclass(frozen=True, slots=True)
class JudgingProgress:
    """How far a rater is in a book."""

    n_done: int
    """Graded. Hidden repeats count here and in the rest, before they are given too: their rater would notice them otherwise."""
    n_left: int
    """Items that this rater could still get, within the quota, with those that were put off."""
    n_skipped: int
    n_later: int
    median_ms: int | None
    """Median time of this rater's last 50 grades, in milliseconds; None before the fifth."""
    seconds_left: int | None
    n_seen: int
    """Different items on which this rater has acted: `order_seen` goes on from here."""
    n_leased: int = 0
    """Items that this rater could get if other raters did not hold them; counted where nothing is left."""
    leased_until: int | None = None
    """When the first of these leases ends, unless it is renewed."""


@dataclass(frozen=True, slots=True)
class QueryCoverage:
    """A query of a book, with the progress of its items."""

    query_id: int
    query: str
    text: str
    n_items: int
    n_judged: int
    n_done: int
    """In state `done` or `adjudicated`."""
    n_adjudicate: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far a book is; calibration-only items and hidden repeats are not counted."""

    n_items: int
    states: Mapping[ItemState, int]
    judged_lowest: int
    """Items whose grades are all the lowest of the scale: judged 0."""
    judged_higher: int
    """Items with a higher grade."""
    unjudged: int
    """In the pool, and without any grade. Never counted as 0."""
    by_persons: Mapping[int, int]
    """0, 1, 2, ... grades by persons: items."""
    n_slots: int
    n_slots_done: int
    n_leased: int
    n_extra: int
    """Grades by persons without a slot: saved after the lease had expired."""
    n_skipped: int
    """Items that a rater skipped."""
    n_flagged: int
    n_stale: int
    """Items with a judgment of a text that has changed since."""
    n_needs_rater: int
    """Open items that no active member of the book can be given."""
    by_kind: Mapping[RaterKind, int]
    """Grades by persons, models, rules and carried over."""
    queries: tuple[QueryCoverage, ...]


@dataclass(frozen=True, slots=True)
class RatingRow:
    """Where a rater stands with an item."""

    item_id: int
    query: str
    doc: str
    account_id: int
    rater: str
    kind: RaterKind
    action: Action
    """`grade`, `carry`, `skip` or `later`."""
    grade: float | None
    """None for a skip."""
    skip_reason: SkipReason | None
    reason: str
    at: int
    duration_ms: int | None
    order_seen: int | None
    guideline_version: int | None
    method: str
    stale: bool
    """The document has changed since."""
    extra: bool
    """Fills no slot of the item although a person gave it."""
    origin: Origin
    """Origin of the item."""
    gold: float | None
    final: float | None
    """Final grade of the item, by adjudication."""
    repeat_of: int | None
    """The item that this one repeats, for the agreement of a rater with himself or herself."""
    doc_digest: str | None
    event_id: int
    data: Json | None = None
    """In a book of reviews: a `ReviewData`."""
    first_grade: float | None = None
    """First grade of a calibration item: the rater is measured by it, whatever he or she grades later."""


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item with all that is known of it: not for a rater who has not graded it."""

    id: int
    book_id: int
    query_id: int
    query: str
    query_text: str
    need: str
    notes: str
    doc: str
    doc_digest: str | None
    fields: Json
    origin: Origin
    state: ItemState
    final: float | None
    """Grade by adjudication."""
    final_by: str | None
    final_reason: str
    final_at: int | None
    wanted: int
    """Persons to judge it by the plan; `n_slots` includes those of an escalation."""
    n_slots: int
    flagged: bool
    gold: float | None
    gold_reason: str
    stratum: str
    inclusion: float
    effect: float | None
    runs: Json
    repeat_of: int | None
    repeat_for: int | None
    ratings: tuple[RatingRow, ...]
    """Ratings of all raters, skips included, in the order in which they were given."""
    final_data: Json | None = None
    """In a book of reviews: the `ReviewData` of the lead who decided."""


@dataclass(frozen=True, slots=True)
class QueryInfo:
    """A query of a book."""

    id: int
    name: str
    text: str
    need: str
    notes: str
    position: int
    strata: Mapping[str, str]
    n_items: int


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which items; what is None does not matter. `rater`, `stale`, `before_guideline`, `skipped` are of single judgments."""

    state: ItemState | None = None
    query: str | None = None
    flagged: bool | None = None
    needs_rater: bool | None = None
    """Open, and no active member of the book can be given it."""
    rater: str | None = None
    stale: bool | None = None
    before_guideline: int | None = None
    """Judged under an earlier version of the guidelines than this."""
    skipped: SkipReason | None = None


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call of a model with everything that was sent and received."""

    book_id: int
    account_id: int
    cache_key: str
    item_ids: tuple[int, ...]
    request: Json
    response: Json
    outcome: str
    """`ok`, `bad_answer`, `error` or `cached`."""
    error: str
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    duration_ms: int
    at: int | None = None
    """None: now."""
    id: int = 0
