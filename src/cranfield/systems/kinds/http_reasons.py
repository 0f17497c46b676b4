"""Reasons of failed HTTP exchanges: from an exception to a message that is the same on every machine."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from functools import cache
from typing import Any

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
