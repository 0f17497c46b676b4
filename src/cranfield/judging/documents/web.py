"""Requests to web servers: addresses are checked before each, redirects are followed by hand, size and time are limited."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from cranfield.base.certificates import trusted_certificates
from cranfield.base.concurrency.loop import FunctionError, event_loop
from cranfield.config.documents import DocumentFormat, UrlSource, fill_placeholders
from cranfield.config.services import network_of
from cranfield.judging.documents.values import Content, DocumentError, DocumentFailureKind, Reader, Wanted
from cranfield.systems.kinds.http import BodyError, decode_body, decode_text

if TYPE_CHECKING:
    import httpx2


IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Sequence[str]]
"""Host and port to its addresses."""
_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.?", re.IGNORECASE)
"""A host that some library reads as an address: `2130706433`, `0x7f.1`, `0177.0.0.1`."""
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_.])?", re.IGNORECASE)
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        ("2002::/16", "2001::/32", "3fff::/20", "192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"),
    )
)
"""Networks that are no part of the public internet, whatever the version of Python says: 6to4 and Teredo (each address stands for
an IPv4 address), documentation, assignments of protocols, relays of 6to4, the service of Azure for its virtual machines."""


def system_resolver(host: str, port: int) -> list[str]:
    """Addresses of a host, by the resolver of the system."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class AddressGuard:
    """Checks addresses."""

    def __init__(self, allow: Sequence[str] = (), resolver: Resolver = system_resolver) -> None:
        """Initialise.

        Args:
            allow: hosts and networks that may be private.
            resolver: of host names.
        """
        networks = [network_of(entry) for entry in allow]
        self._networks = [network for network in networks if network is not None]
        self._hosts = [entry.lower() for entry, network in zip(allow, networks, strict=True) if network is None]
        self._resolver = resolver

    def checked(self, url: str) -> tuple[str, int, str]:
        """Host, port and the address to connect to.

        Raises:
            DocumentError: it is not http or https, holds a user name, or has an address that may not be requested.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise refused("is not valid") from None
        if parts.scheme not in {"http", "https"} or not host:
            raise refused("is not http or https")
        if "@" in parts.netloc or "\\" in url or any(ord(char) <= 32 or ord(char) == 127 for char in url):
            raise refused("contains a user name, or characters that are not valid in an address")
        if port == 0:
            raise refused("has no valid port")
        port = port or (443 if parts.scheme == "https" else 80)
        addresses = self._addresses(host, port)
        is_named = any(matches_host(host, pattern) for pattern in self._hosts)
        if not is_named and not all(map(self._is_allowed, addresses)):
            raise refused("is in a private network")
        return host, port, str(addresses[0])

    def _addresses(self, host: str, port: int) -> list[IPAddress]:
        literal = as_address(host)
        if literal is not None:
            return [literal]
        if _NUMBERS.fullmatch(host) or not _NAME.fullmatch(host) or len(host) > 253:
            raise refused("has no valid host")
        try:
            found = [as_address(text) for text in self._resolver(host, port)]
        except (OSError, UnicodeError):
            found = []
        addresses = [address for address in found if address is not None]
        if not addresses or len(addresses) < len(found):
            raise DocumentError(DocumentFailureKind.FAILED, "The host of this document is unknown.")
        return addresses

    def _is_allowed(self, address: IPAddress) -> bool:
        if any(address.version == network.version and address in network for network in self._networks):
            return True
        return is_public(address)


def as_address(text: str) -> IPAddress | None:
    """An address in its normal spelling; an IPv4 address that is mapped into IPv6 is the IPv4 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or address
    return address


def is_public(address: IPAddress) -> bool:
    """Whether an address is one of the public internet. The shared, metadata and multicast ranges are not."""
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id is not None or address not in _GLOBAL_UNICAST):
        return False
    if any(address.version == network.version and address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def matches_host(host: str, pattern: str) -> bool:
    """Whether a host is the one named, or below it for `*.example.org`."""
    host, pattern = host.lower().rstrip("."), pattern.lower()
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def refused(reason: str) -> DocumentError:
    """The error for an address that is not requested."""
    return DocumentError(DocumentFailureKind.REFUSED, f"The address of this document is not requested: it {reason}.")


WAIT_S = 2.0
"""Longest wait for another document of the same source to end."""
MAX_WAITING = 16
"""Documents of a source that wait; for further ones it is busy."""
GRACE_S = 0.5
"""Seconds over its limit that a source has to report its own end."""
Value = TypeVar("Value")


class Slots:
    """The documents of one source that are being read, and those that wait."""

    def __init__(self, concurrency: int, timeout_s: float) -> None:
        self._running = threading.BoundedSemaphore(concurrency)
        self._waiting = threading.BoundedSemaphore(MAX_WAITING)
        self._timeout_s = timeout_s

    def run(self, work: Callable[[], Value]) -> Value:
        """Run a function in a thread, with a limit of time. A late one is abandoned, and keeps its slot until it ends.

        Raises:
            DocumentError: the source is busy, or it is late.
        """
        busy = DocumentError(
            DocumentFailureKind.BUSY, "Other documents of this source are being read. Try again in a moment."
        )
        if not self._waiting.acquire(blocking=False):
            raise busy
        try:
            if not self._running.acquire(timeout=WAIT_S):
                raise busy
        finally:
            self._waiting.release()

        def worked() -> Value:
            try:
                return work()
            finally:
                self._running.release()

        try:
            return event_loop().run_function(worked, self._timeout_s + GRACE_S)
        except TimeoutError:
            message = f"The source of this document did not answer within {self._timeout_s:g} s."
            raise DocumentError(DocumentFailureKind.TIMED_OUT, message) from None


class TimedCache(Generic[Value]):
    """Values for some time, the most recently used ones up to a size."""

    def __init__(self, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[float, int, Value]] = OrderedDict()
        self._size = 0

    def get(self, key: tuple[str, str]) -> Value | None:
        """The value; None where there is none, or it is too old."""
        with self._lock:
            until, _, value = self._kept.get(key, (0.0, 0, None))
            if value is None or self._clock() >= until:
                return None
            self._kept.move_to_end(key)
            return value

    def keep(self, key: tuple[str, str], value: Value, size: int) -> None:
        """Keep a value, of a size in the unit of the limit."""
        with self._lock:
            self._size += size - self._kept.pop(key, (0.0, 0, value))[1]
            self._kept[key] = (self._clock() + self._seconds, size, value)
            while self._size > self._most:
                _, (_, oldest, _) = self._kept.popitem(last=False)
                self._size -= oldest


MAX_REDIRECTS = 3
_CHARSET = re.compile(rb"charset=[\"']?([A-Za-z0-9_-]+)")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_FORMATS: Mapping[str, DocumentFormat] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/plain": "text",
    "application/json": "code",
    "text/xml": "code",
    "application/xml": "code",
}
"""Content type to format; documents of other types are not shown."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response with status 200."""

    url: str
    content_type: str
    """With its parameters."""
    body: bytes


class WebClient:
    """Requests documents. No cookies, no proxies, no credentials; a connection serves one request."""

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        timeout_s: float,
        max_bytes: int,
        hosts: Sequence[str] | None = None,
        resolver: Resolver = system_resolver,
    ) -> None:
        """Initialise.

        Args:
            allow: hosts and networks that may be private.
            timeout_s: seconds for a document, all redirects included.
            max_bytes: of a body, before and after it is decoded.
            hosts: patterns of the only hosts that are requested; None: all.
            resolver: of host names.
        """
        self._guard = AddressGuard(allow, resolver)
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._hosts = hosts

    def get(self, url: str, accept: str) -> Response:
        """The response of a server.

        Raises:
            DocumentError: there is none with status 200 within the limits.
        """
        try:
            return event_loop().run(self._get(url, accept))
        except TimeoutError:
            message = f"The web server of this document did not answer within {self._timeout_s:g} s."
            raise DocumentError(DocumentFailureKind.TIMED_OUT, message) from None

    async def _get(self, url: str, accept: str) -> Response:
        async with asyncio.timeout(self._timeout_s):
            for _ in range(MAX_REDIRECTS + 1):
                answer = await self._requested(url, accept)
                if isinstance(answer, Response):
                    return answer
                url = answer
        raise DocumentError(DocumentFailureKind.FAILED, f"The web server redirects more than {MAX_REDIRECTS} times.")

    async def _requested(self, url: str, accept: str) -> Response | str:
        """The response, or the address that it redirects to."""
        import httpx2

        try:
            host, port, address = await event_loop().threads.call(lambda: self._checked(url))
        except FunctionError as raised:
            raise raised.error from None
        headers = {"Accept": accept, "Accept-Encoding": "gzip, identity"}
        try:
            async with (
                httpx2.AsyncClient(verify=trusted_certificates(), trust_env=False, timeout=self._timeout_s) as client,
                client.stream("GET", **pinned(url, host, port, address, headers)) as response,
            ):
                if response.status_code in _REDIRECTS and "location" in response.headers:
                    return urljoin(url, response.headers["location"])
                return await self._read(url, response)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, UnicodeError):
            raise DocumentError(
                DocumentFailureKind.FAILED, "The web server of this document cannot be reached."
            ) from None

    def _checked(self, url: str) -> tuple[str, int, str]:
        host, port, address = self._guard.checked(url)
        if self._hosts is not None and not any(matches_host(host, pattern) for pattern in self._hosts):
            raise refused("has a host that the operator's file does not list")
        return host, port, address

    async def _read(self, url: str, response: httpx2.Response) -> Response:
        if response.status_code in {404, 410}:
            raise DocumentError(DocumentFailureKind.NOT_FOUND, "The web server does not have this document.")
        if response.status_code != 200:
            message = f"The web server of this document answered with status {response.status_code}."
            raise DocumentError(DocumentFailureKind.FAILED, message)
        too_large = DocumentError(
            DocumentFailureKind.TOO_LARGE, f"The document is larger than {self._max_bytes:,} bytes."
        )
        body = bytearray()
        async with aclosing(response.aiter_raw()) as parts:
            async for part in parts:
                body += part
                if len(body) > self._max_bytes:
                    raise too_large
        try:
            decoded = decode_body(bytes(body), response.headers.get("content-encoding", ""))
        except BodyError as error:
            raise DocumentError(DocumentFailureKind.FAILED, f"The web server failed: {error}.") from None
        if len(decoded) > self._max_bytes:
            raise too_large
        return Response(url, response.headers.get("content-type", ""), decoded)


_KEPT = "/%:@!$&'()*+,;=~-._?"
"""Characters of a path or a query that are sent as they are."""


def pinned(url: str, host: str, port: int, address: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """Address, headers and extensions of a request that goes to an address which was checked, and not to that of its name."""
    import httpx2

    parts = urlsplit(url)
    path = quote(parts.path or "/", safe=_KEPT) + (f"?{quote(parts.query, safe=_KEPT)}" if parts.query else "")
    name = f"[{host}]" if ":" in host else host
    named = name if port == {"http": 80, "https": 443}[parts.scheme] else f"{name}:{port}"
    return {
        "url": httpx2.URL(scheme=parts.scheme, host=address, port=port, raw_path=path.encode()),
        "headers": {"Host": named, "User-Agent": "cranfield", **headers},
        "extensions": {"sni_hostname": host},  # the certificate must be that of the name, not of the address
    }


@dataclass(frozen=True, slots=True)
class UrlReader(Reader):
    """Documents of a web server."""

    config: UrlSource
    resolver: Resolver = system_resolver

    def read(self, wanted: Wanted) -> Content:
        """The document of the web server."""
        url = document_url(self.config.url, wanted.values)
        client = WebClient(
            allow=self.config.allow,
            timeout_s=self.config.timeout_s,
            max_bytes=self.config.max_bytes,
            resolver=self.resolver,
        )
        response = client.get(url, "text/html, text/markdown, text/plain;q=0.9, application/json;q=0.8")
        media_type = response.content_type.partition(";")[0].strip().lower()
        kind = self.config.format or _FORMATS.get(media_type)
        if kind is None and not media_type.startswith("text/"):
            raise DocumentError(DocumentFailureKind.FAILED, "The web server returned a file that is not text.")
        try:
            text = decode_text(response.body, with_charset(response.content_type, response.body))
        except BodyError as error:
            raise DocumentError(DocumentFailureKind.FAILED, f"The web server failed: {error}.") from None
        return Content(text, kind, url=url)


def with_charset(content_type: str, body: bytes) -> str:
    """The content type with a charset: its own, UTF-8 where the body is that, or what a page says of itself."""
    if "charset=" in content_type.lower():
        return content_type
    try:
        body.decode()
    except UnicodeDecodeError:
        found = _CHARSET.search(body[:2_048])
        return f"text/html; charset={found[1].decode() if found else 'windows-1252'}"
    return content_type


def document_url(pattern: str, values: Mapping[str, str]) -> str:
    """The address of a document.

    Raises:
        DocumentError: a part of its path would be `.` or `..`.
    """
    url = fill_placeholders(pattern, values, lambda value, keeps: quote(value, safe="/" if keeps else ""))
    if {".", ".."} & set(urlsplit(url).path.split("/")):
        raise refused("points to another folder of the server")
    return url
