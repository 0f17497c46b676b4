"""Accounts, and what they sign in with. Secrets are stored as SHA-256 only; passwords are hashed by the caller."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from getpass import getuser
from hashlib import sha256
from secrets import token_urlsafe

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.database.engine import Part
from cranfield.books.store.accounts import RIGHTS, SCOPES, AccountInfo, LinkInfo, MemberInfo, SessionInfo, TokenInfo
from cranfield.books.store.rows import (
    account_info,
    account_row,
    book_row,
    link_info,
    name_of_file,
    new_name,
    token_info,
)
from cranfield.books.store.schema import (
    Account,
    Item,
    JoinLink,
    LoginAttempt,
    Member,
    RaterKind,
    Role,
    Slot,
    Token,
    WebSession,
)
from cranfield.books.store.standing import end_leases
from cranfield.books.store.values import Json, NotAllowedError

BEGINNING = "cranfield_"
"""Prefix of every token: scanners for secrets find it by this."""
NAMES, ADMINISTRATORS = "names of accounts", "administrators"
"""Whose transactions follow each other."""
LOCAL = "local"
"""The user of this machine, where the name of that one cannot be an account's."""
USED_EVERY_MS = 60_000
"""The last use of a token is noted once a minute: a request that reads should not write."""


class People(Part):
    """Accounts, members, sessions, tokens, join links."""

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
            UsageError: the name is none that may be chosen, as `new_name` says.
        """
        with self._database.write(turn=NAMES) as session:
            name = _new_name(session, name, kind)
            return account_info(self._new(session, name, role, kind, password_hash, settings or {}))

    def of_file(self, name: str, kind: RaterKind) -> AccountInfo:
        """The account of a rater whom a file names; where there is none it is made, without a password."""
        name = name_of_file(name, kind)
        role = Role.RATER if kind is RaterKind.PERSON else Role.VIEWER
        with self._database.write(turn=NAMES) as session:
            found = session.scalar(select(Account).where(Account.name == name))
            return account_info(found or self._new(session, name, role, kind, None, {}))

    def get(self, account: str | int) -> AccountInfo:
        """An account by name or id.

        Raises:
            UnknownNameError: there is none.
        """
        with self._database.read() as session:
            return account_info(account_row(session, account))

    def find(self, name: str) -> AccountInfo | None:
        """An account by name; None where there is none: an unknown name must look like a wrong password."""
        with self._database.read() as session:
            row = session.scalar(select(Account).where(Account.name == name))
            return None if row is None else account_info(row)

    def local(self, stated: str = "") -> AccountInfo:
        """The account of the user of this machine; where there is none it is made, as an administrator.

        Args:
            stated: name that the user gives himself or herself, which nothing verifies; empty: that of the operating system.

        Raises:
            UsageError: the name is none that may be chosen, or is of what is no person, or of an account that signs in with a
                password.
        """
        if stated:
            found = self.find(stated)
            if found is None:
                return self.add(stated, Role.ADMIN)
            if found.kind is not RaterKind.PERSON:
                raise UsageError(
                    f"{found.name} is not the name of a person", expected="the name of a person", got=found.kind
                )
            if found.password_hash is not None:
                hint = "`cranfield serve --accounts` lets people sign in"
                raise UsageError(f"{found.name} signs in with a password", hint=hint)
            return found
        try:
            name = getuser()
        except (ImportError, KeyError, OSError):  # a container whose user has no name
            name = LOCAL
        with suppress(UsageError):  # the name of the user may be none that an account can have
            return self.find(name) or self.add(name, Role.ADMIN)
        return self.find(LOCAL) or self.add(LOCAL, Role.ADMIN)

    def all(self) -> tuple[AccountInfo, ...]:
        """All accounts, by name."""
        with self._database.read() as session:
            return tuple(account_info(row) for row in session.scalars(select(Account).order_by(Account.name)))

    def raters(self) -> tuple[AccountInfo, ...]:
        """The accounts that may judge: active persons who are not viewers."""
        return tuple(
            each for each in self.all() if each.active and each.kind == RaterKind.PERSON and each.role != Role.VIEWER
        )

    def set_role(self, account_id: int, role: Role) -> None:
        """Change the role; the account's tokens and sessions end where it loses rights by it.

        Raises:
            UsageError: it is the last administrator.
        """
        with self._database.write(turn=ADMINISTRATORS) as session:
            account = account_row(session, account_id)
            if role is not Role.ADMIN:
                _keep_an_admin(session, account)
            if RIGHTS[role] < RIGHTS[Role(account.role)]:
                session.execute(delete(WebSession).where(WebSession.account_id == account_id))
                session.execute(delete(Token).where(Token.account_id == account_id))
            account.role = role

    def set_password(self, account_id: int, password_hash: str | None) -> None:
        """Change the password; all sessions of the account end."""
        with self._database.write() as session:
            account_row(session, account_id).password_hash = password_hash
            session.execute(delete(WebSession).where(WebSession.account_id == account_id))

    def replace_password(self, account: AccountInfo, password_hash: str) -> bool:
        """Change the password if it is still that of `account`, who may sign in, as `set_password` does; whether it was."""
        is_same = Account.password_hash.is_not_distinct_from(account.password_hash)
        changed = update(Account).where(Account.id == account.id, Account.active, is_same)
        with self._database.write() as session:
            if session.scalar(changed.values(password_hash=password_hash).returning(Account.id)) is None:
                return False
            session.execute(delete(WebSession).where(WebSession.account_id == account.id))
            return True

    def last_admin(self) -> int | None:
        """The only administrator who may sign in; None where there are several."""
        with self._database.read() as session:
            found = _admins(session)
        return found[0] if len(found) == 1 else None

    def set_active(self, account_id: int, *, active: bool) -> None:
        """Let an account sign in, or not; its sessions end and its leases go back where not.

        Raises:
            UsageError: it is the last administrator.
        """
        with self._database.write(turn=ADMINISTRATORS) as session:
            account = account_row(session, account_id)
            if not active:
                _keep_an_admin(session, account)
            account.active = active
            if not active:
                session.execute(delete(WebSession).where(WebSession.account_id == account_id))
                end_leases(session, Slot.account_id == account_id)

    def set_settings(self, account_id: int, settings: Json) -> None:
        """Store the key map and display settings of an account."""
        with self._database.write() as session:
            account_row(session, account_id).settings = settings

    def members(self, book_id: int) -> tuple[MemberInfo, ...]:
        """The raters of a book, by name."""
        query = select(Account, Member.quota).join(Member, Member.account_id == Account.id)
        with self._database.read() as session:
            rows = session.execute(query.where(Member.book_id == book_id).order_by(Account.name))
            return tuple(MemberInfo(account_info(account), quota) for account, quota in rows)

    def is_member(self, book_id: int, account_id: int) -> bool:
        """Whether an account is a member of a book."""
        with self._database.read() as session:
            return session.get(Member, (book_id, account_id)) is not None

    def books_of(self, account_id: int) -> tuple[int, ...]:
        """The ids of the books of which an account is a member."""
        query = select(Member.book_id).where(Member.account_id == account_id).order_by(Member.book_id)
        with self._database.read() as session:
            return tuple(session.scalars(query))

    def join(self, book_id: int, account_id: int, quota: int | None = None) -> None:
        """Make an account a member of a book, or change its quota.

        Raises:
            NotAllowedError: the account is a viewer.
        """
        with self._database.write() as session:
            book_row(session, book_id)
            _refuse_viewer(account_row(session, account_id))
            session.merge(Member(book_id=book_id, account_id=account_id, quota=quota))

    def leave(self, book_id: int, account_id: int) -> None:
        """End a membership: leases go back; judgments stay."""
        with self._database.write() as session:
            session.execute(delete(Member).where(Member.book_id == book_id, Member.account_id == account_id))
            of_book = select(Item.id).where(Item.book_id == book_id)
            end_leases(session, Slot.account_id == account_id, Slot.item_id.in_(of_book))

    def start_session(self, account_id: int, ttl_ms: int) -> str:
        """Sign in; the secret of the session, for the cookie."""
        raw, now = token_urlsafe(32), self._clock()
        with self._database.write() as session:
            account_row(session, account_id)
            session.execute(delete(WebSession).where(WebSession.expires_at <= now))
            session.add(
                WebSession(
                    id_hash=_hash(raw),
                    account_id=account_id,
                    csrf=token_urlsafe(32),
                    created_at=now,
                    expires_at=now + ttl_ms,
                )
            )
        return raw

    def session(self, raw: str) -> SessionInfo | None:
        """The session of a secret; None where it is unknown, has expired, or the account is not active."""
        query = select(WebSession, Account).join(Account, Account.id == WebSession.account_id)
        holds = (WebSession.id_hash == _hash(raw), WebSession.expires_at > self._clock(), Account.active)
        with self._database.read() as session:
            found = session.execute(query.where(*holds)).first()
        if found is None:
            return None
        row, account = found
        return SessionInfo(account_info(account), row.csrf, row.created_at, row.expires_at)

    def end_session(self, raw: str) -> None:
        """Sign out."""
        with self._database.write() as session:
            session.execute(delete(WebSession).where(WebSession.id_hash == _hash(raw)))

    def end_sessions(self, account_id: int) -> int:
        """Sign out everywhere; how many sessions ended."""
        with self._database.write() as session:
            gone = delete(WebSession).where(WebSession.account_id == account_id).returning(WebSession.id_hash)
            return len(session.scalars(gone).all())

    def add_token(self, account_id: int, label: str, scope: str, ttl_ms: int) -> str:
        """Create a token of the API; its secret, which is not stored. `scope` is a name in `SCOPES`.

        Raises:
            NotAllowedError: the scope is wider than the role of the account.
        """
        if scope not in SCOPES:
            raise UnknownNameError.among("scope", scope, SCOPES)
        raw, now = BEGINNING + token_urlsafe(32), self._clock()
        with self._database.write() as session:
            account = account_row(session, account_id)
            if Role(account.role) not in SCOPES[scope]:
                raise NotAllowedError(f"a {account.role} cannot have a token with the scope {scope}")
            session.add(
                Token(
                    account_id=account_id,
                    hash=_hash(raw),
                    label=label,
                    scope=scope,
                    created_at=now,
                    expires_at=now + ttl_ms,
                )
            )
        return raw

    def token(self, raw: str) -> TokenInfo | None:
        """The token of a secret, noted as used; None where it is unknown, has expired, or the account is not active."""
        query = select(Token, Account).join(Account, Account.id == Token.account_id)
        now = self._clock()
        with self._database.read() as session:
            found = session.execute(
                query.where(Token.hash == _hash(raw), Token.expires_at > now, Account.active)
            ).first()
            info = None if found is None else token_info(*found)
        if info is not None and now - (info.used_at or 0) > USED_EVERY_MS:
            with self._database.write() as session:
                session.execute(update(Token).where(Token.id == info.id).values(used_at=now))
        return info

    def tokens(self, account_id: int) -> tuple[TokenInfo, ...]:
        """The tokens of an account, the earliest first."""
        query = select(Token, Account).join(Account, Account.id == Token.account_id)
        with self._database.read() as session:
            rows = session.execute(query.where(Token.account_id == account_id).order_by(Token.id))
            return tuple(token_info(*row) for row in rows)

    def revoke(self, token_id: int, account_id: int | None = None) -> bool:
        """Delete a token, of this account where one is given; whether there was one."""
        of_account = () if account_id is None else (Token.account_id == account_id,)
        with self._database.write() as session:
            gone = delete(Token).where(Token.id == token_id, *of_account).returning(Token.id)
            return session.scalar(gone) is not None

    def add_link(self, book_id: int, ttl_ms: int, uses: int = 1) -> str:
        """Make a join link; its secret, which is not stored."""
        raw, now = token_urlsafe(32), self._clock()
        with self._database.write() as session:
            book_row(session, book_id)
            link = JoinLink(book_id=book_id, hash=_hash(raw), created_at=now, expires_at=now + ttl_ms, uses_left=uses)
            session.add(link)
        return raw

    def link(self, raw: str) -> LinkInfo | None:
        """The link of a secret; None where it is unknown, has expired or is used up."""
        with self._database.read() as session:
            found = self._link(session, raw)
            return None if found is None else link_info(found, book_row(session, found.book_id).name)

    def links(self, book_id: int) -> tuple[LinkInfo, ...]:
        """The links of a book, the earliest first."""
        query = select(JoinLink).where(JoinLink.book_id == book_id).order_by(JoinLink.id)
        with self._database.read() as session:
            name = book_row(session, book_id).name
            return tuple(link_info(row, name) for row in session.scalars(query))

    def revoke_link(self, link_id: int) -> bool:
        """Delete a link; whether there was one."""
        with self._database.write() as session:
            return session.scalar(delete(JoinLink).where(JoinLink.id == link_id).returning(JoinLink.id)) is not None

    def use_link(self, raw: str, name: str, password_hash: str | None = None) -> AccountInfo:
        """Make an account with the role of a rater, a member of the link's book. One use of the link is spent.

        Raises:
            NotAllowedError: the link is unknown, has expired or is used up.
            UsageError: the name is none that may be chosen, as `new_name` says.
        """
        with self._database.write(turn=NAMES) as session:
            link = self._spend(session, raw)
            name = _new_name(session, name)
            account = self._new(session, name, Role.RATER, RaterKind.PERSON, password_hash, {})
            session.add(Member(book_id=link.book_id, account_id=account.id))
            return account_info(account)

    def use_link_as(self, raw: str, account_id: int) -> int:
        """Make an existing account a member of the link's book; the book. A use is spent where it was none before.

        Raises:
            NotAllowedError: the link is unknown, has expired or is used up, or the account is a viewer.
        """
        with self._database.write() as session:
            _refuse_viewer(account_row(session, account_id))
            known = self._link(session, raw)
            if known is not None and session.get(Member, (known.book_id, account_id)) is not None:
                return known.book_id
            link = self._spend(session, raw)
            session.add(Member(book_id=link.book_id, account_id=account_id))
            return link.book_id

    def _new(
        self, session: Session, name: str, role: Role, kind: RaterKind, password_hash: str | None, settings: Json
    ) -> Account:
        account = Account(name=name, role=role, kind=kind, password_hash=password_hash, settings=settings)
        account.active, account.created_at = True, self._clock()
        session.add(account)
        session.flush()
        return account

    def _link(self, session: Session, raw: str) -> JoinLink | None:
        query = select(JoinLink).where(JoinLink.hash == _hash(raw), JoinLink.expires_at > self._clock())
        return session.scalar(query.where(JoinLink.uses_left > 0).with_for_update())

    def _spend(self, session: Session, raw: str) -> JoinLink:
        link = self._link(session, raw)
        if link is None:
            raise NotAllowedError("this link is not valid: it has expired or was used", hint="ask for a new link")
        link.uses_left -= 1
        return link


def _admins(session: Session) -> list[int]:
    return list(session.scalars(select(Account.id).where(Account.role == Role.ADMIN, Account.active)))


def _keep_an_admin(session: Session, account: Account) -> None:
    """Refuse a change after which no administrator could sign in."""
    if _admins(session) == [account.id]:
        raise UsageError(f"{account.name} is the last administrator", hint="first give the role to another account")


def _refuse_viewer(account: Account) -> None:
    if account.role == Role.VIEWER and account.kind == RaterKind.PERSON:
        raise NotAllowedError("a viewer cannot judge", hint="ask an administrator for the rater role")


def _new_name(session: Session, name: str, kind: RaterKind = RaterKind.PERSON) -> str:
    return new_name(name, session.scalars(select(Account.name)).all(), kind)


def _hash(raw: str) -> str:
    return sha256(raw.encode()).hexdigest()


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
