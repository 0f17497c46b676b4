"""Run the server: bind, print the address, end its streams when it is stopped."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

import uvicorn

from cranfield.base.concurrency.interrupts import sigterm_interrupts
from cranfield.base.errors import UsageError
from cranfield.base.version import __version__
from cranfield.workbench.server.app import create_app
from cranfield.workbench.server.connections import ACCEPTED_AT_ONCE, protocol_of
from cranfield.workbench.server.logs import LOG, configure_logs, event
from cranfield.workbench.server.passwords import no_password

if TYPE_CHECKING:
    from fastapi import FastAPI

    from cranfield.books.store.store import Store
    from cranfield.judging.documents.texts import DocumentTexts
    from cranfield.workbench.server.options import ServerOptions
    from cranfield.workbench.service.service import Service

LAST_S = 2
"""For the answers of requests that are cut."""


class ReadyServer(uvicorn.Server):
    """Says that it is ready once it hears Ctrl-C, which may come as soon as that is read."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and say so in another thread: what opens a browser may take its time."""
        await super().startup(sockets)
        await asyncio.to_thread(self._on_ready)


class _Server(ReadyServer):
    """Ends in steps: not ready, no new connections and no streams, then the end of the requests."""

    def __init__(self, app: FastAPI, options: ServerOptions, on_ready: Callable[[], object]) -> None:
        config = uvicorn.Config(
            app,
            http=protocol_of(options.connections),
            backlog=ACCEPTED_AT_ONCE,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(options.trusted_proxies),
            forwarded_allow_ips=list(options.trusted_proxies),
            timeout_graceful_shutdown=math.ceil(options.stop_s) + LAST_S,
            lifespan="off",
        )
        super().__init__(config, on_ready)
        self._app = app
        self._options = options

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.readiness.draining = True
        event(LOG, "stopping")
        for _ in range(round(self._options.drain_s * 10)):
            if self.force_exit:
                break
            await asyncio.sleep(0.1)
        self._app.state.stopping.set()
        cut = asyncio.get_running_loop().call_later(self._options.stop_s, self._cut)
        await super().shutdown(sockets)
        cut.cancel()

    def _cut(self) -> None:
        """End the requests that did not finish in their time: they answer that the server stops."""
        for task in tuple(self.server_state.tasks):
            task.cancel()


def bind(host: str, port: int) -> socket.socket:
    """Take the address.

    Raises:
        UsageError: another program has it, or it is not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends small answers at once: otherwise each waits 40 ms for the client's system.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}",
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
    service: Service | None = None,
    with_messages: bool = False,
    on_ready: Callable[[str], object] = print,
) -> None:
    """Serve until interrupted.

    Args:
        store: the books.
        options: address, accounts, proxies.
        path: the page to open first.
        texts: reads documents.
        service: jobs, test sets and results; None where the server has books alone.
        with_messages: whether the log has the messages of unexpected errors, which may quote anything.
        on_ready: gets the address once connections are accepted.

    Raises:
        UsageError: the address is taken, or the database can only be read.
    """
    path_of_file = store.database.path
    if path_of_file is not None and not os.access(path_of_file, os.W_OK):
        raise UsageError("this user has no write access to the database", path=str(path_of_file))
    configure_logs(options.log, with_messages=with_messages)
    app = create_app(store, options, texts=texts, service=service)
    if options.accounts:
        no_password()  # so that the first wrong name takes no longer than the next
    sock = bind(options.host, options.port)

    def started() -> None:
        event(LOG, "started", port=options.port, accounts=options.accounts, version=__version__)
        on_ready(start_address(options, path))

    server = _Server(app, options, started)
    # uvicorn raises the signal again when all is closed
    with (
        sock,
        _working(service, str(options.public), with_messages=with_messages),
        suppress(KeyboardInterrupt),
        sigterm_interrupts(),
    ):
        sock.listen(128)
        server.run(sockets=[sock])
    event(LOG, "stopped")


@contextmanager
def _working(service: Service | None, public: str, *, with_messages: bool) -> Iterator[None]:
    """Take jobs, send webhooks, run the schedules, get ready to draw; the modules of evaluations are loaded by a server that has any."""
    if service is None:
        yield
        return
    from cranfield.reporting.renderers.html import load_renderer
    from cranfield.workbench.service.watch.scheduler import scheduling
    from cranfield.workbench.service.webhooks import sending
    from cranfield.workbench.service.worker import working

    threading.Thread(target=load_renderer, name="cranfield-renderer").start()
    with (
        sending(service, public) as job_ended,
        working(service, on_end=job_ended, with_messages=with_messages),
        scheduling(service),
    ):
        yield
