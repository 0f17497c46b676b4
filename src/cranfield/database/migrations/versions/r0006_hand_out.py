"""What raters were given to judge: nothing else is saved of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cranfield.database.migrations.frozen import NUMBER

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add a table. What raters hold or have judged was given to them: it needs no row."""
    op.create_table(
        "hand_out",
        sa.Column("item_id", NUMBER, sa.ForeignKey("item.id"), primary_key=True),
        sa.Column("account_id", NUMBER, sa.ForeignKey("account.id"), primary_key=True),
        sa.Column("guideline_version", NUMBER, nullable=False),
    )
