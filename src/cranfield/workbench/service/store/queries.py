"""Queries of real users, redacted, with their counts by source and day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from cranfield.workbench.service.responses import QuerySourceInfo
from cranfield.workbench.service.store.blobs import ServicePart
from cranfield.workbench.service.store.schema import IntakeBatch, ProductionQuery
from cranfield.workbench.service.values import QueryCount

ROWS = 500
"""Rows of one statement."""


@dataclass(frozen=True, slots=True)
class KnownBatch:
    """What was taken in at once, by which a second time is recognised."""

    digest: str
    """Digest of a key, or of the beginning of a file up to `offset`; no text can be found from it."""
    offset: int = 0
    """Bytes of the file."""


class ProductionQueries(ServicePart):
    """Production queries. Every text that comes here has been redacted."""

    def record(
        self,
        source: str,
        counts: Mapping[tuple[str, str], int],
        batch: KnownBatch | None = None,
        replaced: KnownBatch | None = None,
    ) -> bool:
        """Add counts, all or nothing.

        Args:
            source: where the queries are from.
            counts: day and text, to how often it came.
            batch: is remembered; counts of one that is known are not added.
            replaced: is forgotten: the shorter beginning of the same file.

        Returns:
            False where the batch is known.
        """
        with self._database.write() as session:
            if batch is not None and not self._remember(session, source, batch):
                return False
            if replaced is not None:
                session.execute(
                    delete(IntakeBatch).where(IntakeBatch.source == source, IntakeBatch.digest == replaced.digest)
                )
            insert = sqlite.insert if self._database.is_sqlite else postgresql.insert
            rows = _rows(source, counts)
            for start in range(0, len(rows), ROWS):
                statement = insert(ProductionQuery).values(rows[start : start + ROWS])
                session.execute(
                    statement.on_conflict_do_update(
                        index_elements=["source", "day", "digest"],
                        set_={"n": ProductionQuery.n + statement.excluded.n},
                    )
                )
        return True

    def _remember(self, session: Session, source: str, batch: KnownBatch) -> bool:
        insert = sqlite.insert if self._database.is_sqlite else postgresql.insert
        row = {"source": source, "digest": batch.digest, "n_bytes": batch.offset, "at": self._clock()}
        added = session.execute(
            insert(IntakeBatch)
            .values(**row)
            .on_conflict_do_nothing(index_elements=["source", "digest"])
            .returning(IntakeBatch.id)
        )
        return added.first() is not None

    def batches(self, source: str) -> tuple[KnownBatch, ...]:
        """Beginnings of files of a source that were read, the shortest first."""
        with self._database.read() as session:
            rows = session.execute(
                select(IntakeBatch.digest, IntakeBatch.n_bytes)
                .where(IntakeBatch.source == source, IntakeBatch.n_bytes > 0)
                .order_by(IntakeBatch.n_bytes)
            )
            return tuple(KnownBatch(digest, n_bytes) for digest, n_bytes in rows)

    def top(
        self, source: str | None = None, since: str | None = None, limit: int | None = 100, *, at_least: int = 1
    ) -> tuple[QueryCount, ...]:
        """The most frequent queries, most first.

        Args:
            source: of this source alone.
            since: from this day on, `2026-11-23`.
            limit: so many; None: all.
            at_least: only those that came so often.
        """
        total, first, last = func.sum(ProductionQuery.n), func.min(ProductionQuery.day), func.max(ProductionQuery.day)
        statement = select(ProductionQuery.text, total, first, last).group_by(ProductionQuery.text)
        if source is not None:
            statement = statement.where(ProductionQuery.source == source)
        if since is not None:
            statement = statement.where(ProductionQuery.day >= since)
        statement = statement.having(total >= at_least).order_by(total.desc(), ProductionQuery.text).limit(limit)
        with self._database.read() as session:
            return tuple(QueryCount(text, int(n), begun, ended) for text, n, begun, ended in session.execute(statement))

    def counts(self) -> tuple[QuerySourceInfo, ...]:
        """What is stored of each source, by name."""
        statement = (
            select(
                ProductionQuery.source,
                func.count(ProductionQuery.digest.distinct()),
                func.sum(ProductionQuery.n),
                func.min(ProductionQuery.day),
                func.max(ProductionQuery.day),
            )
            .group_by(ProductionQuery.source)
            .order_by(ProductionQuery.source)
        )
        with self._database.read() as session:
            return tuple(
                QuerySourceInfo(source=source, n_texts=n_texts, n=int(n), first_day=first, last_day=last)
                for source, n_texts, n, first, last in session.execute(statement)
            )

    def purge(self, before_day: str, before: int = 0) -> int:
        """Delete queries of days before this one, and forget batches taken in before a time; gives the number of rows of queries."""
        with self._database.write() as session:
            session.execute(delete(IntakeBatch).where(IntakeBatch.at < before))
            is_old = ProductionQuery.day < before_day
            n_old = session.scalar(select(func.count()).select_from(ProductionQuery).where(is_old)) or 0
            if n_old:
                session.execute(delete(ProductionQuery).where(is_old))
            return n_old

    def delete(self, source: str) -> int:
        """Delete all of a source, and forget its batches; gives the number of rows of queries."""
        is_of_source = ProductionQuery.source == source
        with self._database.write() as session:
            n = session.scalar(select(func.count()).select_from(ProductionQuery).where(is_of_source)) or 0
            session.execute(delete(ProductionQuery).where(is_of_source))
            session.execute(delete(IntakeBatch).where(IntakeBatch.source == source))
            return n


def _rows(source: str, counts: Mapping[tuple[str, str], int]) -> list[dict[str, object]]:
    """In one order, so that two programs that write at once wait for each other at most."""
    return [
        {"source": source, "day": day, "digest": f"sha256:{sha256(text.encode()).hexdigest()}", "text": text, "n": n}
        for (day, text), n in sorted(counts.items())
    ]
