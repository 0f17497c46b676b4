"""Passwords: argon2id, a bounded number of hashes at a time, and the same time for a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

from cranfield.base.errors import UsageError
from cranfield.workbench.server.http_errors import RefusedRequestError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1_000
_AT_ONCE = BoundedSemaphore(2)
"""Each hash takes 64 MB: a flood of sign-ins must not take all memory."""
_IN_LINE = BoundedSemaphore(16)
"""Nor all threads: raters go on meanwhile."""


@cache
def hasher() -> PasswordHasher:
    """Argon2id with the parameters of its library."""
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def no_password() -> str:
    """A hash to compare with where there is no account: a wrong name takes as long as a wrong password."""
    return hasher().hash("no password")


@contextmanager
def _turn() -> Iterator[None]:
    """Wait for other hashes.

    Raises:
        RefusedError: too many wait.
    """
    if not _IN_LINE.acquire(blocking=False):
        hint, headers = "try again in a few seconds", {"Retry-After": "5"}
        raise RefusedRequestError(503, "too many people are signing in at the moment", hint, "busy", headers)
    try:
        with _AT_ONCE:
            yield
    finally:
        _IN_LINE.release()


def hash_password(password: str) -> str:
    """Hash a new password.

    Raises:
        UsageError: it is too short or too long.
    """
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise UsageError(
            f"the password has {len(password)} characters",
            expected=f"{SHORTEST_PASSWORD} or more",
            hint="use a sentence: it is easy to remember",
        )
    with _turn():
        return hasher().hash(password)


def is_password(password: str, stored: str | None) -> bool:
    """Whether a password is that of the hash; as slow where there is none."""
    from argon2.exceptions import InvalidHashError, VerificationError

    with _turn():
        try:
            right = hasher().verify(stored or no_password(), password[:LONGEST_PASSWORD])
        except (VerificationError, InvalidHashError):
            return False
    return right and stored is not None
