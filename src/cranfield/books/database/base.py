"""What all tables have in common: naming, types, and the revision of the schema.

Times are milliseconds since 1970 (UTC). A change of a table needs a revision in `migrations/versions`.
"""

from __future__ import annotations

from typing import ClassVar

from sqlalchemy import JSON, Double, MetaData
from sqlalchemy.orm import DeclarativeBase

from cranfield.books.database.migrations.frozen import NAMING, NUMBER

REVISION = "0001"
"""Latest revision of the schema: a database of this revision is opened without Alembic."""


class Base(DeclarativeBase):
    """Metadata of all tables."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[object, object]] = {
        dict[str, object]: JSON,
        list[dict[str, object]]: JSON,
        list[str]: JSON,
        int: NUMBER,
        float: Double,
    }
