"""Run the server: bind, print the address, end its streams when it is stopped."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

import uvicorn

from cranfield.errors import UsageError
from cranfield.server.app import create_app
from cranfield.server.passwords import no_password

if TYPE_CHECKING:
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.judging.store.store import Store
    from cranfield.server.options import ServerOptions

SECONDS_TO_END = 5


class _Server(uvicorn.Server):
    """Tells the streams of progress to end before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)


def bind(options: ServerOptions) -> socket.socket:
    """Take the address.

    Raises:
        UsageError: another program has it, or it is not of this machine.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((options.host, options.port))
    except OSError as error:
        sock.close()
        raise UsageError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror}",
            hint="choose another port with --port, or stop the other server",
        ) from None
    return sock


def start_address(options: ServerOptions, path: str = "/") -> str:
    """The address to print: without accounts it signs its holder in."""
    if options.accounts:
        return f"{options.public}{path}"
    return f"{options.public}/start?token={options.start_token}&next={quote(path, safe='')}"


def run_server(
    store: Store,
    options: ServerOptions,
    path: str = "/",
    *,
    texts: DocumentTexts | None = None,
    on_ready: Callable[[str], object] = print,
) -> None:
    """Serve until interrupted.

    Args:
        store: the books.
        options: address, accounts, proxies.
        path: the page to open first.
        texts: reads documents.
        on_ready: gets the address once connections are accepted.

    Raises:
        UsageError: the address is taken, or the database can only be read.
    """
    path_of_file = store.database.path
    if path_of_file is not None and not os.access(path_of_file, os.W_OK):
        raise UsageError("this user cannot write the database", path=str(path_of_file))
    app = create_app(store, options, texts=texts)
    if options.accounts:
        no_password()  # so that the first wrong name takes no longer than the next
    sock = bind(options)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(options.trusted_proxies),
        forwarded_allow_ips=list(options.trusted_proxies),
        timeout_graceful_shutdown=SECONDS_TO_END,
        lifespan="off",
    )
    server = _Server(config, app.state.stopping)
    with sock, suppress(KeyboardInterrupt):  # the usual end; uvicorn raises it again when all is closed
        sock.listen(128)
        on_ready(start_address(options, path))
        server.run(sockets=[sock])
