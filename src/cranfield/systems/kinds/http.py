"""A system under test that is an HTTP service: one request per query, over connections that are kept open.

The reason of a failure is the same on every machine: it holds no address, path or text of a library. Retried are 429, 5xx
and broken connections; not retried are other refusals, untrusted certificates and timeouts.
"""

from __future__ import annotations

import asyncio
import codecs
import logging
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import quote

from cranfield.concurrency.child_process import MAX_OUTPUT_BYTES
from cranfield.concurrency.loop import FunctionError, event_loop
from cranfield.concurrency.retry import is_transient, retry_after_s
from cranfield.config.systems import HttpConfig
from cranfield.config.template import ENV, request_values
from cranfield.errors import shorten
from cranfield.model import Outcome, Scalar
from cranfield.systems.calls.redact import Redactor
from cranfield.systems.configured import HEAD_CHARS, CheckFailedError, ConfiguredSystem, Received, Reply, Step, failed
from cranfield.systems.kinds.http_reasons import failure_reason, failures
from cranfield.systems.kinds.http_request import (
    HttpRequest,
    IncompleteRequestError,
    basic_credentials,
    build_request,
    required_variables,
)

if TYPE_CHECKING:
    from httpx2 import AsyncClient

ENCODINGS = ("gzip", "deflate")
"""Accepted content encodings: those that need no extra package."""
_NO_CHARSETS = frozenset(
    {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem", "utf-7"}
)
"""Codecs of Python that are not charsets of text, or unsafe."""
_CLOSE_S = 5.0


@dataclass(slots=True)
class _Response:
    """A response, possibly incomplete."""

    status: int = 0
    """0: no response."""
    headers: Mapping[str, str] | None = None
    body: bytearray = field(default_factory=bytearray)
    is_too_long: bool = False

    def header(self, name: str) -> str:
        return (self.headers or {}).get(name, "")


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
        self._client: AsyncClient | None = None
        self._making = Lock()

    def variables_of_settings(self) -> list[str]:
        """Names of environment variables in the request."""
        return self._needs

    def secrets(self) -> dict[str, str]:
        """The credentials of basic authorization too, as they are encoded."""
        basic = basic_credentials(self._http, {ENV + name: value for name, value in self._given.items()})
        return super().secrets() | ({} if basic is None else {"BASIC": basic})

    async def make_ready(self) -> Reply | None:
        """Create the client, which reads certificates."""
        if self._client is None:
            try:
                await event_loop().threads.call(self._ready_client)
            except FunctionError as raised:
                if not isinstance(raised.error, failures()):
                    raise raised.error from None
                return failed("no request was made: the proxies or certificates to use cannot be used")
        return None

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:
        """Send one request and read its answer."""
        try:
            request = self._request(query, k, params)
        except IncompleteRequestError as error:
            return failed(f"no request was made: {error}")
        response = _Response()
        try:
            await self._exchange(self._ready_client(), request, response)
        except failures() as error:
            return _broken(error, response)
        finally:
            received.output = _head(response)
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
        client, self._client = self._client, None
        if client is not None:
            with suppress(TimeoutError):
                event_loop().run(asyncio.wait_for(client.aclose(), _CLOSE_S))

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
        stream = client.stream(request.method, request.url, headers=headers, content=request.body)
        async with stream as incoming:
            response.headers = dict(incoming.headers)
            response.status = incoming.status_code
            async for part in incoming.aiter_bytes():
                room = MAX_OUTPUT_BYTES - len(response.body)
                response.body += part[:room]
                if len(part) > room:
                    response.is_too_long = True
                    break

    def _ready_client(self) -> AsyncClient:
        with self._making:
            if self._client is None:
                self._client = self._new_client()
            return self._client

    def _new_client(self) -> AsyncClient:
        import httpx2

        keep_quiet()
        ca = self._http.ca
        return httpx2.AsyncClient(
            http2=self._http.http2,
            verify=True if ca is None else ssl.create_default_context(cafile=str(self.folder / ca)),
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
            hint = "look at ca, which is relative to the config file, and at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE."
            raise CheckFailedError(
                "files in PEM form, and proxies over HTTP", "one that cannot be used", hint
            ) from None
        return "can be used"


def keep_quiet() -> None:
    """Raise the log level of HTTP libraries: their debug logs contain URLs and headers, and so secrets."""
    for name in ("httpx2", "httpcore2", "h2", "hpack"):
        log = logging.getLogger(name)
        if log.level == logging.NOTSET:
            log.setLevel(logging.WARNING)


def _reply(response: _Response, redactor: Redactor) -> Reply:
    """The reply for a complete or truncated response."""
    status = response.status
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return _refused(response, redactor)
    if response.is_too_long:
        return failed(
            f"over {MAX_OUTPUT_BYTES // 1024**2} MB of output", outcome=Outcome.UNPARSABLE, output=_head(response)
        )
    encodings = {name.strip().lower() for name in response.header("content-encoding").split(",")}
    if unknown := sorted(encodings - {"", "identity", *ENCODINGS}):
        return failed(
            f"the answer is encoded as {shorten(redactor.redact(unknown[0]))}, unasked", outcome=Outcome.UNPARSABLE
        )
    charset = charset_of(response.header("content-type"))
    try:
        return Reply(response.body.decode("" if _is_trap(charset) else charset))
    except LookupError:
        reason = f"the answer names a charset that is not known: {shorten(redactor.redact(charset))}"
    except ValueError:
        reason = f"the answer is not text in {charset}"
    return failed(reason, outcome=Outcome.UNPARSABLE, output=_head(response))


def _is_trap(charset: str) -> bool:
    return codecs.lookup(charset).name.replace("_", "-") in _NO_CHARSETS


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
    return replace(failed(reason, output=_head(response), may_retry=is_transient(status)), retry_after_s=wait_s)


def charset_of(content_type: str) -> str:
    """The charset of a `Content-Type`, in lower case; default UTF-8."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip(" \"'"):
            return value.strip(" \"'").lower()
    return "utf-8"


def _head(response: _Response) -> str:
    """Beginning of a body, for the log."""
    return response.body[: 8 * HEAD_CHARS].decode("utf-8", "replace")


def _broken(error: BaseException, response: _Response) -> Reply:
    """The reply for an incomplete exchange."""
    from httpx2 import DecodingError

    if isinstance(error, DecodingError):
        return failed("the answer cannot be decoded as it says it is encoded", outcome=Outcome.UNPARSABLE)
    reason, may_pass = failure_reason(error, has_begun=response.status > 0)
    return failed(reason, output=_head(response), may_retry=may_pass)
