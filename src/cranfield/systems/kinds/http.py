"""A system under test that is an HTTP service: one request per query, over connections that are kept open.

The reason of a failure is the same on every machine: it holds no address, path or text of a library. Retried are 429, 5xx
and broken connections; not retried are other refusals, untrusted certificates and timeouts.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cranfield.base.certificates import trusted_certificates
from cranfield.base.concurrency.child_process import MAX_OUTPUT_BYTES
from cranfield.base.concurrency.loop import FunctionError, event_loop
from cranfield.base.concurrency.retry import is_transient, retry_after_s
from cranfield.base.errors import shorten
from cranfield.config.strict import ENV, request_values
from cranfield.config.systems import HttpConfig
from cranfield.model import Outcome, Scalar
from cranfield.systems.calls.redact import Redactor
from cranfield.systems.configured import HEAD_CHARS, CheckFailedError, ConfiguredSystem, Received, Reply, Step, failed
from cranfield.systems.kinds.http_reasons import failure_reason, failures
from cranfield.systems.kinds.http_request import (
    ENCODINGS,
    TOO_LONG,
    BodyError,
    HttpRequest,
    IncompleteRequestError,
    basic_credentials,
    build_request,
    decode_body,
    decode_text,
    required_variables,
)

if TYPE_CHECKING:
    import httpx2
    from httpx2 import AsyncClient

_CLOSE_S = 5.0


@dataclass(slots=True)
class _Response:
    """A response, possibly incomplete."""

    status: int = 0
    """0: no response."""
    headers: Mapping[str, str] | None = None
    body: bytearray = field(default_factory=bytearray)
    """As received: encoded."""
    is_http2: bool = False
    """Whether the connection is one of HTTP/2."""
    is_sent: bool = False
    """Whether the request was sent."""
    is_whole: bool = False
    """Whether the client has read the response to its end."""
    problem: BodyError | None = None
    """Why a body that was received is not a whole one."""
    text: str = ""
    """The body, decoded."""

    def header(self, name: str) -> str:
        return (self.headers or {}).get(name, "")

    async def note_event(self, name: str, _: object) -> None:
        """Called by the client, with names such as `http2.receive_response_headers.started`."""
        self.is_http2 |= name.startswith("http2.")
        self.is_sent |= ".receive_" in name

    def decode(self) -> str:
        """The body as text.

        Raises:
            BodyError: it is not whole, or is not text.
        """
        return decode_text(decode_body(bytes(self.body), self.header("content-encoding")), self.header("content-type"))

    @property
    def head(self) -> str:
        """Beginning of the body, for the log."""
        if self.text:
            return self.text[: 8 * HEAD_CHARS]
        if self.header("content-encoding"):
            return f"(encoded as {self.header('content-encoding')}: {len(self.body)} bytes)"
        return self.body[: 8 * HEAD_CHARS].decode("utf-8", "replace")


@dataclass(slots=True, eq=False)
class _Shared:
    """A client, and the number of calls under way with it."""

    client: AsyncClient
    calls: int = 0


class HttpSystem(ConfiguredSystem):
    """An HTTP service of cranfield.yaml.

    One client makes all calls. Cookies are not stored, so that answers are independent; redirects are not followed. Proxies
    and certificates of the environment (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE) are used.
    """

    kind = "http"
    config: HttpConfig

    retries = 3

    def prepare(self) -> None:
        """Find the environment variables of requests; no connection is opened yet."""
        self._http = self.config.http
        self._needs = required_variables(self._http)
        self._given = {name: self.environment[name] for name in self._needs if self.environment.get(name)}
        self._shared: _Shared | None = None
        self._making = Lock()
        self._closing: set[asyncio.Task[None]] = set()

    def variables_of_settings(self) -> list[str]:
        """Names of environment variables in the request."""
        return self._needs

    def secrets(self) -> dict[str, str]:
        """The credentials of basic authorization too, as they are encoded."""
        basic = basic_credentials(self._http, {ENV + name: value for name, value in self._given.items()})
        return super().secrets() | ({} if basic is None else {"BASIC": basic})

    async def make_ready(self) -> Reply | None:
        """Create the client, which reads certificates."""
        if self._shared is None:
            try:
                await event_loop().threads.call(self._ready_client)
            except FunctionError as raised:
                if not isinstance(raised.error, failures()):
                    raise raised.error from None
                return failed("no request was made: the configured proxies or certificates cannot be used")
        return None

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:
        """Send one request and read its answer."""
        try:
            request = self._request(query, k, params)
        except IncompleteRequestError as error:
            return failed(f"no request was made: {error}")
        response = _Response()
        shared = self._ready_client()
        shared.calls += 1
        try:
            await self._exchange(shared.client, request, response)
        except failures() as error:
            return _broken(error, response)
        finally:
            received.output = response.head
            shared.calls -= 1
            self._retire(shared, is_broken=response.is_http2 and not response.is_whole)
        return _reply(response, self.redactor)

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """Method, URL, headers and body, with names of variables instead of their values."""
        names = {name: f"${{{name}}}" for name in self._given}
        try:
            shown = str(self._request(query, k, params, names))
        except IncompleteRequestError as error:
            return f"(no request was made: {error})"
        for name in names.values():
            shown = shown.replace(quote(name, safe=""), name)
        basic = basic_credentials(self._http, {ENV + name: value for name, value in names.items()})
        return shown if basic is None else shown.replace(basic, "${BASIC}")

    def ready_steps(self) -> Iterator[Step]:
        """Check that every environment variable is set, and certificates and proxies are usable.

        The client is created here, so that it does not add to the latency of the first query.
        """
        for name in self._needs:
            yield f"variable {name}", partial(self._variable, name)
        yield "certificates and proxies" if self._http.ca is None else f"certificates {self._http.ca}", self._connects

    def close(self) -> None:
        """Close the connections."""
        event_loop().run(self._close())

    async def _close(self) -> None:
        if self._shared is not None:
            self._retire(self._shared, is_broken=True)
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSE_S)

    def _retire(self, shared: _Shared, *, is_broken: bool) -> None:
        """Use a client no more if a call with it broke off, and close it after its last call.

        All calls share a connection of HTTP/2, and the client goes on using one on which nothing can arrive any more.
        """
        if is_broken and self._shared is shared:
            self._shared = None
        if self._shared is not shared and not shared.calls:
            task = asyncio.create_task(_closed(shared.client))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _request(
        self, query: str, k: int, params: Mapping[str, Scalar], given: Mapping[str, str] | None = None
    ) -> HttpRequest:
        missing = [name for name in self._needs if name not in self._given]
        if missing:
            raise IncompleteRequestError(f"the environment has no {', '.join(missing)}")
        return build_request(
            self._http, request_values(query=query, k=k, params=params, environment=given or self._given)
        )

    async def _exchange(self, client: AsyncClient, request: HttpRequest, response: _Response) -> None:
        headers = [(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in request.headers]
        trace = {"trace": response.note_event}
        stream = client.stream(request.method, request.url, headers=headers, content=request.body, extensions=trace)
        async with stream as incoming:
            response.headers = dict(incoming.headers)
            response.status = incoming.status_code
            try:
                await _receive(incoming, response.body)
                response.is_whole = True
            except BodyError as error:
                response.problem = error
        try:  # in a thread: a long body must not delay other calls
            response.text = await event_loop().threads.call(response.decode)
        except FunctionError as raised:
            if not isinstance(raised.error, BodyError):
                raise raised.error from None
            response.problem = response.problem or raised.error

    def _ready_client(self) -> _Shared:
        with self._making:
            if self._shared is None:
                self._shared = _Shared(self._new_client())
            return self._shared

    def _new_client(self) -> AsyncClient:
        import httpx2

        keep_quiet()
        ca = self._http.ca
        return httpx2.AsyncClient(
            http2=self._http.http2,
            verify=trusted_certificates(http2=self._http.http2)
            if ca is None
            else ssl.create_default_context(cafile=str(self.folder / ca)),
            timeout=None,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            headers={"Accept-Encoding": ", ".join(ENCODINGS)},
            limits=httpx2.Limits(max_connections=self.concurrency, max_keepalive_connections=self.concurrency),
        )

    def _variable(self, name: str) -> str:
        if name in self._given:
            return "set"
        found = "one that is empty" if name in self.environment else "none of that name"
        raise CheckFailedError("a variable of the environment", found, f"export {name}=... before the run.")

    def _connects(self) -> str:
        try:
            self._ready_client()
        except failures():
            hint = "check ca (relative to the config file), HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE."
            raise CheckFailedError(
                "files in PEM form, and proxies over HTTP", "one that cannot be used", hint
            ) from None
        return "can be used"


async def _closed(client: AsyncClient) -> None:
    with suppress(*failures()):
        await client.aclose()


def keep_quiet() -> None:
    """Raise the log level of HTTP libraries: their debug logs contain URLs and headers, and so secrets."""
    for name in ("httpx2", "httpcore2", "h2", "hpack"):
        log = logging.getLogger(name)
        if log.level == logging.NOTSET:
            log.setLevel(logging.WARNING)


async def _receive(incoming: httpx2.Response, body: bytearray) -> None:
    """Receive a body as it was sent, up to the limit.

    Raises:
        BodyError: it is longer, or bytes follow its end.
    """
    stream: Any = incoming.stream
    async with aclosing(aiter(stream)) as parts:
        async for part in parts:
            room = MAX_OUTPUT_BYTES - len(body)
            body += part[:room]
            if len(part) > room:
                raise BodyError(TOO_LONG)
    if left := await close_if_leftover(incoming, stream):
        raise BodyError(f"{left} bytes follow the end of the answer")


async def close_if_leftover(incoming: httpx2.Response, stream: Any) -> int:
    """Number of bytes that were received after a response was read to its end, line ends aside.

    The client would read them as the answer to the next request, so the connection is closed; also where a version of the
    client does not show them.
    """
    if incoming.http_version == "HTTP/2":
        return 0
    for name in ("_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state"):
        stream = getattr(stream, name, None)
    trailing: tuple[bytes, bool] | None = getattr(stream, "trailing_data", None)
    if trailing is None or trailing[0]:
        await incoming.extensions["network_stream"].aclose()
    return 0 if trailing is None or not trailing[0].strip(b"\r\n") else len(trailing[0])


def _reply(response: _Response, redactor: Redactor) -> Reply:
    """The reply for a response that has ended."""
    status = response.status
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES or status == HTTPStatus.PARTIAL_CONTENT:
        return _refused(response, redactor)
    if (problem := response.problem) is None:
        return Reply(response.text)
    reason = str(problem) if problem.got is None else f"{problem}: {shorten(redactor.redact(problem.got))}"
    return failed(reason, outcome=Outcome.UNPARSABLE, output=response.head)


def _refused(response: _Response, redactor: Redactor) -> Reply:
    """The reply for a status that is not a success."""
    status = response.status
    try:
        reason = f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        reason = f"HTTP {status}"
    location = response.header("location")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST and location:
        reason += f", to {shorten(redactor.redact(location))}; redirects are not followed"
    wait_s = retry_after_s(response.header("retry-after"), response.header("date"))
    return replace(failed(reason, output=response.head, may_retry=is_transient(status)), retry_after_s=wait_s)


def _broken(error: BaseException, response: _Response) -> Reply:
    """The reply for an incomplete exchange."""
    reason, may_pass = failure_reason(error, has_begun=response.status > 0, is_sent=response.is_sent)
    reply = failed(reason, output=response.head, may_retry=may_pass)
    return replace(reply, died=may_pass and not response.is_sent)
