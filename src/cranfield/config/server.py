"""How `cranfield serve` runs: the block `server:` of workbench.yaml, and what decides where several places name a value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from cranfield.config.strict import Strict
from cranfield.model.kinds import Text

LogForm = Literal["auto", "json", "text"]
_PASSWORD = re.compile(r"(://[^:/@]*):.*@")
DEFAULT_CONNECTIONS = 500
"""With the files of the database fewer than the 1,024 handles that a process usually may have."""
Port = Annotated[int, Field(ge=1, le=65_535)]


class ServerConfig(Strict):
    """How the server runs. An option of `cranfield serve` precedes its environment variable, and that this file."""

    db: Text = "cranfield-books.db"
    """Database: a path, relative to the working directory, `sqlite:PATH` or `postgresql://...`."""
    accounts: bool = False
    """Whether people sign in. Without it one user of this machine does."""
    host: Text = "127.0.0.1"
    """Address to listen on."""
    port: Port = 8734
    """Port to listen on."""
    url: str = ""
    """Address that browsers use, `https://judge.example.org`; default: host and port."""
    trust_proxy: list[Text] = Field(default_factory=list)
    """Addresses of proxies whose `X-Forwarded` headers are believed."""
    allow_hosts: list[Text] = Field(default_factory=list)
    """Further names of this server, with a port or without, that requests may use: `10.0.0.5`, `cranfield.internal:8734`. Only
    programs with a token use them; the pages are at `url`."""
    connections: Annotated[int, Field(ge=10, le=100_000)] = DEFAULT_CONNECTIONS
    """Connections at a time. Beyond it the oldest one that waits for its client is closed for a new one; three quarters of them
    may be requests in work, further ones are answered with 503."""
    log: LogForm = "auto"
    """Form of the log: `json`, one object a line, or `text`; `auto` is `text` on a terminal, and `json` elsewhere."""
    drain_s: Annotated[float, Field(ge=0, le=600)] = 0.0
    """Seconds in which the server goes on after the signal to stop, and `/readyz` fails, so that a load balancer takes it out."""
    stop_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """Seconds that requests have to finish when the server is stopped."""


class SettingOrigin(StrEnum):
    """Where a value comes from; the first of these decides."""

    OPTION = "option"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A setting of the server."""

    name: str
    value: object
    origin: SettingOrigin


def resolve_settings(
    given: Mapping[str, tuple[object, SettingOrigin]], file: ServerConfig
) -> tuple[ServerSetting, ...]:
    """Every setting with its value, and where that comes from.

    Args:
        given: name to value, of options and environment variables; those of the origin `default` are not looked at.
        file: the block of the operator's file.
    """
    found = []
    for name in ServerConfig.model_fields:
        value, origin = given.get(name, (None, SettingOrigin.DEFAULT))
        if origin is SettingOrigin.DEFAULT:
            origin = SettingOrigin.FILE if name in file.model_fields_set else SettingOrigin.DEFAULT
            value = getattr(file, name)
        found.append(ServerSetting(name, value, origin))
    return tuple(found)


def shown_settings(settings: Iterable[ServerSetting]) -> list[tuple[str, str, str]]:
    """Name, value and origin of each setting, for people: no password, and no parameters of an address."""
    return [(each.name, _shown(each.value), each.origin.value) for each in settings]


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value)) or "none"
    text = str("none" if value == "" else value)
    if "://" not in text:
        return text
    return _PASSWORD.sub(r"\1:***@", text).partition("?")[0]
