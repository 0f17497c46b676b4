"""Large contents, each once, and what the parts of the service have in common."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from cranfield.base.errors import InternalError, UnknownNameError
from cranfield.books.database.base import Base
from cranfield.books.database.engine import Part
from cranfield.books.store.schema import Account
from cranfield.workbench.service.store.schema import Blob
from cranfield.workbench.service.values import Json

Row = TypeVar("Row", bound=Base)
LARGEST = 2**31
"""Bytes of a content, when it is no longer compressed."""


def content_digest(content: bytes) -> str:
    """SHA-256 of a content."""
    return "sha256:" + sha256(content).hexdigest()


def keep_blob(session: Session, content: bytes) -> str:
    """Store a content, unless it is there; its digest."""
    digest = content_digest(content)
    if session.scalar(select(Blob.digest).where(Blob.digest == digest)) is None:
        row = {"digest": digest, "data": zlib.compress(content), "size": len(content)}
        module = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
        session.execute(module.insert(Blob).values(row).on_conflict_do_nothing())
    return digest


def blob_content(session: Session, digest: str) -> bytes:
    """The content under a digest.

    Raises:
        InternalError: it is not there, or is not what was stored.
    """
    data = session.scalar(select(Blob.data).where(Blob.digest == digest))
    if data is None:
        raise InternalError(f"content {digest} not found in the database")
    reader = zlib.decompressobj()
    content = reader.decompress(data, LARGEST)
    if reader.unconsumed_tail or content_digest(content) != digest:
        raise InternalError(f"content {digest} is damaged")
    return content


def blob_json(session: Session, digest: str) -> Json:
    """The JSON object under a digest; raises as `blob_content`."""
    found: Json = json.loads(blob_content(session, digest))
    return found


def row_of(session: Session, table: type[Row], number: int, what: str, *, lock: bool = False) -> Row:
    """A row by its number; locked until the transaction ends.

    Raises:
        UnknownNameError: there is none of this number.
    """
    row = session.get(table, number, with_for_update=lock or None)
    if row is None:
        raise UnknownNameError(f"{what} {number} not found")
    return row


def account_names(session: Session, account_ids: Iterable[int | None]) -> Mapping[int | None, str]:
    """Accounts with their names: one query, however many there are; empty for none."""
    known = select(Account.id, Account.name).where(Account.id.in_({*account_ids} - {None}))
    return {None: "", **dict(session.execute(known).all())}


class ServicePart(Part):
    """A part of the service: reads and writes tables."""

    def content(self, digest: str) -> bytes:
        """The content under a digest."""
        with self._database.read() as session:
            return blob_content(session, digest)
