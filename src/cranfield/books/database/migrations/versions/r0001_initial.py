"""All tables; the log of judgments refuses changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cranfield.books.database.migrations.frozen import NAMING, NUMBER

revision = "0001"
down_revision = None

TABLES = sa.MetaData(naming_convention=NAMING)
SQLITE = """
CREATE TRIGGER event_not_updated BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'the log of judgments is append-only'); END;
CREATE TRIGGER event_not_deleted BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'the log of judgments is append-only'); END;
CREATE TRIGGER event_not_replaced BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE id = NEW.id OR (account_id = NEW.account_id AND client_key = NEW.client_key))
BEGIN SELECT RAISE(ABORT, 'the log of judgments is append-only'); END
"""
"""The third: `INSERT OR REPLACE` deletes without a trigger."""
POSTGRESQL = """
CREATE FUNCTION refuse_change_of_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the log of judgments is append-only'; END $$;
CREATE TRIGGER event_not_changed BEFORE UPDATE OR DELETE ON event
FOR EACH ROW EXECUTE FUNCTION refuse_change_of_event();
CREATE TRIGGER event_not_truncated BEFORE TRUNCATE ON event
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_event()
"""


def upgrade() -> None:
    """Make all tables, and the triggers of the log."""
    bind = op.get_bind()
    TABLES.create_all(bind)
    if bind.dialect.name == "sqlite":
        for statement in SQLITE.strip().split("END;\n"):
            op.execute(sa.text(statement.removesuffix("END") + "END"))
    else:
        op.execute(sa.text(POSTGRESQL))


sa.Table(
    "account",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("password_hash", sa.Text),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.UniqueConstraint("name"),
)
sa.Table(
    "blob",
    TABLES,
    sa.Column("digest", sa.String(80), primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("size", NUMBER, nullable=False),
)
sa.Table(
    "book",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("source", sa.JSON, nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.UniqueConstraint("name"),
)
sa.Table(
    "intake",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("source", sa.String(200), nullable=False),
    sa.Column("digest", sa.String(80), nullable=False),
    sa.Column("n_bytes", NUMBER, nullable=False),
    sa.Column("at", NUMBER, nullable=False),
    sa.UniqueConstraint("source", "digest"),
)
sa.Table(
    "login_attempt",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("key", sa.String(300), nullable=False),
    sa.Column("at", NUMBER, nullable=False),
    sa.Index(None, "key", "at"),
)
sa.Table(
    "production_query",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("source", sa.String(200), nullable=False),
    sa.Column("day", sa.String(10), nullable=False),
    sa.Column("digest", sa.String(80), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("n", NUMBER, nullable=False),
    sa.UniqueConstraint("source", "day", "digest"),
    sa.Index(None, "day"),
)
sa.Table(
    "book_query",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("need", sa.Text, nullable=False),
    sa.Column("notes", sa.Text, nullable=False),
    sa.Column("position", NUMBER, nullable=False),
    sa.Column("strata", sa.JSON, nullable=False),
    sa.UniqueConstraint("book_id", "name"),
)
sa.Table(
    "frozen",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id"), nullable=False),
    sa.Column("number", NUMBER, nullable=False),
    sa.Column("digest", sa.String(80), nullable=False),
    sa.Column("manifest", sa.JSON, nullable=False),
    sa.Column("at", NUMBER, nullable=False),
    sa.UniqueConstraint("book_id", "number"),
)
sa.Table(
    "guideline",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id"), nullable=False),
    sa.Column("version", NUMBER, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
    sa.UniqueConstraint("book_id", "version"),
)
sa.Table(
    "job",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("trigger", sa.String(20), nullable=False),
    sa.Column("request", sa.JSON, nullable=False),
    sa.Column("key", sa.String(200)),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("started_at", NUMBER),
    sa.Column("finished_at", NUMBER),
    sa.Column("worker", sa.String(200), nullable=False),
    sa.Column("lease_until", NUMBER),
    sa.Column("fence", NUMBER, nullable=False),
    sa.Column("attempts", NUMBER, nullable=False),
    sa.Column("cancel", sa.Boolean, nullable=False),
    sa.Column("n_done", NUMBER, nullable=False),
    sa.Column("n_all", NUMBER, nullable=False),
    sa.Column("progress", sa.Text, nullable=False),
    sa.Column("changed_at", NUMBER, nullable=False),
    sa.Column("problems", sa.JSON),
    sa.Column("outcome", sa.JSON),
    sa.UniqueConstraint("key"),
    sa.Index(None, "state", "id"),
)
sa.Table(
    "join_link",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id"), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("expires_at", NUMBER, nullable=False),
    sa.Column("uses_left", NUMBER, nullable=False),
    sa.UniqueConstraint("hash"),
)
sa.Table(
    "member",
    TABLES,
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id"), primary_key=True),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id"), primary_key=True),
    sa.Column("quota", NUMBER),
)
sa.Table(
    "model_call",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id"), nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id"), nullable=False),
    sa.Column("cache_key", sa.String(80), nullable=False),
    sa.Column("item_ids", sa.JSON, nullable=False),
    sa.Column("request", sa.JSON, nullable=False),
    sa.Column("response", sa.JSON, nullable=False),
    sa.Column("outcome", sa.String(20), nullable=False),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("input_tokens", NUMBER),
    sa.Column("output_tokens", NUMBER),
    sa.Column("cost", sa.Double),
    sa.Column("at", NUMBER, nullable=False),
    sa.Column("duration_ms", NUMBER, nullable=False),
    sa.Index(None, "book_id", "cache_key"),
)
sa.Table(
    "run_file",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("digest", sa.String(80), nullable=False),
    sa.Column("source", sa.String(20), nullable=False),
    sa.Column("format", sa.String(40), nullable=False),
    sa.Column("blob", sa.String(80), sa.ForeignKey("blob.digest"), nullable=False),
    sa.Column("n_queries", NUMBER, nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
    sa.Index(None, "name", "id"),
)
sa.Table(
    "testset",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("digest", sa.String(80), nullable=False),
    sa.Column("version", sa.String(200), nullable=False),
    sa.Column("source", sa.String(20), nullable=False),
    sa.Column("format", sa.String(40), nullable=False),
    sa.Column("blob", sa.String(80), sa.ForeignKey("blob.digest"), nullable=False),
    sa.Column("n_queries", NUMBER, nullable=False),
    sa.Column("n_judgments", NUMBER, nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
    sa.Index(None, "name", "id"),
)
sa.Table(
    "token",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id"), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("label", sa.String(200), nullable=False),
    sa.Column("scope", sa.String(20), nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("expires_at", NUMBER, nullable=False),
    sa.Column("used_at", NUMBER),
    sa.UniqueConstraint("hash"),
)
sa.Table(
    "variant",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("system", sa.String(200), nullable=False),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
    sa.UniqueConstraint("name"),
)
sa.Table(
    "web_session",
    TABLES,
    sa.Column("id_hash", sa.String(64), primary_key=True),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id"), nullable=False),
    sa.Column("csrf", sa.String(64), nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("expires_at", NUMBER, nullable=False),
)
sa.Table(
    "evaluation",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("job_id", NUMBER, sa.ForeignKey("job.id")),
    sa.Column("position", NUMBER, nullable=False),
    sa.Column("testset_id", NUMBER, sa.ForeignKey("testset.id"), nullable=False),
    sa.Column("testset_name", sa.String(200), nullable=False),
    sa.Column("run_id", NUMBER, sa.ForeignKey("run_file.id"), nullable=False),
    sa.Column("system", sa.String(200), nullable=False),
    sa.Column("variant", sa.String(200), nullable=False),
    sa.Column("components", sa.String(200), nullable=False),
    sa.Column("config_digest", sa.String(80), nullable=False),
    sa.Column("trigger", sa.String(20), nullable=False),
    sa.Column("at", NUMBER, nullable=False),
    sa.Column("configured", sa.Boolean, nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("record", sa.JSON, nullable=False),
    sa.Column("facts", sa.JSON, nullable=False),
    sa.Column("void", sa.JSON),
    sa.Column("payload", sa.String(80), sa.ForeignKey("blob.digest"), nullable=False),
    sa.Column("calls", sa.String(80), sa.ForeignKey("blob.digest"), nullable=False),
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id")),
    sa.Column("tags", sa.JSON, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("pinned", sa.Boolean, nullable=False),
    sa.UniqueConstraint("job_id", "position"),
    sa.Index(None, "system", "testset_name", "id"),
)
sa.Table(
    "item",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id"), nullable=False),
    sa.Column("query_id", NUMBER, sa.ForeignKey("book_query.id"), nullable=False),
    sa.Column("doc_id", sa.Text, nullable=False),
    sa.Column("doc_digest", sa.String(80)),
    sa.Column("fields", sa.JSON, nullable=False),
    sa.Column("origin", sa.String(20), nullable=False),
    sa.Column("repeat_of", NUMBER, sa.ForeignKey("item.id")),
    sa.Column("repeat_for", NUMBER, sa.ForeignKey("account.id")),
    sa.Column("gold", sa.Double),
    sa.Column("gold_reason", sa.Text, nullable=False),
    sa.Column("wanted", NUMBER, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("final", sa.Double),
    sa.Column("flagged", sa.Boolean, nullable=False),
    sa.Column("stratum", sa.String(40), nullable=False),
    sa.Column("inclusion", sa.Double, nullable=False),
    sa.Column("effect", sa.Double),
    sa.Column("runs", sa.JSON, nullable=False),
    sa.Index(None, "book_id", "gold"),
    sa.Index(None, "book_id", "state"),
    sa.Index(None, "query_id", "doc_id"),
)
sa.Table(
    "comparison",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("job_id", NUMBER, sa.ForeignKey("job.id")),
    sa.Column("baseline_id", NUMBER, sa.ForeignKey("evaluation.id"), nullable=False),
    sa.Column("candidate_id", NUMBER, sa.ForeignKey("evaluation.id"), nullable=False),
    sa.Column("request", sa.JSON, nullable=False),
    sa.Column("record", sa.JSON, nullable=False),
    sa.Column("payload", sa.String(80), sa.ForeignKey("blob.digest"), nullable=False),
    sa.Column("calls", sa.String(80), sa.ForeignKey("blob.digest"), nullable=False),
    sa.Column("at", NUMBER, nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
    sa.UniqueConstraint("job_id"),
    sa.Index(None, "candidate_id"),
)
sa.Table(
    "event",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id"), nullable=False),
    sa.Column("item_id", NUMBER, sa.ForeignKey("item.id"), nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id"), nullable=False),
    sa.Column("action", sa.String(20), nullable=False),
    sa.Column("grade", sa.Double),
    sa.Column("skip_reason", sa.String(40)),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("at", NUMBER, nullable=False),
    sa.Column("duration_ms", NUMBER),
    sa.Column("order_seen", NUMBER),
    sa.Column("guideline_version", NUMBER),
    sa.Column("method", sa.String(20), nullable=False),
    sa.Column("client_key", sa.String(80), nullable=False),
    sa.Column("doc_digest", sa.String(80)),
    sa.Column("subject_id", NUMBER, sa.ForeignKey("account.id")),
    sa.Column("data", sa.JSON),
    sa.UniqueConstraint("account_id", "client_key"),
    sa.Index(None, "book_id", "id"),
    sa.Index(None, "item_id"),
)
sa.Table(
    "hand_out",
    TABLES,
    sa.Column("item_id", NUMBER, sa.ForeignKey("item.id"), primary_key=True),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id"), primary_key=True),
    sa.Column("guideline_version", NUMBER, nullable=False),
)
sa.Table(
    "slot",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("item_id", NUMBER, sa.ForeignKey("item.id"), nullable=False),
    sa.Column("number", NUMBER, nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("leased_until", NUMBER),
    sa.UniqueConstraint("item_id", "account_id"),
    sa.UniqueConstraint("item_id", "number"),
    sa.Index(None, "account_id"),
    sa.Index(None, "state", "leased_until"),
)
sa.Table(
    "judgment",
    TABLES,
    sa.Column("item_id", NUMBER, sa.ForeignKey("item.id"), primary_key=True),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id"), primary_key=True),
    sa.Column("event_id", NUMBER, sa.ForeignKey("event.id"), nullable=False),
    sa.Column("action", sa.String(20), nullable=False),
    sa.Column("grade", sa.Double),
    sa.Column("stale", sa.Boolean, nullable=False),
    sa.Index(None, "account_id"),
)
