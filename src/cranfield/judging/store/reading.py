"""What pages and reports read."""

from __future__ import annotations

from collections.abc import Collection

from cranfield.judging.store.engine import Part
from cranfield.judging.store.schema import ItemState, RaterKind
from cranfield.judging.store.values import Coverage, ItemFilter, ItemView, Progress, QueryInfo, RatingRow


class Reading(Part):
    """Progress, coverage, ratings, items."""

    def progress(self, book_id: int, account_id: int) -> Progress:
        """How far a rater is."""
        raise NotImplementedError

    def coverage(self, book_id: int) -> Coverage:
        """How far a book is."""
        raise NotImplementedError

    def ratings(
        self, book_id: int, kinds: Collection[RaterKind] | None = None, *, skips: bool = False
    ) -> tuple[RatingRow, ...]:
        """Current grades of a book, by query, document and time; those of hidden repeats are of origin `repeat`.

        Args:
            book_id: a book.
            kinds: only of these kinds of raters.
            skips: also what was skipped or put off.
        """
        raise NotImplementedError

    def items(
        self,
        book_id: int,
        *,
        where: ItemFilter | None = None,
        state: ItemState | None = None,
        query: str | None = None,
        flagged: bool | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> tuple[ItemView, ...]:
        """Items of a book by query and document, without hidden repeats; `state`, `query`, `flagged` add to `where`."""
        raise NotImplementedError

    def count(self, book_id: int, where: ItemFilter | None = None) -> int:
        """How many items a filter finds."""
        raise NotImplementedError

    def item(self, item_id: int) -> ItemView:
        """An item.

        Raises:
            UnknownNameError: there is none.
        """
        raise NotImplementedError

    def last_event_id(self, book_id: int) -> int:
        """The largest id of an event of a book; 0 where there is none. Pages that show progress ask for this each second."""
        raise NotImplementedError

    def recent(self, book_id: int, account_id: int, n: int = 20) -> tuple[RatingRow, ...]:
        """The items that an account judged, skipped or put off last, the latest first; hidden repeats among them."""
        raise NotImplementedError

    def reveal(self, item_ids: Collection[int], account_id: int) -> tuple[ItemView, ...]:
        """The items among these that the account has graded, and that may be shown to it: `settings.reveal` of their book.

        Hidden repeats, and the items that they repeat, are shown as any other item; calibration items have their gold grade.
        """
        raise NotImplementedError

    def queries(self, book_id: int) -> tuple[QueryInfo, ...]:
        """The queries of a book, in the order of the pool."""
        raise NotImplementedError
