"""Whose judgment a `reopen` withdraws; the effect of a hole; indexes for calibration items, and for what a rater holds and has judged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cranfield.database.migrations.frozen import NUMBER

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add two columns and three indexes. Earlier `reopen` events have no subject: no version wrote any."""
    name = "fk_event_subject_id"
    column = sa.Column("subject_id", NUMBER, sa.ForeignKey("account.id", name=name), nullable=True)
    op.add_column("event", column, inline_references=op.get_bind().dialect.name == "sqlite")
    op.add_column("item", sa.Column("effect", sa.Double(), nullable=True))
    op.create_index("ix_slot_account_id", "slot", ["account_id"])
    op.create_index("ix_judgment_account_id", "judgment", ["account_id"])
    op.create_index("ix_item_book_id_gold", "item", ["book_id", "gold"])
