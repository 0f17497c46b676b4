"""What revisions share. A revision is frozen: it makes the same tables in every later version.

So this module does not change: a revision imports nothing else of the package, and what a later one needs otherwise is in that one.
"""

from __future__ import annotations

import sqlalchemy as sa

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
"""Names of indexes and constraints."""
