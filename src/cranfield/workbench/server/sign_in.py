"""Sign in and out, join by a link, reset a password, the own account."""

from __future__ import annotations

from hmac import compare_digest
from ipaddress import ip_network
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.base.words import command_word
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.books import book_path
from cranfield.workbench.server.http_errors import RefusedRequestError, not_found
from cranfield.workbench.server.pages import local_path, render_page, see_other
from cranfield.workbench.server.passwords import hash_password, is_password
from cranfield.workbench.server.signing import (
    SESSION_SECONDS,
    clear_session,
    known_browser,
    reset_account,
    set_known,
    set_session,
)

if TYPE_CHECKING:
    from cranfield.books.store.accounts import AccountInfo
    from cranfield.books.store.store import Store

router = APIRouter()
Visitor = Annotated[Caller | None, Depends(require("public"))]
Self = Annotated[Caller, Depends(require("account"))]
NextQuery = Annotated[str, Query(alias="next")]
"""Where to go after signing in."""

WINDOW_MS = 15 * 60_000
FAILURES = {"pair": 10, "address": 30, "name": 100, "browser": 10}
"""Failed sign-ins within the window after which the next are refused: of a name from an address, from an address, of a name. One
address cannot make the holder of a name wait who signs in from another. In a browser where the holder signed in before, only
the failures of that browser count: attacks cannot keep a person out for ever."""
_NETWORK_BITS = 64
"""Network bits of an IPv6 address: one customer has all addresses of such a network."""
TOKEN_DAYS = 90


def failure_keys(name: str, address: str) -> dict[str, str]:
    """What failed sign-ins are counted by."""
    name = name.casefold()[:200]
    try:
        network = str(ip_network(f"{address}/{_NETWORK_BITS}", strict=False)) if ":" in address else address
    except ValueError:  # a proxy sent something else
        network = address
    return {"pair": f"pair:{network} {name}", "address": f"address:{network}", "name": f"name:{name}"}


def check_password(store: Store, name: str, password: str, address: str, browser: str = "") -> AccountInfo | None:
    """The account of a name and password; None where they are not right.

    Raises:
        RefusedError: 429 after too many failures, those that are being compared among them.
    """
    account = store.people.find(name)
    keys = failure_keys(name, address)
    is_known = account is not None and browser.startswith(f"{account.id}.")
    counted_by = {"browser": f"browser:{browser}"} if is_known else keys
    limits = {key: FAILURES[kind] for kind, key in counted_by.items()}
    counted = store.sign_ins.begin(limits, store.clock() - WINDOW_MS)
    if counted is None:
        minutes = WINDOW_MS // 60_000
        raise RefusedRequestError(
            429,
            "too many sign-ins failed",
            f"try again in {minutes} minutes, or ask an administrator for a reset link",
            "too_many",
            {"Retry-After": str(WINDOW_MS // 1000)},
        )
    failed = False
    try:
        right = is_password(password, account.password_hash if account else None)
        failed = account is None or not right or not account.active
    finally:
        if not failed:  # nor is it one where many people sign in, and nothing was compared
            store.sign_ins.withdraw(counted)
    if failed:
        return None
    store.sign_ins.clear([keys["pair"], keys["name"], f"browser:{browser}"])
    return account


def signed_in(request: Request, account: AccountInfo, path: str, caller: Caller | None = None) -> RedirectResponse:
    """Start a session with a new id; the earlier one of this browser ends."""
    store: Store = request.app.state.store
    if caller and caller.session:
        store.people.end_session(caller.session)
    response = see_other(local_path(path))
    set_session(request, response, store.people.start_session(account.id, SESSION_SECONDS * 1000))
    if request.app.state.options.accounts and not known_browser(request).startswith(f"{account.id}."):
        set_known(request, response, account)
    return response


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _accounts_only(request: Request) -> None:
    if not request.app.state.options.accounts:
        raise RefusedRequestError(
            404,
            "this server does not use passwords",
            "open the address that the server printed at startup",
            "local",
        )


@router.get("/start")
def start(request: Request, caller: Visitor, token: str = "", target: NextQuery = "/") -> Response:
    """Exchange the start-up token for a cookie."""
    options, store = request.app.state.options, request.app.state.store
    if options.accounts or not compare_digest(token.encode(), options.start_token.encode()):
        raise RefusedRequestError(
            403,
            "the address is from an earlier start of the server",
            "open the address that the server printed at its last start",
            "token",
        )
    account = store.people.local(options.user)
    if not account.active:
        raise RefusedRequestError(
            403,
            f"the account {account.name} may not sign in",
            f"`cranfield people activate {command_word(account.name)}` allows it to sign in",
        )
    return signed_in(request, account, target, caller)


@router.get("/sign-in")
def sign_in_page(request: Request, caller: Visitor, target: NextQuery = "/") -> Response:
    """Show the form."""
    if caller:
        return see_other(local_path(target))
    if not request.app.state.options.accounts:
        raise RefusedRequestError(
            401,
            "this server has one user and no sign-in",
            "open the address that the server printed at startup",
            "local",
        )
    return render_page(request, "sign_in.html", None, next=local_path(target), name="", problem="")


@router.post("/sign-in")
def sign_in(
    request: Request,
    caller: Visitor,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    target: Annotated[str, Form(alias="next")] = "/",
) -> Response:
    """Sign in with name and password."""
    _accounts_only(request)
    account = check_password(request.app.state.store, name.strip(), password, _address(request), known_browser(request))
    if account is None:
        problem = "The name or the password is wrong."
        return render_page(
            request, "sign_in.html", caller, http_status=403, next=local_path(target), name=name, problem=problem
        )
    return signed_in(request, account, target, caller)


@router.post("/sign-out")
def sign_out(request: Request, caller: Self, everywhere: Annotated[str, Form()] = "") -> Response:
    """End this session, or all of them."""
    store: Store = request.app.state.store
    if everywhere:
        store.people.end_sessions(caller.account.id)
    store.people.end_session(caller.session)
    response = see_other("/sign-in", done="signed-out-everywhere" if everywhere else "signed-out")
    clear_session(request, response)
    return response


@router.get("/join/{raw}")
def join_page(request: Request, raw: str, caller: Visitor) -> HTMLResponse:
    """Show the book of a join link."""
    _accounts_only(request)
    store: Store = request.app.state.store
    link = store.people.link(raw)
    if link is None:
        raise RefusedRequestError(404, "the link has been used or has expired", "ask for a new link", "link")
    book = store.books.get(link.book_id)
    return render_page(request, "join.html", caller, book=book, raw=raw, problem="", name="")


@router.post("/join/{raw}")
def join(
    request: Request,
    raw: str,
    caller: Visitor,
    name: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
) -> Response:
    """Make an account of a rater, or add the one that is signed in."""
    _accounts_only(request)
    store: Store = request.app.state.store
    link = store.people.link(raw)
    if link is None:
        raise RefusedRequestError(404, "the link has been used or has expired", "ask for a new link", "link")
    book = store.books.get(link.book_id)
    path = book_path(book, "judge")
    if caller:
        store.people.use_link_as(raw, caller.account.id)
        return see_other(path)
    try:
        account = store.people.use_link(raw, name.strip(), hash_password(password))
    except UsageError as error:
        problem = str(error)
        return render_page(request, "join.html", None, http_status=422, book=book, raw=raw, problem=problem, name=name)
    return signed_in(request, account, path)


def _reset_account(request: Request, token: str) -> AccountInfo:
    _accounts_only(request)
    try:
        account = reset_account(request, token)
    except UnknownNameError:
        account = None
    if account is None:
        raise _used_link()
    return account


def _used_link() -> RefusedRequestError:
    return RefusedRequestError(
        404, "the link has been used or has expired", "ask an administrator for a new link", "link"
    )


@router.get("/reset/{token}")
def reset_page(request: Request, token: str, caller: Visitor) -> HTMLResponse:
    """Show the form for a new password."""
    account = _reset_account(request, token)
    return render_page(request, "reset.html", caller, name=account.name, token=token, problem="")


@router.post("/reset/{token}")
def reset(request: Request, token: str, caller: Visitor, password: Annotated[str, Form()]) -> Response:
    """Set the password with a reset link. The link is then invalid."""
    account = _reset_account(request, token)
    try:
        hashed = hash_password(password)
    except UsageError as error:
        return render_page(
            request, "reset.html", caller, http_status=422, name=account.name, token=token, problem=str(error)
        )
    store: Store = request.app.state.store
    if not store.people.replace_password(account, hashed):  # the link was sent twice at once
        raise _used_link()
    keys = failure_keys(account.name, _address(request))
    store.sign_ins.clear([keys["pair"], keys["name"]])
    return see_other("/sign-in", done="reset")


@router.get("/account")
def account_page(request: Request, caller: Self) -> HTMLResponse:
    """Show the own account."""
    return _account(request, caller)


def _account(request: Request, caller: Caller, status: int = 200, *, made: str = "", problem: str = "") -> HTMLResponse:
    store: Store = request.app.state.store
    mine = set(store.people.books_of(caller.account.id))
    books = [book.name for book in store.books.all() if book.id in mine]
    values = {"tokens": store.people.tokens(caller.account.id), "books": books, "days": TOKEN_DAYS}
    return render_page(request, "account.html", caller, http_status=status, made=made, problem=problem, **values)


@router.post("/account/password")
def change_password(
    request: Request, caller: Self, old: Annotated[str, Form()], password: Annotated[str, Form()]
) -> Response:
    """Change the password: all sessions end, and this browser gets a new one."""
    _accounts_only(request)
    store: Store = request.app.state.store
    wrong = "The current password is wrong."
    account = check_password(store, caller.account.name, old, _address(request), known_browser(request))
    if account is None:
        return _account(request, caller, 403, problem=wrong)
    try:
        hashed = hash_password(password)
    except UsageError as error:
        return _account(request, caller, 422, problem=str(error))
    if not store.people.replace_password(account, hashed):  # a reset link was used meanwhile
        return _account(request, caller, 403, problem=wrong)
    return signed_in(request, caller.account, "/account?done=password")


@router.post("/account/tokens")
def add_token(
    request: Request,
    caller: Self,
    label: Annotated[str, Form(max_length=200)],
    scope: Annotated[str, Form()],
    days: Annotated[int, Form(ge=1, le=3_650)] = TOKEN_DAYS,
) -> HTMLResponse:
    """Create a token, and show it this once."""
    if not label.strip():
        return _account(request, caller, 422, problem="Enter the purpose of the token.")
    try:
        made = request.app.state.store.people.add_token(caller.account.id, label.strip(), scope, days * 86_400_000)
    except UsageError as error:
        return _account(request, caller, 422, problem=str(error))
    return _account(request, caller, made=made)


@router.post("/account/tokens/{token_id}/revoke")
def revoke_token(request: Request, caller: Self, token_id: int) -> Response:
    """Delete a token of the caller."""
    if not request.app.state.store.people.revoke(token_id, caller.account.id):
        raise not_found("token")
    return see_other("/account", done="revoked")
