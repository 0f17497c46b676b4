"""What an event holds beyond a grade and a reason: the decision on a record of a golden set, with its edits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add a column."""
    op.add_column("event", sa.Column("data", sa.JSON, nullable=True))
