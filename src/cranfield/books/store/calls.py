"""Calls of models: the log that can be read in the browser, and the cache of answers."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import select

from cranfield.books.database.engine import Part
from cranfield.books.store.rows import as_value
from cranfield.books.store.schema import ModelCall
from cranfield.books.store.values import CallRow


class Calls(Part):
    """Calls of models."""

    def add(self, call: CallRow) -> int:
        """Record a call; its id."""
        with self._database.write() as session:
            at = self._clock() if call.at is None else call.at
            row = ModelCall(**asdict(call) | {"id": None, "item_ids": {"items": list(call.item_ids)}, "at": at})
            session.add(row)
            session.flush()
            return row.id

    def answered(self, book_id: int, cache_key: str) -> CallRow | None:
        """The last call with this key whose answer was `ok`."""
        query = select(ModelCall).where(
            ModelCall.book_id == book_id, ModelCall.cache_key == cache_key, ModelCall.outcome == "ok"
        )
        with self._database.read() as session:
            row = session.scalar(query.order_by(ModelCall.id.desc()).limit(1))
            return None if row is None else _call(row)

    def all(
        self,
        book_id: int,
        *,
        outcome: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> tuple[CallRow, ...]:
        """The calls of a book, of one outcome where one is given, with a larger id than `after`."""
        query = select(ModelCall).where(ModelCall.book_id == book_id, ModelCall.id > after)
        if outcome is not None:
            query = query.where(ModelCall.outcome == outcome)
        with self._database.read() as session:
            return tuple(_call(row) for row in session.scalars(query.order_by(ModelCall.id).limit(limit)))

    def get(self, call_id: int) -> CallRow | None:
        """A call."""
        with self._database.read() as session:
            row = session.get(ModelCall, call_id)
            return None if row is None else _call(row)


def _call(row: ModelCall) -> CallRow:
    items = row.item_ids.get("items", [])
    return as_value(CallRow, row, item_ids=tuple(items) if isinstance(items, list) else ())
