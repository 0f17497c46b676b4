"""Calls of models: the log that can be read in the browser, and the cache of answers."""

from __future__ import annotations

from sqlalchemy import select

from cranfield.judging.store.engine import Part
from cranfield.judging.store.schema import ModelCall
from cranfield.judging.store.values import CallRow

_SAME = (
    *("book_id", "account_id", "cache_key", "request", "response", "outcome", "error", "input_tokens"),
    *("output_tokens", "cost", "duration_ms"),
)


class Calls(Part):
    """Calls of models."""

    def add(self, call: CallRow) -> int:
        """Record a call; its id."""
        with self._database.write() as session:
            row = ModelCall(**{name: getattr(call, name) for name in _SAME})
            row.item_ids, row.at = {"items": list(call.item_ids)}, self._clock() if call.at is None else call.at
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
    return CallRow(
        **{name: getattr(row, name) for name in _SAME},
        item_ids=tuple(items) if isinstance(items, list) else (),
        at=row.at,
        id=row.id,
    )
