"""Attempts to sign in, for the limit on passwords."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import delete, func, insert, select

from cranfield.books.database.engine import Part
from cranfield.books.store.schema import LoginAttempt

KEY_CHARS = 300
KEPT_FAILURES_MS = 86_400_000


class SignIns(Part):
    """Attempts that failed, or whose password is being compared."""

    def begin(self, limits: Mapping[str, int], since: int) -> tuple[int, ...] | None:
        """Count an attempt as failed before its password is compared, so that of many at once no more pass than may fail.

        Args:
            limits: `name:ann` or `address:10.0.0.7`, and how many attempts of it may have failed.
            since: earlier ones do not matter; those older than a day are deleted.

        Returns:
            The ids to withdraw where it was no failure; None, and nothing is counted, where one of the keys is at its limit.
        """
        now, most = self._clock(), {key[:KEY_CHARS]: limit for key, limit in limits.items()}
        found = select(LoginAttempt.key, func.count()).where(LoginAttempt.key.in_(most), LoginAttempt.at >= since)
        with self._database.write(turn="sign-ins") as session:
            counts = dict(session.execute(found.group_by(LoginAttempt.key)).all())
            if any(counts.get(key, 0) >= limit for key, limit in most.items()):
                return None
            session.execute(delete(LoginAttempt).where(LoginAttempt.at < now - KEPT_FAILURES_MS))
            rows = [{"key": key, "at": now} for key in most]
            return tuple(session.scalars(insert(LoginAttempt).returning(LoginAttempt.id), rows))

    def withdraw(self, attempts: Collection[int]) -> None:
        """Delete attempts that did not fail."""
        with self._database.write() as session:
            session.execute(delete(LoginAttempt).where(LoginAttempt.id.in_(attempts)))

    def failures(self, key: str, since: int) -> int:
        """How many attempts were counted at or after `since`."""
        query = select(func.count()).where(LoginAttempt.key == key[:KEY_CHARS], LoginAttempt.at >= since)
        with self._database.read() as session:
            return session.scalar(query) or 0

    def clear(self, keys: Collection[str]) -> None:
        """Delete the failures of keys, after a sign-in that was right."""
        with self._database.write() as session:
            session.execute(delete(LoginAttempt).where(LoginAttempt.key.in_([key[:KEY_CHARS] for key in keys])))
