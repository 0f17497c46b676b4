"""The MCP server over HTTP: a token with every request, the hosts and origins that are named, and no other."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from hmac import compare_digest
from typing import TYPE_CHECKING

import uvicorn
from starlette.concurrency import run_in_threadpool

from cranfield.base.concurrency.interrupts import sigterm_interrupts
from cranfield.base.errors import UsageError
from cranfield.workbench.config import DEFAULT_CONNECTIONS
from cranfield.workbench.mcp.server import EVALUATE, READ, Token
from cranfield.workbench.server.access import TABLE, Access
from cranfield.workbench.server.connections import ACCEPTED_AT_ONCE, protocol_of
from cranfield.workbench.server.logs import LOG, RequestLog, configure_logs, event
from cranfield.workbench.server.options import is_loopback
from cranfield.workbench.server.run import ReadyServer, bind

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from cranfield.books.store.store import Store

VARIABLE = "CRANFIELD_MCP_TOKEN"
SHORTEST_TOKEN = 32
SCOPES = {READ: TABLE[Access.RESULTS], EVALUATE: TABLE[Access.EVALUATE]}


def known_hosts(host: str, port: int, named: Collection[str]) -> list[str]:
    """What the header `Host` may be.

    Raises:
        UsageError: others reach the address under a name that is not known.
    """
    if not is_loopback(host) and not named:
        raise UsageError(
            f"other machines can reach the server at {host}, but its host name is not set",
            expected="the host name that clients use, with the port unless it is the default of the scheme",
            hint="add --allow-host NAME:PORT",
        )
    names = ("127.0.0.1", "localhost", "[::1]") if is_loopback(host) else ()
    return [*(f"{name}:{port}" for name in names), *named]


def fixed_token(environment: Mapping[str, str] = os.environ) -> tuple[str, bool]:
    """The token of the environment, or a new one; and whether it is new.

    Raises:
        UsageError: the variable is too short.
    """
    value = environment.get(VARIABLE, "")
    if value and len(value) < SHORTEST_TOKEN:
        raise UsageError(
            f"{VARIABLE} has {len(value)} characters", expected=f"{SHORTEST_TOKEN} or more random characters"
        )
    return (value, False) if value else (secrets.token_urlsafe(SHORTEST_TOKEN), True)


class Tokens:
    """Who may call: the holder of one token, for everything; with a database, tokens of accounts by role and scope."""

    def __init__(self, fixed: str, store: Store | None = None) -> None:
        self._fixed, self._store = fixed, store

    async def verify_token(self, token: str) -> Token | None:
        """As the `mcp` package calls it: the token with what it allows; None where it allows nothing."""
        return await run_in_threadpool(self.find, token.strip())

    def find(self, token: str) -> Token | None:
        """What `verify_token` gives."""
        if self._fixed and compare_digest(token.encode(), self._fixed.encode()):
            return Token(token=token, client_id="operator", scopes=list(SCOPES))
        found = None if self._store is None else self._store.people.token(token)
        if found is None:
            return None
        scopes = [
            name for name, rule in SCOPES.items() if found.account.role in rule.roles and found.scope in rule.scopes
        ]
        return Token(token=token, client_id=found.account.name, scopes=scopes) if scopes else None


def run_http(app: ASGIApp, host: str, port: int, log: str, on_ready: Callable[[str], object]) -> None:
    """Serve until interrupted.

    Raises:
        UsageError: the address is taken.
    """
    configure_logs(log)
    config = uvicorn.Config(
        RequestLog(app),
        http=protocol_of(DEFAULT_CONNECTIONS),
        backlog=ACCEPTED_AT_ONCE,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )

    def started() -> None:
        event(LOG, "started", port=port)
        on_ready(f"http://{host}:{port}/mcp")

    with bind(host, port) as sock, suppress(KeyboardInterrupt), sigterm_interrupts():
        sock.listen(128)
        ReadyServer(config, started).run(sockets=[sock])
