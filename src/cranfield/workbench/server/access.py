"""The dependency of a route: it finds the caller, and applies the table of who may do what."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from hmac import compare_digest
from typing import TYPE_CHECKING, ClassVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.datastructures import FormData
from starlette.routing import BaseRoute, Mount

from cranfield.base.errors import InternalError, UnknownNameError
from cranfield.books.store.schema import Role
from cranfield.workbench.server.documents import Place, unfit_texts
from cranfield.workbench.server.http_errors import NO_ANSWER, SAFE, SIGN_IN, RefusedRequestError, not_found
from cranfield.workbench.server.signing import form_token, unsigned

if TYPE_CHECKING:
    from cranfield.books.store.accounts import AccountInfo
    from cranfield.books.store.store import Store
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
    """Scopes of a token of the API; empty: in a browser only."""
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
    """CSRF token of the session; empty with a token of the API."""
    session: str = ""
    """Its raw id."""
    scope: str | None = None
    """Scope of the token; None in a browser."""
    book: BookInfo | None = None
    """Book of the path."""

    def may(self, access: str) -> bool:
        """Whether a link to such a route is shown."""
        return Role(self.account.role) in TABLE[Access(access)].roles


CSRF_HEADER = "X-CSRF-Token"
CSRF_FIELD = "csrf"
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
STATIC = "static"
"""Name of the folder of scripts and styles, which every caller may read."""


class IdConvertor(IntegerConvertor):
    """A number in a path, `{job_id:id}`: of as many digits as a database surely holds, and Python converts."""

    regex = "[1-9][0-9]{0,17}"


register_url_convertor("id", IdConvertor())


@dataclass(frozen=True)
class Require:
    """The dependency: it finds the caller, or refuses."""

    access: Access
    checks_texts: bool = field(default=True, kw_only=True)
    """Whether the texts of the body are checked here; not where each entry of a batch is answered on its own."""
    reads_forms: ClassVar[bool] = True
    """Whether a form is read here; otherwise by the route, which limits what it holds."""

    async def __call__(self, request: Request) -> Caller | None:
        """As FastAPI calls it."""
        caller = await run_in_threadpool(admit, request, self.access)
        if request.method not in SAFE:
            if caller is None or caller.scope is None:
                await check_csrf(request, caller)
            if self.checks_texts:
                await self.check_body(request)
        return caller

    async def check_body(self, request: Request) -> None:
        """Refuse a text that no database holds.

        Raises:
            RequestValidationError: with every such text.
        """
        if is_form(request):
            if self.reads_forms:
                await read_form(request)
            return
        try:
            body = await request.json()
        except (ValueError, RecursionError):  # no JSON: the framework, or the route, says so where it expects some
            return
        if unfit := [*unfit_texts([(("body",), body)])]:
            raise RequestValidationError(unfit)


def require(access: str) -> Require:
    """The dependency of a route: `Depends(require("judge"))`."""
    return Require(Access(access))


def admit(request: Request, access: Access) -> Caller | None:
    """Find the caller, and check the role, the scope and the book of the path.

    Raises:
        RefusedError: 401, 403 or 404.
    """
    store: Store = request.app.state.store
    rule = TABLE[access]
    caller = _caller(request, store)
    if caller is None:
        if rule.anonymous or (access is Access.METRICS and request.app.state.open_metrics):
            return None
        raise RefusedRequestError(401, "sign in first", hint="sign in, or send a token of the API", code=SIGN_IN)
    if not rule.anonymous:
        if caller.scope is not None and caller.scope not in rule.scopes:
            needed = " or ".join(sorted(rule.scopes)) or "no token: this page is for browsers only"
            raise RefusedRequestError(
                403, f"a token with scope {caller.scope} does not allow this", f"scope: {needed}", "scope"
            )
        if Role(caller.account.role) not in rule.roles:
            allowed = ", ".join(sorted(rule.roles))
            raise RefusedRequestError(
                403, f"the role {caller.account.role} does not allow this", f"roles: {allowed}", "role"
            )
    request.state.account_id = caller.account.id  # of the line in the log
    name = request.path_params.get("book")
    return caller if name is None else _with_book(store, caller, name)


def caller_or_none(request: Request) -> Caller | None:
    """Who asks, where that can be found: for a page that can be read without an account."""
    with suppress(RefusedRequestError, *NO_ANSWER):
        return _caller(request, request.app.state.store)
    return None


def _with_book(store: Store, caller: Caller, name: str) -> Caller:
    try:
        book = store.books.get(name)
    except UnknownNameError:
        raise not_found("book") from None
    if caller.account.role == Role.RATER and not store.people.is_member(book.id, caller.account.id):
        raise not_found("book")
    return Caller(caller.account, caller.csrf, caller.session, caller.scope, book)


def _caller(request: Request, store: Store) -> Caller | None:
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, raw = header.partition(" ")
        if scheme.lower() == "bearer" and _is_start_token(request, raw.strip()):
            local = store.people.local(request.app.state.options.user)
            if local.active:
                return Caller(local, scope="manage")
        token = store.people.token(raw.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            raise RefusedRequestError(401, "the token is unknown, revoked or expired", code="token")
        return Caller(token.account, scope=token.scope)
    raw = unsigned(request, request.cookies.get(request.app.state.options.cookie("session"), ""))
    session = store.people.session(raw) if raw else None
    return None if session is None else Caller(session.account, session.csrf, raw)


def _is_start_token(request: Request, raw: str) -> bool:
    """Whether it is the start-up token of the server of one user, who may do everything by it."""
    options = request.app.state.options
    return not options.accounts and compare_digest(raw.encode(), options.start_token.encode())


def is_form(request: Request) -> bool:
    """Whether a request has the fields of a form."""
    return request.headers.get("content-type", "").lower().startswith(FORMS)


async def read_form(request: Request, **limits: int) -> FormData:
    """The form of a request.

    Args:
        request: whose body is read.
        limits: as those of the framework.

    Raises:
        RequestValidationError: with every text that no database holds.
        RefusedError: 400, it is not in the character set that it names.
    """
    try:
        form = await request.form(**limits)
    except UnicodeError:
        raise RefusedRequestError(400, "the form is not in its declared character set", "send UTF-8") from None
    texts: list[tuple[Place, object]] = []
    for name, value in form.multi_items():
        texts += [(("body", name), name), (("body", name), value)]
    if unfit := [*unfit_texts(texts)]:
        await form.close()
        raise RequestValidationError(unfit)
    return form


async def check_csrf(request: Request, caller: Caller | None) -> None:
    """Refuse a form or a call that none of these pages sent.

    Raises:
        RefusedError: 403.
    """
    sent = request.headers.get(CSRF_HEADER)
    if sent is None and is_form(request):
        value = (await read_form(request)).get(CSRF_FIELD)
        sent = value if isinstance(value, str) else None
    expected = caller.csrf if caller else form_token(request)
    if not sent or not expected or not compare_digest(sent.encode(), expected.encode()):
        raise RefusedRequestError(403, "the form is out of date", "reload the page, and submit the form again", "csrf")


def declared_access(routes: Sequence[BaseRoute]) -> dict[tuple[str, str], Access | None]:
    """Method and path of every route, those of nested routers among them, to its access; None: it declares none, or several."""
    found: dict[tuple[str, str], Access | None] = {}
    for route in iter_route_contexts(routes):
        if isinstance(route.original_route, Mount) and route.original_route.name == STATIC:
            continue
        dependant = getattr(route, "dependant", None)
        calls = [each.call for each in dependant.dependencies] if dependant else []
        declared = [call.access for call in calls if isinstance(call, Require)]
        for method in route.methods or {"*"}:
            found[method, route.path or ""] = declared[0] if len(declared) == 1 else None
    return found


def check_routes(routes: Sequence[BaseRoute]) -> None:
    """Refuse to start with a route that does not declare who may use it.

    Raises:
        InternalError: there is one.
    """
    undeclared = [f"{method} {path}" for (method, path), access in declared_access(routes).items() if access is None]
    if undeclared:
        raise InternalError(f"routes that do not declare exactly one access: {', '.join(undeclared)}")
