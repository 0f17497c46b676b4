"""Books: their items, guidelines, calibration items and frozen versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cranfield.judging.pools.pool_file import Pool
from cranfield.judging.settings import BookSettings
from cranfield.judging.store.engine import Part
from cranfield.judging.store.values import BookInfo, FrozenInfo, GuidelineInfo, ItemFilter, Json


class Books(Part):
    """Books."""

    def create(
        self, name: str, pool: Pool, settings: BookSettings, *, guideline: str | None = None, by: int | None = None
    ) -> BookInfo:
        """Make a book of a pool. Carried-over judgments go to the account `carried`, prefilled ones to the account `rule`.

        Items with such a judgment want no person; of the others the share `overlap`, chosen by the seed, wants
        `raters_per_item` persons, and the rest one.

        Raises:
            UsageError: the name is taken, or the pool is inconsistent; all problems at once.
        """
        raise NotImplementedError

    def all(self) -> tuple[BookInfo, ...]:
        """All books, by name."""
        raise NotImplementedError

    def get(self, book: str | int) -> BookInfo:
        """A book by name or id.

        Raises:
            UnknownNameError: there is none.
        """
        raise NotImplementedError

    def add_pool(self, book: str | int, pool: Pool) -> int:
        """Add what a pool has and the book lacks; the number of new items. Judgments of items that it has are carried over."""
        raise NotImplementedError

    def add_item(self, book_id: int, query: str, doc: str, fields: Json, by: int) -> int:
        """Add a document that no system returned (origin `added`); its item id. The item that is there, where it is there."""
        raise NotImplementedError

    def set_guideline(self, book_id: int, text: str, by: int | None = None) -> int:
        """Make a new version of the guidelines; its number. The same text makes none."""
        raise NotImplementedError

    def guidelines(self, book_id: int) -> tuple[GuidelineInfo, ...]:
        """All versions, the earliest first."""
        raise NotImplementedError

    def close(self, book_id: int) -> None:
        """Take no more judgments; leases end."""
        raise NotImplementedError

    def open(self, book_id: int) -> None:
        """Take judgments again."""
        raise NotImplementedError

    def reopen(self, book_id: int, which: Sequence[int] | ItemFilter, by: int, reason: str = "") -> int:
        """Ask again: withdraw judgments of persons and the final grade, by an event each; the number of items.

        With item ids, or a filter of items, the judgments of all persons are withdrawn; with a filter of judgments
        (`rater`, `stale`, `before_guideline`, `skipped`) only those that match. The log keeps everything.
        An item that wanted no person, since its judgment was carried over, wants them now.
        """
        raise NotImplementedError

    def calibration(self, book_id: int, rows: Iterable[tuple[str, str, float, str]]) -> int:
        """Make items with a known grade, of (query, doc, grade, reason); how many. Every rater is asked for them."""
        raise NotImplementedError

    def set_digest(self, item_id: int, digest: str) -> bool:
        """Note the digest of the text that is shown. Judgments of another text become stale; whether there are any."""
        raise NotImplementedError

    def frozen(self, book_id: int) -> tuple[FrozenInfo, ...]:
        """The versions made of a book, the earliest first."""
        raise NotImplementedError

    def add_frozen(self, book_id: int, digest: str, manifest: Json) -> FrozenInfo:
        """Note a version; it gets the next number."""
        raise NotImplementedError
