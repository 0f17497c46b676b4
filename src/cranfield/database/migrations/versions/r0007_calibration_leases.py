"""Until when a rater holds a calibration item, and when another rater would have taken it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cranfield.database.migrations.frozen import NUMBER

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add columns. What was given before is held, and not lost."""
    op.add_column("hand_out", sa.Column("leased_until", NUMBER))
    op.add_column("hand_out", sa.Column("lost_at", NUMBER))
