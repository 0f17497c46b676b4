"""Requests to web servers: addresses are checked before each, redirects are followed by hand, size and time are limited."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from cranfield.base.certificates import trusted_certificates
from cranfield.base.concurrency.loop import FunctionError, event_loop
from cranfield.config.documents import DocumentFormat, UrlSource, fill_placeholders
from cranfield.judging.documents.guard import AddressGuard, Resolver, matches_host, refused, system_resolver
from cranfield.judging.documents.values import Content, DocumentError, DocumentFailureKind, Reader, Wanted
from cranfield.systems.kinds.http_request import BodyError, decode_body, decode_text

if TYPE_CHECKING:
    import httpx2

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
