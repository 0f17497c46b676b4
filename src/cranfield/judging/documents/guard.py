"""Which addresses the server may request: public ones, and those that the operator's file allows.

A name is resolved once, every address that it has is checked, and the connection goes to a checked address: a name that
resolves to another address a moment later (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from cranfield.base.concurrency.loop import event_loop
from cranfield.config.services import network_of
from cranfield.judging.documents.values import DocumentError, DocumentFailureKind

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
