"""Accounts and what they sign in with, as values: ids as ints, times as milliseconds since 1970 (UTC)."""

from __future__ import annotations

from dataclasses import dataclass, field

from cranfield.books.store.schema import RaterKind, Role
from cranfield.books.store.values import Json

RIGHTS = {Role.VIEWER: 0, Role.RATER: 1, Role.LEAD: 2, Role.ADMIN: 3}
SCOPES = {
    "read": frozenset(Role),
    "judge": frozenset({Role.RATER, Role.LEAD, Role.ADMIN}),
    "evaluate": frozenset({Role.LEAD, Role.ADMIN}),
    "manage": frozenset({Role.LEAD, Role.ADMIN}),
}
"""Scope of a token to the roles that may have it."""


@dataclass(frozen=True, slots=True)
class AccountInfo:
    """An account; `password_hash` is never shown."""

    id: int
    name: str
    kind: RaterKind
    role: Role
    active: bool
    created_at: int
    settings: Json
    password_hash: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """A rater of a book."""

    account: AccountInfo
    quota: int | None
    """Quota of the member; None: that of the book."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A signed-in browser."""

    account: AccountInfo
    csrf: str = field(repr=False)
    created_at: int = 0
    expires_at: int = 0


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """A token of the API, without its secret."""

    id: int
    account: AccountInfo
    label: str
    scope: str
    created_at: int
    expires_at: int
    used_at: int | None


@dataclass(frozen=True, slots=True)
class LinkInfo:
    """A link by which a rater joins a book, without its secret."""

    id: int
    book_id: int
    book: str
    """Its name."""
    created_at: int
    expires_at: int
    uses_left: int
