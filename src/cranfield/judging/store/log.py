"""Saves. Every action is an event of the append-only log; judgments, slots and states of items follow from it."""

from __future__ import annotations

from collections.abc import Iterable

from cranfield.judging.store.engine import Part
from cranfield.judging.store.values import EventRow, ImportedJudgment, Saved, SaveRequest


class Log(Part):
    """The log."""

    def save(self, request: SaveRequest) -> Saved:
        """Record an action of a rater; once, however often the same `client_key` is sent.

        A grade that comes after the lease has expired is kept: it takes a free slot of the item, or none (`Saved.extra`).
        `undo` withdraws the rater's last grade, skip or `later` of the item, and the slot returns to the rater.
        Models, rules and carried judgments fill no slot.

        Raises:
            BookClosedError: nothing was saved.
            UnknownNameError: there is no such book, item or account.
            UsageError: a grade that is not of the scale, a skip without a reason, an action that needs another call.
        """
        raise NotImplementedError

    def adjudicate(self, item_id: int, account_id: int, grade: float, reason: str, client_key: str) -> Saved:
        """Set the final grade of an item; the raters' grades are kept.

        Raises:
            NotAllowedError: the account has graded the item.
            UsageError: no reason, or a grade that is not of the scale.
        """
        raise NotImplementedError

    def import_many(self, book_id: int, judgments: Iterable[ImportedJudgment]) -> int:
        """Record judgments that were made elsewhere, all or none; how many are new.

        Raises:
            UsageError: an item that the book does not have, or a grade that is not of the scale; all problems at once.
        """
        raise NotImplementedError

    def events(self, book_id: int, after: int = 0, limit: int | None = None) -> tuple[EventRow, ...]:
        """The events of a book with a larger id than `after`, in the order in which they were recorded."""
        raise NotImplementedError
