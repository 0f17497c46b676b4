"""Reasons of failed HTTP exchanges: from an exception to a message that is the same on every machine."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from functools import cache

Why = tuple[str, bool]
"""The reason, and whether a retry may succeed."""

_CERTIFICATE = {
    9: "it is not valid yet",
    10: "it has expired",
    18: "it is signed by itself",
    19: "its issuer is not trusted",
    20: "its issuer is not trusted",
    21: "its issuer is not trusted",
    62: "it is for another host",
    64: "it is for another host",
}
"""Verification result of OpenSSL to a message; OpenSSL's messages differ between versions."""
_CAUSES: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "the host's name is not known"),
    (ConnectionRefusedError, "the connection was refused"),
)
_UNSENDABLE = "no request was made: its address or a header cannot be sent"
_BROKE_OFF = "the connection broke in the middle of the answer"
_NOT_HTTP = "what came back is not HTTP"


@cache
def failures() -> tuple[type[BaseException], ...]:
    """Exceptions of sending and receiving that are failures of the system."""
    import httpx2

    # OSError: unreadable certificates. ImportError, ValueError: an unusable proxy, an invalid host. OverflowError: a port
    # that cannot be, alone or in the group of the connections that were tried.
    return httpx2.HTTPError, httpx2.InvalidURL, OSError, ImportError, ValueError, OverflowError, ExceptionGroup


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


def failure_reason(error: BaseException, *, has_begun: bool) -> Why:
    """The reason of a failed exchange.

    Args:
        error: one of `failures`.
        has_begun: whether a part of the response was received.
    """
    import httpx2

    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = _CERTIFICATE.get(cause.verify_code, "it could not be verified")
            return f"TLS: the certificate is not trusted: {why}", False
    if has_begun:
        return _BROKE_OFF, True
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "TLS: no secure connection could be agreed on", True
    for cause in causes:
        for kind, reason in _CAUSES:
            if isinstance(cause, kind):
                return reason, True
    if any(isinstance(cause, OverflowError) for cause in causes):
        return _UNSENDABLE, False
    kinds, reason, may_pass = next(entry for entry in _errors() if isinstance(error, entry[0]))
    return (_NOT_HTTP if kinds == (httpx2.HTTPError,) and _is_garbage(causes) else reason), may_pass


def _is_garbage(causes: list[BaseException]) -> bool:
    """Whether the parser of the protocol rejected the response."""
    return any(type(cause).__module__.startswith(("h11.", "h2.", "hpack.")) for cause in causes)


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
