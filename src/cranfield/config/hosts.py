"""Hosts, networks and times of requests, as the operator's file writes them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from cranfield.base.errors import Problem, shorten
from cranfield.config.strict import Finding, checked

_DURATION = re.compile(r"(?:\d+w)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s)?")
_HOST = re.compile(r"(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


def network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """An address or a network; None for the name of a host."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _check_host(text: str) -> Iterator[Finding]:
    if network_of(text) is None and (_HOST.fullmatch(text) is None or re.fullmatch(r"[0-9./x]+", text)):
        yield (), Problem("no host and no network", expected="wiki.intern, *.intern, 10.1.0.0/16", got=shorten(text))


Host = Annotated[str, checked(_check_host)]
Seconds = Annotated[float, Field(gt=0, le=120)]


def is_duration(text: str) -> bool:
    """Whether a text is a duration as Prometheus writes it."""
    return bool(text) and _DURATION.fullmatch(text) is not None


def _check_duration(text: str) -> Iterator[Finding]:
    if not is_duration(text):
        yield (), Problem("not a duration", expected="such as 15m, 1h30m or 2d", got=shorten(text))


Duration = Annotated[str, checked(_check_duration)]
"""As Prometheus writes it: `15m`, `1h30m`, `2d`."""
