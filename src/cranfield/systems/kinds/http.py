"""A system under test that is an HTTP service: one request per query, over connections that are kept open.

The reason of a failure is the same on every machine: it holds no address, path or text of a library. Retried are 429, 5xx
and broken connections; not retried are other refusals, untrusted certificates and timeouts.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import logging
import socket
import ssl
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
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
from cranfield.base.version import __version__
from cranfield.config.services import Http
from cranfield.config.strict import (
    ABSENT,
    ENV,
    REQUEST_PLACEHOLDERS,
    as_argument,
    fill_text,
    fill_value,
    is_placeholder,
    placeholders,
    request_values,
    texts,
)
from cranfield.config.systems import HttpConfig
from cranfield.model import Outcome, Scalar
from cranfield.systems.calls.redact import Redactor
from cranfield.systems.calls.stages import CheckFailedError, Step
from cranfield.systems.configured import HEAD_CHARS, ConfiguredSystem, Received, Reply, failed

if TYPE_CHECKING:
    import httpx2
    from httpx2 import AsyncClient


Why = tuple[str, bool]
"""The reason, and whether a retry may succeed."""

_CERTIFICATE = {
    9: "it is not valid yet",
    10: "it has expired",
    18: "it is self-signed",
    19: "its issuer is not trusted",
    20: "its issuer is not trusted",
    21: "its issuer is not trusted",
    62: "it is for another host",
    64: "it is for another host",
}
"""Verification result of OpenSSL to a message; OpenSSL's messages differ between versions."""
_CAUSES: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "the host name cannot be resolved"),
    (ConnectionRefusedError, "the connection was refused"),
)
_UNSENDABLE = "no request was made: its address or a header cannot be sent"
_BROKE_OFF = "the connection broke in the middle of the answer"
_NOT_HTTP = "the answer is not valid HTTP"


@cache
def failures() -> tuple[type[BaseException], ...]:
    """Exceptions of sending and receiving that are failures of the system."""
    import h2.exceptions
    import hpack
    import httpx2

    # OSError: unreadable certificates. ImportError, ValueError: an unusable proxy, an invalid host. OverflowError: a port
    # that cannot be, alone or in the group of the connections that were tried. The client passes on errors of HTTP/2.
    of_httpx2 = httpx2.HTTPError, httpx2.InvalidURL, h2.exceptions.H2Error, hpack.HPACKError
    return *of_httpx2, OSError, ImportError, ValueError, OverflowError, ExceptionGroup


@cache
def _errors() -> tuple[tuple[tuple[type[BaseException], ...], str, bool], ...]:
    import httpx2

    unsendable = httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, ValueError
    return (
        ((httpx2.ProxyError,), "the proxy refused the connection", True),
        (unsendable, _UNSENDABLE, False),
        ((httpx2.ConnectError,), "no connection could be made", True),
        ((httpx2.HTTPError,), "the connection was closed before an answer", True),
        ((Exception,), "no connection could be made", True),
    )


def failure_reason(error: BaseException, *, has_begun: bool, is_sent: bool = False) -> Why:
    """The reason of a failed exchange.

    Args:
        error: one of `failures`.
        has_begun: whether a part of the response was received.
        is_sent: whether the request was sent.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = _CERTIFICATE.get(cause.verify_code, "it could not be verified")
            return f"TLS: the certificate is not trusted: {why}", False
    if (of_http2 := _http2_reason(causes)) is not None:
        return of_http2
    if has_begun:
        return _BROKE_OFF, True
    return _reason_without_answer(error, causes, is_sent=is_sent)


def _reason_without_answer(error: BaseException, causes: list[BaseException], *, is_sent: bool) -> Why:
    """The reason of an exchange in which nothing was received that could be read."""
    import httpx2

    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "TLS: no secure connection could be negotiated", True
    for cause in causes:
        for kind, reason in _CAUSES:
            if isinstance(cause, kind):
                return reason, True
    if any(isinstance(cause, OverflowError) for cause in causes):
        return _UNSENDABLE, False
    kinds, reason, may_pass = next(entry for entry in _errors() if isinstance(error, entry[0]))
    is_garbage = any(type(cause).__module__.startswith("h11.") for cause in causes)
    if (is_sent and not isinstance(error, httpx2.HTTPError)) or (kinds == (httpx2.HTTPError,) and is_garbage):
        return _NOT_HTTP, True
    return reason, may_pass


def _http2_reason(causes: list[BaseException]) -> Why | None:
    """The reason of a failure of HTTP/2: what the service sent, or how it broke the protocol."""
    from h2.events import ConnectionTerminated, StreamReset
    from h2.exceptions import H2Error, InvalidBodyLengthError, TooManyStreamsError
    from hpack import HPACKError

    found = [value for cause in causes for value in (*cause.args, cause)]
    for value in found:  # what the service says of it comes first
        if isinstance(value, StreamReset | ConnectionTerminated):
            what = "reset the request" if isinstance(value, StreamReset) else "ended the connection"
            name = _code_name(value.error_code)
            may_pass = name != "HTTP_1_1_REQUIRED"
            return f"HTTP/2: the service {what} ({name}){'' if may_pass else '; set `http2: false`'}", may_pass
    for value in found:
        if isinstance(value, InvalidBodyLengthError):
            return "HTTP/2: the answer is longer or shorter than its Content-Length", True
        if isinstance(value, TooManyStreamsError):
            return "HTTP/2: the service takes no more requests on the connection", True
        if isinstance(value, H2Error | HPACKError):
            return f"HTTP/2: the service violated the protocol ({_code_name(getattr(value, 'error_code', 9))})", True
    return None


def _code_name(code: Any) -> str:
    """Name of an error code of HTTP/2."""
    from h2.errors import ErrorCodes

    return ErrorCodes(code).name if code in set(ErrorCodes) else f"code {code}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and all of its causes."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        cause = left.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        left += [cause.__cause__, cause.__context__]
        if isinstance(cause, BaseExceptionGroup):
            left += cause.exceptions


_BREAKS_A_HEADER = frozenset("\r\n\0")


class IncompleteRequestError(Exception):
    """The request cannot be built for this query; the message is the reason in reports."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request."""

    method: str
    url: str
    """Percent-encoded."""
    headers: tuple[tuple[str, str], ...]
    """Headers of this request; the client adds those of the connection."""
    body: bytes | None = None

    def __str__(self) -> str:
        """For display: request line, headers, body."""
        lines = [f"{self.method} {self.url}", *(f"{name}: {value}" for name, value in self.headers)]
        if self.body is not None:
            lines += ["", self.body.decode("utf-8", "replace")]
        return "\n".join(lines)


def required_variables(http: Http) -> list[str]:
    """Names of the environment variables in a request, sorted."""
    parts = http.url, http.headers, http.basic, http.parameters, http.json_, http.form, http.text
    names = {name for part in parts for text in texts(part) for name in placeholders(text)}
    return sorted(name.removeprefix(ENV) for name in names if name.startswith(ENV))


def basic_credentials(http: Http, values: Mapping[str, Scalar]) -> str | None:
    """Credentials of basic authorization, encoded; None if not configured, or a variable is not set."""
    pair = ABSENT if http.basic is None else fill_value(http.basic, values)
    return None if pair is ABSENT else b64encode(str(pair).encode("utf-8", "surrogateescape")).decode("ascii")


def build_request(http: Http, values: Mapping[str, Scalar]) -> HttpRequest:
    """Build a request.

    Args:
        http: its configuration.
        values: typed values of placeholders: see `template.request_values`.

    Raises:
        IncompleteRequestError: it cannot be built.
    """
    try:
        body, content_type = _body(http, values)
        headers = dict(_headers(http, values))
        present = {name.casefold() for name in headers}
        if content_type is not None and "content-type" not in present:
            headers["Content-Type"] = content_type
        if "user-agent" not in present:
            headers["User-Agent"] = f"cranfield/{__version__}"
        method = http.method or ("GET" if body is None else "POST")
        return HttpRequest(method, _url(http, values), tuple(headers.items()), body)
    except UnicodeEncodeError:
        raise IncompleteRequestError("it contains a character that is not allowed in a request") from None
    except ValueError:
        raise IncompleteRequestError("its body contains a number that JSON cannot represent") from None


def _url(http: Http, values: Mapping[str, Scalar]) -> str:
    _require(http.url, values, "the address")
    encoded = {name: _in_url(value) for name, value in values.items()}
    url = http.url
    first = next(placeholders(url), "")
    if first.startswith(ENV) and url.startswith(f"{{{first}}}"):
        # The variable holds the URL of the service, already encoded.
        encoded[first] = str(values[first]).rstrip("/")
    url = fill_text(url, encoded)
    parameters = list(_pairs(http.parameters, values))
    if parameters:
        url += ("&" if "?" in url else "?") + _encoded(parameters)
    return url


def _in_url(value: Scalar) -> str:
    text = quote(as_argument(value), safe="")
    # A path segment of dots alone would leave its folder.
    return text.replace(".", "%2E") if text in {".", ".."} else text


def _headers(http: Http, values: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    for name, written in http.headers.items():
        value = fill_value(written, values)
        if value is ABSENT:
            continue
        text = as_argument(value).strip()
        if _BREAKS_A_HEADER & set(text):
            raise IncompleteRequestError(f"header {name} would contain a line break")
        yield name, text
    basic = basic_credentials(http, values)
    if basic is not None:
        yield "Authorization", f"Basic {basic}"


def _body(http: Http, values: Mapping[str, Scalar]) -> tuple[bytes | None, str | None]:
    if http.json_ is not None:
        filled = fill_value(http.json_, values)
        if filled is ABSENT:
            raise IncompleteRequestError("the body needs a parameter that is missing")
        return json.dumps(filled, ensure_ascii=False, allow_nan=False, default=str).encode(), "application/json"
    if http.form is not None:
        return _encoded(_pairs(http.form, values)).encode("ascii"), "application/x-www-form-urlencoded"
    if http.text is not None:
        _require(http.text, values, "the body")
        text = fill_text(http.text, {name: as_argument(value) for name, value in values.items()})
        return text.encode(), "text/plain; charset=utf-8"
    return None, None


def _pairs(parameters: Mapping[str, Any], values: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    """Names and values of a query string or form; a list repeats its name, null omits it."""
    for name, value in fill_value(parameters, values).items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield name, as_argument(item) if isinstance(item, str | bool | int | float) else str(item)


def _encoded(pairs: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)


def _require(text: str, values: Mapping[str, Scalar], what: str) -> None:
    absent = [n for n in placeholders(text) if is_placeholder(n, REQUEST_PLACEHOLDERS) and n not in values]
    if absent:
        raise IncompleteRequestError(f"{what} needs {absent[0]}, which is missing")


ENCODINGS = ("gzip", "deflate")
"""Accepted content encodings: those that need no extra package."""
TOO_LONG = f"over {MAX_OUTPUT_BYTES // 1024**2} MB of output"
_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_MAX_LAYERS = 3
"""Maximum number of encodings, one on top of the other."""
_MAX_MEMBERS = 300
"""Maximum number of parts of a gzip body: each costs a copy of the rest."""
_NO_CHARSETS = frozenset(
    {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem", "utf-7"}
)
"""Codecs of Python that are not charsets of text, or unsafe."""


class BodyError(Exception):
    """The body is not whole, or cannot be read; the message is the reason."""

    def __init__(self, reason: str, got: str | None = None) -> None:
        """Initialise; `got` is what the service wrote, which may be a secret."""
        super().__init__(reason)
        self.got = got


def decode_body(body: bytes, content_encoding: str) -> bytes:
    """A body without its content encodings.

    Raises:
        BodyError: it is cut off, damaged or too long, bytes follow its end, or it has an encoding that was not accepted.
    """
    names = [name.strip().lower() for name in content_encoding.split(",")]
    names = [name for name in names if name not in {"", "identity"}]
    if unknown := sorted(set(names).difference(ENCODINGS)):
        raise BodyError("the answer has a content encoding that was not requested", unknown[0])
    if len(names) > _MAX_LAYERS:
        raise BodyError(f"the answer has over {_MAX_LAYERS} content encodings, one on top of the other")
    for name in reversed(names):
        try:
            body = _gunzip(body) if name == "gzip" else _inflate(body)
        except zlib.error:
            raise BodyError(f"the answer cannot be decoded as {name}, its declared encoding") from None
    return body


def decode_text(body: bytes, content_type: str) -> str:
    """A body as text, in the charset of its `Content-Type`.

    Raises:
        BodyError: it is not text in that charset, or Python knows no such charset.
    """
    charset = charset_of(content_type)
    try:
        return body.decode("" if _is_trap(charset) else charset)
    except LookupError:
        raise BodyError("the charset of the answer is unknown", charset) from None
    except ValueError:
        raise BodyError(f"the answer is not text in {charset}") from None


def charset_of(content_type: str) -> str:
    """The charset of a `Content-Type`, in lower case; default UTF-8."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip(" \"'"):
            return value.strip(" \"'").lower()
    return "utf-8"


def _is_trap(charset: str) -> bool:
    return codecs.lookup(charset).name.replace("_", "-") in _NO_CHARSETS


def _gunzip(data: bytes) -> bytes:
    """All parts of a gzip body, in order: RFC 1952 allows several."""
    whole = b""
    for _ in range(_MAX_MEMBERS):
        part, data = _decompressed(data, _GZIP, "gzip", MAX_OUTPUT_BYTES - len(whole))
        whole += part
        if not data:
            return whole
        if not data.startswith(b"\x1f\x8b"):
            raise BodyError(f"{len(data)} bytes follow the end of the answer's gzip encoding")
    raise BodyError(f"the answer's gzip encoding has over {_MAX_MEMBERS} parts")


def _inflate(data: bytes) -> bytes:
    """A body of `deflate`: with the header and checksum of zlib, as specified, or without, as some servers send it."""
    try:
        whole, left = _decompressed(data, _ZLIB, "deflate", MAX_OUTPUT_BYTES)
    except zlib.error:
        whole, left = _decompressed(data, _RAW, "deflate", MAX_OUTPUT_BYTES)
    if left:
        raise BodyError(f"{len(left)} bytes follow the end of the answer's deflate encoding")
    return whole


def _decompressed(data: bytes, bits: int, name: str, limit: int) -> tuple[bytes, bytes]:
    """One compressed part, and the bytes that follow it."""
    decompressor = zlib.decompressobj(bits)
    part = decompressor.decompress(data, limit + 1)
    if len(part) > limit:
        raise BodyError(TOO_LONG)
    if not decompressor.eof:
        raise BodyError(f"the answer is cut off: its {name} encoding has no end")
    return part, decompressor.unused_data


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
            reason, may_pass = failure_reason(error, has_begun=response.status > 0, is_sent=response.is_sent)
            reply = failed(reason, output=response.head, may_retry=may_pass)
            return replace(reply, died=may_pass and not response.is_sent)
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
        super().close()

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
