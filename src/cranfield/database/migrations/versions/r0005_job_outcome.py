"""What the experiment of a schedule came to: its result is a file, and its job says what it shows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add a column."""
    op.add_column("job", sa.Column("outcome", sa.JSON, nullable=True))
