"""The tables of the service: jobs, test sets, runs, evaluations, comparisons, variants, production queries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cranfield.database.migrations.frozen import NAMING, NUMBER

revision = "0003"
down_revision = "0002"

TABLES = sa.MetaData(naming_convention=NAMING)


def upgrade() -> None:
    """Make the tables."""
    bind = op.get_bind()
    TABLES.create_all(bind, tables=[table for table in TABLES.sorted_tables if table.name not in EARLIER])


EARLIER = {"account", "book"}
"""Tables of earlier revisions that the new ones refer to."""
for _name in sorted(EARLIER):
    sa.Table(_name, TABLES, sa.Column("id", NUMBER, primary_key=True))

sa.Table(
    "blob",
    TABLES,
    sa.Column("digest", sa.String(80), primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("size", NUMBER, nullable=False),
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
    "job",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("trigger", sa.String(20), nullable=False),
    sa.Column("request", sa.JSON, nullable=False),
    sa.Column("key", sa.String(200)),
    sa.UniqueConstraint("key"),
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
    sa.Index(None, "state", "id"),
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
    sa.Column("figures", sa.JSON, nullable=False),
    sa.Column("void", sa.JSON),
    sa.Column("payload", sa.String(80), sa.ForeignKey("blob.digest"), nullable=False),
    sa.Column("book_id", NUMBER, sa.ForeignKey("book.id")),
    sa.Column("tags", sa.JSON, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("pinned", sa.Boolean, nullable=False),
    sa.UniqueConstraint("job_id", "position"),
    sa.Index(None, "system", "testset_name", "id"),
)
sa.Table(
    "comparison",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("job_id", NUMBER, sa.ForeignKey("job.id")),
    sa.Column("baseline_id", NUMBER, sa.ForeignKey("evaluation.id"), nullable=False),
    sa.Column("candidate_id", NUMBER, sa.ForeignKey("evaluation.id"), nullable=False),
    sa.Column("options", sa.JSON, nullable=False),
    sa.Column("verdict", sa.String(40), nullable=False),
    sa.Column("sentence", sa.Text, nullable=False),
    sa.Column("payload", sa.String(80), sa.ForeignKey("blob.digest"), nullable=False),
    sa.Column("at", NUMBER, nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
    sa.UniqueConstraint("job_id"),
    sa.Index(None, "candidate_id"),
)
sa.Table(
    "comparison_page",
    TABLES,
    sa.Column("comparison_id", NUMBER, sa.ForeignKey("comparison.id"), primary_key=True),
    sa.Column("version", sa.String(80), nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
sa.Table(
    "variant",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.UniqueConstraint("name"),
    sa.Column("system", sa.String(200), nullable=False),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("created_at", NUMBER, nullable=False),
    sa.Column("account_id", NUMBER, sa.ForeignKey("account.id")),
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
    "intake",
    TABLES,
    sa.Column("id", NUMBER, primary_key=True),
    sa.Column("source", sa.String(200), nullable=False),
    sa.Column("digest", sa.String(80), nullable=False),
    sa.Column("n_bytes", NUMBER, nullable=False),
    sa.Column("at", NUMBER, nullable=False),
    sa.UniqueConstraint("source", "digest"),
)
