"""Who asks, and the one table of kinds of routes and roles."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from cranfield.books.store.schema import Role

if TYPE_CHECKING:
    from cranfield.books.store.accounts import AccountInfo
    from cranfield.books.store.values import BookInfo


class Access(StrEnum):
    """A kind of route."""

    PUBLIC = "public"
    ACCOUNT = "account"
    """Pages of the account itself: home, password, tokens."""
    JUDGE = "judge"
    READ = "read"
    """Dashboards, with the grades of others."""
    MANAGE = "manage"
    """Adjudication, settings, join links, freezing."""
    RESULTS = "results"
    """Stored test sets, runs and evaluations; jobs."""
    EVALUATE = "evaluate"
    """Upload, evaluate, compare, tag; cancel jobs of this account."""
    METRICS = "metrics"
    """Metrics for Prometheus; open to all where the operator's file says so."""
    ADMIN = "admin"
    """People."""


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Who passes."""

    roles: frozenset[Role]
    scopes: frozenset[str] = frozenset()
    """Of a token of the API; empty: in a browser only."""
    anonymous: bool = False


ALL_ROLES = frozenset(Role)
TABLE = {
    Access.PUBLIC: AccessRule(ALL_ROLES, anonymous=True),
    Access.ACCOUNT: AccessRule(ALL_ROLES),
    Access.JUDGE: AccessRule(frozenset({Role.ADMIN, Role.LEAD, Role.RATER}), frozenset({"judge", "manage"})),
    Access.READ: AccessRule(frozenset({Role.ADMIN, Role.LEAD, Role.VIEWER}), frozenset({"read", "manage"})),
    Access.MANAGE: AccessRule(frozenset({Role.ADMIN, Role.LEAD}), frozenset({"manage"})),
    Access.RESULTS: AccessRule(
        frozenset({Role.ADMIN, Role.LEAD, Role.VIEWER}), frozenset({"read", "evaluate", "manage"})
    ),
    Access.EVALUATE: AccessRule(frozenset({Role.ADMIN, Role.LEAD}), frozenset({"evaluate", "manage"})),
    Access.METRICS: AccessRule(
        frozenset({Role.ADMIN, Role.LEAD, Role.VIEWER}), frozenset({"read", "evaluate", "manage"})
    ),
    Access.ADMIN: AccessRule(frozenset({Role.ADMIN})),
}
"""Raters pass only in the books that they are members of: elsewhere there is nothing for them."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    account: AccountInfo
    csrf: str = ""
    """Of the session; empty with a token."""
    session: str = ""
    """Its raw id."""
    scope: str | None = None
    """Of the token; None in a browser."""
    book: BookInfo | None = None
    """Of the path."""

    def may(self, access: str) -> bool:
        """Whether a link to such a route is shown."""
        return Role(self.account.role) in TABLE[Access(access)].roles
