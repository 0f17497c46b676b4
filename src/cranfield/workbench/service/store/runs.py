"""Stored runs: uploaded ones, and the answers of systems."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from cranfield.books.store.rows import as_value
from cranfield.workbench.service.responses import StoredSource
from cranfield.workbench.service.store.blobs import (
    ServicePart,
    account_names,
    blob_content,
    content_digest,
    keep_blob,
    row_of,
)
from cranfield.workbench.service.store.schema import StoredRun
from cranfield.workbench.service.values import NewRun, RunInfo


class StoredRuns(ServicePart):
    """Runs."""

    def all(
        self, limit: int = 100, before: int | None = None, *, source: StoredSource | None = None
    ) -> tuple[RunInfo, ...]:
        """The latest first; with ids under `before`, and from one source where one is given."""
        query = select(StoredRun).order_by(StoredRun.id.desc()).limit(limit)
        if before is not None:
            query = query.where(StoredRun.id < before)
        if source is not None:
            query = query.where(StoredRun.source == source)
        with self._database.read() as session:
            return _infos(session, session.scalars(query).all())

    def get(self, run_id: int) -> RunInfo:
        """A run.

        Raises:
            UnknownNameError: there is none of this number.
        """
        with self._database.read() as session:
            return run_info(session, _row(session, run_id))

    def names(self, ids: Collection[int]) -> dict[int, str]:
        """Number to name of those of these runs that there are."""
        with self._database.read() as session:
            return dict(session.execute(select(StoredRun.id, StoredRun.name).where(StoredRun.id.in_(ids))).all())

    def stored(self, run_id: int) -> tuple[RunInfo, bytes]:
        """A run and its file."""
        with self._database.read() as session:
            row = _row(session, run_id)
            return run_info(session, row), blob_content(session, row.blob)

    def keep(self, run: NewRun, source: StoredSource, format_name: str, by: int | None) -> RunInfo:
        """Store a run, unless the same content is there under the same name: who sends a request again gets its job again."""
        blob = content_digest(run.content)
        known = select(StoredRun).where(
            StoredRun.name == run.name,
            StoredRun.blob == blob,
            StoredRun.format == format_name,
            StoredRun.source == source,
        )
        with self._database.write(f"run {blob}") as session:
            row = session.scalar(known.order_by(StoredRun.id).limit(1))
            return run_info(session, row or keep_run(session, run, source, format_name, by, self._clock()))


def keep_run(
    session: Session, run: NewRun, source: StoredSource, format_name: str, by: int | None, now: int
) -> StoredRun:
    """Store a run: a new row each time, whose content is stored once."""
    row = StoredRun(
        name=run.name,
        digest=run.digest,
        source=source,
        format=format_name,
        blob=keep_blob(session, run.content),
        n_queries=run.n_queries,
        created_at=now,
        account_id=by,
    )
    session.add(row)
    session.flush()
    return row


def run_info(session: Session, row: StoredRun) -> RunInfo:
    """A run as a value."""
    return _infos(session, [row])[0]


def _infos(session: Session, rows: Sequence[StoredRun]) -> tuple[RunInfo, ...]:
    names = account_names(session, (row.account_id for row in rows))
    return tuple(as_value(RunInfo, row, source=StoredSource(row.source), account=names[row.account_id]) for row in rows)


def _row(session: Session, run_id: int) -> StoredRun:
    return row_of(session, StoredRun, run_id, "run")
