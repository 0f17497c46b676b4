"""Tables of the service. Times are milliseconds since 1970 (UTC).

Test sets, runs and results are kept whole, so that an evaluation can be scored again and compared with any other on any
server that shares the database. Large contents are in `blob`, once each.
"""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cranfield.books.database.base import Base
from cranfield.workbench.service.responses import JobState


class Blob(Base):
    """Content, compressed with zlib, under the SHA-256 of what it was before."""

    __tablename__ = "blob"

    digest: Mapped[str] = mapped_column(String(80), primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)
    size: Mapped[int]
    """Bytes before compression."""


class StoredSet(Base):
    """A version of a named test set."""

    __tablename__ = "testset"
    __table_args__ = (Index(None, "name", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    digest: Mapped[str] = mapped_column(String(80))
    """Digest of the test set: queries and judgments. Versions with one digest may differ in metadata, or in what
    predicates gave."""
    version: Mapped[str] = mapped_column(String(200), default="")
    """Its own, where the file declares one."""
    source: Mapped[str] = mapped_column(String(20))
    format: Mapped[str] = mapped_column(String(40))
    blob: Mapped[str] = mapped_column(ForeignKey("blob.digest"))
    """Its values as JSON: see `cranfield.workbench.service.runs`."""
    n_queries: Mapped[int]
    n_judgments: Mapped[int]
    created_at: Mapped[int]
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))


class StoredRun(Base):
    """A run: uploaded, or the answers of a system."""

    __tablename__ = "run_file"
    __table_args__ = (Index(None, "name", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    digest: Mapped[str] = mapped_column(String(80))
    source: Mapped[str] = mapped_column(String(20))
    format: Mapped[str] = mapped_column(String(40))
    blob: Mapped[str] = mapped_column(ForeignKey("blob.digest"))
    n_queries: Mapped[int]
    created_at: Mapped[int]
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))


class Job(Base):
    """Work that a server takes when it has time; a server that dies loses its lease, and another takes the job.

    `fence` grows with each claim. What a server writes of a job is written only while the number is the one of its claim, so
    that a server that was thought dead changes nothing.
    """

    __tablename__ = "job"
    __table_args__ = (Index(None, "state", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    state: Mapped[str] = mapped_column(String(20), default=JobState.QUEUED)
    trigger: Mapped[str] = mapped_column(String(20))
    request: Mapped[dict[str, object]]
    """What is to be done: a `JobRequest`."""
    key: Mapped[str | None] = mapped_column(String(200), unique=True)
    """Key of the requester: the same key is one job (`watch:nightly:2026-11-23T02:00Z`)."""
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))
    created_at: Mapped[int]
    started_at: Mapped[int | None]
    finished_at: Mapped[int | None]
    worker: Mapped[str] = mapped_column(String(200), default="")
    """Host and process that has it."""
    lease_until: Mapped[int | None]
    fence: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    cancel: Mapped[bool] = mapped_column(default=False)
    """It is to stop."""
    n_done: Mapped[int] = mapped_column(default=0)
    n_all: Mapped[int] = mapped_column(default=0)
    progress: Mapped[str] = mapped_column(Text, default="")
    """What it does now, for people."""
    changed_at: Mapped[int]
    """Time of the last change of state or progress."""
    problems: Mapped[list[dict[str, object]] | None]
    """Problems of a failed job: each with message, where, hint and code."""
    outcome: Mapped[dict[str, object] | None]
    """Outcome of an experiment that is done: a `BenefitOutcome`."""


class StoredEvaluation(Base):
    """One system on one test set: columns to search by, its record without queries for lists, and the whole one."""

    __tablename__ = "evaluation"
    __table_args__ = (
        UniqueConstraint("job_id", "position"),
        Index(None, "system", "testset_name", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id"))
    position: Mapped[int] = mapped_column(default=0)
    """Among the evaluations of the job."""
    testset_id: Mapped[int] = mapped_column(ForeignKey("testset.id"))
    testset_name: Mapped[str] = mapped_column(String(200))
    run_id: Mapped[int] = mapped_column(ForeignKey("run_file.id"))
    system: Mapped[str] = mapped_column(String(200))
    variant: Mapped[str] = mapped_column(String(200), default="")
    components: Mapped[str] = mapped_column(String(200), default="")
    config_digest: Mapped[str] = mapped_column(String(80), default="")
    trigger: Mapped[str] = mapped_column(String(20))
    at: Mapped[int]
    configured: Mapped[bool] = mapped_column(default=False)
    """Live answers of a system of the config, scored as the config or a schedule says: metrics and alerts follow it."""
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))
    settings: Mapped[dict[str, object]]
    """What scores its run again: measures, convention, depth, limits."""
    record: Mapped[dict[str, object]]
    """The JSON of its `EvaluationResult` without queries."""
    facts: Mapped[dict[str, object]]
    """`EvaluationFacts`: gate, failures, latencies."""
    void: Mapped[list[str] | None]
    """Why its figures do not count; None or empty where they do."""
    payload: Mapped[str] = mapped_column(ForeignKey("blob.digest"))
    """The JSON of the result, with every query."""
    calls: Mapped[str] = mapped_column(ForeignKey("blob.digest"))
    """The JSON of its `CallsResult`."""
    book_id: Mapped[int | None] = mapped_column(ForeignKey("book.id"))
    """Where its results are judged: its measures then follow the book."""
    tags: Mapped[list[str]] = mapped_column(default=list)
    note: Mapped[str] = mapped_column(Text, default="")
    pinned: Mapped[bool] = mapped_column(default=False)
    """The baseline of its test set."""


class StoredComparison(Base):
    """Two evaluations compared."""

    __tablename__ = "comparison"
    __table_args__ = (UniqueConstraint("job_id"), Index(None, "candidate_id"))

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id"))
    baseline_id: Mapped[int] = mapped_column(ForeignKey("evaluation.id"))
    candidate_id: Mapped[int] = mapped_column(ForeignKey("evaluation.id"))
    request: Mapped[dict[str, object]]
    """The `CompareRequest` that makes the comparison again."""
    record: Mapped[dict[str, object]]
    """The JSON of its `ComparisonResult` without queries."""
    payload: Mapped[str] = mapped_column(ForeignKey("blob.digest"))
    """The JSON of the result, with every query."""
    calls: Mapped[str] = mapped_column(ForeignKey("blob.digest"))
    """The JSON of its `CallsResult`."""
    at: Mapped[int]
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))


class Variant(Base):
    """A system of the config with other values of the parameters that the operator opens."""

    __tablename__ = "variant"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    system: Mapped[str] = mapped_column(String(200))
    params: Mapped[dict[str, object]]
    note: Mapped[str] = mapped_column(Text, default="")
    created_at: Mapped[int]
    account_id: Mapped[int | None] = mapped_column(ForeignKey("account.id"))


class ProductionQuery(Base):
    """A query of real users, redacted, with its count of a day."""

    __tablename__ = "production_query"
    __table_args__ = (UniqueConstraint("source", "day", "digest"), Index(None, "day"))

    id: Mapped[int] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(String(200))
    day: Mapped[str] = mapped_column(String(10))
    """2026-11-23, UTC."""
    digest: Mapped[str] = mapped_column(String(80))
    """Digest of the text, which may be too long for an index."""
    text: Mapped[str] = mapped_column(Text)
    n: Mapped[int]


class IntakeBatch(Base):
    """Production queries that were taken in at once: the same batch counts once."""

    __tablename__ = "intake"
    __table_args__ = (UniqueConstraint("source", "digest"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(String(200))
    digest: Mapped[str] = mapped_column(String(80))
    """Digest of a key, or, made slowly, of the beginning of a file."""
    n_bytes: Mapped[int]
    """Length of that beginning; 0: a key."""
    at: Mapped[int]
