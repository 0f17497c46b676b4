"""How the server is started: its address, who may sign in, whose headers it believes."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cranfield.base.errors import UsageError
from cranfield.workbench.config import DEFAULT_CONNECTIONS

if TYPE_CHECKING:
    from cranfield.workbench.config import ServerSetting

DEFAULT_PORT = 8734
KEY_VARIABLE = "CRANFIELD_SECRET"
SHORTEST_SECRET = 32


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class ServerOptions:
    """How the server is started."""

    host: str = "127.0.0.1"
    """Address that it listens on."""
    port: int = DEFAULT_PORT
    accounts: bool = False
    """Whether people sign in; otherwise one user of this machine does, with the start-up token."""
    user: str = ""
    """Name that the user of this machine states; empty: that of the operating system."""
    url: str = ""
    """Address that browsers use, `https://judge.example.org`; empty: host and port."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses whose `X-Forwarded-For` and `-Proto` are believed."""
    allow_hosts: tuple[str, ...] = ()
    """Further names, with a port or without, that the header `Host` may be."""
    connections: int = DEFAULT_CONNECTIONS
    """At a time."""
    drain_s: float = 0.0
    """Seconds between the signal to stop, from which on the server is not ready, and the last accepted connection."""
    db: str = field(default="", repr=False)
    """Address of the database."""
    log: str = "quiet"
    """Form of the log: `json`, `text`, `auto`: text on a terminal, otherwise JSON, or `quiet`: warnings alone."""
    stop_s: float = 10.0
    """Seconds that running requests have to finish when the server stops."""
    settings: tuple[ServerSetting, ...] = ()
    """Every setting, and where it comes from, for the page of settings."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(SHORTEST_SECRET), repr=False)
    """Signs cookies and reset links."""
    start_token: str = field(default_factory=lambda: secrets.token_urlsafe(SHORTEST_SECRET), repr=False)
    """Token of the printed address, without accounts."""

    def __post_init__(self) -> None:
        """Refuse what would be open to others.

        Raises:
            UsageError: others reach the address without accounts, or its public name is not known.
        """
        reached = [host for host in (self.host, self.public.hostname or "") if not is_loopback(host)]
        if reached and not self.accounts:
            raise UsageError(
                f"other machines can reach the server at {reached[0]} without an account",
                expected="a local address such as 127.0.0.1, or --accounts",
                hint="`cranfield people add NAME --role admin` makes the first account; then add --accounts",
            )
        if named := [
            name for name in self.allow_hosts if not re.fullmatch(r"[\w.-]+(:\d+)?|\[[\da-fA-F:]+\](:\d+)?", name)
        ]:
            raise UsageError(f"--allow-host {named[0]} is not a host name", expected="NAME or NAME:PORT")
        if self.public.scheme not in {"http", "https"} or not self.public.hostname:
            raise UsageError(f"--url {self.url} is not an HTTP address", expected="https://NAME[:PORT]")
        parts = urlsplit(self.url)
        if parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
            raise UsageError(
                "--url has more parts than scheme, host and port",
                expected="https://NAME[:PORT]",
                hint="the server needs its own host name or port, because its pages begin at /",
            )
        if ip_address_unspecified(self.host) and not self.url:
            raise UsageError(
                f"browsers cannot use the address {self.host}",
                expected="the address that browsers use to reach the server",
                hint="add --url https://NAME; requests with another host name are refused",
            )

    @property
    def public(self) -> Address:
        """The address that browsers use."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        parts = urlsplit(self.url or f"http://{host}:{self.port}")
        # Browsers leave out the port of a scheme.
        netloc = parts.netloc.lower().removesuffix({"http": ":80", "https": ":443"}.get(parts.scheme, ":"))
        return Address(parts.scheme, netloc, parts.hostname)

    @property
    def origins(self) -> frozenset[str]:
        """Origins of our own pages."""
        return frozenset(f"{self.public.scheme}://{host}" for host in self.hosts)

    @property
    def hosts(self) -> frozenset[str]:
        """What the header `Host` may be."""
        names = {self.public.netloc}
        if not self.url and is_loopback(self.host):
            port = "" if self.port == 80 else f":{self.port}"
            names |= {f"{name}{port}" for name in ("localhost", "127.0.0.1", "[::1]")}
        return frozenset(names)

    def knows(self, host: str) -> bool:
        """Whether the header `Host` may have this value."""
        named = {name.lower() for name in self.allow_hosts}
        return host in self.hosts or host in named or re.sub(r":\d+$", "", host) in named

    @property
    def secure(self) -> bool:
        """Whether browsers use https."""
        return self.public.scheme == "https"

    def cookie(self, name: str) -> str:
        """Name of a cookie: those of two servers on one machine differ, as cookies do not know ports."""
        return f"__Host-cranfield-{name}" if self.secure else f"cranfield-{name}-{self.port}"


@dataclass(frozen=True, slots=True)
class Address:
    """A part of a URL."""

    scheme: str
    netloc: str
    hostname: str | None

    def __str__(self) -> str:
        """As a URL."""
        return f"{self.scheme}://{self.netloc}"


def server_options(settings: tuple[ServerSetting, ...]) -> ServerOptions:
    """Options of the settings that decide.

    Raises:
        UsageError: others could reach the server without accounts, or the address is none.
    """
    values: dict[str, Any] = {each.name: each.value for each in settings}
    return ServerOptions(
        host=values["host"],
        port=values["port"],
        accounts=values["accounts"],
        url=values["url"].rstrip("/"),
        trusted_proxies=tuple(values["trust_proxy"]),
        allow_hosts=tuple(values["allow_hosts"]),
        connections=values["connections"],
        drain_s=values["drain_s"],
        db=values["db"],
        log=str(values["log"]),
        stop_s=values["stop_s"],
        settings=settings,
        secret=server_secret(),
    )


def ip_address_unspecified(host: str) -> bool:
    """Whether an address stands for all of the machine's: `0.0.0.0`, `::`."""
    try:
        return ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def start_page(address: str, environment: Mapping[str, str] = os.environ) -> str:
    """Address of a file of this user that leads on to an address with a token.

    Other users of the machine can read the arguments of a browser that is started, and not this file.
    """
    path = _private_folder(environment) / "start.html"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(address)}"><title>Cranfield</title>'
        )
    return path.as_uri()


def _private_folder(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_DATA_HOME")
    folder = (Path(base) if base else Path.home() / ".local" / "share").absolute() / "cranfield"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def server_secret(environment: dict[str, str] | None = None) -> bytes:
    """The key that signs cookies: of the environment, or a file of this user that is made once.

    Raises:
        UsageError: the variable is too short.
    """
    known = os.environ if environment is None else environment
    if value := known.get(KEY_VARIABLE):
        if len(value) < SHORTEST_SECRET:
            raise UsageError(
                f"{KEY_VARIABLE} has {len(value)} characters", expected=f"{SHORTEST_SECRET} or more random characters"
            )
        return value.encode()
    path = _private_folder(known) / "server.key"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SHORTEST_SECRET))
    found = path.read_bytes()
    if len(found) < SHORTEST_SECRET:
        raise UsageError(
            "the key of the server is damaged", path=str(path), hint="remove the file; people must then sign in again"
        )
    return found
