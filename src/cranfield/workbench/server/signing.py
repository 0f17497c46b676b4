"""Signed values: the cookie of a session, the token of a form before a sign-in, a reset link."""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

from fastapi import Request, Response
from itsdangerous import BadSignature, Signer, URLSafeTimedSerializer

if TYPE_CHECKING:
    from cranfield.books.store.accounts import AccountInfo
    from cranfield.workbench.server.options import ServerOptions

SESSION_SECONDS = 14 * 86_400
RESET_SECONDS = 86_400
KNOWN_SECONDS = 365 * 86_400


def _signer(options: ServerOptions, salt: str) -> Signer:
    return Signer(options.secret, salt=salt, digest_method=sha256)


def unsigned(request: Request, value: str) -> str:
    """The id in a cookie; empty where the signature is not ours."""
    try:
        return _signer(request.app.state.options, "session").unsign(value).decode()
    except BadSignature:
        return ""


def set_session(request: Request, response: Response, raw: str) -> None:
    """Give the browser the id of its session, signed."""
    options: ServerOptions = request.app.state.options
    value = _signer(options, "session").sign(raw).decode()
    _set_cookie(response, options, "session", value, SESSION_SECONDS)


def clear_session(request: Request, response: Response) -> None:
    """Take it from the browser."""
    options: ServerOptions = request.app.state.options
    response.delete_cookie(options.cookie("session"), path="/", secure=options.secure, httponly=True, samesite="lax")


def _set_cookie(response: Response, options: ServerOptions, name: str, value: str, seconds: int | None) -> None:
    response.set_cookie(
        options.cookie(name), value, max_age=seconds, path="/", secure=options.secure, httponly=True, samesite="lax"
    )


def set_known(request: Request, response: Response, account: AccountInfo) -> None:
    """Note in the browser that an account signed in there: others' failures do not make it wait."""
    options: ServerOptions = request.app.state.options
    value = _signer(options, "known").sign(f"{account.id}.{secrets.token_urlsafe(12)}").decode()
    _set_cookie(response, options, "known", value, KNOWN_SECONDS)


def known_browser(request: Request) -> str:
    """The account that signed in in this browser before, with the id of the browser; empty where none did."""
    options: ServerOptions = request.app.state.options
    try:
        return _signer(options, "known").unsign(request.cookies.get(options.cookie("known"), "")).decode()
    except BadSignature:
        return ""


def form_token(request: Request) -> str:
    """Token of the forms of a browser that is not signed in; empty where it has no cookie for it."""
    options: ServerOptions = request.app.state.options
    nonce = request.cookies.get(options.cookie("form"), "")
    return _signer(options, "form").get_signature(nonce).decode() if nonce else ""


def add_form_token(request: Request, response: Response, nonce: str) -> None:
    """Give the browser the cookie that its form token belongs to."""
    _set_cookie(response, request.app.state.options, "form", nonce, None)


def new_form_token(request: Request) -> tuple[str, str]:
    """A cookie and its form token."""
    nonce = secrets.token_urlsafe(16)
    return nonce, _signer(request.app.state.options, "form").get_signature(nonce).decode()


def _fingerprint(account: AccountInfo) -> str:
    """Changes with the password: a reset link holds once."""
    return sha256((account.password_hash or "").encode()).hexdigest()[:24]


def reset_link(options: ServerOptions, account: AccountInfo) -> str:
    """Path of the page on which the holder sets a password, once, within a day."""
    serializer = URLSafeTimedSerializer(options.secret, salt="reset", signer_kwargs={"digest_method": sha256})
    return f"/reset/{serializer.dumps([account.id, _fingerprint(account)])}"


def reset_account(request: Request, token: str) -> AccountInfo | None:
    """The account of a reset link; None where it is not ours, too old or used."""
    options: ServerOptions = request.app.state.options
    serializer = URLSafeTimedSerializer(options.secret, salt="reset", signer_kwargs={"digest_method": sha256})
    try:
        account_id, fingerprint = serializer.loads(token, max_age=RESET_SECONDS)
    except (BadSignature, ValueError):
        return None
    account: AccountInfo = request.app.state.store.people.get(account_id)
    return account if account.active and secrets.compare_digest(fingerprint, _fingerprint(account)) else None
