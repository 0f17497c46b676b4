"""Stored versions of named test sets."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cranfield.books.store.rows import ChangedMeanwhileError, as_value
from cranfield.workbench.service.responses import StoredSource
from cranfield.workbench.service.store.blobs import (
    ServicePart,
    account_names,
    blob_content,
    content_digest,
    keep_blob,
    row_of,
)
from cranfield.workbench.service.store.schema import StoredSet
from cranfield.workbench.service.values import SetInfo


class StoredSets(ServicePart):
    """Versions of test sets."""

    def _latest(self, name: str | None = None) -> tuple[SetInfo, ...]:
        """The latest version of each name, or of one."""
        last = select(func.max(StoredSet.id)).group_by(StoredSet.name)
        if name is not None:
            last = last.where(StoredSet.name == name)
        with self._database.read() as session:
            rows = session.scalars(select(StoredSet).where(StoredSet.id.in_(last)).order_by(StoredSet.name))
            return _infos(session, rows.all())

    def _versions(self, name: str) -> tuple[SetInfo, ...]:
        query = select(StoredSet).where(StoredSet.name == name).order_by(StoredSet.id.desc())
        with self._database.read() as session:
            return _infos(session, session.scalars(query).all())

    def _with_digest(self, digest: str) -> SetInfo | None:
        """The latest version with these contents."""
        query = select(StoredSet).where(StoredSet.digest == digest).order_by(StoredSet.id.desc()).limit(1)
        with self._database.read() as session:
            row = session.scalar(query)
            return None if row is None else _info(session, row)

    def by_id(self, testset_id: int) -> SetInfo:
        """A version by its number.

        Raises:
            UnknownNameError: there is none of this number.
        """
        with self._database.read() as session:
            return _info(session, _row(session, testset_id))

    def _content(self, testset_id: int) -> bytes:
        with self._database.read() as session:
            return blob_content(session, _row(session, testset_id).blob)

    def _keep(self, info: SetInfo, content: bytes, after: int | None = None) -> SetInfo:
        """Store a version, unless it is the latest one; a test set that became again what it was gets a new number.

        Raises:
            ChangedMeanwhileError: the latest version is not the one of the id `after`.
        """
        with self._database.write(f"testset {info.name}") as session:
            known = select(StoredSet).where(StoredSet.name == info.name).order_by(StoredSet.id.desc()).limit(1)
            row = session.scalar(known)
            if after is not None and after != (row.id if row else 0):
                raise ChangedMeanwhileError.of(f"the test set {info.name}")
            if row is None or row.blob != content_digest(content):
                row = StoredSet(
                    name=info.name,
                    digest=info.digest,
                    version=info.version,
                    source=info.source,
                    format=info.format,
                    blob=keep_blob(session, content),
                    n_queries=info.n_queries,
                    n_judgments=info.n_judgments,
                    created_at=self._clock(),
                    account_id=info.account_id,
                )
                session.add(row)
                session.flush()
            return _info(session, row)


def _row(session: Session, testset_id: int) -> StoredSet:
    return row_of(session, StoredSet, testset_id, "test set")


def _info(session: Session, row: StoredSet) -> SetInfo:
    return _infos(session, [row])[0]


def _infos(session: Session, rows: Sequence[StoredSet]) -> tuple[SetInfo, ...]:
    names = account_names(session, (row.account_id for row in rows))
    return tuple(as_value(SetInfo, row, source=StoredSource(row.source), account=names[row.account_id]) for row in rows)
