"""What a rater judges next. A lease holds a slot for a rater for some minutes, and no other rater gets it in that time."""

from __future__ import annotations

from collections.abc import Collection

from cranfield.judging.store.engine import Part
from cranfield.judging.store.values import Assignment


class Queue(Part):
    """Leases."""

    def next_items(
        self, book_id: int, account_id: int, n: int = 5, *, holding: Collection[int] = ()
    ) -> tuple[Assignment, ...]:
        """Lease the next items of a rater: at most `n`, in this rater's own order. Leases that the rater has are renewed.

        The order: calibration items; what the rater holds already, also by an expired lease that no other rater took;
        a hidden repeat that is due; the whole of the next query; what the rater put off for later.

        Args:
            book_id: an open book; a closed one gives nothing.
            account_id: a member of the book.
            n: how many.
            holding: items that the page shows or has fetched, which are renewed and not given again.

        Raises:
            NotAllowedError: the account is no active member of the book, or no person.
        """
        raise NotImplementedError

    def own(self, book_id: int, account_id: int, item_id: int) -> Assignment:
        """An item of the book as this rater sees it, with the rater's own judgment; no lease is taken.

        Raises:
            UnknownNameError: the book has no such item, or it is a repeat for another rater.
        """
        raise NotImplementedError

    def renew(self, book_id: int, account_id: int) -> int:
        """Renew the leases of a rater; how many there are."""
        raise NotImplementedError

    def release(self, book_id: int, account_id: int, item_ids: Collection[int] | None = None) -> int:
        """Give slots back; all of them without `item_ids`. How many."""
        raise NotImplementedError
