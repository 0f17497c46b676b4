"""The body of an HTTP answer as text: content encodings and charset. A body that is not whole is no answer.

Decoded here and not by the client, which accepts a compressed body that was cut off, drops what follows its first part,
and does not say so.
"""

from __future__ import annotations

import codecs
import zlib

from cranfield.base.concurrency.child_process import MAX_OUTPUT_BYTES

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
        raise BodyError("the answer has a content encoding that was not asked for", unknown[0])
    if len(names) > _MAX_LAYERS:
        raise BodyError(f"the answer has over {_MAX_LAYERS} content encodings, one on top of the other")
    for name in reversed(names):
        try:
            body = _gunzip(body) if name == "gzip" else _inflate(body)
        except zlib.error:
            raise BodyError(f"the answer cannot be decoded as {name}, as it says it is encoded") from None
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
        raise BodyError("the answer names a charset that is not known", charset) from None
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
