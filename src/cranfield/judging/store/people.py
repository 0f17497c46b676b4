"""Accounts, and what they sign in with. Secrets are stored as SHA-256 only; passwords are hashed by the caller."""

from __future__ import annotations

from cranfield.judging.store.accounts import AccountInfo, LinkInfo, MemberInfo, SessionInfo, TokenInfo
from cranfield.judging.store.engine import Part
from cranfield.judging.store.schema import RaterKind, Role
from cranfield.judging.store.values import Json


class People(Part):
    """Accounts, members, sessions, tokens, join links, failed sign-ins."""

    def add(
        self,
        name: str,
        role: Role = Role.RATER,
        kind: RaterKind = RaterKind.PERSON,
        password_hash: str | None = None,
        settings: Json | None = None,
    ) -> AccountInfo:
        """Make an account.

        Raises:
            UsageError: the name is empty, or taken.
        """
        raise NotImplementedError

    def get(self, account: str | int) -> AccountInfo:
        """An account by name or id.

        Raises:
            UnknownNameError: there is none.
        """
        raise NotImplementedError

    def find(self, name: str) -> AccountInfo | None:
        """An account by name; None where there is none: an unknown name must look like a wrong password."""
        raise NotImplementedError

    def all(self) -> tuple[AccountInfo, ...]:
        """All accounts, by name."""
        raise NotImplementedError

    def set_role(self, account_id: int, role: Role) -> None:
        """Change the role; the account's tokens and sessions end where it loses rights by it."""
        raise NotImplementedError

    def set_password(self, account_id: int, password_hash: str | None) -> None:
        """Change the password; all sessions of the account end."""
        raise NotImplementedError

    def set_active(self, account_id: int, *, active: bool) -> None:
        """Let an account sign in, or not; its sessions end and its leases go back where not."""
        raise NotImplementedError

    def set_settings(self, account_id: int, settings: Json) -> None:
        """Store the key map and display settings of an account."""
        raise NotImplementedError

    def members(self, book_id: int) -> tuple[MemberInfo, ...]:
        """The raters of a book, by name."""
        raise NotImplementedError

    def is_member(self, book_id: int, account_id: int) -> bool:
        """Whether an account is a member of a book."""
        raise NotImplementedError

    def books_of(self, account_id: int) -> tuple[int, ...]:
        """The ids of the books of which an account is a member."""
        raise NotImplementedError

    def join(self, book_id: int, account_id: int, quota: int | None = None) -> None:
        """Make an account a member of a book, or change its quota."""
        raise NotImplementedError

    def leave(self, book_id: int, account_id: int) -> None:
        """End a membership: leases go back; judgments stay."""
        raise NotImplementedError

    def start_session(self, account_id: int, ttl_ms: int) -> str:
        """Sign in; the secret of the session, for the cookie."""
        raise NotImplementedError

    def session(self, raw: str) -> SessionInfo | None:
        """The session of a secret; None where it is unknown, has expired, or the account is not active."""
        raise NotImplementedError

    def end_session(self, raw: str) -> None:
        """Sign out."""
        raise NotImplementedError

    def end_sessions(self, account_id: int) -> int:
        """Sign out everywhere; how many sessions ended."""
        raise NotImplementedError

    def add_token(self, account_id: int, label: str, scope: str, ttl_ms: int) -> str:
        """Make a token of the API; its secret, which is not stored. `scope` is `read`, `judge` or `manage`.

        Raises:
            NotAllowedError: the scope is wider than the role of the account.
        """
        raise NotImplementedError

    def token(self, raw: str) -> TokenInfo | None:
        """The token of a secret, noted as used; None where it is unknown, has expired, or the account is not active."""
        raise NotImplementedError

    def tokens(self, account_id: int) -> tuple[TokenInfo, ...]:
        """The tokens of an account, the earliest first."""
        raise NotImplementedError

    def revoke(self, token_id: int, account_id: int | None = None) -> bool:
        """Delete a token, of this account where one is given; whether there was one."""
        raise NotImplementedError

    def add_link(self, book_id: int, ttl_ms: int, uses: int = 1) -> str:
        """Make a join link; its secret, which is not stored."""
        raise NotImplementedError

    def link(self, raw: str) -> LinkInfo | None:
        """The link of a secret; None where it is unknown, has expired or is used up."""
        raise NotImplementedError

    def links(self, book_id: int) -> tuple[LinkInfo, ...]:
        """The links of a book, the earliest first."""
        raise NotImplementedError

    def revoke_link(self, link_id: int) -> bool:
        """Delete a link; whether there was one."""
        raise NotImplementedError

    def use_link(self, raw: str, name: str, password_hash: str | None = None) -> AccountInfo:
        """Make an account with the role of a rater, a member of the link's book. One use of the link is spent.

        Raises:
            NotAllowedError: the link is unknown, has expired or is used up.
            UsageError: the name is empty, or taken.
        """
        raise NotImplementedError

    def use_link_as(self, raw: str, account_id: int) -> int:
        """Make an existing account a member of the link's book; the book. A use is spent where it was none before.

        Raises:
            NotAllowedError: the link is unknown, has expired or is used up.
        """
        raise NotImplementedError

    def record_failure(self, key: str) -> None:
        """Note a failed sign-in of `name:ann` or `address:10.0.0.7`; those older than a day are deleted."""
        raise NotImplementedError

    def failures(self, key: str, since: int) -> int:
        """How many sign-ins failed at or after `since`."""
        raise NotImplementedError

    def clear_failures(self, key: str) -> None:
        """Delete the failures of a key, after a sign-in that was right."""
        raise NotImplementedError
