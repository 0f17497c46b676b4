"""Named variants of systems."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.store.rows import as_value, checked_name
from cranfield.workbench.service.store.blobs import ServicePart, account_names
from cranfield.workbench.service.store.schema import Variant
from cranfield.workbench.service.values import Json, VariantInfo


class Variants(ServicePart):
    """Named variants of systems; that the config has the system, and opens the parameters, is checked on use."""

    def save(self, name: str, system: str, params: Json, note: str = "", by: int | None = None) -> VariantInfo:
        """Keep a variant under a new name.

        Raises:
            UsageError: not a name, or there is one of this name: evaluations name it, so it does not change.
        """
        name = checked_name(name, "/,@()[]")
        with self._database.write() as session:
            if session.scalar(select(Variant.id).where(Variant.name == name)) is not None:
                raise UsageError(
                    f"variant {name} already exists", path="name", hint="choose another name, or delete it first"
                )
            made = self._clock()
            row = Variant(name=name, system=system, params=params, note=note, created_at=made, account_id=by)
            session.add(row)
            session.flush()
            return _info(session, row)

    def all(self) -> tuple[VariantInfo, ...]:
        """Every variant, by name."""
        with self._database.read() as session:
            return _infos(session, session.scalars(select(Variant).order_by(Variant.name)).all())

    def get(self, name: str) -> VariantInfo:
        """A variant.

        Raises:
            UnknownNameError: there is none of this name.
        """
        with self._database.read() as session:
            row = session.scalar(select(Variant).where(Variant.name == name))
            if row is None:
                raise UnknownNameError.among("variant", name, session.scalars(select(Variant.name)))
            return _info(session, row)

    def delete(self, name: str) -> None:
        """Delete a variant; its evaluations stay."""
        with self._database.write() as session:
            session.execute(delete(Variant).where(Variant.name == name))


def _info(session: Session, row: Variant) -> VariantInfo:
    return _infos(session, [row])[0]


def _infos(session: Session, rows: Sequence[Variant]) -> tuple[VariantInfo, ...]:
    names = account_names(session, (row.account_id for row in rows))
    return tuple(as_value(VariantInfo, row, params=dict(row.params), account=names[row.account_id]) for row in rows)
