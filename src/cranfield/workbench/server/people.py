"""Administration of people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, Response

from cranfield.base.errors import UsageError
from cranfield.books.store.schema import Role
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.pages import render_page, see_other
from cranfield.workbench.server.signing import reset_link

if TYPE_CHECKING:
    from cranfield.books.store.accounts import AccountInfo
    from cranfield.books.store.store import Store

router = APIRouter()
Admin = Annotated[Caller, Depends(require("admin"))]


def _page(request: Request, caller: Caller, status: int = 200, **values: object) -> HTMLResponse:
    store: Store = request.app.state.store
    people = store.people.all()
    shown: dict[str, object] = {
        "problem": "",
        "made": "",
        "made_for": "",
        "last_admin": store.people.last_admin(),
    } | values
    return render_page(request, "people.html", caller, http_status=status, people=people, roles=list(Role), **shown)


def _link(request: Request, account: AccountInfo) -> str:
    return f"{request.app.state.options.public}{reset_link(request.app.state.options, account)}"


@router.get("/people")
def people(request: Request, caller: Admin) -> HTMLResponse:
    """List the accounts."""
    return _page(request, caller)


@router.post("/people")
def add(
    request: Request, caller: Admin, name: Annotated[str, Form(max_length=200)], role: Annotated[Role, Form()]
) -> HTMLResponse:
    """Make an account, and show the link on which its holder sets a password."""
    try:
        account = request.app.state.store.people.add(name.strip(), role)
    except UsageError as error:
        return _page(request, caller, 422, problem=str(error))
    return _page(request, caller, made=_link(request, account), made_for=account.name)


@router.post("/people/{account_id}/{action}")
def change(
    request: Request, caller: Admin, account_id: int, action: str, role: Annotated[Role | None, Form()] = None
) -> Response:
    """Change a role, let an account sign in or not, make a reset link, end sessions."""
    store: Store = request.app.state.store
    account = store.people.get(account_id)
    if action == "reset":
        return _page(request, caller, made=_link(request, account), made_for=account.name)
    if action == "sign-out":
        store.people.end_sessions(account.id)
    elif action == "role" and role:
        store.people.set_role(account.id, role)
    elif action in {"activate", "deactivate"}:
        store.people.set_active(account.id, active=action == "activate")
    else:
        raise UsageError(f"unknown action {action}", expected="reset, role, activate, deactivate or sign-out")
    return see_other("/people", done="saved")
