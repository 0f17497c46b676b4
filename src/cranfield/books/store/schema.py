"""Tables of the database of books. Times are milliseconds since 1970 (UTC).

`event` is the append-only log: nothing in it is changed or deleted (triggers refuse it). `judgment` is what follows from
it: where each rater stands with each item.
"""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import JSON, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cranfield.books.database.base import Base


class Role(StrEnum):
    """Role of an account."""

    ADMIN = "admin"
    LEAD = "lead"
    RATER = "rater"
    VIEWER = "viewer"


class RaterKind(StrEnum):
    """What gives the grades of an account."""

    PERSON = "person"
    MODEL = "model"
    RULE = "rule"
    """A pattern, span, entity or predicate of the test set."""
    CARRIED = "carried"
    """Judgments of an earlier test set, whose raters are not known."""


class BookState(StrEnum):
    """Whether a book takes judgments."""

    OPEN = "open"
    CLOSED = "closed"


class Origin(StrEnum):
    """Why an item is in a book."""

    POOL = "pool"
    ADDED = "added"
    """A document that no system returned, added by a person."""
    CALIBRATION = "calibration"
    REPEAT = "repeat"


class ItemState(StrEnum):
    """State of an item."""

    OPEN = "open"
    """For raters."""
    DONE = "done"
    ADJUDICATE = "adjudicate"
    ADJUDICATED = "adjudicated"


class SlotState(StrEnum):
    """A place for one person's judgment of an item."""

    OPEN = "open"
    LEASED = "leased"
    DONE = "done"


class Action(StrEnum):
    """What an event records."""

    GRADE = "grade"
    SKIP = "skip"
    LATER = "later"
    FLAG = "flag"
    UNFLAG = "unflag"
    UNDO = "undo"
    """Withdraws the rater's grade or skip of the item."""
    ADJUDICATE = "adjudicate"
    REOPEN = "reopen"
    CARRY = "carry"
    """A judgment carried over from a test set or another book."""


class SkipReason(StrEnum):
    """Why an item was not graded."""

    UNCLEAR_QUERY = "unclear_query"
    UNCLEAR_DOCUMENT = "unclear_document"
    BROKEN = "broken"
    """The document is missing or cannot be shown."""
    EXPERT = "expert"
    """Needs an expert of the field."""


class Account(Base):
    """A person, a model or a rule that gives grades."""

    __tablename__ = "account"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    kind: Mapped[str] = mapped_column(String(20), default=RaterKind.PERSON)
    role: Mapped[str] = mapped_column(String(20), default=Role.RATER)
    password_hash: Mapped[str | None] = mapped_column(Text)
    active: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[int]
    settings: Mapped[dict[str, object]] = mapped_column(default=dict)
    """Key map and display settings of the judging page; provider and model of a model."""


class WebSession(Base):
    """A signed-in browser. The cookie holds the id, signed; the table its SHA-256."""

    __tablename__ = "web_session"

    id_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"))
    csrf: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[int]
    expires_at: Mapped[int]


class Token(Base):
    """Token of the API; only its SHA-256 is stored."""

    __tablename__ = "token"

    id: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    label: Mapped[str] = mapped_column(String(200))
    scope: Mapped[str] = mapped_column(String(20))
    """`read`, `judge` or `manage`; never more than the role of the account."""
    created_at: Mapped[int]
    expires_at: Mapped[int]
    used_at: Mapped[int | None]


class JoinLink(Base):
    """Makes an account with the role of a rater in one book."""

    __tablename__ = "join_link"

    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[int]
    expires_at: Mapped[int]
    uses_left: Mapped[int]


class LoginAttempt(Base):
    """Failed sign-ins, for the rate limit."""

    __tablename__ = "login_attempt"
    __table_args__ = (Index(None, "key", "at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(300))
    """`name:ann` or `address:10.0.0.7`."""
    at: Mapped[int]


class Book(Base):
    """A pool with its raters and their judgments."""

    __tablename__ = "book"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    state: Mapped[str] = mapped_column(String(20), default=BookState.OPEN)
    settings: Mapped[dict[str, object]]
    """A `BookSettings`."""
    source: Mapped[dict[str, object]]
    """Source of the pool: method, depth, seed, runs with digests, test set with digest."""
    created_at: Mapped[int]


class Guideline(Base):
    """A version of the guidelines; the latest holds."""

    __tablename__ = "guideline"
    __table_args__ = (UniqueConstraint("book_id", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    version: Mapped[int]
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[int]
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))


class Member(Base):
    """A rater of a book."""

    __tablename__ = "member"

    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"), primary_key=True)
    quota: Mapped[int | None]
    """Most judgments; None: that of the book."""


class BookQuery(Base):
    """A query of a book."""

    __tablename__ = "book_query"
    __table_args__ = (UniqueConstraint("book_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    name: Mapped[str] = mapped_column(Text)
    """Its id in test set, runs and exports."""
    text: Mapped[str] = mapped_column(Text)
    need: Mapped[str] = mapped_column(Text, default="")
    notes: Mapped[str] = mapped_column(Text, default="")
    position: Mapped[int]
    strata: Mapped[dict[str, object]] = mapped_column(default=dict)


class Item(Base):
    """A document of a query, to be judged; in preference mode two lists of a query."""

    __tablename__ = "item"
    __table_args__ = (
        Index(None, "book_id", "state"),
        Index(None, "query_id", "doc_id"),
        Index(None, "book_id", "gold"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    query_id: Mapped[int] = mapped_column(ForeignKey("book_query.id"))
    doc_id: Mapped[str] = mapped_column(Text)
    doc_digest: Mapped[str | None] = mapped_column(String(80))
    """SHA-256 of the text that was shown; None before it was had."""
    fields: Mapped[dict[str, object]] = mapped_column(default=dict)
    origin: Mapped[str] = mapped_column(String(20), default=Origin.POOL)
    repeat_of: Mapped[int | None] = mapped_column(ForeignKey("item.id"))
    repeat_for: Mapped[int | None] = mapped_column(ForeignKey("account.id"))
    gold: Mapped[float | None]
    """Grade of a calibration item."""
    gold_reason: Mapped[str] = mapped_column(Text, default="")
    wanted: Mapped[int]
    """Persons to judge it by the plan; an escalation adds slots."""
    state: Mapped[str] = mapped_column(String(20), default=ItemState.OPEN)
    final: Mapped[float | None]
    """Grade by adjudication."""
    flagged: Mapped[bool] = mapped_column(default=False)
    stratum: Mapped[str] = mapped_column(String(40), default="")
    inclusion: Mapped[float] = mapped_column(default=1.0)
    effect: Mapped[float | None]
    """Change of the mean difference that the judgment of a hole can make."""
    runs: Mapped[dict[str, object]] = mapped_column(default=dict)
    """Run to rank; never shown before the item is graded."""


class Slot(Base):
    """A place for the judgment of one person. Models, rules and carried judgments fill none."""

    __tablename__ = "slot"
    __table_args__ = (
        UniqueConstraint("item_id", "number"),
        UniqueConstraint("item_id", "account_id"),
        Index(None, "state", "leased_until"),
        Index(None, "account_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id"))
    number: Mapped[int]
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))
    state: Mapped[str] = mapped_column(String(20), default=SlotState.OPEN)
    leased_until: Mapped[int | None]


class HandOut(Base):
    """An item that a rater was given to judge. A slot says who has it now, this who ever had it."""

    __tablename__ = "hand_out"

    item_id: Mapped[int] = mapped_column(ForeignKey("item.id"), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"), primary_key=True)
    guideline_version: Mapped[int]
    """The latest when the item was last given."""


class Event(Base):
    """What raters did, in the order it happened. Append-only."""

    __tablename__ = "event"
    __table_args__ = (
        UniqueConstraint("account_id", "client_key"),
        Index(None, "book_id", "id"),
        Index(None, "item_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id"))
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"))
    action: Mapped[str] = mapped_column(String(20))
    grade: Mapped[float | None]
    skip_reason: Mapped[str | None] = mapped_column(String(40))
    reason: Mapped[str] = mapped_column(Text, default="")
    at: Mapped[int]
    duration_ms: Mapped[int | None]
    """Time for which the item was on a visible page."""
    order_seen: Mapped[int | None]
    """1, 2, ...: how many items the rater had seen in this book."""
    guideline_version: Mapped[int | None]
    method: Mapped[str] = mapped_column(String(20))
    """`key`, `click`, `api`, `import`, `model`, `rule`, `lead`."""
    client_key: Mapped[str] = mapped_column(String(80))
    """Key made by the client: the same key is saved once."""
    doc_digest: Mapped[str | None] = mapped_column(String(80))
    subject_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))
    """Whose judgment a `reopen` withdraws; None: that of no rater, only the final grade."""
    data: Mapped[dict[str, object] | None] = mapped_column(JSON(none_as_null=True))
    """In a book of reviews a `ReviewData`: what becomes of the record, and the edits; None: it is kept as it is."""


class ItemJudgment(Base):
    """Where a rater stands with an item: follows from the log."""

    __tablename__ = "judgment"
    __table_args__ = (Index(None, "account_id"),)

    item_id: Mapped[int] = mapped_column(ForeignKey("item.id"), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"), primary_key=True)
    event_id: Mapped[int] = mapped_column(ForeignKey("event.id"))
    action: Mapped[str] = mapped_column(String(20))
    """`grade`, `skip`, `later` or `carry`."""
    grade: Mapped[float | None]
    stale: Mapped[bool] = mapped_column(default=False)
    """The document has changed since."""


class ModelCall(Base):
    """One call of a model, with everything that was sent and received."""

    __tablename__ = "model_call"
    __table_args__ = (Index(None, "book_id", "cache_key"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"))
    cache_key: Mapped[str] = mapped_column(String(80))
    """SHA-256 of model, prompt and documents."""
    item_ids: Mapped[dict[str, object]] = mapped_column(default=dict)
    """`{"items": [3]}`; several for a batch."""
    request: Mapped[dict[str, object]]
    response: Mapped[dict[str, object]] = mapped_column(default=dict)
    outcome: Mapped[str] = mapped_column(String(20))
    """`ok`, `bad_answer`, `error`, `cached`."""
    error: Mapped[str] = mapped_column(Text, default="")
    input_tokens: Mapped[int | None]
    output_tokens: Mapped[int | None]
    cost: Mapped[float | None]
    """In the currency of the price list; None where the price is not known."""
    at: Mapped[int]
    duration_ms: Mapped[int]


class Frozen(Base):
    """A version of a test set made from a book."""

    __tablename__ = "frozen"
    __table_args__ = (UniqueConstraint("book_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    number: Mapped[int]
    digest: Mapped[str] = mapped_column(String(80))
    manifest: Mapped[dict[str, object]]
    at: Mapped[int]
