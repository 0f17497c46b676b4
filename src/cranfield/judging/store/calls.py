"""Calls of models: the log that can be read in the browser, and the cache of answers."""

from __future__ import annotations

from cranfield.judging.store.engine import Part
from cranfield.judging.store.values import CallRow


class Calls(Part):
    """Calls of models."""

    def add(self, call: CallRow) -> int:
        """Record a call; its id."""
        raise NotImplementedError

    def answered(self, book_id: int, cache_key: str) -> CallRow | None:
        """The last call with this key whose answer was `ok`."""
        raise NotImplementedError

    def all(
        self, book_id: int, *, account_id: int | None = None, after: int = 0, limit: int | None = None
    ) -> tuple[CallRow, ...]:
        """The calls of a book, of one account where one is given, with a larger id than `after`."""
        raise NotImplementedError

    def get(self, call_id: int) -> CallRow | None:
        """A call."""
        raise NotImplementedError
