"""The MCP server over HTTP: a token with every request, the hosts and origins that are named, and no other."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from cranfield.errors import UsageError
from cranfield.server.access import TABLE, Access
from cranfield.server.logs import LOG, RequestLog, configure_logs, event
from cranfield.server.options import is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from cranfield.judging.store.store import Store

VARIABLE = "CRANFIELD_MCP_TOKEN"
SHORTEST_TOKEN = 32
WRITES = "cranfield.may_write"


@dataclass(frozen=True)
class HttpOptions:
    """How it is reached."""

    host: str = "127.0.0.1"
    port: int = 8735
    allow_hosts: tuple[str, ...] = ()
    """Further values of the header `Host`."""
    allow_origins: tuple[str, ...] = ()
    """Origins of pages in a browser that may call; by default none."""
    log: str = "auto"

    def __post_init__(self) -> None:
        """Refuse an address that others reach under a name that is not known.

        Raises:
            UsageError: no name is given.
        """
        if not is_loopback(self.host) and not self.allow_hosts:
            raise UsageError(
                f"others reach the server at {self.host}, and its name is not known",
                expected="the name that they use, with the port if it is not that of the scheme",
                hint="add --allow-host NAME:PORT",
            )

    @property
    def hosts(self) -> list[str]:
        """What the header `Host` may be."""
        names = ("127.0.0.1", "localhost", "[::1]") if is_loopback(self.host) else ()
        return [*(f"{name}:{self.port}" for name in names), *self.allow_hosts]


Admit = Callable[[str], bool | None]
"""Whether the holder of a token may store results; None: the token is none."""


def fixed_token(environment: dict[str, str] | None = None) -> tuple[str, bool]:
    """The token of the environment, or a new one; and whether it is new.

    Raises:
        UsageError: the variable is too short.
    """
    value = (os.environ if environment is None else environment).get(VARIABLE, "")
    if value and len(value) < SHORTEST_TOKEN:
        raise UsageError(f"{VARIABLE} has {len(value)} characters", expected=f"{SHORTEST_TOKEN} random ones or more")
    return (value, False) if value else (secrets.token_urlsafe(SHORTEST_TOKEN), True)


def admit_holder(token: str) -> Admit:
    """Admit the holder of one token, for everything."""
    return lambda sent: True if compare_digest(sent.encode(), token.encode()) else None


def admit_accounts(store: Store, token: str = "") -> Admit:
    """Admit tokens of the API, by role and scope as the server does; and one more, if it is given."""

    def admit(sent: str) -> bool | None:
        if token and compare_digest(sent.encode(), token.encode()):
            return True
        found = store.people.token(sent)
        reads, writes = TABLE[Access.RESULTS], TABLE[Access.EVALUATE]
        if found is None or found.account.role not in reads.roles or found.scope not in reads.scopes:
            return None
        return found.account.role in writes.roles and found.scope in writes.scopes

    return admit


class Bearer:
    """Refuses requests without a token."""

    def __init__(self, app: ASGIApp, admit: Admit) -> None:
        self.app = app
        self.admit = admit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        found = await run_in_threadpool(self.admit, token.strip()) if scheme.lower() == "bearer" and token else None
        if found is None:
            body = {"ok": False, "error": "the token is missing, unknown, revoked, expired or of another scope"}
            await JSONResponse(body, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        scope[WRITES] = found
        await self.app(scope, receive, send)


def may_write(request: Any) -> bool:
    """Whether the caller of a request may store results; over stdio there is no request, and the user of this machine may."""
    return request is None or bool(request.scope.get(WRITES))


def run_http(app: ASGIApp, options: HttpOptions, admit: Admit, on_ready: Callable[[str], object]) -> None:
    """Serve until interrupted: the log, the token, then the protocol with its checks of host and origin.

    Raises:
        UsageError: the address is taken.
    """
    import socket
    from contextlib import suppress

    from cranfield.concurrency.loop import sigterm_interrupts

    configure_logs(options.log)
    sock = socket.socket(
        socket.AF_INET6 if ":" in options.host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((options.host, options.port))
    except OSError as error:
        raise UsageError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror}", hint="choose another port with --port"
        ) from None
    guarded = RequestLog(Bearer(app, admit))
    config = uvicorn.Config(
        guarded, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=5
    )
    with sock, suppress(KeyboardInterrupt), sigterm_interrupts():
        sock.listen(128)
        event(LOG, "started", port=options.port)
        on_ready(f"http://{options.host}:{options.port}/mcp")
        uvicorn.Server(config).run(sockets=[sock])
