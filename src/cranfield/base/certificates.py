"""The certificates that our clients of HTTP trust."""

from __future__ import annotations

import os
import ssl
from functools import cache


def trusted_certificates(*, http2: bool = False) -> ssl.SSLContext:
    """Those of the package, or of the variables SSL_CERT_FILE and SSL_CERT_DIR: read once, which takes 25 ms.

    Args:
        http2: a client writes into the context which protocols it speaks, so clients of HTTP/2 have one of their own.
    """
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"), "h2" if http2 else "http/1.1")


@cache
def _read(*_key: str | None) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()
