"""A server of reports for this machine alone: loopback, a free port, an address that cannot be guessed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from cranfield.errors import UsageError
from cranfield.project.viewing.find import Shown
from cranfield.project.viewing.site import Response, Site
from cranfield.reporting.document import Link
from cranfield.version import __version__

LOOPBACK = "127.0.0.1"
IDLE_S = 30
"""A connection that sends nothing for so long is closed."""


class ReportServer(ThreadingHTTPServer):
    """Serves a site; `url` is the address of its first page."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, site: Site, port: int = 0) -> None:
        """Listen on a port of the loopback interface; 0 is a free one.

        Raises:
            UsageError: the port is taken.
        """
        self.site = site
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            hint = "leave {port} out: a free one is taken."
            raise UsageError(f"port {port}: {reason.lower()}", hint=hint, parameters=("port",)) from None

    def handle_error(self, *args: object) -> None:
        """Print nothing where a browser closed its connection."""

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.site.token}/{Link('', self.site.start).href}"

    @property
    def hosts(self) -> frozenset[str]:
        """Values of `Host` that are answered: a foreign name that is pointed to this machine is not among them."""
        return frozenset(f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost"))


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    server: ReportServer
    server_version = f"cranfield/{__version__}"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S

    def do_GET(self) -> None:
        """Send a page."""
        self._send(self._response(), with_body=True)

    def do_HEAD(self) -> None:
        """Send the headers of a page."""
        self._send(self._response(), with_body=False)

    def log_message(self, *args: object) -> None:
        """Print nothing: the address is a secret, and a log of it would be read by others."""

    def _response(self) -> Response:
        if self.headers.get_all("Host", []) == [] or self.headers["Host"].casefold() not in self.server.hosts:
            return Response(HTTPStatus.MISDIRECTED_REQUEST, b"this server has another name\n")
        return self.server.site.respond(self.path)

    def _send(self, response: Response, *, with_body: bool) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if with_body:
            self.wfile.write(response.body)


@contextmanager
def served(shown: Shown, port: int = 0) -> Iterator[ReportServer]:
    """Serve reports until the block ends.

    Args:
        shown: the folder, and its first page.
        port: 0 is a free one.
    """
    with ReportServer(Site(shown.root, shown.start, secrets.token_urlsafe(12)), port) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
